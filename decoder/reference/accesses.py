"""Addresses and values: docs/reference/format, "SITE", "DATA" and "DACC"."""

from collections import deque, namedtuple

import sections
from parts import Bytes, Damage, check, checksum, unpacked, unzigzag
from sections import MAX_PLAIN, body, integers, variant

MAX_ENTRIES, MAX_CHUNKS, MAX_SITE, MAX_COUNT = 1 << 19, 65_536, 32_767, 1023
MAX_TILE_CHUNKS, MAX_TILE_ENTRIES = 256, 2048
WORD, LONG = 1 << 32, 1 << 64
# Kind of a site that names a value.
VALUE = 6
Site = namedtuple("Site", "number kind space bytes elements location file line name derived")
# A derived site's root site, the offset of its addresses, and whether these are modulo 2^32 (`narrow`).
Derived = namedtuple("Derived", "root offset narrow")
Head = namedtuple("Head", "launch first last chunks entries accesses")
Run = namedtuple("Run", "base step count")
# `owner` is a lane, or 32 plus the number of lanes of an affine group, less 1.
Loose = namedtuple("Loose", "owner run")
NOTHING = Run(0, 0, 0)


class Group:
    """Lanes whose runs ended together: a run of the lowest lane and a spread, or a run by lane."""

    def __init__(self, mask, time, spread, missing, runs):
        self.mask, self.time, self.spread, self.missing, self.runs = mask, time, spread, missing, runs

    def lane_runs(self):
        """The run of each lane, as far as known."""
        if self.spread is None:
            return self.runs
        return {lane: Run(self.base(run.base, lane), run.step, run.count) for run in self.runs.values() for lane in lanes(self.mask)}

    def base(self, base, lane):
        low, high = lanes(self.mask)[0], lanes(self.mask)[-1]
        return (base + (self.spread * (lane - low) // (high - low) if high > low else 0)) % LONG


class Chunk:
    def __init__(self, warp, sequence, count, damaged, cut):
        self.warp, self.sequence, self.count, self.damaged, self.cut = warp, sequence, count, damaged, cut
        # Headers and values, by site.
        self.entries = {}


class Piece:
    """Consecutive chunks of a stream."""

    def __init__(self, chunk):
        self.warp, self.sequence, self.chunks, self.damaged, self.cut = chunk.warp, chunk.sequence, 1, chunk.damaged, chunk.cut
        self.entries = dict(chunk.entries)
        # Groups and loose runs, by site.
        self.sites = {}

    def add(self, chunk):
        self.chunks, self.damaged = self.chunks + 1, self.damaged + chunk.damaged
        if self.cut is None or chunk.cut is not None and signed(self.cut - chunk.cut) > 0:
            self.cut = chunk.cut
        for number, entries in chunk.entries.items():
            self.entries[number] = self.entries.get(number, []) + entries


def lanes(mask):
    return [lane for lane in range(32) if mask >> lane & 1]


def signed(number, bits=32):
    number %= 1 << bits
    return number - (1 << bits) if number >> (bits - 1) else number


def sites(data, section):
    source = body(data, section)
    check(section.length <= MAX_PLAIN, "a SITE section is too long")
    found = source.list(MAX_SITE, lambda: site(source))
    source.end()
    check(len({one.number for one in found}) == len(found), "a site is there twice")
    roots = {one.number for one in found if one.derived is None and one.kind != VALUE}
    check(all(one.kind != VALUE and one.derived.root in roots for one in found if one.derived), "a site follows from one that is not recorded")
    return found


def site(source):
    number, kind, space = source.short(16), variant(source, 7), variant(source, 6)
    size, elements, _, predicated = source.short(32), source.short(32), variant(source, 3), source.take(1)[0]
    _, location, file, line, _, name = source.string(), source.short(16), source.string(), source.short(32), source.short(32), source.string()
    derived = source.option(lambda: Derived(source.short(16), unzigzag(source.short(64)), source.take(1)[0]))
    if derived:
        check(derived.narrow <= 1 and (not derived.narrow or -(1 << 31) <= derived.offset < 1 << 31), "what a site adds is wrong")
    check(1 <= number <= MAX_SITE and predicated <= 1 and elements >= 1 and size <= 1 << 16, "a site's field is wrong")
    return Site(number, kind, space, size, elements, location, file, line, name, derived)


def head(data, section):
    source = Bytes(data[section.body_at : section.end])
    launch, first, last, chunks, entries, accesses = source.fields("5IQ")
    checksum(source.data[:28], source.fields("I")[0], "the fixed part of addresses and values")
    check(first <= last and 1 <= chunks <= MAX_CHUNKS and entries <= MAX_ENTRIES, "a number of addresses and values is out of range")
    return Head(launch, first, last, chunks, entries, accesses)


def pieces(data, section):
    fixed, source = head(data, section), body(data, section)
    source.take(32)
    plain, compression, zero = source.fields("IB3s")
    check(plain <= MAX_PLAIN and zero == bytes(3), "addresses and values are too many bytes, or a reserved field is not zero")
    contents = unpacked(compression, source.rest(), plain)
    check(len(contents) == plain, "addresses and values have another length")
    source = Bytes(contents)
    tiles = integers(source)
    check(sum(tiles) == fixed.chunks, "the tiles have another number of chunks")
    columns = [counted(source, fixed.chunks) for _ in range(5)]
    check(all(cut <= 1 for cut in columns[4]), "whether something was lost is neither 0 nor 1")
    cuts, warp, chunks = iter(counted(source, sum(columns[4]))), fixed.first, []
    for more, sequence, entries, damaged, cut in zip(*columns):
        warp = (warp + unzigzag(more)) % WORD
        check(fixed.first <= warp <= fixed.last, "a chunk is of no warp")
        chunks.append(Chunk(warp, sequence, entries, damaged, next(cuts) if cut else None))
    check(sum(chunk.count for chunk in chunks) == fixed.entries, "the entries are not as many as announced")
    first = 0
    for count in tiles:
        check(1 <= count <= MAX_TILE_CHUNKS, "a tile has too many chunks, or none")
        tile(source, chunks[first : first + count])
        first += count
    source.end()
    found = []
    for chunk in sorted(chunks, key=lambda chunk: (chunk.warp, chunk.sequence)):
        last = found[-1] if found else None
        if last and last.warp == chunk.warp and last.sequence + last.chunks == chunk.sequence:
            last.add(chunk)
        else:
            found.append(Piece(chunk))
    for piece in found:
        piece.sites = {number: matched(entries) for number, entries in sorted(piece.entries.items())}
    total = sum(accesses(groups, loose) for piece in found for groups, loose in piece.sites.values())
    check(total == fixed.accesses, "the accesses are not as many as announced")
    return fixed, found


def tile(source, chunks):
    """Reads a tile, and gives its entries to their chunks, by site."""
    shift, by = source.take(2)
    base_by, step_by, total = by & 0xF, by >> 4, sum(chunk.count for chunk in chunks)
    check(shift <= 63 and base_by <= 1 and step_by <= 2, "bases or steps are told in no known way")
    check(total <= MAX_TILE_ENTRIES, "a tile has too many entries")
    sites, numbers, kinds = (counted(source, total) for _ in range(3))
    headers = sum(kind < 2 for kind in kinds)
    of_headers = zip(*(counted(source, headers) for _ in range(3)))
    widths = [32, 32, 64, 64]
    of_values = zip(*(counted(source, total - headers, width) for width in widths))
    site, chunk, mask, time, spread, owner, before = 0, 0, 0, 0, 0, 0, NOTHING
    for more, change, kind in zip(sites, numbers, kinds):
        site, chunk = site + more, change + (0 if more else chunk)
        check(1 <= site <= MAX_SITE and chunk < len(chunks) and kind <= 3, "an entry is of no site, chunk or kind")
        if kind < 2:
            lanes_changed, later, wider = next(of_headers)
            mask, time = mask ^ lanes_changed, (time + unzigzag(later)) % WORD
            check(mask and (kind == 0 or wider == 0), "a group has no lanes, or a spread that it cannot have")
            spread = signed(spread + unzigzag(wider)) if kind == 0 else 0
            check(kind == 1 or on_line(mask, spread), "bases are on no line")
            entry = Group(mask, time, spread if kind == 0 else None, 0, {})
        else:
            other, count, step, base = next(of_values)
            owner, count = owner + unzigzag(other), count + 1
            check(0 <= owner < 32 and count <= MAX_COUNT and (count > 1 or step == 0), "a run is of no lane, or has too many accesses")
            base = ((nth(before, before.count) if base_by else before.base) + (unzigzag(base) << shift)) % LONG
            step = unzigzag(step) << shift
            if count > 1:
                step = signed([0, before.step, before.base - base][step_by] + step, 64)
            check(-(1 << 31) <= step < 1 << 31, "a step has more than 32 bits")
            before = Run(base, step, count)
            entry = Loose(owner + (32 if kind == 3 else 0), before)
        chunks[chunk].entries.setdefault(site, []).append(entry)
    check(all(sum(map(len, chunk.entries.values())) == chunk.count for chunk in chunks), "a chunk has other entries than announced")


def on_line(mask, spread):
    low, high = lanes(mask)[0], lanes(mask)[-1]
    return spread == 0 if high == low else all(spread * (lane - low) % (high - low) == 0 for lane in lanes(mask))


def matched(entries):
    """Groups and loose runs from the entries of a piece at a site."""
    headers, runs, unknown, last = {}, {lane: [] for lane in range(32)}, [], None
    for entry in entries:
        before, last = last, None
        if isinstance(entry, Group):
            headers.setdefault(lanes(entry.mask)[0], []).append(entry)
            last = entry
        elif entry.owner < 32:
            runs[entry.owner].append(entry.run)
        elif before and before.spread is not None and len(lanes(before.mask)) == entry.owner - 31:
            before.runs = {lanes(before.mask)[0]: entry.run}
        else:
            unknown.append(entry)
    return in_order(headers, runs, unknown)


def accesses(groups, loose):
    of_groups = sum(run.count for group in groups for run in group.lane_runs().values())
    return of_groups + sum(run.count * (owner - 31 if owner >= 32 else 1) for owner, run in loose)


def counted(source, count, width=32):
    values = integers(source, width)
    check(len(values) == count, "a column has another number of values")
    return values


def nth(run, number):
    return (run.base + run.step * number) % LONG


def joined(found):
    """Groups and loose runs by site of all pieces of a stream."""
    if len(found) == 1:
        return found[0].sites
    result, parts = {}, {}
    for piece in found:
        for number, part in piece.sites.items():
            parts.setdefault(number, []).append(part)
    for number in sorted(parts):
        headers, runs, unknown, lacking = {}, {lane: [] for lane in range(32)}, [], {}
        for groups, loose in parts[number]:
            # A loose run of an affine group belongs to the last header without a run of the highest leader, in
            # the pieces before, of a group with as many lanes.
            for owner, run in loose:
                if owner < 32:
                    continue
                fits = [lacking[key] for leader in range(32) if lacking.get(key := (owner - 31, leader))]
                if fits:
                    group = fits[-1].pop()
                    group.runs, group.missing = {lanes(group.mask)[0]: run}, 0
                else:
                    unknown.append(Loose(owner, run))
            for group in groups:
                headers.setdefault(lanes(group.mask)[0], []).append(group)
                if group.spread is None:
                    for lane, run in group.runs.items():
                        runs[lane].append(run)
                elif not group.runs:
                    lacking.setdefault((len(lanes(group.mask)), lanes(group.mask)[0]), []).append(group)
            for owner, run in loose:
                if owner < 32:
                    runs[owner].append(run)
        result[number] = in_order(headers, runs, unknown)
    return result


def in_order(headers, runs, unknown):
    """Groups in the order of their times, each with its runs, and the runs that are left."""
    groups, last = [], None
    headers, runs = ({of: deque(found) for of, found in lists.items()} for lists in (headers, runs))
    while any(headers.values()):
        leaders = [leader for leader in sorted(headers) if headers[leader]]
        origin = headers[leaders[0]][0].time if last is None else last
        leader = min(leaders, key=lambda leader: signed(headers[leader][0].time - origin))
        group = headers[leader].popleft()
        last = group.time
        if group.spread is None:
            known = [lane for lane in lanes(group.mask) if runs[lane]]
            group.runs = {lane: runs[lane].popleft() for lane in known}
            group.missing = group.mask & ~sum(1 << lane for lane in known)
        elif not group.runs:
            group.missing = group.mask
        groups.append(group)
    return groups, [Loose(lane, run) for lane in range(32) for run in runs[lane]] + unknown


class Warp:
    """What a warp's lanes accessed, by site and lane, and what is left out."""

    def __init__(self, found, derived):
        found.sort(key=lambda piece: piece.sequence)
        self.chunks = 0
        for piece in found:
            check(piece.sequence == self.chunks, "chunks of addresses and values are not in sequence")
            self.chunks += piece.chunks
        self.damaged = sum(piece.damaged for piece in found)
        cuts = [piece.cut for piece in found if piece.cut is not None]
        cut = cuts[0] if cuts else None
        for other in cuts:
            cut = other if signed(cut - other) > 0 else cut
        self.lanes, self.left_out, self.has_odd = {}, 0, False
        for number, (groups, loose) in joined(found).items():
            if number in derived:
                # Derived sites have no recorded accesses.
                self.has_odd, self.left_out = True, self.left_out + accesses(groups, loose)
                continue
            for group in groups:
                if group.missing == 0 and (cut is None or signed(group.time - cut) < 0):
                    for lane, run in group.lane_runs().items():
                        self.lanes.setdefault((number, lane), []).extend(nth(run, at) for at in range(run.count))
                    continue
                self.has_odd = self.has_odd or cut is None
                self.left_out += accesses([group], [])
            self.has_odd = self.has_odd or (loose and cut is None)
            self.left_out += accesses([], loose)
        self.recorded = self.left_out + sum(map(len, self.lanes.values()))
        for number, (root, offset, narrow) in derived.items():
            for lane in range(32):
                if (root, lane) in self.lanes:
                    self.lanes[number, lane] = [follow(access, offset, narrow) for access in self.lanes[root, lane]]


def contradicts(derived):
    """Whether sections say of a site that it is recorded, and that it is not."""
    return any(root in derived for root, _, _ in derived.values())


def follow(access, offset, narrow):
    """What follows from a root's access. Those of 32 bits are less than 2^32."""
    if not narrow:
        return (access + offset) % LONG
    total = (access + offset) % LONG
    if total >> 63:
        return (total + WORD) % LONG
    return total - WORD if total >= WORD else total


def warps(trace, launch, problems):
    """Each warp of a launch that has addresses or values; appends what is damaged."""
    found, derived = {}, trace.derived()
    if contradicts(derived):
        derived = {}
    for section in trace.data_sections.get(launch, []):
        try:
            for piece in pieces(trace.data, section)[1]:
                found.setdefault(piece.warp, []).append(piece)
        except Damage as damage:
            problems.append(str(damage))
    for number in sorted(found):
        try:
            yield number, Warp(found[number], derived)
        except Damage as damage:
            problems.append(f"warp {number}: {damage}")


def write_accesses(trace, out):
    print("launch,warp,site,lane,access", file=out)
    for launch in sorted(trace.launches):
        problems = []
        for number, warp in warps(trace, launch, problems):
            for (site, lane), found in sorted(warp.lanes.items()):
                for access in found:
                    print(launch, number, site, lane, f"{access:#x}", sep=",", file=out)
        check(not problems, "; ".join(problems))


def findings(trace, launch, found):
    """Appends what is wrong with the addresses and values of a launch."""
    name, info = f"launch {launch}, addresses and values", trace.launches[launch]
    track = len(trace.metadata.tracks)
    problems = []
    streams = dict(warps(trace, launch, problems))
    accounts, more = trace.all_accounts(launch, track)
    known = {site.number for site in trace.sites}
    for number, warp in streams.items():
        if warp.damaged or warp.has_odd:
            problems.append(f"warp {number}: entries belong to nothing")
        if not info.is_chosen(number) or any(lane not in lanes(info.lanes(number)) for _, lane in warp.lanes):
            problems.append(f"warp {number}: was not chosen, or a lane is not there")
        if any(site not in known for site, _ in warp.lanes):
            problems.append(f"warp {number}: a site is not in the table")
    for number, account in accounts.items():
        warp = streams.get(number)
        if (account.recorded, account.chunks) != ((warp.recorded, warp.chunks) if warp else (0, 0)):
            problems.append(f"warp {number}: the account does not fit")
        if account.attempted != account.recorded + account.lost or account.lost:
            problems.append(f"warp {number}: lost {account.lost} accesses")
    if sum(info.is_chosen(warp) for warp in accounts) < info.chosen_count():
        problems.append("chosen warps have no account")
    found += [f"{name}: {problem}" for problem in problems + more]
