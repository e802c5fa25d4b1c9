"""The codecs: docs/reference/codecs.md.

Each `decode_*` yields the events of one chunk, pairs of location and mask.
"""

import struct

from parts import Damage, check

ALL = 0xFFFFFFFF


def decode(codec, payload, events):
    """Returns the events of a chunk that announces `events` of them."""
    name, parameters = codec
    for location, mask in DECODERS[name](payload, events, *parameters):
        check(location != 0, "an event has location 0")
        check(mask != 0, "an event has no lanes")
        yield location, mask


def decode_raw(payload, events):
    check(len(payload) == 6 * events, "a raw payload is too long or too short")
    yield from struct.iter_unpack("<HI", payload)


def decode_ecl(payload, events, hash_bits, shift, window_bits):
    check(events <= 214_748_364, "a chunk announces too many events")
    total, window = 5 * events, 1 << window_bits
    source, cut = run_lengths(payload), bytearray()
    last, hashed = {}, 0

    def move(byte):
        nonlocal hashed
        last[hashed] = len(cut)
        hashed = ((hashed << shift) ^ byte) % (1 << hash_bits)
        cut.append(byte)

    reported = 0
    while len(cut) < total:
        at = last.get(hashed)
        now = len(cut)
        if at is not None and at >= 2 and now - at <= window - 2 and cut[at - 2 : at] == cut[now - 2 :]:
            taken = following(source)
            check(now + taken < total, "a match goes beyond the last event")
            for place in range(at, at + taken):
                move(cut[place])
        move(following(source))
        while reported + 5 <= len(cut):
            yield struct.unpack_from("<BI", cut, reported)
            reported += 5
    check(next(source, None) is None, "something follows the last event")


def following(source):
    byte = next(source, None)
    check(byte is not None, "a payload ends before its last event")
    return byte


def run_lengths(payload):
    at = 0
    while at < len(payload):
        count = payload[at]
        literals = payload[at + 1 : at + 2 + count % 16]
        check(len(literals) == count % 16 + 1, "a payload ends inside a group")
        yield from literals
        for _ in range(count >> 4):
            yield literals[-1]
        at += 1 + len(literals)


class Bits:
    def __init__(self, data):
        self.number, self.left = int.from_bytes(data, "little"), 8 * len(data)

    def take(self, count):
        check(count <= self.left, "a payload ends inside a code")
        value = self.number & ((1 << count) - 1)
        self.number >>= count
        self.left -= count
        return value

    def zeros(self, most):
        """Counts the zeros before a one, which is read too; at most `most`."""
        for count in range(most):
            if self.take(1):
                return count
        return most


class Slot:
    def __init__(self):
        self.step, self.relation, self.is_marked, self.seen = 0, (0, False), False, 0


class Predict:
    def __init__(self, payload, events, slot_bits):
        check(events <= 1 << 24, "a chunk announces too many events")
        self.bits, self.left = Bits(payload), events
        self.slots = [Slot() for _ in range(1 << slot_bits)]
        self.last, self.mask, self.stack = 0, ALL, [ALL] * 4

    def events(self):
        yield self.moved(*self.first())
        while self.bits.left >= 8 or self.bits.number != 0:
            hits, is_located = self.head()
            check(hits < self.left, "a miss goes beyond the last event")
            for _ in range(hits):
                yield self.hit()
            slot = self.slot()
            location = self.last ^ slot.step if is_located else self.location()
            mask = self.located_mask(slot) if is_located else self.other_mask(slot)
            slot.step, slot.seen = self.last ^ location, mask
            yield self.moved(location, mask)
        while self.left:
            yield self.hit()

    def moved(self, location, mask):
        if mask == self.mask:
            pass
        elif mask & self.mask == mask:
            self.stack = [self.mask] + self.stack[:3]
        else:
            held = [outer for outer in self.stack if mask & outer == mask and mask != outer]
            self.stack = held + [ALL] * (4 - len(held))
        self.last, self.mask = location, mask
        self.left -= 1
        return location, mask

    def slot(self):
        return self.slots[self.last % len(self.slots)]

    def hit(self):
        slot = self.slot()
        mask = slot.seen if slot.is_marked else self.base(slot.relation)
        return self.moved(self.last ^ slot.step, mask)

    def base(self, relation):
        level, is_disjoint = relation
        mask = [self.mask, *self.stack, ALL][level]
        return mask & ~self.mask if is_disjoint else mask

    def first(self):
        match self.bits.zeros(2):
            case 0:
                return 1, ALL
            case 1:
                return 2 + self.bits.take(5), ALL
        location = self.location()
        return location, self.other_mask(Slot())

    def head(self):
        take = self.bits.take
        zeros = self.bits.zeros(4)
        if zeros < 2:
            return 0, zeros == 1
        if zeros == 2:
            hits = 1
        elif zeros == 3:
            hits = 2 + take(1)
        else:
            width = take(4)
            hits = take(24) if width == 15 else 3 + (1 << width) + take(width)
        return hits, bool(take(1))

    def location(self):
        take, last = self.bits.take, self.last
        if take(1):
            return in_range(last + 1)
        if take(1):
            return in_range(last + 2 * take(1))
        match self.bits.zeros(3):
            case 0:
                x = take(4)
                return in_range(last - 6 + x if x < 6 else last - 3 + x)
            case 1:
                x = take(5)
                return in_range(last - 22 + x if x < 16 else last - 3 + x)
            case 2:
                return take(8)
        return take(16)

    def other_mask(self, slot):
        slot.is_marked = False
        if self.bits.take(1):
            slot.relation = (0, False)
            return self.mask
        slot.relation = self.relation()
        return self.lanes(self.base(slot.relation))

    def located_mask(self, slot):
        zeros = self.bits.zeros(2)
        slot.is_marked = zeros == 1
        if zeros == 1:
            return slot.seen
        if zeros == 2:
            slot.relation = self.relation()
        return self.lanes(self.base(slot.relation))

    def relation(self):
        zeros = self.bits.zeros(2)
        if zeros == 0:
            return 0, False
        if zeros == 1:
            return 1, bool(self.bits.take(1))
        x = self.bits.take(3)
        return 2 + x // 2, x % 2 == 1

    def lanes(self, base):
        lanes = [lane for lane in range(32) if base >> lane & 1]

        def rank():
            number = self.bits.take(max(len(lanes) - 1, 0).bit_length())
            check(number < len(lanes), "a rank is too large")
            return number

        match self.bits.zeros(5):
            case 0:
                chosen = self.bits.take(len(lanes))
                return sum(1 << lane for number, lane in enumerate(lanes) if chosen >> number & 1)
            case 1:
                return base
            case 2:
                return base & ~(1 << lanes[rank()])
            case 3:
                return 1 << lanes[rank()]
            case zeros:
                first, second = rank(), rank()
                check(first < second, "two ranks are not in order")
                two = 1 << lanes[first] | 1 << lanes[second]
                return base & ~two if zeros == 4 else two


def in_range(location):
    if not 0 <= location <= 0xFFFF:
        raise Damage("a location is out of range")
    return location


def decode_predict(payload, events, slot_bits):
    return Predict(payload, events, slot_bits).events()


DECODERS = {"raw": decode_raw, "ecl": decode_ecl, "predict": decode_predict}
