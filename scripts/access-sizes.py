#!/usr/bin/env python3
"""Compares how many bits an access takes in traces with what general compressors make of the raw vectors.

    scripts/access-sizes.py WARPTRACE TRACE...

Prints a row for each trace. Raw vectors are 32 addresses of 8 bytes for each request, 0 for lanes that are not in it, site by
site, of all warps after each other; the nth accesses of a warp's lanes at a site are one request. The reference reader
decodes the traces, WARPTRACE (the tool) says how many bytes the file has for them. Needs `zstandard`.
"""

import array
import json
import lzma
import subprocess
import sys
from pathlib import Path

import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "decoder/reference"))
from accesses import pieces, warps  # noqa: E402
from trace import Trace  # noqa: E402

# Only the beginning of longer streams is compressed.
MOST_BYTES = 64 << 20


def vectors(trace):
    """The raw vectors of each site, and the lanes' accesses in them."""
    sites, accesses = {}, 0
    for launch in sorted(trace.launches):
        for _, warp in warps(trace, launch, []):
            for number in sorted({site for site, _ in warp.lanes}):
                lanes = [warp.lanes.get((number, lane), []) for lane in range(32)]
                raw = sites.setdefault(number, array.array("Q"))
                if len(raw) * 8 * len(sites) > MOST_BYTES:
                    continue
                for at in range(max(map(len, lanes))):
                    raw.extend(lane[at] if at < len(lane) else 0 for lane in lanes)
                accesses += sum(map(len, lanes))
    return b"".join(raw.tobytes() for _, raw in sorted(sites.items())), accesses


def main():
    tool = sys.argv[1]
    print("| trace | accesses | derived sites | device | file | zstd -19 | xz -9 |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for path in sys.argv[2:]:
        said = json.loads(subprocess.run([tool, "info", "--json", path], capture_output=True, check=True).stdout)["accesses"]
        trace = Trace(Path(path).read_bytes())
        raw, accesses = vectors(trace)
        recorded = json.loads(subprocess.run([tool, "accesses", "--json", path], capture_output=True, check=True).stdout)["accesses"]
        zstd = len(zstandard.ZstdCompressor(level=19, threads=2).compress(raw))
        xz = len(lzma.compress(raw, preset=9))
        entries = sum(pieces(trace.data, section)[0].entries for sections in trace.data_sections.values() for section in sections)
        bits = [16 * entries / recorded * 8, said["file_bytes"] / recorded * 8, zstd / accesses * 8, xz / accesses * 8]
        cut = "" if accesses == recorded else f" (of {accesses:,} for zstd and xz)"
        print(f"| {Path(path).stem} | {recorded:,}{cut} | {said['derived_sites']} of {said['sites']} | " + " | ".join(f"{bit:.4f}" for bit in bits) + " |", flush=True)


main()
