"""Reads the tables of accesses of an export with DuckDB: sectors and requests of each site by the documentation's
formula, accesses by site in both forms, and the facts, as JSON. `read_accesses.py RUNS LANES FORMULA`."""

import json
import sys

import duckdb

runs, lanes, formula = sys.argv[1:]
connection = duckdb.connect()


def ask(query):
    return connection.execute(query).fetchall()


def table(folder, name):
    return f"'{folder}/{name}/**/*.parquet'"


found = {
    "sectors": ask(formula.replace("OUT", lanes)),
    "sites": ask(
        f"select site, sectors, requests, accesses, events from {table(runs, 'sites')} where requests > 0 order by site"
    ),
    "losses": ask(f"select launch, accesses, lost, left_out, unmatched from {table(runs, 'access_losses')}"),
    "facts": dict(
        ask(f"select decode(key), decode(value) from parquet_kv_metadata({table(runs, 'accesses')})")
    ),
}
# For each site, the number of accesses, and the sum of their addresses or bits modulo 2^64.
found["lanes"] = ask(
    f"select site, count(*), (sum(address::hugeint) % 18446744073709551616)::ubigint from ("
    f"select site, address from {table(lanes, 'lane_accesses')} union all "
    f"select site, bits from {table(lanes, 'lane_values')}) group by site order by site"
)
expanded = """
    select site, base::hugeint + coalesce(spread::hugeint * (i - low) // greatest(high - low, 1), 0)
        + n * step::hugeint as address
    from (select *, unnest(range(count::int64)) as n from (
        select *, unnest(case when lane is null then [bit for bit in range(32) if (mask::int64 >> bit) & 1 = 1]
            else [lane::int64] end) as i,
            list_min([bit for bit in range(32) if (mask::int64 >> bit) & 1 = 1]) as low,
            list_max([bit for bit in range(32) if (mask::int64 >> bit) & 1 = 1]) as high
        from {}))"""
both = " union all ".join(expanded.format(table(runs, name)) for name in ["accesses", "values"])
found["runs"] = ask(
    f"select site, count(*), (sum(address) % 18446744073709551616)::ubigint from ({both}) group by site order by site"
)
found["numbers"] = ask(
    f"select name, min(number), max(number), count(distinct number) from {table(lanes, 'lane_values')} group by name"
)
json.dump(found, sys.stdout)
