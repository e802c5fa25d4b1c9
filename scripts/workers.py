"""Measures queries and figures of workers on this machine, and compares them with those of one process.

    workers.py PROGRAMS SMALL LARGE

PROGRAMS is a folder with `warptrace` and `warptrace-query`, SMALL and LARGE are folders of traces (see the example
`many_traces` of `warptrace-host`). Prints Markdown. All workers have all traces, and each is read by one of them.
"""

import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS, SMALL, LARGE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
TOOL = PROGRAMS / "warptrace"
TRACES = "step.*.wtrc"

EVENTS = "SELECT name, count(*), sum(lanes), min(mask), max(mask) FROM events GROUP BY name ORDER BY name"
RUNS = "SELECT trace, sum(count), sum(lanes * count) FROM runs GROUP BY trace ORDER BY trace"
LAUNCH = "SELECT name, count(*) FROM events WHERE trace = 'step.7.wtrc' AND launch = 1 GROUP BY name ORDER BY name"
TABLES = {
    "warps": "count(*), sum(visits), sum(idle), sum(path % 1000003)",
    "locations": "count(*), sum(visits), sum(lanes), sum(idle), sum(caused), sum(splits)",
    "loops": "count(*), sum(trips), max(max), sum(visits)",
    "launches": "count(*), sum(events)",
    "kernels": "count(*), sum(visits), sum(slots)",
    "lines": "count(*), sum(visits), sum(caused)",
    "causes": "count(*), sum(idle), sum(divergences), sum(reconverged)",
    "edges": "count(*), sum(visits), sum(lanes)",
    "sites": "count(*)",
    "access_losses": "count(*)",
    "accesses": "count(*)",
    '"values"': "count(*)",
    "lane_accesses": "count(*)",
    "lane_values": "count(*)",
}
FIGURES = ["top", "lines", "loops", "causes", "edges", "stats"]


def asked(sql):
    return ["query", sql, TRACES, "--format", "csv"]


def figures(command):
    return [command, TRACES, "--json"]


def run(folder, words, workers=None):
    """Returns the output, the seconds, and the bytes over loopback."""
    apart = ["--workers", ",".join(workers.names)] if workers else []
    before, begun = loopback(), time.monotonic()
    done = subprocess.run([TOOL, *words, *apart], cwd=folder, capture_output=True, text=True)
    seconds, sent = time.monotonic() - begun, loopback() - before
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout, seconds, sent


def loopback():
    lines = pathlib.Path("/proc/net/dev").read_text().splitlines()
    (line,) = [line for line in lines if line.strip().startswith("lo:")]
    return int(line.split(":")[1].split()[0])


class Workers:
    def __init__(self, count, folder):
        command = [TOOL, "worker", folder, "--listen", "127.0.0.1:0"]
        self.processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(count)]
        self.names = [process.stderr.readline().split()[-1] for process in self.processes]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def events_of(folder):
    output = run(folder, ["query", "SELECT sum(events) FROM launches", TRACES, "--format", "csv"])[0]
    return int(output.split()[1])


