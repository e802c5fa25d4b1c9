"""Reads a data set of `export --to parquet` as one table: `dataset.py duckdb|polars|spark FOLDER`.

Prints, as JSON, rows, visits and lanes of all; visits and lanes of launch 37 of rank 2; rows by job, rank and trace;
how many files the reader read for that launch, and how many of a file's row groups (of Spark: rows), as it says itself.
"""

import contextlib
import json
import os
import re
import sys
import tempfile

ALL = "select count(*), cast(sum(count) as bigint), cast(sum(lanes * count) as bigint) from runs"
LAUNCH = "select cast(sum(count) as bigint), cast(sum(lanes * count) as bigint) from runs where rank = 2 and launch = 37"
RANKS = "select job, rank, trace, count(*) from runs group by job, rank, trace order by trace"


def duckdb(folder):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"create view runs as from '{folder}/runs/**/*.parquet'")

    def ask(query):
        return connection.execute(query).fetchall()

    ((_, plan),) = ask("explain (analyze, format json) " + LAUNCH)
    files = int(re.search(r'"Total Files Read": "(\d+)"', plan)[1])
    groups = [json.loads(plan)["query"][f"total_row_groups_{which}"] for which in ["scanned", "to_scan"]]
    return ask, files, groups


def polars(folder):
    # Must be set before the import.
    os.environ["POLARS_VERBOSE"] = "1"
    import polars

    runs = polars.scan_parquet(f"{folder}/runs/**/*.parquet", hive_partitioning=True)
    query = runs.filter(rank=2, launch=37).select("count")
    scanned = re.search(r"Parquet SCAN \[(.*)\]", query.explain())[1].split(", ")
    # The reader prints to standard error which files it reads.
    with tempfile.TemporaryFile("w+") as said:
        errors = os.dup(2)
        os.dup2(said.fileno(), 2)
        query.collect()
        os.dup2(errors, 2)
        said.seek(0)
        groups = re.search(r"reading (\d+) / (\d+) row groups", said.read())
    return (lambda query: polars.SQLContext(runs=runs).execute(query).collect().rows()), len(scanned), groups.groups()


def spark(folder):
    from pyspark.sql import SparkSession

    # Without adaptive plans, the explained plan is executed.
    options = {"ui.enabled": "false", "ui.showConsoleProgress": "false", "driver.host": "127.0.0.1"}
    options |= {"sql.adaptive.enabled": "false", "sql.shuffle.partitions": "2"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.read.parquet(f"{folder}/runs").createOrReplaceTempView("runs")
    query = session.sql(LAUNCH)
    query._jdf.collect()
    plan = query._jdf.queryExecution().executedPlan()
    assert "PartitionFilters: [isnotnull(rank" in plan.toString(), plan.toString()
    metrics = plan.collectLeaves().head().metrics()
    files, rows = (metrics.get(name).get().value() for name in ["numFiles", "numOutputRows"])
    (of_file,), = session.sql("select count(*) from runs where rank = 2").collect()
    return (lambda query: [list(row) for row in session.sql(query).collect()]), files, [rows, of_file]


with contextlib.redirect_stdout(sys.stderr):
    ask, files, parts = {"duckdb": duckdb, "polars": polars, "spark": spark}[sys.argv[1]](sys.argv[2])
    (everything,), (launch,), ranks = ask(ALL), ask(LAUNCH), ask(RANKS)
found = {"all": everything, "launch": launch, "ranks": ranks, "files": files, "parts": [int(part) for part in parts]}
json.dump(found, sys.stdout)
