#!/usr/bin/env python3
"""Measures what recording addresses costs, and compares sectors and passes through banks with hardware counters.

    scripts/gpu-accesses.py FOLDER OUT

FOLDER holds `warptrace` and `libwarptrace_shim.so`, built with GPU code. Needs nvcc, and ncu for the comparison. Writes
OUT/accesses.json and OUT/accesses.md. ROUNDS (default 5) runs of each kernel alone and traced, in turns. ROAD names a
graph in DIMACS' format, for the kernels over a road network. ONLY: only these kernels, separated by blanks. KEEP: a folder
for the traces of one launch.
"""

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = int(os.environ.get("ROUNDS", "5"))
LAUNCHES = "20"
KERNELS = {
    "gpu-accesses.cu": ["transpose_naive", "transpose_tiled", "transpose_padded", "matmul_naive", "matmul_tiled", "stencil", "stencil_named", "pairs", "histogram", "gather"],
    "gpu-graphs.cu": [f"{kernel}_{graph}" for graph in ["road", "rmat"] for kernel in ["spmv_row", "spmv_warp", "bfs"]],
}
# Options of `run`: kernel entries only, and kernel entries with addresses.
WAYS = {"entry": ["--points", "functions"], "accesses": ["--points", "functions", "--accesses", "all"]}
# Options for kernels that name values: only the values.
VALUES = ["--points", "functions", "--accesses", "values"]
# Sums over all launches: counter of ncu, and the figure of sites that it corresponds to.
COUNTERS = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("global", "load", "sectors"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("global", "store", "sectors"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": ("global", "load", "requests"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": ("global", "store", "requests"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum": ("global", "atomic", "requests"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": ("shared", "load", "passes"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": ("shared", "store", "passes"),
}


def run(command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)


def kernel_ms(done):
    found = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("kernel_ms")]
    return float(found[0]) if found else None


def counted(program, kernel):
    """What hardware counters say of one launch."""
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    done = run([ncu, "--csv", "--metrics", ",".join(COUNTERS), "--launch-count", "1", program, kernel, "1"])
    rows = [row for row in csv.reader(done.stdout.splitlines()) if row]
    head = next((at for at, row in enumerate(rows) if "Metric Name" in row), None)
    if head is None:
        return {"error": (done.stdout + done.stderr)[-2000:]}
    name, value = rows[head].index("Metric Name"), rows[head].index("Metric Value")
    return {row[name]: float(row[value].replace(",", "")) for row in rows[head + 1 :] if len(row) > value and row[name] in COUNTERS}


def traced(folder, program, kernel, trace):
    """What the trace of one launch says."""
    tool = folder / "warptrace"
    options = VALUES if kernel.endswith("_named") else WAYS["accesses"]
    done = run([tool, "run", *options, "-o", trace, "--", program, kernel, "1"])
    said = run([tool, "accesses", "--json", trace])
    verified = run([tool, "verify", trace])
    found = {"said": done.stderr.splitlines()[-12:], "verify": verified.returncode, "verified": verified.stdout.splitlines()[-8:], "bytes": trace.stat().st_size if trace.exists() else None}
    try:
        found["accesses"] = json.loads(said.stdout)
    except ValueError:
        found["error"] = said.stdout[-500:] + said.stderr[-500:]
    found["table"] = run([tool, "accesses", trace]).stdout.splitlines()
    found["values"] = run([tool, "values", trace]).stdout.splitlines()
    return found


def figures(found):
    """The sums of the sites of each kind."""
    sums = {}
    for site in found.get("accesses", {}).get("sites", []):
        kind = site["kind"]
        for figure in ["sectors", "requests", "passes", "lanes"]:
            key = (site["space"], kind, figure)
            sums[key] = sums.get(key, 0) + site["counts"][figure]
    return sums


def main():
    folder, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp())
    trace = scratch / "t.wtrc"
    keep = os.environ.get("KEEP")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    programs = {}
    for source, kernels in KERNELS.items():
        program = scratch / Path(source).stem
        built = run([nvcc, "-O3", "-arch=" + os.environ.get("ARCH", "sm_90"), "-lineinfo", "-o", program, Path(__file__).with_name(source)])
        if built.returncode != 0:
            sys.exit(built.stderr)
        programs |= dict.fromkeys(kernels, program)
    only = os.environ.get("ONLY", "").split() or programs
    found, rows, compared = {}, [], []
    for kernel, program in programs.items():
        if kernel not in only:
            continue
        times = {"alone": []} | {way: [] for way in WAYS}
        answers, reports = set(), {}
        for _ in range(ROUNDS):
            done = run([program, kernel, LAUNCHES])
            times["alone"].append(kernel_ms(done))
            answers.add(done.stdout)
            for way, options in WAYS.items():
                if way == "accesses" and kernel.endswith("_named"):
                    options = VALUES
                done = run([folder / "warptrace", "run", *options, "-o", trace, "--", program, kernel, LAUNCHES])
                times[way].append(kernel_ms(done))
                answers.add("\n".join(line for line in done.stdout.splitlines() if line.startswith(kernel)) + "\n")
                reports[way] = done.stderr.splitlines()[-12:]
        medians = {way: statistics.median([one for one in all if one is not None] or [float("nan")]) for way, all in times.items()}
        one = traced(folder, program, kernel, trace)
        if keep:
            shutil.copy(trace, Path(keep) / f"{kernel}.wtrc")
        # For a search, counters would cover only the first level.
        sums, hardware = figures(one), counted(program, kernel) if not kernel.startswith("bfs") else {}
        found[kernel] = {"times": times, "same_result": len(answers) == 1, "reports": reports, "trace": one, "hardware": hardware}
        lanes = sum(value for (_, _, figure), value in sums.items() if figure == "lanes")
        bits = f"{one['bytes'] * 8 / lanes:.4f}" if lanes and one["bytes"] else "-"
        rows.append(f"| {kernel} | {medians['alone']:.4f} | {medians['entry'] / medians['alone']:.2f} | {medians['accesses'] / medians['alone']:.2f} | {lanes:,} | {bits} | {'yes' if len(answers) == 1 else 'NO'} | {'yes' if one['verify'] == 0 else 'NO'} |")
        for counter, key in COUNTERS.items():
            if counter in hardware and (hardware[counter] or sums.get(key)):
                said = sums.get(key, 0)
                compared.append(f"| {kernel} | {' '.join(key)} | {said:,} | {hardware[counter]:,.0f} | {'yes' if said == hardware[counter] else 'NO'} |")
        (out / "accesses.json").write_text(json.dumps(found, indent=1))
        print(rows[-1], flush=True)
    text = "| kernel | alone, ms | entry traced | with addresses | accesses of a launch | bits each in the file | same result | verified |\n| --- | --: | --: | --: | --: | --: | --- | --- |\n"
    text += "\n".join(rows) + "\n\n| kernel | figure | trace | hardware | equal |\n| --- | --- | --: | --: | --- |\n" + "\n".join(compared) + "\n"
    (out / "accesses.md").write_text(text)
    print(text)


main()