def compare():
    print("\n## Answers\n\nOutput of four workers against that of one process, and the bytes over loopback.\n")
    print("| asked | of | equal | bytes | seconds, four workers | seconds, one process |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    all_of = [(f"`{table}`", asked(f"SELECT {what} FROM {table}")) for table, what in TABLES.items()]
    sums = [("`events` by name", asked(EVENTS)), ("`runs` by trace", asked(RUNS)), ("`events` of a launch", asked(LAUNCH))]
    all_of = [*sums, *((f"`{name} --json`", figures(name)) for name in FIGURES), *all_of]
    for folder in [SMALL, LARGE]:
        with Workers(4, folder) as workers:
            for name, words in all_of if folder == SMALL else [sums[0], ("`top --json`", figures("top"))]:
                there, seconds, sent = run(folder, words, workers)
                here, alone, _ = run(folder, words)
                assert there == here, f"{words}:\n{there[:2000]}\n{here[:2000]}"
                print(f"| {name} | {folder.name} | yes | {sent:,} | {seconds:.2f} | {alone:.2f} |", flush=True)


def scale():
    print("\n## Decoding by workers\n\nEach worker on one core (`taskset`); medians of 3.\n")
    print("| workers | `events` by name, million events a second | `top --json` |")
    print("| ---: | ---: | ---: |")
    events = events_of(SMALL)
    for count in range(1, os.cpu_count() + 1):
        with Workers(count, SMALL) as workers:
            for core, process in enumerate(workers.processes):
                subprocess.run(["taskset", "-a", "-c", "-p", str(core), str(process.pid)], check=True, capture_output=True)
            rates = []
            for words in [asked(EVENTS), figures("top")]:
                rates.append(events / statistics.median(run(SMALL, words, workers)[1] for _ in range(3)) / 1e6)
            print(f"| {count} | {rates[0]:,.0f} | {rates[1]:,.0f} |", flush=True)


def faults():
    print("\n## Workers that fail\n\nOf four, in the middle of `events` by name over the large set.\n")
    for what, number in [("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)]:
        for words in [asked(EVENTS), figures("top")] if what == "killed" else [asked(EVENTS)]:
            with Workers(4, LARGE) as workers:
                begun = time.monotonic()
                query = subprocess.Popen(
                    [TOOL, *words, "--workers", ",".join(workers.names)],
                    cwd=LARGE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                )
                time.sleep(3)
                workers.processes[2].send_signal(number)
                signalled = time.monotonic()
                output, errors = query.communicate()
                assert query.returncode == 1 and output == "", (query.returncode, output)
                assert workers.names[2] in errors, errors
                after = time.monotonic() - signalled
                said = errors.strip().replace(workers.names[2], "127.0.0.1:PORT")
                print(f"- {words[0]}, one {what} after {signalled - begun:.0f} s: no output, exit code 1, {after:.1f} s later: `{said}`", flush=True)
    with tempfile.TemporaryDirectory(dir=LARGE.parent) as name:
        folder = pathlib.Path(name)
        for path in LARGE.glob(TRACES):
            os.link(path, folder / path.name)
        bad = folder / "step.123.wtrc"
        data = bytearray(bad.read_bytes())
        data[len(data) // 2 : len(data) // 2 + 100] = bytes(100)
        bad.unlink()
        bad.write_bytes(data)
        with Workers(4, folder) as workers:
            for words in [asked(EVENTS), figures("top")]:
                done = subprocess.run(
                    [TOOL, *words, "--workers", ",".join(workers.names)], cwd=folder, capture_output=True, text=True
                )
                assert done.returncode == 1 and done.stdout == "" and "step.123.wtrc" in done.stderr, done
                print(f"- {words[0]}, 100 bytes in the middle of one file zeroed: `{done.stderr.strip()}`", flush=True)


def main():
    print("| set | files | events | bytes |\n| --- | ---: | ---: | ---: |")
    for folder in [SMALL, LARGE]:
        files = list(folder.glob(TRACES))
        size = sum(path.stat().st_size for path in files)
        print(f"| {folder.name} | {len(files)} | {events_of(folder):,} | {size:,} |", flush=True)
    first = [run(SMALL, ["query", "SELECT count(*) FROM runs WHERE launch = 0", "step.0.wtrc"])[1] for _ in range(5)]
    print(f"\nTime to the first answer (`SELECT count(*) FROM runs WHERE launch = 0` of one file), median of 5: {statistics.median(first):.3f} s.")
    for program in ["warptrace", "warptrace-query"]:
        with tempfile.TemporaryDirectory() as name:
            small = shutil.copy(PROGRAMS / program, name)
            subprocess.run(["strip", small], check=True)
            print(f"`{program}`, stripped: {os.path.getsize(small):,} bytes.")
    compare()
    scale()
    faults()


main()
