"""The sections of a `.wtrc` file: docs/reference/format.md, "Sections"."""

from collections import namedtuple

import columns
from parts import Bytes, Unknown, check, checksum, text, unpacked, unzigzag

MAX_BODY = 32 << 20
MAX_PLAIN = 16 << 20
MAX_PAYLOAD = (1 << 20) - 32
# Supported sections, with their latest supported versions.
KNOWN = {b"META": 1, b"ORIG": 1, b"MORE": 1, b"TEXT": 1, b"CODE": 1, b"WAIT": 1, b"LABL": 1, b"STCK": 1, b"UNTR": 1, b"LNCH": 2, b"FRAM": 2, b"TIME": 2, b"ACCT": 1, b"SPAN": 2, b"SITE": 1, b"DATA": 2, b"DACC": 1, b"BUFS": 1, b"ENDS": 1, b"HOST": 1, b"INDX": 1, b"TAIL": 1}

Section = namedtuple("Section", "at tag version length checksum body_at end")
Entry = namedtuple("Entry", "at length kind launch track first last chunks events")
Frame = namedtuple("Frame", "launch track first last chunks compression events plain contents_at")
Account = namedtuple("Account", "recorded lost attempted chunks unfinished")
Accounts = namedtuple("Accounts", "launch track first warps compression contents_at")
Chunk = namedtuple("Chunk", "warp sequence events payload step runs", defaults=(1, ()))
Span = namedtuple("Span", "sm begin_timer begin_clock end_sm end_timer end_clock")
Ends = namedtuple("Ends", "launch how message")
KINDS = [b"LNCH", b"FRAM", b"ACCT", b"ENDS", b"MORE", b"TEXT"]


def header(data, at):
    """The header at a place, or `None` if the section is one to be skipped."""
    source = Bytes(data[at : at + 24])
    tag, version, flags, length, body_checksum = source.fields("4sHHQI")
    checksum(source.data[:20], source.fields("I")[0], "a section's header")
    if flags > 1:
        raise Unknown("a section has unknown flags")
    check(length <= MAX_BODY, "a section is too long")
    found = Section(at, tag, version, length, body_checksum, at + 24, at + 24 + length)
    # First checks that the reader supports the section, then that it fits.
    if not is_known(found) and flags != 1:
        raise Unknown("a section is neither known nor optional")
    check(found.end <= len(data), "a section does not fit into the file")
    return found


def is_known(section):
    return (1 <= section.version <= KNOWN.get(section.tag, 0)) and not (section.tag == b"DATA" and section.version == 1)


def body(data, section):
    found = data[section.body_at : section.end]
    checksum(found, section.checksum, f"{section.tag.decode()}")
    return Bytes(found)


class Metadata:
    def __init__(self, source):
        read = source.string
        self.tool = read()
        self.device = variant(source, 2), read()
        source.option(lambda: (source.short(32), source.short(32)))
        source.option(read)
        self.kernels = source.list(4096, lambda: kernel(source))
        self.tracks = source.list(2, lambda: codec(source))
        check(self.tracks, "there is no track")
        size, _ = source.short(32), source.short(32)
        check(512 <= size <= 1 << 20 and size & (size - 1) == 0, "the chunks' size is no power of two in range")
        self.policy = read()
        self.locations = {}
        self.add_locations(source.list(65_535, lambda: location(source)))
        self.properties = dict(source.list(4096, lambda: (read(), read())))
        source.option(lambda: source.short(64))
        source.end()

    def add_locations(self, found):
        largest = 255 if any(name == "ecl" for name, _ in self.tracks) else 65_535
        for number, *_ in found:
            check(number not in self.locations, "two locations have one id")
            check(1 <= number <= largest, "a codec does not carry a location's id")
            self.locations[number] = None
        for number, name, parent in found:
            check(parent == 0 or (parent < number and parent in self.locations), "a location's parent is wrong")
            self.locations[number] = name

    def add(self, source):
        """A MORE section's kernels and locations."""
        kernels = source.list(4096, lambda: kernel(source))
        locations = source.list(65_535, lambda: location(source))
        source.end()
        check(kernels or locations, "a MORE section is empty")
        self.kernels += kernels
        check(len(self.kernels) <= 4096, "there are too many kernels")
        self.add_locations(locations)


