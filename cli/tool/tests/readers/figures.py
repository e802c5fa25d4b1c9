"""Computes with DuckDB every figure of a trace from the CSV of `decode`, time from the Parquet export; prints them as JSON.

figures.py EVENTS.csv INFO.json FOLDER [OTHER.csv]: the folder has the tables; with the last file also where warps go another way in that one.
"""

import json
import pathlib
import sys

import duckdb

connection = duckdb.connect()
events, info, tables = sys.argv[1:4]


def rows_of(file):
    columns = (
        "select launch::int as launch, kernel, block_x::int as block_x, block_y::int as block_y, "
        "block_z::int as block_z, warp::int as warp, event::bigint as event, location::int as location, name, "
        "mask::varchar::bigint as mask, coalesce(lost::bigint, 0) as lost"
    )
    return f"{columns} from read_csv('{file}', header = true, all_varchar = true)"


def table(name):
    found = connection.execute(f"select * from {name}")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row)) for row in found.fetchall()]


with open(info) as file:
    known = json.load(file)
connection.execute(f"create table rows as {rows_of(events)}")
connection.execute(f"create table runs as from '{tables}/runs/**/*.parquet'")
connection.execute(f"create table ran as from '{tables}/launches/**/*.parquet'")
connection.execute("create table launches (launch int, grid_x int, grid_y int, threads int)")
for launch in known["launches"]:
    x, y, z = launch["block"]
    row = [launch["launch"], launch["grid"][0], launch["grid"][1], x * y * z]
    connection.execute("insert into launches values (?, ?, ?, ?)", row)
connection.execute("create table points (id int, file varchar, line int, weight bigint)")
code = [point["code"] for point in known["metadata"]["locations"]]
# Slots are instructions if all locations have a number of instructions.
is_weighed = bool(code) and all(code)
for point in known["metadata"]["locations"]:
    weight = point["code"]["instructions"] if is_weighed else 1
    connection.execute("insert into points values (?, ?, ?, ?)", [point["id"], point["file"], point["line"], weight])
connection.execute(pathlib.Path(__file__).with_name("figures.sql").read_text())

views = ["locations", "lines", "kernels", "edges", "paths"]
times = ["location_times", "line_times", "kernel_times", "warp_times", "visit_times", "loop_times", "schedule"]
answer = {name: table(name) for name in views + times}
answer["warps"] = table("(select * exclude (kernel) from paths_of_warps)")
answer["losses"] = table(
    "(select coalesce(sum(lost), 0)::bigint as lost_events, count(*) filter (lost > 0) as lossy_warps, "
    "(select count(*) from paths_of_warps where \"end\" = 'unfinished') as unfinished_warps from warps)"
)[0]
if len(sys.argv) > 4:
    connection.execute(f"create table others as {rows_of(sys.argv[4])}")
    columns = "launch, block_x, block_y, block_z, warp, event, location, mask"
    answer["first_changes"] = table(
        f"(select launch, block_x, warp, min(event) as event from (select {columns} from "
        f"(select {columns} from rows union all select {columns} from others) group by {columns} "
        "having count(*) = 1) group by launch, block_x, block_y, block_z, warp)"
    )
json.dump(answer, sys.stdout)
