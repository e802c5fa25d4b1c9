"""Reads exports with DuckDB: prints all rows of each table, sums by line, and the facts, as JSON."""

import json
import sys

import duckdb

connection = duckdb.connect()


def ask(query):
    return connection.execute(query).fetchall()


folder = sys.argv[1]
found = {}
for table in sys.argv[2:]:
    file = f"'{folder}/{table}/**/*.parquet'"
    # Only the columns in the files, without those from partitions.
    rows = f"read_parquet({file}, hive_partitioning = false)"
    types = {column[0]: column[1] for column in ask(f"describe select * from {rows}")}
    found[table] = {
        "types": types,
        "rows": ask(f"select * from {rows}"),
        "facts": dict(ask(f"select decode(key), decode(value) from parquet_kv_metadata({file})")),
    }
    if "mask" in types:
        count = "count" if "count" in types else "1"
        found[table]["lines"] = ask(
            f"select file, line, sum({count})::uint64, sum(lanes * {count})::uint64, "
            f"sum(bit_count(mask::int64) * {count})::uint64, count(distinct (launch, warp_index))"
            f" from {file} group by file, line order by file, line"
        )
json.dump(found, sys.stdout)
