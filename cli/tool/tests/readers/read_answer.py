"""Reads the answer of a query with DuckDB: prints its rows as JSON objects."""

import json
import sys

import duckdb

found = duckdb.connect().execute(f"select * from '{sys.argv[1]}'")
names = [column[0] for column in found.description]
json.dump([dict(zip(names, row)) for row in found.fetchall()], sys.stdout)
