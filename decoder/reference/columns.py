"""Columns of integers: docs/reference/codecs.md, "Columns".

`python3 decoder/reference/columns.py` reads columns from standard input, each in hexadecimal on a line of its own, and
prints for each the number of bytes that it has, its bits and its values, or `damaged`. It needs no package.
"""

import sys

from parts import Bytes, Damage, check, unzigzag

MAX_VALUES = 1 << 24
CODED_BYTES = {32: (1, 2, 3, 4), 64: (1, 2, 4, 8)}


def column(source):
    """The bits of a value, and the values of the column that starts here."""
    shape, packing = source.take(1)[0], source.take(1)[0]
    bits, order, tuple_size = 64 if shape & 1 else 32, shape >> 1 & 15, (shape >> 5) + 1
    check(order <= 8, "an order is too large")
    check(packing < 8 and packing & 3 < 3, "a packing is not known")
    count = source.varint(32, 5)
    check(count <= MAX_VALUES, "a column has too many values")
    has_runs = packing & 4
    elements = source.varint(32, 5) if has_runs else count
    check(elements <= count, "a column has more elements than values")
    left = len(source.data) - source.at
    check(count <= 128 * left, "a column has more values than its bytes can hold")
    unpack, least = PACKINGS[packing & 3]
    check(least(elements, bits) <= left, "a column has more elements than its bytes can hold")

    numbers = unpack(source, elements, bits)
    if has_runs:
        numbers = without_runs(numbers)
    check(len(numbers) == count, "a column has another number of values")
    if order:
        numbers = [unzigzag(number) % (1 << bits) for number in numbers]
    for _ in range(order):
        for index in range(tuple_size, count):
            numbers[index] = (numbers[index] + numbers[index - tuple_size]) % (1 << bits)
    return bits, numbers


def plain(source, count, bits):
    return [int.from_bytes(source.take(bits // 8), "little") for _ in range(count)]


def stream_vbyte(source, count, bits):
    codes = int.from_bytes(source.take(-(-count // 4)), "little")
    check(codes >> 2 * count == 0, "there is a code behind the last element")
    found = []
    for index in range(count):
        length = CODED_BYTES[bits][codes >> 2 * index & 3]
        found.append(int.from_bytes(source.take(length), "little"))
    return found


def packed_bits(source, count, bits):
    found = []
    for width in source.take(-(-count // 128)):
        check(width <= bits, "a block is too wide")
        here = min(128, count - len(found))
        packed = int.from_bytes(source.take(-(-here * width // 8)), "little")
        check(packed >> here * width == 0, "a bit is set behind the last element")
        found += [packed >> index * width & (1 << width) - 1 for index in range(here)]
    return found


def without_runs(elements):
    found, elements = [], iter(elements)
    for element in elements:
        length = 1
        if element == 0:
            more = next(elements, None)
            check(more is not None and more < 256, "a run has no length, or is too long")
            length += more
        found += [element] * length
    return found


# Functions that read an element, and the least bytes of an element.
PACKINGS = (
    (plain, lambda count, bits: count * bits // 8),
    (stream_vbyte, lambda count, bits: count + -(-count // 4)),
    (packed_bits, lambda count, bits: -(-count // 128)),
)


def main():
    for line in sys.stdin:
        source = Bytes(bytes.fromhex(line))
        try:
            bits, values = column(source)
        except Damage:
            print("damaged")
        else:
            print(source.at, bits, *values)


if __name__ == "__main__":
    main()
