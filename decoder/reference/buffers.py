"""Memory that kernels could reach: docs/reference/format/bufs.md."""

from collections import namedtuple

from parts import check
from sections import MAX_PLAIN, body, variant

MAX_BUFFERS, MAX_NAME = 1 << 18, 1024
KINDS = ("device", "managed", "host", "pool", "variable", "mapped")
Buffer = namedtuple("Buffer", "number address bytes kind name first end")


def read(data, section):
    """Whether all memory is known, and the buffers of a section."""
    source = body(data, section)
    check(section.length <= MAX_PLAIN, "a BUFS section is too long")
    complete = source.take(1)[0]
    found = source.list(MAX_BUFFERS, lambda: buffer(source))
    source.end()
    check(complete <= 1, "whether all buffers are known is neither 0 nor 1")
    numbers = [one.number for one in found]
    check(all(a < b for a, b in zip(numbers, numbers[1:])) and all(n < MAX_BUFFERS for n in numbers), "numbers of buffers are out of order or too large")
    return complete == 1, found


def buffer(source):
    number, address, size = source.short(32), source.short(64), source.short(64)
    kind, name = KINDS[variant(source, len(KINDS))], source.string()
    first, end = source.short(32), source.option(lambda: source.short(32))
    check(size >= 1 and address + size <= 1 << 64, "a buffer is not in memory")
    check(end is None or end >= first, "a buffer ends before it begins")
    check(len(name.encode()) <= MAX_NAME, "a buffer's name is too long")
    return Buffer(number, address, size, kind, name, first, end)


def place(trace, launch, address):
    """The number of the buffer at an address in a launch, and how far behind its first byte; `None` if there is none."""
    # The newest of overlapping buffers counts. The older ones count no longer.
    begun = [one for one in trace.buffers.values() if one.first <= launch and one.end != one.first]
    for one in begun:
        if (one.end is None or launch < one.end) and one.address <= address < one.address + one.bytes:
            later = [other for other in begun if (other.first, other.number) > (one.first, one.number)]
            if not any(other.address < one.address + one.bytes and one.address < other.address + other.bytes for other in later):
                return one.number, address - one.address
    return None
