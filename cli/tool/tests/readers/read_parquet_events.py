"""Reads a large export with DuckDB: prints what a test of its size asks for, as JSON."""

import json
import sys

import duckdb

connection = duckdb.connect()
file = f"'{sys.argv[1]}'"


def ask(query):
    return connection.execute(query).fetchall()[0]


(rows,) = ask(f"select count(*) from {file}")
(gaps,) = ask(
    f"select count(*) from (select max(event) + 1 - count(distinct event) as missing from {file} "
    "group by launch, warp_index) where missing != 0"
)
(largest,) = ask(f"select max(row_group_num_rows) from parquet_metadata({file})")
json.dump({"rows": rows, "gaps": gaps, "largest_group": largest}, sys.stdout)
