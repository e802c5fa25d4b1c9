#!/usr/bin/env python3
"""Holds traces of `warptrace run` against hardware counters, on a machine with a GPU, nvcc and Nsight Compute.

    scripts/gpu-foreign-fidelity.py FOLDER OUT [POINTS [PROGRAM ...]]

FOLDER holds `warptrace`, built with GPU code, and `libwarptrace_shim.so`. The programs are examples/cuda and
workloads/baseline, and kernels of Triton in frameworks_programs.py (triton-softmax); POINTS is `blocks` if it is not given. Each program runs twice: traced, and untraced with
`pmevent` at each point, under ncu, which counts how often warps and lanes come there. OUT/foreign-fidelity.md gets a
row for each program: events of both, and the sum over all points of the differences, over the counters' sum.

A location has the same number in both runs, since modules are loaded in the same order.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ["fractal", "nbody", "matmul", "spmv", "reduction", "constant_texture", "dynamic_shared", "calls", "bfs"]
# Inputs are small because ncu runs each kernel several times.
ARGUMENTS = {"fractal": ["512", "256", "256", "1"], "nbody": ["4096", "1", "256", "1"], "matmul": ["512", "1"]}
METRICS = "inst_executed,thread_inst_executed,thread_inst_executed_true"
LIMIT = 60


def number(text):
    return int(text.replace(",", ""))


def counted(page):
    """Warp executions and lanes at each mark, summed over launches and places in the code; and how many pages."""
    found, head, pages = {}, None, 0
    for line in page.splitlines():
        if line.startswith('"Address"'):
            head = next(csv.reader([line]))
            pages += 1
        elif head and "PMTRIG" in line:
            row = dict(zip(head, next(csv.reader([line]))))
            mark = int(re.search(r"PMTRIG\s+(\w+)", row["Source"])[1], 16)
            events = number(row.get("inst_executed") or row["Instructions Executed"])
            lanes = number(row.get("thread_inst_executed_true") or row.get("thread_inst_executed") or row["Thread Instructions Executed"])
            sums = found.setdefault(mark, [0, 0])
            sums[0] += events
            sums[1] += lanes
    return found, pages


def recorded(tool, trace):
    """Events and lanes at each location of a trace."""
    answer = subprocess.run([tool, "stats", trace, "--json"], capture_output=True, text=True, timeout=LIMIT)
    locations = json.loads(answer.stdout)["locations"]
    return {location["location"]: [location["visits"], location["lanes"]] for location in locations}


def built(name, scratch, log):
    """Returns the command of a program, which nvcc builds if it is no kernel of Triton, and the kernel to look at."""
    if name.startswith("triton-"):
        return [sys.executable, str(ROOT / "scripts/frameworks_programs.py"), name], name.removeprefix("triton-")
    source = ROOT / "workloads/baseline" / f"{name}.cu"
    if not source.is_file():
        source = ROOT / "examples/cuda" / f"{name}.cu"
    program = str(scratch / name)
    flags = ["--fmad=false"] if name == "fractal" else []
    done = subprocess.run(["nvcc", "-O3", "-lineinfo", "-arch=sm_90", *flags, "-o", program, str(source)], capture_output=True, text=True)
    log.write(done.stderr)
    if done.returncode != 0:
        raise OSError("nvcc failed")
    return [program, *ARGUMENTS.get(name, ["1"])], None


def row(name, tool, ncu, points, scratch, log):
    program, kernel = built(name, scratch, log)
    trace = str(scratch / f"{name}.wtrc")
    only = ["--kernel", kernel] if kernel else []
    run = [str(tool), "run", "-o", trace, "--points", points, *only, "--", *program]
    environment = {**os.environ, "ROUNDS": "2", "TRITON_CACHE_DIR": str(scratch / "triton")}
    traced = subprocess.run(run, capture_output=True, text=True, timeout=LIMIT, env=environment)
    log.write(f"== {name}\n{traced.stdout}{traced.stderr}")
    ours = recorded(tool, trace)
    page = scratch / f"{name}.csv"
    profile = [ncu, "--clock-control", "none", "--metrics", METRICS, "--page", "source", "--csv", "--print-source", "sass", "--log-file", str(page)]
    if kernel:
        profile += ["--kernel-name", kernel]
    environment |= {
        "LD_PRELOAD": str(tool.parent / "libwarptrace_shim.so"),
        "WARPTRACE_RUN_FILE": str(scratch / "unused.wtrc"),
        "WARPTRACE_RUN_SPEC": json.dumps(
            {"points": points, "marks": True, "recording": {"window": {"kernels": [kernel] if kernel else []}}}
        ),
    }
    done = subprocess.run([*profile, *program], capture_output=True, text=True, timeout=4 * LIMIT, env=environment)
    text = page.read_text(errors="replace") if page.is_file() else ""
    log.write(done.stdout + done.stderr + text[:3000])
    theirs, pages = counted(text)
    # For a program with several kernels, ncu prints the page of each launch more than once.
    told = subprocess.run([tool, "info", trace, "--json"], capture_output=True, text=True, timeout=LIMIT)
    launches = len(json.loads(told.stdout)["launches"])
    log.write(f"{name}: {pages} pages of {launches} launches\n")
    if pages > launches and pages % launches == 0:
        theirs = {mark: [number // (pages // launches) for number in sums] for mark, sums in theirs.items()}
    total = sum(events for events, _ in theirs.values())
    if total == 0:
        return [name, "no marks were counted", "", "", "", "", ""]
    marks = sorted(set(ours) | set(theirs))
    nothing = [0, 0]
    for mark in marks:
        if ours.get(mark, nothing) != theirs.get(mark, nothing):
            log.write(f"{name}: location {mark}: trace {ours.get(mark, nothing)}, counters {theirs.get(mark, nothing)}\n")
    difference = sum(abs(ours.get(mark, nothing)[0] - theirs.get(mark, nothing)[0]) for mark in marks)
    lanes = [sum(sums[1] for sums in side.values()) for side in (theirs, ours)]
    events = sum(events for events, _ in ours.values())
    return [name, str(len(theirs)), str(total), str(events), f"{100 * difference / total:.3f}%", str(lanes[0]), str(lanes[1])]


def main():
    folder, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    points = sys.argv[3] if len(sys.argv) > 3 else "blocks"
    programs = sys.argv[4:] or PROGRAMS
    out.mkdir(parents=True, exist_ok=True)
    ncu = "ncu"
    lines = [
        "# Traces of programs of others beside hardware counters",
        "",
        f"Made by `scripts/gpu-foreign-fidelity.py`, commit {os.environ.get('WARPTRACE_COMMIT', 'unknown')}, points at {points}. *Counters*: ncu's counts at `pmevent` in the untraced kernels, which have it at",
        "each point; *trace*: what `warptrace stats` says of a recording. *Difference*: the sum over all points of the absolute differences in events, over the counters' sum.",
        "",
        "| program | points | events, counters | events, trace | difference | lanes, counters | lanes, trace |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    with tempfile.TemporaryDirectory() as scratch, open(out / "foreign-fidelity.log", "w") as log:
        for name in programs:
            try:
                cells = row(name, folder / "warptrace", ncu, points, Path(scratch), log)
            except (subprocess.TimeoutExpired, OSError, ValueError, KeyError) as error:
                cells = [name, f"failed: {type(error).__name__}", "", "", "", "", ""]
                log.write(f"{name}: {error}\n")
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    (out / "foreign-fidelity.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
