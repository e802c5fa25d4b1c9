"""Compares what the installed package reads with what the installed tool prints. `check.py none|all`: with no other
package, or also with pandas, PyArrow, Polars and DuckDB."""

import contextlib
import csv
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import warnings

import warptrace

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOL = os.path.join(sysconfig.get_path("scripts"), "warptrace")
# The repository has traces of all kinds: whole and lossy, with several launches, and with chosen warps only.
TRACES = sorted(
    [*(ROOT / "decoder/query/tests/traces").glob("*.wtrc"), *(ROOT / "decoder/decode/tests/golden").glob("*.wtrc")]
)


def tool(*words):
    """Runs the tool; returns what it prints."""
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def tool_json(*words):
    return json.loads(tool(*words, "--json"))


def as_json(value):
    """A value as the tool prints it: whole numbers that a double does not hold are texts."""
    if isinstance(value, dict):
        return {name: as_json(part) for name, part in value.items()}
    if isinstance(value, list):
        return [as_json(part) for part in value]
    return str(value) if type(value) is int and abs(value) > 2**53 else value


def opened(path):
    """Opens a trace; returns it with the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return warptrace.open(path), said


def rows(table):
    """The rows of a table as dicts."""
    columns = table.to_pydict()
    assert list(columns) == table.columns
    lengths = {len(column) for column in columns.values()}
    assert len(lengths) == 1, lengths
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def only(row, names):
    return {name: row[name] for name in names}


def check_summary(path):
    trace, said = opened(path)
    info = tool_json("info", path)
    assert as_json(trace.summary) == info, path
    lacks = not info["whole"] or "assum" in info["state"]
    assert bool(said) == lacks, (path, said)
    assert all(issubclass(warning.category, warptrace.LossWarning) for warning in said)
    assert all(info["state"] in str(warning.message) for warning in said)
    return trace, info


def check_events(path, trace):
    """Every event, as `decode --format jsonl` prints it."""
    expected = [json.loads(line) for line in tool("decode", path, "--format", "jsonl").splitlines()]
    expected = [row for row in expected if "lost" not in row]
    names = ["launch", "block_x", "block_y", "block_z", "warp", "event", "location", "mask"]
    found = trace.events(columns=names).to_pydict()
    assert list(found) == names
    events = list(zip(*found.values()))
    assert events == [key(row) for row in expected], path
    # Runs expand to the same events.
    runs, expanded = trace.runs().to_pydict(), []
    for values in zip(*(runs[name] for name in [*names, "count"])):
        *head, event, location, mask, count = values
        expanded += [(*head, event + number, location, mask) for number in range(count)]
    assert expanded == events, path
    # The first event of a run has its begin time. The last event of a run ends at the begin of the next run.
    known = [row["begin"] for row in expected if row.get("begin") is not None]
    for table in [trace.events(), trace.runs()]:
        assert [time for time in table.to_pydict()["t_begin"] if time is not None] == known, path
    assert set(trace.runs().to_pydict()["t_end"]) <= {*known, None}, path
    # The events of one warp.
    if events:
        launch, x, y, z, warp = events[-1][:5]
        chosen = trace.events(launch=launch, block=(x, y, z), warp=warp, columns=["mask"]).to_pydict()["mask"]
        assert chosen == [row[-1] for row in events if row[:5] == events[-1][:5]], path
        some = trace.events(warp=warp, columns=["mask"]).to_pydict()["mask"]
        assert some == [row[-1] for row in events if row[4] == warp], path
    return len(events)


def key(row):
    block = row["block"]
    block = block if isinstance(block, list) else [block[axis] for axis in "xyz"]
    mask = row["mask"]
    mask = mask if isinstance(mask, int) else int(mask, 16)
    return (row["launch"], *block, row["warp"], row["event"], row["location"], mask)


def check_figures(path, trace):
    lines = tool_json("lines", path, "--sort", "source")["lines"]
    names = ["visits", "lanes", "idle", "slots", "caused", "warps", "splits"]
    shown = lambda row: [row["file"] or "", row["line"] or 0, *only(row, names).values()]
    assert sorted(map(shown, rows(trace.lines()))) == sorted(map(shown, lines)), path
    causes = tool_json("causes", path)["causes"]
    names = ["location", "idle", "divergences"]
    # The tool adds up causes of one line; the table has a row for each branch.
    parts = [part for cause in causes for part in cause.get("parts") or [cause]]
    branches = lambda found: sorted((only(row, names) for row in found), key=lambda row: row["location"])
    assert branches(rows(trace.causes())) == branches(parts), path
    edges = tool_json("edges", path)
    names = ["from", "to", "visits", "lanes"]
    shown = lambda row: json.dumps(only(row, names))
    assert sorted(map(shown, rows(trace.edges()))) == sorted(map(shown, edges["edges"])), path
    totals = tool_json("stats", path)["totals"]
    times = ["lane_cycles", "warp_cycles", "active_lane_cycles", "idle_lane_cycles", "timed_visits"]
    for table in [trace.kernels, trace.lines(), trace.locations]:
        for name in ["visits", "lanes", "idle", *times]:
            column = [number for number in table.to_pydict()[name] if number is not None]
            assert sum(column) == totals.get(name, 0), (path, name)
    assert sum(trace.kernels.to_pydict()["slots"]) == totals["slots"], path
    (row,) = json.loads(tool("query", "SELECT sum(visits) AS visits FROM kernels", path, "--format", "json"))
    assert (row["visits"] or 0) == totals["visits"], path
    loops = tool_json("loops", path)["loops"]
    names = ["location", "visits", "idle"]
    by_location = lambda rows: sorted((only(row, names) for row in rows), key=lambda row: row["location"])
    assert by_location(rows(trace.loops())) == by_location(loops), path
    warps = tool_json("warps", path, "--sort", "number")["warps"]
    found = [(row["launch"], row["warp_index"], row["visits"], str(row["path"])) for row in rows(trace.warps())]
    expected = [(row["launch"], row["warp"], row["visits"], row["path"]) for row in warps]
    assert sorted(found) == sorted(expected), path
    # Block times and multiprocessors of warps, and their runs.
    found = {(row["launch"], row["warp_index"]): [row["sm"], row["begin_ns"], row["end_ns"]] for row in rows(trace.warps())}
    for row in warps:
        begin, length = row.get("begin_nanoseconds"), row.get("nanoseconds")
        expected = [row.get("sm"), begin, None if length is None else begin + length]
        assert found[row["launch"], row["warp"]] == expected, path
    for row in rows(trace.runs()):
        sm, begin, end = found[row["launch"], row["warp_index"]]
        assert row["sm"] == sm and (sm is None or row["block_begin_ns"] <= begin <= end <= row["block_end_ns"]), path


def check_tables(path, trace, info):
    launches = rows(trace.launches)
    assert [row["events"] for row in launches] == [row["events"] for row in info["launches"]], path
    names = [kernel["name"] for kernel in info["metadata"]["kernels"]]
    assert [row["kernel"] for row in launches] == [names[row["kernel"]] for row in info["launches"]], path
    known = {row["location"]: row["name"] for row in rows(trace.locations)}
    table = {row["id"]: row["name"] for row in info["metadata"]["locations"]}
    assert {key: known[key] for key in table} == table, path


def check_accesses(path, trace):
    """Every access of a lane, as `decode --accesses --format csv` prints it; sites as `accesses` does. Returns how many
    accesses there are."""
    addresses, values = rows(trace.lane_accesses()), rows(trace.lane_values())
    found = {}
    for row, what in [*((row, "address") for row in addresses), *((row, "bits") for row in values)]:
        key = tuple(row[name] for name in ["launch", "block_x", "block_y", "block_z", "warp", "site", "lane"])
        found.setdefault(key, []).append(row[what])
    if not rows(trace.sites()):
        assert not found and not rows(trace.accesses()) and not rows(trace.access_losses()), path
        return 0
    expected = {}
    for row in csv.DictReader(tool("decode", path, "--accesses", "--format", "csv").splitlines()):
        key = tuple(int(row[name]) for name in ["launch", "block_x", "block_y", "block_z", "warp", "site", "lane"])
        run = (int(row["base"]) + number * int(row["step"]) for number in range(int(row["vectors"])))
        expected.setdefault(key, []).extend(address % 2**64 for address in run)
    assert found == expected, path
    counted = tool_json("accesses", path)
    names = ["requests", "sectors", "least_sectors", "moved_bytes", "used_bytes", "passes", "least_passes"]
    shown = {site["site"]: only(site["counts"], names) for site in counted["sites"]}
    assert {row["site"]: only(row, names) for row in rows(trace.sites()) if row["requests"]} == shown, path
    lost = sum(row["lost"] for row in rows(trace.access_losses()))
    assert lost == counted["lost_accesses"], path
    counts = [bin(row["mask"]).count("1") * row["count"] if row["lane"] is None else row["count"] for row in rows(trace.accesses())]
    assert sum(counts) == len(addresses), path
    assert set(trace.values(columns=["kind"]).to_pydict()["kind"]) <= {"value"}, path
    return len(addresses) + len(values)


def check_numpy(trace):
    """The page's way to arrays of addresses gives those of the table."""
    page = (ROOT / "docs/users/python.md").read_text().split("## Addresses for NumPy")[1]
    code = page.split("```python\n")[1].split("```")[0]
    table = rows(trace.lane_accesses())
    for site in {row["site"] for row in table}:
        names = {"trace": trace, "site": site}
        exec(code, names)
        expected = {}
        for row in table:
            if row["site"] == site:
                expected.setdefault((row["warp_index"], row["lane"]), []).append(row["address"])
        arrays = names["addresses"]
        assert {key: array.tolist() for key, array in arrays.items()} == expected, site
        assert all(array.dtype == "uint64" for array in arrays.values()), site


