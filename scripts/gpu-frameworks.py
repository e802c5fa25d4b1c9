#!/usr/bin/env python3
"""Programs of Python's frameworks, each alone and under `warptrace run`: the same output, a trace that verifies, times.

    OUT=results python3 scripts/gpu-frameworks.py target/release/warptrace [--parts NAME,NAME] [OPTION OF RUN ...]

It needs a GPU and builds nothing; a framework that is not there is said. Writes `frameworks.md`, `frameworks.json` and
`frameworks.log` into the folder OUT.

Each part of `frameworks_programs.py` runs twice alone and twice traced, in caches of its own; a kernel of Triton once
more with loops. Programs that compile for long run together, after all others.
"""

import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from frameworks_programs import PARTS, ROUNDS, TOGETHER

PROGRAMS = pathlib.Path(__file__).resolve().parent / "frameworks_programs.py"
LIMIT_SECONDS = 200


def ran(command, environment, log):
    """Runs a program to its end, or to the limit; returns its exit code, output, messages and seconds."""
    start = time.perf_counter()
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        code, out, messages = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        text = lambda stream: stream.decode(errors="replace") if stream else ""
        code, out, messages = "timeout", text(error.stdout), text(error.stderr)
    seconds = time.perf_counter() - start
    log.append(f"$ {' '.join(map(str, command))}\n{out}{messages}exit {code} after {seconds:.1f} s\n\n")
    return code, out, messages, seconds


def figures_of(messages):
    found = {}
    for line in messages.splitlines():
        if line.startswith("FIGURES "):
            found |= json.loads(line.removeprefix("FIGURES "))
    return found


def one(name, warptrace, options, folder, log):
    """Runs a part alone and traced, from caches of its own."""
    if importlib.util.find_spec(PARTS[name][1]) is None:
        return {"part": name, "problem": f"{PARTS[name][1]} is not installed"}
    environment = dict(os.environ)
    for variable in ["TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"]:
        environment[variable] = str(folder / "caches" / name / variable.lower())
    environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if name.startswith("triton-"):
        environment["KERNEL_TIME"] = "1"
    program = [sys.executable, str(PROGRAMS), name]
    result = {"part": name}
    code, before, messages, _ = ran(program, environment, log)
    if code != 0:
        lines = [line.strip() for line in messages.splitlines() if line.strip()] or ["no message"]
        last = next((line for line in reversed(lines) if "Error" in line), lines[-1])
        return result | {"problem": f"alone it ends with {code}: {last}"}
    # Run again with warm compilation caches.
    code, alone, messages, result["alone_s"] = ran(program, environment, log)
    result["same_alone"] = before == alone
    figures = figures_of(messages)
    result["alone_round_us"], result["alone_kernel_us"] = figures.pop("round_us", None), figures.pop("kernel_us", None)
    result["versions"] = figures
    trace = folder / f"{name}.%p.wtrc"
    traced = [warptrace, "run", *options, "-o", str(trace), "--", *program]
    for attempt in ["first", "again"]:
        for old in folder.glob(f"{name}.*.wtrc"):
            old.unlink()
        code, out, messages, result[f"traced_{attempt}_s"] = ran(traced, environment, log)
    result["traced_round_us"] = figures_of(messages).get("round_us")
    result["blocks_kernel_us"] = figures_of(messages).get("kernel_us")
    result["exit"] = code
    result["same_output"] = out == alone
    result["said"] = [line.removeprefix("warptrace: ") for line in messages.splitlines() if line.startswith("warptrace:")]
    result["events"] = result["launches"] = 0
    for line in result["said"]:
        found = re.search(r"(\d+) events? of (\d+) launch", line)
        if found:
            result["events"] += int(found[1])
            result["launches"] += int(found[2])
    result["verified"], result["bytes"] = [], 0
    for file in sorted(folder.glob(f"{name}.*.wtrc")):
        result["bytes"] += file.stat().st_size
        result["verified"].append(ran([warptrace, "verify", str(file)], environment, log)[0] == 0)
        ran([warptrace, "info", str(file)], environment, log)
        ran([warptrace, "lines", str(file)], environment, log)
        file.unlink()
    if "KERNEL_TIME" in environment:
        loops = [warptrace, "run", *options, "--points", "loops", "-o", str(folder / f"{name}.loops.wtrc"), "--", *program]
        result["loops_kernel_us"] = figures_of(ran(loops, environment, log)[2]).get("kernel_us")
    return result


