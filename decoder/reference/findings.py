"""What is wrong with a file, or lost: what `warptrace verify` ends with 3 for."""

import accesses
import chunk_codecs
import sections
from parts import Damage
from trace import Refused, Trace


def check_file(path):
    """The exit code, and what is wrong: 0 nothing, 1 the file cannot be read, 3 something."""
    try:
        with open(path, "rb") as file:
            found = findings(Trace(file.read()))
    except (Refused, Damage) as error:
        return 1, [f"error: {error}"]
    return (3 if found else 0), found


def findings(trace):
    found = []
    if trace.why:
        found.append(f"the file is not complete: {trace.why}")
    for listed in trace.texts:
        try:
            sections.source_text(trace.data, trace.verified(listed))
        except Damage as damage:
            found.append(f"a text: {damage}")
    found += trace.code()[1] + trace.waits()[1] + trace.labels()[1] + trace.stacks()[1] + trace.unrecorded()[2] + trace.origin()
    try:
        trace.check_host()
    except Damage as damage:
        found.append(f"the host's times: {damage}")
    found += [f"{section.tag.decode()} at {section.at} belongs to no section before it" for section in trace.strays]
    found += [f"addresses and values: {damage}" for damage in trace.data_damage]
    if accesses.contradicts(trace.derived()):
        found.append("addresses and values: sections of sites contradict each other")
    for number in trace.ends:
        found.append(f"launch {number} did not run to its end")
    for number, launch in sorted(trace.launches.items()):
        tracks = []
        for track in range(len(trace.metadata.tracks)):
            name = f"launch {number}, track {track}"
            try:
                tracks.append(dict(stream_findings(trace, launch, track, name, found)))
            except Damage as damage:
                found.append(f"{name}: {damage}")
        if len(tracks) == 2:
            different = [warp for warp in tracks[0].keys() | tracks[1].keys() if tracks[0].get(warp) != tracks[1].get(warp)]
            if different:
                found.append(f"launch {number}: the tracks differ in {len(different)} warps")
        if trace.has_accesses():
            accesses.findings(trace, number, found)
    return found


def cannot_be(span, is_chosen, is_unfinished):
    """Whether a warp that began cannot have run there and then."""
    if not is_chosen or span.begin_timer == 0:
        return True
    if span.end_sm is None:
        return False
    clock_is_before = span.end_sm == span.sm and is_before(span.end_clock, span.begin_clock)
    return is_unfinished or clock_is_before or is_before(span.end_timer, span.begin_timer)


def is_before(end, begin):
    """Differences are modulo 2^64; of those the upper half is before."""
    return (end - begin) % (1 << 64) >= 1 << 63


def stream_findings(trace, launch, track, name, found):
    """Appends what is wrong with a launch and track; yields each warp's events as each of its lanes saw them."""
    accounts, problems = trace.all_accounts(launch.number, track)
    found += [f"{name}: {problem}" for problem in problems]
    is_timed = track == 0 and trace.has_times()
    for listed in trace.frames.get((launch.number, 0), []) if is_timed else []:
        try:
            section = trace.verified(listed)
            trace.times(listed, sections.frame(trace.data, section).chunks)
        except Damage as damage:
            found.append(f"{name}: {damage}")
    for listed in trace.accounts.get((launch.number, 0), []) if track == 0 and trace.has_spans() else []:
        try:
            here = sections.accounts(trace.data, trace.verified(listed))
            for warp, span in trace.spans(listed).items():
                has_ended = span is not None and span.end_sm is not None
                if not here[warp].unfinished and launch.is_chosen(warp) and not has_ended:
                    found.append(f"{name}, warp {warp}: finished, but where and when it ran is not there")
                if span is not None and cannot_be(span, launch.is_chosen(warp), here[warp].unfinished):
                    found.append(f"{name}, warp {warp}: where and when it ran cannot be")
        except Damage as damage:
            found.append(f"{name}: {damage}")
    streams, is_dual = {}, len(trace.metadata.tracks) == 2
    codec = trace.metadata.tracks[track]
    for warp, chunks in trace.warps(launch.number, track):
        events, odd, timed = 0, False, 0
        lanes = {}
        for chunk in chunks:
            decoded = list(chunk_codecs.decode(codec, chunk.payload, chunk.events))
            timed += sum(1 for _ in sections.begun(chunk.runs, decoded))
            for event in decoded:
                location, mask = event
                odd = odd or location not in trace.metadata.locations or mask & ~launch.lanes(warp)
                # Only what lanes saw is compared between two tracks.
                for lane in range(32 if is_dual else 0):
                    if mask >> lane & 1:
                        lanes.setdefault(lane, []).append(event)
                events += 1
        if odd:
            found.append(f"{name}, warp {warp}: an event's location or lane is not there")
        if is_timed and timed != events:
            found.append(f"{name}, warp {warp}: {events - timed} events have no time")
        if not launch.is_chosen(warp):
            found.append(f"{name}, warp {warp}: was not chosen, but has events")
        streams[warp] = (events, len(chunks))
        yield warp, lanes
    accounted = sum(launch.is_chosen(warp) for warp in accounts)
    if accounted < launch.chosen_count():
        found.append(f"{name}: of {launch.chosen_count()} chosen warps {accounted} have an account")
    for warp, account in accounts.items():
        if (account.recorded, account.chunks) != streams.get(warp, (0, 0)):
            found.append(f"{name}, warp {warp}: the account does not fit to the chunks")
        if account.attempted != account.recorded + account.lost:
            found.append(f"{name}, warp {warp}: the account does not add up")
        if account.lost:
            found.append(f"{name}, warp {warp}: lost {account.lost} events")
        if account.unfinished:
            found.append(f"{name}, warp {warp}: did not finish")
