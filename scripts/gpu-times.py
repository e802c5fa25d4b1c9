#!/usr/bin/env python3
"""Measures times of traces on a machine with a GPU, from binaries that were built elsewhere.

    scripts/gpu-times.py FOLDER OUT

FOLDER holds `warptrace` and `warptrace-bench`, built with GPU code. Needs nvcc. Writes OUT/times.json: what each value of
`--times` costs (medians of recordings in turns), clocks of the card, and waits of known length beside what the trace says of
them. DEVICE=sim, for a try without a GPU, takes small inputs and leaves out what is compiled.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

DEVICE = os.environ.get("DEVICE", "cuda")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
TIMES = ["off", "blocks", "runs", "all"]
PROGRAMS = {
    "fractal": "fractal --width 1024 --depth 512",
    "nbody": "nbody --bodies 10000 --steps 2",
    "matmul": "matmul --size 512",
    "mis-amazon": "mis --graph amazon:100000",
    "mis-road": "mis --graph road:100000",
    "mst-rmat12": "mst --graph rmat12",
    "dmr": "dmr --points 20000",
    "stress": "stress --walks 131072 --rounds 64",
    "stress-stream": "stress --walks 131072 --rounds 64 --policy stream",
    "stress-ring": "stress --walks 131072 --rounds 64 --policy ring",
    "triad": "triad",
}
SMALL = {"fractal": "fractal --width 32 --depth 50", "nbody": "nbody --bodies 64 --steps 1"}


def run(command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)


def figures(text):
    """The numbers of a recording's report that have a unit, by the word before them."""
    found = {}
    for name, number, unit in re.findall(r"([a-z ]+?)[: ]+([\d,.]+) (ms|us|s)\b", text):
        scale = {"s": 1000.0, "ms": 1.0, "us": 0.001}[unit]
        found.setdefault(name.strip(), float(number.replace(",", "")) * scale)
    return found


def costs(folder, out):
    table, programs = {}, SMALL if DEVICE == "sim" else PROGRAMS
    for name, words in programs.items():
        rows = {times: [] for times in TIMES}
        sizes, report = {}, {}
        for _ in range(ROUNDS):
            for times in TIMES:
                trace = out / "t.wtrc"
                begun = time.perf_counter()
                command = [folder / "warptrace-bench", "record", *words.split(), "--device", DEVICE]
                done = run([*command, "--times", times, "--no-check", "-o", trace])
                if done.returncode not in (0, 3):
                    print(name, times, done.stdout, done.stderr, file=sys.stderr)
                    break
                found = {"whole": (time.perf_counter() - begun) * 1000, **figures(done.stdout)}
                rows[times].append(found)
                sizes[times] = trace.stat().st_size
                report[times] = done.stdout
        keys = set.intersection(*(set(row) for found in rows.values() for row in found)) if all(rows.values()) else set()
        medians = {times: {key: statistics.median(row[key] for row in found) for key in keys} for times, found in rows.items()}
        table[name] = {"medians": medians, "bytes": sizes, "report": report}
        print(name, json.dumps(medians), flush=True)
    return table


def compiled(folder, out):
    program = out / "gpu-times"
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    done = run([nvcc, "-O2", "-arch=compute_90", "-lineinfo", "-o", program, Path(__file__).with_suffix(".cu")])
    if done.returncode != 0:
        return {"error": done.stderr}
    found = {"clocks": run([program, "clocks", "10"]).stdout.splitlines(), "waits": {}}
    for cycles in [2000, 10000, 50000, 200000]:
        trace = out / f"waits-{cycles}.wtrc"
        alone = run([program, "waits", cycles]).stdout.strip()
        options = ["--points", "waits", "--times", "all", "-o", trace]
        traced = run([folder / "warptrace", "run", *options, "--", program, "waits", cycles])
        tool = folder / "warptrace"
        found["waits"][cycles] = {
            "alone": alone,
            "traced": traced.stdout.strip(),
            "said": traced.stderr.strip().splitlines()[-6:],
            "waits": json.loads(run([tool, "waits", trace, "--json"]).stdout or "{}").get("waits"),
            "top": run([tool, "top", trace]).stdout.splitlines(),
            "table": run([tool, "waits", trace]).stdout.splitlines(),
            "warps": run([tool, "warps", trace, "--limit", "6"]).stdout.splitlines(),
            "info": run([tool, "info", trace]).stdout.splitlines(),
            "verify": run([tool, "verify", trace]).returncode,
        }
    return found


def main():
    folder, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    found = {"device": DEVICE}
    if DEVICE != "sim":
        found["compiled"] = compiled(folder, out)
        (out / "times.json").write_text(json.dumps(found, indent=1))
    found["costs"] = costs(folder, out)
    (out / "times.json").write_text(json.dumps(found, indent=1))


main()
