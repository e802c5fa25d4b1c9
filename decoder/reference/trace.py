"""Opening of `.wtrc` files: docs/reference/format/opening.md."""

from collections import namedtuple

import accesses
import buffers
import sections
from parts import Bytes, Damage, Unknown, check, checksum, shown, unzigzag
from sections import KINDS, Entry

MAX_ENTRIES = 1 << 22
MAX_ENDS = 1024
Listed = namedtuple("Listed", "section entry")


class Refused(Exception):
    """A file that cannot be read at all."""


class Trace:
    """What an open file holds. `why` says what was wrong with its end, or is empty."""

    def __init__(self, data):
        self.data = data
        try:
            self.start = preamble(data)
            section = sections.header(data, 24)
            check(section.tag == b"META" and sections.is_known(section), "there is no metadata")
            check(section.length <= sections.MAX_PLAIN, "the metadata is too long")
            self.metadata_section = section
            self.clear()
            self.why = ""
            try:
                self.read_index()
            except Damage as damage:
                self.clear()
                self.why = str(damage)
                self.walk()
        except Damage as damage:
            raise Refused(str(damage)) from damage

    def clear(self):
        self.metadata = sections.Metadata(sections.body(self.data, self.metadata_section))
        self.launches, self.ends = {}, {}
        # By launch and track.
        self.frames, self.accounts = {}, {}
        self.texts, self.codes, self.hosts, self.label_parts, self.origins = [], [], [], [], []
        self.stack_parts = []
        self.unrecorded_parts = []
        # The tag and place of a section that may follow the last frame or accounts; and such sections at
        # other places.
        self.awaited, self.strays = None, []
        # Addresses and values: sites, sections by launch, and problems in other sections.
        self.sites, self.data_sections, self.data_damage = [], {}, []
        # Buffers that kernels could access, by number, and whether all are known.
        self.has_buffers, self.all_buffers, self.buffers = False, True, {}

    def add(self, section, entry=None):
        """Takes in a section; by the index's entry if that lists it."""
        data, tag = self.data, section.tag
        if tag == b"LNCH":
            launch = sections.Launch(sections.body(data, section), section.version)
            check(launch.number not in self.launches, "two launches have one number")
            check(launch.kernel < len(self.metadata.kernels), "a launch's kernel is not named")
            self.launches[launch.number] = launch
        elif tag == b"MORE":
            check(section.length <= sections.MAX_PLAIN, "a MORE section is too long")
            self.metadata.add(sections.body(data, section))
        elif tag in (b"CODE", b"WAIT"):
            self.codes.append(section)
        elif tag == b"HOST":
            self.hosts.append(section)
        elif tag == b"ORIG":
            self.origins.append(section)
        elif tag in (b"TIME", b"SPAN"):
            if self.awaited != (tag, section.at):
                self.strays.append(section)
        elif tag in (b"SITE", b"DATA", b"DACC", b"BUFS"):
            try:
                self.add_data(section)
            except Damage as damage:
                self.data_damage.append(str(damage))
        elif tag == b"LABL":
            self.label_parts.append(section)
        elif tag == b"STCK":
            self.stack_parts.append(section)
        elif tag == b"UNTR":
            self.unrecorded_parts.append(section)
        elif tag == b"TEXT":
            self.texts.append(Listed(section, entry))
        elif tag == b"ENDS":
            found = sections.ends(sections.body(data, section))
            check(found.launch in self.launches, "an end is of no launch")
            check(found.launch not in self.ends and len(self.ends) < MAX_ENDS, "two ends are of one launch")
            self.ends[found.launch] = found
        elif tag in (b"FRAM", b"ACCT"):
            is_frame = tag == b"FRAM"
            if entry is None:
                fixed = (sections.frame if is_frame else sections.accounts_head)(data, section)
                last = fixed.last if is_frame else fixed.first + fixed.warps - 1
            else:
                fixed, last = entry, entry.last
            check(fixed.launch in self.launches, "a section is of no launch")
            check(fixed.track < len(self.metadata.tracks), "a section is of no track")
            check(last < self.launches[fixed.launch].warps, "a section's warps are not of its launch")
            found = self.frames if is_frame else self.accounts
            has_it = fixed.track == 0 and (self.has_times() if is_frame else self.has_spans())
            self.awaited = (b"TIME" if is_frame else b"SPAN", section.end) if has_it else None
            found.setdefault((fixed.launch, fixed.track), []).append(Listed(section, entry))

    def add_data(self, section):
        """Takes in a section of addresses and values, whose damage is its own."""
        data, tag = self.data, section.tag
        if tag == b"SITE":
            self.sites += accesses.sites(data, section)
            return
        if tag == b"BUFS":
            known, self.has_buffers, self.all_buffers = self.all_buffers, True, False
            all_known, found = buffers.read(data, section)
            self.all_buffers = known and all_known
            # If several buffers have the same number, the last counts.
            self.buffers |= {one.number: one for one in found}
            return
        track = len(self.metadata.tracks)
        if tag == b"DATA":
            fixed = accesses.head(data, section)
            last = fixed.last
        else:
            fixed = sections.accounts_head(data, section)
            last = fixed.first + fixed.warps - 1
            check(fixed.track == track, "accounts of addresses and values are of another track")
        check(fixed.launch in self.launches, "addresses and values are of no launch")
        check(last < self.launches[fixed.launch].warps, "addresses and values are of warps that are not there")
        if tag == b"DATA":
            self.data_sections.setdefault(fixed.launch, []).append(section)
        else:
            self.accounts.setdefault((fixed.launch, track), []).append(Listed(section, None))

    def derived(self):
        """By site how it follows from another one, whether that is recorded or not. Of a number the first site counts."""
        first = {}
        for site in self.sites:
            first.setdefault(site.number, site)
        return {number: site.derived for number, site in first.items() if site.derived}

    def has_accesses(self):
        return bool(self.sites or self.data_sections or any(track == len(self.metadata.tracks) for _, track in self.accounts))

    def walk(self):
        at, has_index = self.metadata_section.end, False
        while at < len(self.data):
            try:
                section = sections.header(self.data, at)
                if sections.is_known(section):
                    if section.tag == b"TAIL":
                        return
                    check(section.tag != b"META", "there are two sections of metadata")
                    has_index = has_index or section.tag == b"INDX"
                    check(not has_index or section.tag == b"INDX", "a section stands behind the index")
                    self.add(section)
            except Unknown:
                raise
            except Damage as damage:
                self.why += f"; from {at} on: {damage}"
                return
            at = section.end
        self.why += f"; the file ends at {at}"

    def read_index(self):
        data = self.data
        check(len(data) >= 48, "there is no trailer")
        tail = sections.header(data, len(data) - 48)
        check(tail.tag == b"TAIL" and sections.is_known(tail) and tail.length == 24, "there is no trailer")
        at, length, count, parts = sections.body(data, tail).fields("QQII")
        check(length == len(data), "the trailer is of a file of another length")
        check(count <= MAX_ENTRIES, "the index is too long")
        entries, index_at = [], at
        for _ in range(parts):
            check(at < tail.at, "the index is not before the trailer")
            section = sections.header(data, at)
            check(section.tag == b"INDX" and sections.is_known(section), "there is no index")
            rows = sections.index_entries(data, section, len(entries))
            entries += absolute(rows, entries[-1] if entries else None)
            at = section.end
        check(at == tail.at and len(entries) == count, "the index does not end at the trailer")
        at = self.metadata_section.end
        for entry in entries:
            self.gap(at, entry.at)
            section = self.listed(entry)
            self.add(section, entry)
            at = entry.at + entry.length
        self.gap(at, index_at)

    def listed(self, entry):
        """The section of an entry. Of frames and accounts not even the header is looked at."""
        tag, end = KINDS[entry.kind], entry.at + entry.length
        check(end <= len(self.data), "an entry is not of this file")
        if tag in (b"FRAM", b"ACCT", b"TEXT"):
            return sections.Section(entry.at, tag, 1, entry.length - 24, 0, entry.at + 24, end)
        section = sections.header(self.data, entry.at)
        check(section.tag == tag and sections.is_known(section) and section.end == end, "an entry is of another section")
        if tag in (b"LNCH", b"ENDS"):
            number = Bytes(self.data[section.body_at : section.end]).fields("I")[0]
            check(number == entry.launch, "an entry is of another launch")
        return section

    def gap(self, at, end):
        """Between listed sections there are only sections that may be skipped."""
        check(at <= end, "entries are not in file order")
        while at < end:
            section = sections.header(self.data, at)
            if sections.is_known(section):
                check(section.tag in (b"CODE", b"WAIT", b"LABL", b"STCK", b"UNTR", b"TIME", b"SPAN", b"SITE", b"DATA", b"DACC", b"BUFS", b"HOST", b"ORIG"), "the index does not list a section")
                self.add(section)
            at = section.end
        check(at == end, "an entry is not where a section begins")

    def verified(self, listed):
        """A frame's or accounting section, checked against the index's entry."""
        section, entry = listed
        if entry is None:
            return section
        found = sections.header(self.data, entry.at)
        check(found.tag == section.tag and sections.is_known(found), "an entry is of another section")
        check(found.end == section.end, "an entry is of another length")
        if section.tag == b"TEXT":
            return found
        if section.tag == b"FRAM":
            fixed = sections.frame(self.data, found)
            known = (fixed.launch, fixed.track, fixed.first, fixed.last, fixed.chunks, fixed.events)
        else:
            fixed = sections.accounts_head(self.data, found)
            known = (fixed.launch, fixed.track, fixed.first, fixed.first + fixed.warps - 1, 0, 0)
        check(known == entry[3:], "an entry says something else than its section")
        return found

    def has_times(self):
        return self.metadata.properties.get("times") in ("runs", "all")

    def has_spans(self):
        return self.metadata.properties.get("times") in ("blocks", "all")

    def spans(self, listed):
        """Where and when the warps of an accounting section ran, by warp, from the section behind it."""
        first, last = self.covers(listed)
        end = listed.section.end
        check(end + 24 <= len(self.data), "accounts have no spans")
        section = sections.header(self.data, end)
        check(section.tag == b"SPAN" and sections.is_known(section), "accounts have no spans")
        return dict(enumerate(sections.spans(self.data, section, listed.section.at, last - first + 1), first))

    def times(self, listed, chunks):
        """The runs of a frame's chunks, which stand in the section behind it."""
        end = listed.section.end
        check(end + 24 <= len(self.data), "a frame has no times")
        section = sections.header(self.data, end)
        check(section.tag == b"TIME" and sections.is_known(section), "a frame has no times")
        return sections.times(self.data, section, listed.section.at, chunks)

    def code(self):
        """Of each location its instructions and whether it was counted, as far as known; and what is damaged."""
        return self.of_locations(b"CODE", sections.code, "the code of locations")

    def waits(self):
        """Of each location what lanes wait at there, as far as known; and what is damaged."""
        return self.of_locations(b"WAIT", sections.waits, "the barriers of waits")

    def of_locations(self, tag, read, what):
        """What the sections with a tag say of locations, and what is damaged."""
        found, problems = {}, []
        for section in self.codes:
            try:
                found |= read(self.data, section) if section.tag == tag else {}
            except Damage as damage:
                problems.append(f"{what}: {damage}")
        return found, problems

    def check_host(self):
        """Checks when launches ran by the host's clocks."""
        known, readings = set(), 0
        for section in self.hosts:
            launches, more = sections.host(self.data, section, len(self.launches))
            for number in launches:
                check(number in self.launches and number not in known, "a launch is not there, or told of twice")
                known.add(number)
            readings += more
            check(readings <= 64, "there are too many readings of clocks")

    def origin(self):
        """What is damaged of where the file was recorded."""
        problems = []
        for section in self.origins:
            try:
                sections.origin(self.data, section)
            except Damage as damage:
                problems.append(f"where it was recorded: {damage}")
        return problems

    def labels(self):
        """What launches are called, by their numbers, as far as known; and what is damaged."""
        texts, launches, problems = {}, {}, []
        for section in self.label_parts:
            try:
                new, named = sections.labels(self.data, section)
                texts |= new
                launches |= named
            except Damage as damage:
                problems.append(f"labels of launches: {damage}")
        return {launch: texts[number] for launch, number in launches.items() if number in texts}, problems

    def stacks(self):
        """The call stacks of launches, innermost frame first, as far as known; and what is damaged."""
        frames, stacks, launches, problems = {}, {}, {}, []
        for section in self.stack_parts:
            try:
                new, callers, named = sections.stacks(self.data, section)
                frames |= new
                stacks |= callers
                launches |= named
            except Damage as damage:
                problems.append(f"call stacks of launches: {damage}")

        def stack(number):
            found = []
            while len(found) < 32 and number in stacks and stacks[number][1] in frames:
                function, file, line = frames[stacks[number][1]]
                place = f"{file}:{line} in " if file and line else f"{file} in " if file else ""
                found.append(shown(place + function))
                number = stacks[number][0] - 1
            return found

        return {launch: stack(number) for launch, number in launches.items()}, problems

    def unrecorded(self):
        """How many launches were not recorded, by kernel and reason; notes; and what is damaged."""
        launches, notes, problems = {}, [], []
        for section in self.unrecorded_parts:
            try:
                new, more = sections.unrecorded(self.data, section)
                check(len(launches) + len(new) <= 65_536 and len(notes) + len(more) <= 1024, "too many in all")
            except Damage as damage:
                problems.append(f"launches that were not recorded: {damage}")
                continue
            for kernel, reason, number in new:
                kernel, reason = shown(kernel), shown(reason)
                launches[kernel, reason] = min(launches.get((kernel, reason), 0) + number, (1 << 64) - 1)
            notes += map(shown, more)
        return launches, notes, problems

    def warps(self, launch, track):
        """The chunks of each warp in order of warp, as (warp, chunks)."""
        by_warp = {}
        for listed in self.frames.get((launch, track), []):
            section = self.verified(listed)
            chunks = sections.chunks(self.data, section)
            step, runs = 1, [[]] * len(chunks)
            if track == 0 and self.has_times():
                try:
                    step, runs = self.times(listed, len(chunks))
                except Damage:
                    # Without times, the events are still valid.
                    pass
            for chunk, of_chunk in zip(chunks, runs):
                by_warp.setdefault(chunk.warp, []).append(chunk._replace(step=step, runs=of_chunk))
        for warp, chunks in sorted(by_warp.items()):
            numbers = [chunk.sequence for chunk in chunks]
            check(numbers == list(range(len(numbers))), f"the chunks of warp {warp} are not in sequence")
            yield warp, chunks

    def all_accounts(self, launch, track):
        """The account of each warp that has one; and what is wrong with the sections."""
        found, problems, covered = {}, [], 0
        listed = enumerate(self.accounts.get((launch, track), []))
        in_order = sorted((self.covers(found)[0], number, found) for number, found in listed)
        for first, _, listed in in_order:
            last = self.covers(listed)[1]
            if first < covered:
                problems.append("accounts overlap")
            try:
                here = sections.accounts(self.data, self.verified(listed))
            except Damage as damage:
                problems.append(str(damage))
                here = {}
            # The section with the lowest first warp counts, even if it cannot be read.
            found |= {warp: account for warp, account in here.items() if warp >= covered}
            covered = max(covered, last + 1)
        return found, problems

    def covers(self, listed):
        """The first and the last warp of an accounting section."""
        if listed.entry is not None:
            return listed.entry.first, listed.entry.last
        head = sections.accounts_head(self.data, listed.section)
        return head.first, head.first + head.warps - 1


