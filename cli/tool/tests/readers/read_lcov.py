"""Reads an export with lcov_cobertura: prints, as JSON, the hits and branches of each line by file."""

import json
import sys
from xml.etree import ElementTree

from lcov_cobertura import LcovCobertura

with open(sys.argv[1]) as file:
    report = LcovCobertura(file.read(), ".").convert()
found = {}
for source in ElementTree.fromstring(report).iter("class"):
    lines = {line.get("number"): [line.get("hits"), line.get("condition-coverage")] for line in source.iter("line")}
    found[source.get("filename")] = lines
json.dump(found, sys.stdout)
