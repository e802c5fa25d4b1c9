#!/usr/bin/env python3
"""Prints the size of the times of runs in traces, in bits per run: the sections `TIME`, and the same times compressed in
one piece by zstd -19 and xz -9, as cycles of 64 bits and as units of 32 bits. Needs the programs zstd and xz, and the Python package
`zstandard`.

    warptrace-bench record nbody --bodies 10000 --steps 2 --times runs -o nbody.wtrc
    python3 scripts/times-at-rest.py nbody.wtrc ...
"""

import subprocess
import sys
from array import array
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "decoder/reference"))

import sections


def compressed(command, data):
    return len(subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout)


def measured(data):
    """Returns the number and the bytes of the sections, the cycles of a unit, and the times in units."""
    at, count, size, step, times, frame = 24, 0, 0, 1, array("I"), None
    while at < len(data) and (section := sections.header(data, at)).tag != b"INDX":
        if section.tag == b"FRAM":
            frame = at
        elif section.tag == b"TIME":
            chunks = int.from_bytes(data[frame + 40 : frame + 44], "little")
            step, runs = sections.times(data, section, frame, chunks)
            times.extend(time for chunk in runs for time, _ in chunk)
            count, size = count + 1, size + section.end - at
        at = section.end
    return count, size, step, times


for name in sys.argv[1:]:
    count, size, step, times = measured(Path(name).read_bytes())
    forms = [array("Q", (step * time for time in times)), times]
    tools = [["zstd", "-19", "-c"], ["xz", "-9", "-c"]]
    sizes = [size] + [compressed(tool, form.tobytes()) for form in forms for tool in tools]
    bits = " ".join(f"{8 * size / len(times):.2f}" for size in sizes)
    print(f"{Path(name).name}: {count} sections, {len(times)} runs; bits: {bits}")
