"""Addresses and values: docs/reference/format, "SITE", "DATA" and "DACC"."""

from collections import namedtuple

import sections
from parts import Bytes, Damage, check, checksum, unpacked, unzigzag
from sections import MAX_PLAIN, body, integers, variant

MAX_ENTRIES, MAX_PIECES, MAX_SITE, MAX_COUNT = 1 << 19, 65_536, 32_767, 1023
WORD, LONG = 1 << 32, 1 << 64
# Kind of a site that names a value.
VALUE = 6
Site = namedtuple("Site", "number kind space bytes elements location file line name derived")
# A derived site's root site, the offset of its addresses, and whether these are modulo 2^32 (`narrow`).
Derived = namedtuple("Derived", "root offset narrow")
Head = namedtuple("Head", "launch first last pieces entries accesses")
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


class Piece:
    def __init__(self, warp, sequence, chunks, damaged, cut):
        self.warp, self.sequence, self.chunks, self.damaged, self.cut = warp, sequence, chunks, damaged, cut
        # Groups and loose runs, by site.
        self.sites = {}


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
    launch, first, last, pieces, entries, accesses = source.fields("5IQ")
    checksum(source.data[:28], source.fields("I")[0], "the fixed part of addresses and values")
    check(first <= last and 1 <= pieces <= MAX_PIECES and entries <= MAX_ENTRIES, "a number of addresses and values is out of range")
    return Head(launch, first, last, pieces, entries, accesses)


def pieces(data, section):
    fixed, source = head(data, section), body(data, section)
    source.take(32)
    plain, compression, zero = source.fields("IB3s")
    check(plain <= MAX_PLAIN and zero == bytes(3), "addresses and values are too many bytes, or a reserved field is not zero")
    contents = unpacked(compression, source.rest(), plain)
    check(len(contents) == plain, "addresses and values have another length")
    source = Bytes(contents)
    columns = [counted(source, fixed.pieces) for _ in range(5)]
    check(all(cut <= 1 for cut in columns[4]), "whether something was lost is neither 0 nor 1")
    cuts, warp, found = iter(counted(source, sum(columns[4]))), fixed.first, []
    for number, (more, sequence, chunks, damaged, cut) in enumerate(zip(*columns)):
        warp += more
        check((number or not more) and warp <= fixed.last and chunks and sequence + chunks < WORD, "a piece is of no warp, or has no chunk")
        found.append(Piece(warp, sequence, chunks, damaged, next(cuts) if cut else None))
    check(warp == fixed.last, "the last warp is another one")
    numbers = integers(source)
    in_pieces, number, times, entries = counted(source, len(numbers)), 0, {}, 0
    for more, count in zip(numbers, in_pieces):
        number += more
        check(more and number <= MAX_SITE and 1 <= count <= fixed.pieces, "a site's number or pieces are out of range")
        entries += Columns(source, number, count, found, times).entries
    source.end()
    check(entries == fixed.entries, "the entries are not as many as announced")
    total = sum(accesses(groups, loose) for piece in found for groups, loose in piece.sites.values())
    check(total == fixed.accesses, "the accesses are not as many as announced")
    return fixed, found


def accesses(groups, loose):
    of_groups = sum(run.count for group in groups for run in group.lane_runs().values())
    return of_groups + sum(run.count * (owner - 31 if owner >= 32 else 1) for owner, run in loose)


def counted(source, count, width=32):
    values = integers(source, width)
    check(len(values) == count, "a column has another number of values")
    return values