def preamble(data):
    source = Bytes(data[:24])
    magic, version, flags, reserved = source.fields("8sHHQ")
    check(magic == b"\x89WTR\r\n\x1a\n", "this is no trace")
    check(version == 1, "the file's version is not known")
    check(flags == 0 and reserved == 0, "a reserved field is not zero")
    checksum(source.data[:20], source.fields("I")[0], "the preamble")


def absolute(rows, before):
    """Index entries from the differences that a section holds."""
    found = []
    end = before.at + before.length if before else 0
    launch = 0
    for number, (offset, length, kind, step, track, first, more, chunks, events) in enumerate(rows):
        at = offset if number == 0 else end + offset
        launch += unzigzag(step)
        check(kind < len(KINDS), "an entry is of an unknown kind")
        check(0 <= launch < 1 << 32 and first + more < 1 << 32, "an entry's number is too large")
        check(length >= 24, "an entry is too short")
        tag = KINDS[kind]
        if tag not in (b"FRAM", b"ACCT"):
            check(track == first == more == 0, "an entry's field is not zero")
        if tag in (b"MORE", b"TEXT"):
            check(launch == 0, "an entry's launch is not zero")
        check(chunks >= 1 and events >= chunks if tag == b"FRAM" else chunks == events == 0, "an entry's counts are wrong")
        check(at >= end, "entries are not in file order")
        found.append(Entry(at, length, kind, launch, track, first, first + more, chunks, events))
        end = at + length
    return found
