"""A trace as comma-separated values: docs/reference/output.md."""

import csv

import chunk_codecs
from marks import marks
from parts import shown


def write_csv(trace, track, out):
    columns = "launch,kernel,block_x,block_y,block_z,warp,event,location,name,mask,lost,why"
    out.write(columns + "\n")
    rows = csv.writer(out, lineterminator="\n")
    codec = trace.metadata.tracks[track]
    names = {number: shown(name) for number, name in trace.metadata.locations.items()}
    for number, launch in sorted(trace.launches.items()):
        kernel = shown(trace.metadata.kernels[launch.kernel][0])
        accounts, _ = trace.all_accounts(number, track)
        streams = dict(trace.warps(number, track))
        for warp in sorted(streams.keys() | accounts.keys()):
            chunks = streams.get(warp, [])
            block, in_block = divmod(warp, launch.warps_per_block)
            x, block = block % launch.grid[0], block // launch.grid[0]
            head = (number, kernel, x, block % launch.grid[1], block // launch.grid[1], in_block)
            total = sum(chunk.events for chunk in chunks)
            before, after = marks(trace, launch, accounts.get(warp), warp, total)
            for name, lost, why in before:
                rows.writerow((*head, 0, 0, name, "0x00000000", lost, why))
            event = 0
            for chunk in chunks:
                for location, mask in chunk_codecs.decode(codec, chunk.payload, chunk.events):
                    name = names.get(location, "?")
                    rows.writerow((*head, event, location, name, f"0x{mask:08x}", 0, ""))
                    event += 1
            for name, lost, why in after:
                rows.writerow((*head, event, 0, name, "0x00000000", lost, why))
