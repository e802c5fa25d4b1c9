"""Checks outputs of the tool by its schemas: `check_schema.py FOLDER FILE`; each line of the file is `NAME JSON`.

Prints, as JSON, how many outputs of each name were checked; fails with what is wrong in the first that does not fit.
"""

import json
import pathlib
import sys
from collections import Counter

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

schemas = {path.stem: json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.json")}
registry = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in schemas.values()
)
validators = {}
for name, schema in schemas.items():
    Draft202012Validator.check_schema(schema)
    validators[name] = Draft202012Validator(schema, registry=registry)
checked = Counter()
for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
    name, text = line.split(" ", 1)
    for error in validators[name].iter_errors(json.loads(text)):
        sys.exit(f"{name} at {error.json_path}: {error.message[:500]}")
    checked[name] += 1
json.dump(checked, sys.stdout)
