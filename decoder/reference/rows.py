"""A trace as comma-separated values: docs/reference/output.md."""

import csv
from itertools import zip_longest

import chunk_codecs
import sections
from marks import marks
from parts import shown


class Clock:
    """A warp's clock, out of times that wrap."""

    def __init__(self):
        self.last, self.units = None, 0

    def at(self, time):
        if self.last is None:
            self.units = time
        else:
            step = (time - self.last) % (1 << 32)
            self.units = max(0, self.units + (step - (1 << 32) if step >= 1 << 31 else step))
        self.last = time
        return self.units


def write_csv(trace, track, out):
    is_timed = track == 0 and trace.has_times()
    columns = "launch,kernel,block_x,block_y,block_z,warp,event,location,name,mask,lost,why"
    out.write(columns + (",begin\n" if is_timed else "\n"))
    rows = csv.writer(out, lineterminator="\n")
    codec = trace.metadata.tracks[track]
    names = {number: shown(name) for number, name in trace.metadata.locations.items()}
    for number, launch in sorted(trace.launches.items()):
        kernel = shown(trace.metadata.kernels[launch.kernel][0])
        accounts, _ = trace.all_accounts(number, track)
        streams = dict(trace.warps(number, track))
        none = [""] if is_timed else []
        for warp in sorted(streams.keys() | accounts.keys()):
            chunks = streams.get(warp, [])
            block, in_block = divmod(warp, launch.warps_per_block)
            x, block = block % launch.grid[0], block // launch.grid[0]
            head = (number, kernel, x, block % launch.grid[1], block // launch.grid[1], in_block)
            total = sum(chunk.events for chunk in chunks)
            before, after = marks(trace, launch, accounts.get(warp), warp, total)
            for name, lost, why in before:
                rows.writerow((*head, 0, 0, name, "0x00000000", lost, why, *none))
            event, clock = 0, Clock()
            for chunk in chunks:
                events = chunk_codecs.decode(codec, chunk.payload, chunk.events)
                events = list(events) if is_timed else events
                begins = sections.begun(chunk.runs, events) if is_timed else ()
                for (location, mask), time in zip_longest(events, begins):
                    name = names.get(location, "?")
                    begin = none if time is None else [min(clock.at(time) * chunk.step, (1 << 64) - 1)]
                    rows.writerow((*head, event, location, name, f"0x{mask:08x}", 0, "", *begin))
                    event += 1
            for name, lost, why in after:
                rows.writerow((*head, event, 0, name, "0x00000000", lost, why, *none))