@contextlib.contextmanager
def refused(kind, *words):
    try:
        yield
    except kind as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"no {kind.__name__}")


def check_wrong_input(path, folder):
    with refused(FileNotFoundError, "nowhere.wtrc"):
        warptrace.open("nowhere.wtrc")
    with refused(warptrace.TraceError, "it is a folder"):
        warptrace.open(folder)
    text = folder / "text.wtrc"
    text.write_text("no trace at all, but long enough to be looked at\n" * 10)
    with refused(warptrace.TraceError):
        warptrace.open(text)
    with refused(TypeError):
        warptrace.open(3)
    trace = warptrace.open(path)
    with refused(ValueError, "no launch 99"):
        trace.lines(launch=99)
    with refused(ValueError, "no kernel `other`", trace.launches.to_pydict()["kernel"][0]):
        trace.events(kernel="other")
    with refused(ValueError, "no column `masks`", "mask"):
        trace.events(columns=["masks"])
    with refused((OverflowError, TypeError)):
        trace.events(launch=-1)
    bytes_ = path.read_bytes()
    outcomes = set()
    for at in range(0, len(bytes_), max(1, len(bytes_) // 97)):
        damaged = bytearray(bytes_)
        damaged[at] ^= 0xFF
        file = folder / "damaged.wtrc"
        file.write_bytes(damaged)
        try:
            trace, said = opened(file)
            whole = trace.summary["whole"]
            assert whole or said, at
            count = len(trace.events(columns=["mask"]).to_pydict()["mask"])
            trace.lines().to_pydict()
            outcomes.add("read")
        except warptrace.TraceError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}, outcomes
    cut = folder / "cut.wtrc"
    cut.write_bytes(bytes_[: len(bytes_) * 3 // 4])
    trace, said = opened(cut)
    assert said and not trace.summary["whole"] and not trace.summary["complete"], said


def check_readers(path, trace):
    """Each reader sees the same columns and values."""
    import duckdb
    import pandas
    import polars
    import pyarrow

    tables = [trace.events(), trace.runs(), trace.lines(), trace.causes(), trace.warps(), trace.locations]
    for table in [*tables, trace.accesses(), trace.lane_values(), trace.sites()]:
        expected = table.to_pydict()
        assert pyarrow.table(table).to_pydict() == expected, path
        assert polars.DataFrame(table).to_dict(as_series=False) == expected, path
        frame = table.to_pandas()
        assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == table.columns, path
        assert len(frame) == len(next(iter(expected.values()))), path
        columns = pyarrow.table(table)
        fetched = duckdb.sql("FROM columns").fetchall()
        assert fetched == list(zip(*expected.values())), path
    # pandas 3 accepts tables directly.
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert len(pandas.DataFrame.from_arrow(trace.lines())) == len(trace.lines().to_pandas()), path
    # A reader that stops early ends the decoding. A trace without events has no batch.
    reader = pyarrow.RecordBatchReader.from_stream(trace.events())
    next(iter(reader), None)
    del reader


def check_notebook(folder):
    """The notebook's cells run, one after the other."""
    notebook = json.loads((ROOT / "examples/notebook/idle_lanes.ipynb").read_text())
    names, before, path = {}, os.getcwd(), os.environ["PATH"]
    os.environ["PATH"] = os.path.dirname(TOOL) + os.pathsep + path
    os.chdir(folder)
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    finally:
        os.chdir(before)
        os.environ["PATH"] = path
    assert len(names["lines"]) > 1 and names["causes"]["share"].sum() > 0.999


def main():
    readers = sys.argv[1] == "all"
    assert len(TRACES) >= 6, TRACES
    assert pathlib.Path(warptrace.__file__).is_relative_to(sys.prefix), "the package is not the installed one"
    assert tool("--version").startswith("warptrace "), TOOL
    assert not warptrace.is_traced()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = folder / "demo.wtrc"
        small = ["--device", "sim", "--memory", "64MiB", "--width", "32", "--depth", "40"]
        tool("demo", *small, "-o", made)
        timed = folder / "timed.wtrc"
        tool("demo", *small, "--times", "runs", "-o", timed)
        assert None not in warptrace.open(timed).runs().to_pydict()["t_begin"]
        events = lossy = accesses = 0
        for path in [*TRACES, made, timed]:
            trace, info = check_summary(path)
            lossy += not info["whole"]
            events += check_events(path, trace)
            check_figures(path, trace)
            check_tables(path, trace, info)
            accesses += check_accesses(path, trace)
            if readers:
                check_readers(path, trace)
                check_numpy(trace)
        check_wrong_input(made, folder)
        if readers:
            check_notebook(folder)
    assert events > 1000 and lossy > 0 and accesses > 1000, (events, lossy, accesses)
    print(f"{len(TRACES) + 2} traces, {events:,} events: package and tool agree")


main()