def variant(source, count):
    number = source.short(32)
    check(number < count, "an unknown variant")
    return number


def kernel(source):
    return source.string(), source.string()


def codec(source):
    number = variant(source, 3)
    limits = [[], [(4, 16), (1, 8), (6, 20)], [(2, 10)]][number]
    parameters = source.take(len(limits))
    for value, (least, most) in zip(parameters, limits):
        check(least <= value <= most, "a codec's parameter is out of range")
    return ["raw", "ecl", "predict"][number], tuple(parameters)


def location(source):
    number, name = source.short(16), source.string()
    _description, _file, _line, _column = source.string(), source.string(), source.short(32), source.short(32)
    _function, _kind = source.string(), variant(source, 11)
    parent, _rejoin = source.short(16), (source.short(32), source.short(32))
    return number, name, parent


class Launch:
    def __init__(self, source, version):
        self.number, self.kernel, *sizes = source.fields("II3I3I")
        self.grid, self.block = sizes[:3], sizes[3:]
        _shared, zero = source.fields("II")
        check(zero == 0, "a reserved field is not zero")
        check(all(sizes), "a launch has a size of 0")
        threads = self.block[0] * self.block[1] * self.block[2]
        check(threads <= 1024, "a block has too many threads")
        self.threads, self.warps_per_block = threads, -(-threads // 32)
        self.blocks = self.grid[0] * self.grid[1] * self.grid[2]
        self.warps = self.blocks * self.warps_per_block
        check(self.warps < 1 << 32, "a launch has too many warps")
        self.chosen = (0, self.blocks, 1, 0, self.warps_per_block)
        if version == 2:
            self.chosen = first, blocks, step, first_warp, warps = source.fields("5I")
            if any(self.chosen):
                check(blocks and step and warps, "a window of nothing is not all zeros")
                check(first + (blocks - 1) * step < self.blocks, "chosen blocks are not of the launch")
                check(first_warp + warps <= self.warps_per_block, "chosen warps are not of the block")
        source.end()

    def is_chosen(self, warp):
        first, blocks, step, first_warp, warps = self.chosen
        block, warp = divmod(warp, self.warps_per_block)
        if not warps or not first_warp <= warp < first_warp + warps or block < first:
            return False
        place, rest = divmod(block - first, step)
        return rest == 0 and place < blocks

    def chosen_count(self):
        _, blocks, _, _, warps = self.chosen
        return blocks * warps

    def lanes(self, warp):
        """A mask of the lanes that the warp has."""
        threads = self.threads - 32 * (warp % self.warps_per_block)
        return (1 << min(threads, 32)) - 1


def frame(data, section):
    """The fixed part of a frame."""
    source = Bytes(data[section.body_at : section.end])
    launch, track, first, last, chunks, compression, zero, events, plain = source.fields("5IB3sQI")
    checksum(source.data[:36], source.fields("I")[0], "a frame's fixed part")
    check(zero == bytes(3), "a reserved field is not zero")
    check(first <= last, "a frame's last warp comes before its first")
    # In version 1: four numbers of each chunk, and length and a byte of one payload.
    most = (plain - 2) // 4 if section.version == 1 else 262_144
    check(1 <= chunks <= min(262_144, most), "a frame has no chunk or too many")
    check(compression <= 1, "an unknown compression")
    check(plain <= MAX_PLAIN, "a frame's contents are too long")
    check(events >= chunks, "a frame has fewer events than chunks")
    return Frame(launch, track, first, last, chunks, compression, events, plain, section.body_at + 40)


def chunks(data, section):
    """The chunks of a frame."""
    fixed, whole = frame(data, section), body(data, section)
    whole.take(40)
    plain = unpacked(fixed.compression, whole.rest(), fixed.plain)
    check(len(plain) == fixed.plain, "a frame's contents have another length")
    read = chunks_of_runs if section.version == 2 else listed_chunks
    return read(Bytes(plain), fixed)


def listed_chunks(source, fixed):
    """The chunks of contents of version 1."""
    count = fixed.chunks
    warps, warp = [], fixed.first
    for number in range(count):
        step = source.varint(32)
        check(number or step == 0, "a frame's first warp is another one")
        warp += step
        warps.append(warp)
    check(warps[-1] == fixed.last, "a frame's last warp is another one")
    sequences = []
    for number in range(count):
        value = source.varint(32)
        if number and warps[number] == warps[number - 1]:
            value += sequences[-1] + 1
        check(value < 1 << 32, "a sequence number is too large")
        sequences.append(value)
    shares, distinct = [], 0
    for _ in range(count):
        value = source.varint(32)
        check(value <= distinct, "a chunk shares a payload that is not there")
        shares.append(value - 1 if value else distinct)
        distinct += value == 0
    events, by_payload = [], [0] * distinct
    for share in shares:
        by_payload[share] += unzigzag(source.varint(33))
        check(1 <= by_payload[share] < 1 << 32, "a chunk has no events or too many")
        events.append(by_payload[share])
    check(sum(events) == fixed.events, "a frame's events do not add up")
    lengths = [source.varint(32) for _ in range(distinct)]
    check(all(1 <= length <= MAX_PAYLOAD for length in lengths), "a payload is empty or too long")
    check(sum(16 + lengths[share] for share in shares) <= MAX_PLAIN, "a frame unfolds to too much")
    payloads = [source.take(length) for length in lengths]
    source.end()
    return [Chunk(*row[:3], payloads[row[3]]) for row in zip(warps, sequences, events, shares)]


def chunks_of_runs(source, fixed):
    """The chunks of contents of version 2: each warp of a run has all chunks of the run's class."""
    runs = source.varint(32)
    check(1 <= runs <= fixed.chunks, "a frame has no runs or too many")
    gaps = [source.varint(32) for _ in range(runs)]
    check(gaps[0] == 0, "a frame's first warp is another one")
    starts, end = [], fixed.first
    for gap in gaps:
        more = source.varint(32)
        check(more < fixed.chunks, "a run has too many warps")
        starts.append((end + gap, end + gap + more + 1))
        end = starts[-1][1]
    check(end == fixed.last + 1, "a frame's last warp is another one")
    of_runs, known = [], 0
    for _ in range(runs):
        value = source.varint(32)
        check(value <= known, "a run is of a class that is not there")
        of_runs.append(value - 1 if value else known)
        known += value == 0
    counts = [source.varint(32) + 1 for _ in range(known)]
    warps = [last - first for first, last in starts]
    check(sum(each * counts[number] for each, number in zip(warps, of_runs)) == fixed.chunks, "the chunks of runs do not add up")
    events = [source.varint(32) for _ in range(sum(counts))]
    check(all(events), "a chunk has no events")
    lengths = [source.varint(32) for _ in events]
    check(all(1 <= length <= MAX_PAYLOAD for length in lengths), "a payload is empty or too long")
    rows = iter(zip(events, [source.take(length) for length in lengths]))
    source.end()
    classes = [[next(rows) for _ in range(count)] for count in counts]
    found = [
        Chunk(warp, sequence, *row)
        for (first, last), number in zip(starts, of_runs)
        for warp in range(first, last)
        for sequence, row in enumerate(classes[number])
    ]
    check(sum(chunk.events for chunk in found) == fixed.events, "a frame's events do not add up")
    check(sum(16 + len(chunk.payload) for chunk in found) <= MAX_PLAIN, "a frame unfolds to too much")
    return found


def behind(data, section, before):
    """The body of a section that belongs to the one before it: it names that one by its checksum since version 2."""
    source = body(data, section)
    if section.version >= 2:
        check(source.fields("I")[0] == header(data, before).checksum, "times are those of another section")
    return source


def times(data, section, before, chunks):
    """For each chunk of the frame at `before` its runs, as (time, events): events is 0 where a run goes on to the next
    event."""
    source = behind(data, section, before)
    count, step, plain, compression, zero = source.fields("3IB3s")
    check(count <= MAX_PLAIN // 8, "there are too many runs")
    check(step >= 1, "a unit of time has no cycles")
    check(plain <= MAX_PLAIN, "times are too many bytes")
    check(compression <= 1 and zero == bytes(3), "an unknown compression, or a reserved field is not zero")
    contents = unpacked(compression, source.rest(), plain)
    check(len(contents) == plain, "times have another length")
    source = Bytes(contents)
    of_chunks, first, steps, gaps, events = (integers(source) for _ in range(5))
    source.end()
    check(len(of_chunks) == len(first) == chunks and all(of_chunks), "the times are of other chunks")
    check(sum(of_chunks) == count == chunks + len(steps), "the runs of the chunks do not add up")
    check(len(gaps) == len(events) <= count, "the split runs do not fit to their events")
    parts, run = [0] * count, -1
    for gap, part in zip(gaps, events):
        run += 1 + gap
        check(run < count and part > 0, "a split run is not there, or has no events")
        parts[run] = part
    parts, steps, found = iter(parts), iter(steps), []
    for each, time in zip(of_chunks, first):
        found.append([(time, next(parts))])
        for _ in range(each - 1):
            time = (time + unzigzag(next(steps))) % (1 << 32)
            found[-1].append((time, next(parts)))
    return step, found


def integers(source, width=32):
    bits, values = columns.column(source)
    check(bits == width, "a column has elements of another width")
    return values


def begun(runs, events):
    """For each event when its run began, if it is the first of that run, else `None`; ends where times do not fit."""
    runs, left, last = iter(runs), 0, None
    was_split = False
    for event in events:
        if event == last and (left > 0 or not was_split):
            left -= was_split
            yield None
            continue
        run = next(runs, None)
        if left > 0 or run is None:
            return
        time, part = run
        last, was_split, left = event, part > 0, max(part - 1, 0)
        yield time


def accounts_head(data, section):
    source = Bytes(data[section.body_at : section.end])
    launch, track, first, warps, compression, zero = source.fields("4IB3s")
    checksum(source.data[:20], source.fields("I")[0], "an accounting section's fixed part")
    check(zero == bytes(3), "a reserved field is not zero")
    check(compression <= 1, "an unknown compression")
    check(1 <= warps <= 65_536, "an accounting section has no warps or too many")
    return Accounts(launch, track, first, warps, compression, section.body_at + 24)


def accounts(data, section):
    """The accounts of a section by warp."""
    head, whole = accounts_head(data, section), body(data, section)
    whole.take(24)
    source = Bytes(unpacked(head.compression, whole.rest(), 36 * head.warps + 55))
    recorded, lost, differences, chunk_counts, unfinished = (
        column(source, head.warps, bits) for bits in (64, 64, 64, 32, 1)
    )
    source.end()
    found = {}
    for number in range(head.warps):
        attempted = recorded[number] + lost[number] + unzigzag(differences[number])
        found[head.first + number] = Account(
            recorded[number], lost[number], attempted % (1 << 64), chunk_counts[number], unfinished[number] == 1
        )
    return found


def column(source, warps, bits):
    each = source.take(1)[0]
    check(each <= 1, "a column is of an unknown kind")
    return [source.varint(bits) for _ in range(warps)] if each else [source.varint(bits)] * warps


def spans(data, section, before, warps):
    """Of each warp of the accounting section at `before` where and when it ran; `None` in the place of what is not
    known."""
    source = behind(data, section, before)
    count, plain, compression, zero = source.fields("IIB3s")
    check(count == warps, "the spans are of other accounts")
    check(plain <= 48 * warps + 1024, "spans are too many bytes")
    check(compression <= 1 and zero == bytes(3), "an unknown compression, or a reserved field is not zero")
    contents = unpacked(compression, source.rest(), plain)
    check(len(contents) == plain, "spans have another length")
    source = Bytes(contents)
    states = integers(source)
    check(len(states) == warps and all(state <= 3 for state in states), "a warp's state is not known, or has no warp")
    sms, begins, clocks = integers(source), integers(source, 64), integers(source, 64)
    nanoseconds, cycles, moved = integers(source, 64), integers(source, 64), integers(source)
    source.end()
    began, ended, elsewhere = (sum(state >= least for state in states) for least in (1, 2, 3))
    check(len(sms) == len(begins) == len(clocks) == began, "the begins of warps are not as many as warps that began")
    check(len(nanoseconds) == len(cycles) == ended and len(moved) == elsewhere, "the ends of warps are not as many")
    check(all(sm < (1 << 32) - 1 for sm in sms + moved), "a multiprocessor's number is too large")
    of_begun, of_ended, of_moved = zip(sms, begins, clocks), zip(nanoseconds, cycles), iter(moved)
    found, timer, last = [], 0, {}
    for state in states:
        if state == 0:
            found.append(None)
            continue
        sm, begin, clock = next(of_begun)
        timer = (timer + unzigzag(begin)) % (1 << 64)
        last[sm] = (last.get(sm, 0) + unzigzag(clock)) % (1 << 64)
        end = (None, None, None)
        if state >= 2:
            more, length = next(of_ended)
            end_sm = next(of_moved) if state == 3 else sm
            check((end_sm != sm) == (state == 3), "a warp ended on another multiprocessor, which is the same")
            end = (end_sm, (timer + unzigzag(more)) % (1 << 64), (last[sm] + unzigzag(length)) % (1 << 64))
        found.append(Span(sm, timer, last[sm], *end))
    return found


def host(data, section, most):
    """The launches that a HOST section tells of, at most as many as the file has; and how many readings it has."""
    source = body(data, section)
    launches, readings, plain, compression, zero = source.fields("3IB3s")
    check(launches <= min(most, 65_536) and readings <= 64, "there are too many launches or readings")
    check(launches or readings, "nothing is told of the host")
    check(plain <= 24 * launches + 40 * readings + 1024, "the host's times are too many bytes")
    check(compression <= 1 and zero == bytes(3), "an unknown compression, or a reserved field is not zero")
    contents = unpacked(compression, source.rest(), plain)
    check(len(contents) == plain, "the host's times have another length")
    source = Bytes(contents)
    numbers = integers(source)
    of_launches = [integers(source, 64) for _ in range(2)]
    of_readings = [integers(source, 64) for _ in range(4)]
    source.end()
    check(all(len(values) == launches for values in [numbers, *of_launches]), "values of launches are not as many")
    check(all(len(values) == readings for values in of_readings), "values of readings are not as many")
    found, number = [], 0
    for step in numbers:
        number = (number + unzigzag(step)) % (1 << 32)
        found.append(number)
    return found, readings


def ends(source):
    launch, how, zero = source.fields("IB3s")
    check(how in (1, 2) and zero == bytes(3), "how a launch ended is not known")
    message = text(source.rest())
    check(len(message.encode()) <= 4096, "a message is too long")
    check(how == 1 or not message, "an interrupted launch has a message")
    return Ends(launch, how, message)


def source_text(data, section):
    """The name and the text of a TEXT section."""
    whole = body(data, section)
    name_bytes, text_bytes, compression, zero = whole.fields("IIB7s")
    check(zero == bytes(7), "a reserved field is not zero")
    check(1 <= name_bytes <= 4096 and text_bytes <= 64 << 20, "a text or its name is empty or too long")
    name = text(whole.take(name_bytes))
    plain = unpacked(compression, whole.rest(), text_bytes)
    check(len(plain) == text_bytes, "a text has another length")
    return name, text(plain)


def code(data, section):
    """Of each location in a CODE section its instructions, and whether it is a loop that was counted."""
    source = body(data, section)
    check(section.length <= MAX_PLAIN, "a CODE section is too long")
    found = source.list(65_535, lambda: (source.short(16), source.short(32), source.take(1)[0]))
    source.end()
    check(all(counted <= 1 for _, _, counted in found), "whether a loop was counted is neither 0 nor 1")
    return {number: (instructions, counted == 1) for number, instructions, counted in found}


def waits(data, section):
    """Of each location in a WAIT section its barrier, phase, the places of its copies, and whether they are certain."""
    source = body(data, section)
    check(section.length <= MAX_PLAIN, "a WAIT section is too long")
    copies = lambda: source.list(64, lambda: (source.string(), source.short(32), source.short(32)))
    row = lambda: (source.short(16), source.string(), source.string(), copies(), source.take(1)[0])
    found = source.list(65_535, row)
    source.end()
    check(all(row[-1] <= 1 for row in found), "whether copies are certain is neither 0 nor 1")
    return {number: (barrier, phase, places, certain == 1) for number, barrier, phase, places, certain in found}


def labels(data, section):
    """The texts of a LABL section by their numbers, and the number of each launch's text."""
    source = body(data, section)
    check(section.length <= MAX_PLAIN, "a LABL section is too long")
    first = source.short(32)
    texts = source.list(65_536, source.string)
    launches = source.list(1 << 22, lambda: (source.short(32), source.short(32)))
    source.end()
    check(first + len(texts) <= 65_536, "a label's number is too large")
    check(all(len(found.encode()) <= 1024 for found in texts), "a label is too long")
    return dict(enumerate(texts, first)), dict(launches)


def stacks(data, section):
    """The frames of a STCK section and its stacks, each by number, and the number of each launch's stack."""
    source = body(data, section)
    check(section.length <= MAX_PLAIN, "a STCK section is too long")
    first_frame = source.short(32)
    frames = source.list(65_536, lambda: (source.string(), source.string(), source.short(32)))
    first_stack = source.short(32)
    found = source.list(262_144, lambda: (source.short(32), source.short(32)))
    launches = source.list(1 << 22, lambda: (source.short(32), source.short(32)))
    source.end()
    check(first_frame + len(frames) <= 65_536, "a frame's number is too large")
    check(first_stack + len(found) <= 262_144, "a stack's number is too large")
    check(all(len(text.encode()) <= 1024 for *texts, _ in frames for text in texts), "a name of a frame is too long")
    found = dict(enumerate(found, first_stack))
    check(all(caller <= number for number, (caller, _) in found.items()), "a stack's caller is not before it")
    return dict(enumerate(frames, first_frame)), found, dict(launches)


def unrecorded(data, section):
    """The launches of an UNTR section, as (kernel, reason, number), and its notes."""
    source = body(data, section)
    check(section.length <= MAX_PLAIN, "an UNTR section is too long")
    launches = source.list(65_536, lambda: (source.string(), source.string(), source.short(64)))
    notes = source.list(1024, source.string)
    source.end()
    texts = [text for row in launches for text in row[:2]] + notes
    check(all(len(text.encode()) <= 1024 for text in texts), "a text of an UNTR section is too long")
    check(all(number for *_, number in launches), "a kernel of an UNTR section has no launch")
    return launches, notes


def origin(data, section):
    """Checks an ORIG section."""
    source = body(data, section)
    check(section.length <= MAX_PLAIN, "an ORIG section is too long")

    def text():
        found = source.string()
        check(len(found.encode()) <= 1024, "a text of an ORIG section is too long")
        return found

    number = lambda: source.short(32)
    source.option(text), source.option(text)
    rank, ranks, _local = source.option(number), source.option(number), source.option(number)
    source.option(text), source.option(number), source.option(number), source.option(text)
    source.option(lambda: [source.short(64) for _ in range(3)])
    source.list(16, text)
    source.end()
    check(rank is None or ranks is None or rank < ranks, "a rank is not below the number of ranks")


def index_entries(data, section, first):
    """The entries of an INDX section, the first of which has this number."""
    source = body(data, section)
    number, count, compression, zero = source.fields("IIB7s")
    check(number == first and 1 <= count <= 65_536 and zero == bytes(7), "an index section is wrong")
    source = Bytes(unpacked(compression, source.rest(), 56 * count))
    widths = (64, 64, 32, 33, 32, 32, 32, 32, 64)
    rows = list(zip(*[[source.varint(bits) for _ in range(count)] for bits in widths]))
    source.end()
    return rows
