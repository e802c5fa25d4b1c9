"""Compares this reader with the tool: `python3 decoder/reference/compare.py TOOL FILE...`.

Of each file: `verify` and `check` end with the same exit code, and `decode --format csv` prints, for each track, the
same bytes as `csv`, or neither can; addresses lie in the same buffers. The column `ns` is left out, which the tool makes of `begin` and the spans. Prints a line for each difference, then how many files were compared; exits with 1
if there is a difference.
"""

import io
import json
import subprocess
import sys

import buffers
from findings import check_file
from parts import Damage
from rows import write_csv
from trace import Trace

# The tool refuses files that would take too long.
TOO_MUCH = "--unlimited"


def tool_says(tool, *arguments):
    ended = subprocess.run([tool, *arguments], capture_output=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr.decode("utf-8", "replace")


def csv_of(trace, track):
    out = io.StringIO()
    try:
        write_csv(trace, track, out)
    except Damage:
        return None
    return out.getvalue().encode()


def without_nanoseconds(output):
    lines = output.splitlines(keepends=True)
    if not lines or not lines[0].rstrip().endswith(b",ns"):
        return output
    return b"".join(line.rpartition(b",")[0] + b"\n" for line in lines)


def differences(tool, path):
    code, output, errors = tool_says(tool, "verify", path)
    if TOO_MUCH in output.decode("utf-8", "replace"):
        return
    own, words = check_file(path)
    if code != own:
        yield f"verify ends with {code}, check with {own}: {errors.strip()} {words[:3]}"
    if 1 in (code, own):
        return
    with open(path, "rb") as file:
        trace = Trace(file.read())
    own = {launch: label for launch, label in trace.labels()[0].items() if launch in trace.launches}
    if own and all(label.isprintable() for label in own.values()):
        launches = json.loads(tool_says(tool, "info", path, "--json")[1])["launches"]
        said = {launch["launch"]: launch["label"] for launch in launches if "label" in launch}
        if said != own:
            yield f"info calls launches {said}, and they are called {own}"
    own = {launch: stack for launch, stack in trace.stacks()[0].items() if launch in trace.launches and stack}
    if own:
        found = json.loads(tool_says(tool, "stats", path, "--by", "stack", "--json")[1])["launch_sites"]
        said = sorted(site["stack"] for site in found if site["stack"])
        if said != sorted(map(list, {tuple(stack) for stack in own.values()})):
            yield f"stats says stacks {said}, and they are {own}"
    launches, notes, _ = trace.unrecorded()
    if launches or notes:
        info = json.loads(tool_says(tool, "info", path, "--json")[1])
        said = info.get("not_traced", {}).get("kernels", [])
        said = {(of["kernel"], of["reason"]): int(of["launches"]) for of in said}
        if (said, info.get("notes", [])) != (launches, notes):
            yield f"info says {said} were not recorded, and they are {launches}"
    yield from buffer_differences(tool, path, trace)
    for track in range(len(trace.metadata.tracks)):
        code, output, errors = tool_says(tool, "decode", path, "--format", "csv", "--track", str(track))
        if TOO_MUCH in errors:
            continue
        output = without_nanoseconds(output)
        found = csv_of(trace, track)
        if (code == 0) != (found is not None):
            yield f"decode of track {track} ends with {code}, csv {'works' if found else 'fails'}: {errors.strip()}"
        elif found is not None and found != output:
            lines = zip(found.splitlines(), output.splitlines())
            first = next((pair for pair in lines if pair[0] != pair[1]), "one is longer")
            yield f"track {track} differs: {first}"


def buffer_differences(tool, path, trace):
    if not trace.has_accesses() or not trace.has_buffers:
        return
    said = json.loads(tool_says(tool, "info", path, "--json")[1])["accesses"]
    if (said.get("buffers"), said["has_all_buffers"]) != (len(trace.buffers), trace.all_buffers):
        yield f"info tells of {said}, and there are {len(trace.buffers)} buffers, all: {trace.all_buffers}"
    lines = tool_says(tool, "decode", path, "--accesses", "--format", "jsonl")[1].splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        for lane in row["lanes"] if row["space"] in ("global", "generic") and row["kind"] != "value" else []:
            own = buffers.place(trace, row["launch"], int(lane["base"]))
            found = (lane["buffer"], int(lane["offset"])) if "buffer" in lane else None
            if own != found:
                yield f"{lane['base']} is in {found} by the tool, in {own} here"
                return


def main():
    tool, *paths = sys.argv[1:]
    number = 0
    for path in paths:
        for words in differences(tool, path):
            number += 1
            print(f"{path}: {words}")
    print(f"{len(paths)} files compared, {number} differences")
    return 1 if number else 0


if __name__ == "__main__":
    sys.exit(main())