class Columns:
    """The columns of a site, from which groups of pieces are made."""

    def __init__(self, source, number, count, found, times):
        at, groups, loose = (counted(source, count) for _ in range(3))
        check(all(one or other for one, other in zip(groups, loose)), "a piece has nothing of a site")
        self.least, self.shift, self.base_by, self.step_by = counted(source, 4, 64)
        check(self.shift <= 63 and self.base_by <= 4 and self.step_by <= 3, "bases or steps are told in no known way")
        masks, missing, affine, steps_of_time = (counted(source, sum(groups)) for _ in range(4))
        check(all(one <= 1 for one in affine), "a group is neither affine nor generic")
        spreads, owners = iter(counted(source, sum(affine))), counted(source, sum(loose))
        check(all(owner < 64 for owner in owners), "a loose run is of no lane")
        heads, mask, spread = [], WORD - 1, 0
        for change, lacks, is_affine in zip(masks, missing, affine):
            mask ^= change
            check(mask and not lacks & ~mask and (not is_affine or lacks in (0, mask)), "a group has no lanes, or lacks others")
            if is_affine:
                spread = signed(spread + unzigzag(next(spreads)))
            heads.append(Group(mask, None, spread if is_affine else None, lacks, {}))
            if is_affine:
                low, high = lanes(mask)[0], lanes(mask)[-1]
                check(high == low and spread == 0 or high > low and all(spread * (lane - low) % (high - low) == 0 for lane in lanes(mask)), "bases are on no line")
        runs = sum(self.runs_of(group) for group in heads) + len(owners)
        self.entries = len(heads) + runs
        counts = counted(source, runs)
        check(all(count < MAX_COUNT for count in counts), "a run has too many accesses")
        self.steps = iter(counted(source, sum(count > 0 for count in counts), 64))
        self.counts, self.bases = iter(counts), iter(counted(source, runs, 64))
        self.before, self.step = NOTHING, 0
        heads, steps_of_time, owners = iter(heads), iter(steps_of_time), iter(owners)
        piece, warp_time = 0, 0
        for more, in_groups, in_loose in zip(at, groups, loose):
            piece += more
            check(piece < len(found), "a site is in a piece that is not there")
            self.lanes, here, time = {}, [], times.get(piece, warp_time)
            for index in range(in_groups):
                group = next(heads)
                group.time = time = (time + unzigzag(next(steps_of_time))) % WORD
                if index == 0:
                    warp_time = times[piece] = time
                self.take_group(group)
                here.append(group)
            found[piece].sites[number] = (here, [self.take_loose(next(owners)) for _ in range(in_loose)])
            piece += 1

    @staticmethod
    def runs_of(group):
        known = len(lanes(group.mask & ~group.missing))
        return min(known, 1) if group.spread is not None else known

    def take_group(self, group):
        known = lanes(group.mask & ~group.missing)
        if group.spread is None:
            group.runs = {lane: self.take(lane) for lane in known}
        elif known:
            group.runs = {known[0]: self.take(known[0])}
            for lane, run in group.lane_runs().items():
                self.lanes[lane] = self.units(run)

    def take_loose(self, owner):
        return Loose(owner, self.take(owner if owner < 32 else None))

    def units(self, run):
        return Run((run.base - self.least) % LONG >> self.shift, run.step >> self.shift, run.count)

    def take(self, lane):
        """The next run of the column, which is a lane's."""
        count, told = next(self.counts) + 1, next(self.bases)
        known = self.lanes.get(lane)
        by = self.base_by
        if by == 0:
            base = told
        elif by == 4:
            base = told ^ (self.before.base if known is None else nth(known, known.count - 1))
        elif by == 1 and known is not None:
            base = (nth(known, known.count) + unzigzag(told)) % LONG
        elif by == 3:
            base = (nth(self.before, self.before.count) + unzigzag(told)) % LONG
        else:
            base = (self.before.base + unzigzag(told)) % LONG
        step = 0
        if count > 1:
            told = next(self.steps)
            step = [unzigzag(told), told - base, self.step + unzigzag(told), (told ^ base) - base][self.step_by]
            step = self.step = signed(step, 64)
        self.before = Run(base, step, count)
        if lane is not None:
            self.lanes[lane] = self.before
        step <<= self.shift
        check(-(1 << 31) <= step < 1 << 31, "a step has more than 32 bits")
        return Run((self.least + (base << self.shift)) % LONG, step, count)


def nth(run, number):
    return (run.base + run.step * number) % LONG


def joined(found):
    """Groups and loose runs by site of all pieces of a stream."""
    if len(found) == 1:
        return found[0].sites
    result = {}
    for number in sorted({number for piece in found for number in piece.sites}):
        headers, runs, unknown = {}, {lane: [] for lane in range(32)}, []
        for piece in found:
            groups, loose = piece.sites.get(number, ([], []))
            # A loose run of an affine group belongs to the group's last header in the pieces before.
            for owner, run in loose:
                if owner < 32:
                    continue
                fits = [group for leader in sorted(headers) for group in headers[leader]
                        if group.spread is not None and not group.runs and len(lanes(group.mask)) == owner - 31]
                if fits:
                    fits[-1].runs, fits[-1].missing = {lanes(fits[-1].mask)[0]: run}, 0
                else:
                    unknown.append(Loose(owner, run))
            for group in groups:
                headers.setdefault(lanes(group.mask)[0], []).append(group)
                if group.spread is None:
                    for lane, run in group.runs.items():
                        runs[lane].append(run)
            for owner, run in loose:
                if owner < 32:
                    runs[owner].append(run)
        groups, last = [], None
        while any(headers.values()):
            leaders = [leader for leader in sorted(headers) if headers[leader]]
            origin = headers[leaders[0]][0].time if last is None else last
            leader = min(leaders, key=lambda leader: signed(headers[leader][0].time - origin))
            group = headers[leader].pop(0)
            last = group.time
            if group.spread is None:
                known = [lane for lane in lanes(group.mask) if runs[lane]]
                group.runs = {lane: runs[lane].pop(0) for lane in known}
                group.missing = group.mask & ~sum(1 << lane for lane in known)
            groups.append(group)
        result[number] = (groups, [Loose(lane, run) for lane in range(32) for run in runs[lane]] + unknown)
    return result


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