def as_text(line):
    """Returns a message in Markdown: a kernel's name with `<float>` in it is no tag."""
    return re.sub(r"( launch(?:es)? of )(.*?)(: (?:only|its) )", r"\1`\2`\3", line)


def row(cells):
    return "| " + " | ".join(cells) + " |"


def table(results):
    micro = lambda value: "" if value is None else f"{value:,.0f} µs" if value >= 100 else f"{value:.1f} µs"
    lines = [
        "# Kernels of Python's frameworks under `warptrace run`",
        "",
        "Made by `scripts/gpu-frameworks.py`; `frameworks.log` has what each program printed. A round is one call of the "
        f"function, of {ROUNDS} that follow each other, with all that the host does; median of five.",
        "",
        "| part | same output | verified | launches | events | alone, a round | traced, a round | alone | traced, first | again |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for found in results:
        if "problem" in found:
            lines.append(row([found["part"], found["problem"]] + [""] * 8))
            continue
        verified = "no trace" if not found["verified"] else "yes" if all(found["verified"]) else "NO"
        same = "yes" if found["same_output"] and found["exit"] == 0 else "NO" if found["same_alone"] else "differs alone, too"
        seconds = [f"{found[name]:.1f} s" for name in ["alone_s", "traced_first_s", "traced_again_s"]]
        rounds = [micro(found["alone_round_us"]), micro(found["traced_round_us"])]
        lines.append(row([found["part"], same, verified, f"{found['launches']:,}", f"{found['events']:,}", *rounds, *seconds]))
    lines += [
        "",
        f"Kernels on the device, {ROUNDS} launches queued behind each other, median of five:",
        "",
        "| part | alone | blocks traced | | loops traced | |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for found in results:
        alone, *traced = (found.get(f"{name}_kernel_us") for name in ["alone", "blocks", "loops"])
        if alone:
            cells = [cell for value in traced for cell in ([micro(value), f"{value / alone:.2f}"] if value else ["", ""])]
            lines.append(row([found["part"], micro(alone), *cells]))
    lines.append("")
    for found in results:
        lines += [f"## {found['part']}", ""] + [f"- {as_text(line)}" for line in found.get("said", [])] + [""]
    return "\n".join(lines)


def main(words):
    if not words:
        print(__doc__)
        return 2
    warptrace, options, names = str(pathlib.Path(words[0]).resolve()), words[1:], list(PARTS)
    if options[:1] == ["--parts"]:
        names, options = options[1].split(","), options[2:]
    out = pathlib.Path(os.environ.get("OUT", "."))
    out.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp())
    results = []

    def run(name):
        log = []
        try:
            found = one(name, warptrace, options, folder, log)
        except Exception as error:
            found = {"part": name, "problem": repr(error)}
        results.append(found)
        print(json.dumps(found), flush=True)
        with open(out / "frameworks.log", "a") as file:
            file.writelines(log)
        (out / "frameworks.json").write_text(json.dumps(results, indent=1))
        (out / "frameworks.md").write_text(table(results))

    for name in names:
        if name not in TOGETHER:
            run(name)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(run, [name for name in names if name in TOGETHER]))
    shutil.rmtree(folder, ignore_errors=True)
    failed = [found["part"] for found in results if not found.get("same_output") or not all(found.get("verified", [False]))]
    print("failed:", ", ".join(failed) or "none")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
