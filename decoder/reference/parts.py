"""Numbers, checksums and compression, as docs/reference/format.md describes them."""

import io
import struct
import zlib

# Limit on the zstd window of a frame, in bytes; see "Limits".
MAX_ZSTD_WINDOW = 128 << 20


class Damage(Exception):
    """Bytes that break a rule of the format."""


class Unknown(Damage):
    """What needs a newer reader, and must not be skipped."""


def check(condition, words):
    if not condition:
        raise Damage(words)


class Bytes:
    """Reads values one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        check(count <= len(self.data) - self.at, "the bytes end inside a value")
        self.at += count
        return self.data[self.at - count : self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def end(self):
        check(self.at == len(self.data), "bytes are left over")

    def fields(self, layout):
        """Fixed fields in the letters of `struct`, little-endian; `Z` before a count is that many zero bytes."""
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def varint(self, bits, most=10):
        value = 0
        for number in range(most):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * number)
            if byte < 0x80:
                check(value < 1 << bits, f"a number does not fit into {bits} bits")
                return value
        raise Damage("a number has too many bytes")

    # Metadata allows fewer bytes for a number.

    def short(self, bits):
        return self.varint(bits, -(-bits // 7))

    def string(self):
        return text(self.take(self.short(64)))

    def option(self, read):
        is_there = self.take(1)[0]
        check(is_there <= 1, "an option is neither there nor absent")
        return read() if is_there else None

    def list(self, limit, read):
        count = self.short(64)
        check(count <= limit, f"a list has more than {limit} elements")
        return [read() for _ in range(count)]


def text(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damage("a text is not UTF-8") from error


def shown(words):
    """A text in which nothing acts on a terminal: docs/reference/output.md, "Texts of a file"."""
    return "".join(map(shown_letter, words))


# Code points with Unicode's property `Default_Ignorable_Code_Point`, and separators of lines and paragraphs.
UNSEEN = [range(first, last + 1) for first, last in [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]]


def shown_letter(letter):
    code = ord(letter)
    if letter in "\n\r\t":
        return repr(letter)[1:-1]
    acts = code < 0x20 or 0x7F <= code < 0xA0 or any(code in span for span in UNSEEN)
    return f"\\u{{{code:x}}}" if acts else letter


def unzigzag(number):
    return (number >> 1) ^ -(number & 1)


def checksum(data, expected, what):
    check(zlib.crc32(data) == expected, f"the checksum of {what} is wrong")


def unpacked(compression, data, limit):
    """The bytes of contents, of which there are at most `limit`."""
    check(compression <= 1, "an unknown compression")
    if compression == 1:
        # Only compressed contents need a package outside of Python's standard library.
        import zstandard

        check(frame_bytes(data) == len(data), "there is not exactly one zstd frame")
        decoder = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
        try:
            data = decoder.stream_reader(io.BytesIO(data)).read(limit + 1)
        except zstandard.ZstdError as error:
            raise Damage(f"zstd: {error}") from error
    check(len(data) <= limit, f"unpacked it has more than {limit} bytes")
    return data


def frame_bytes(data):
    """The length of the zstd frame at the start (RFC 8878, 3.1.1)."""
    frame = Bytes(data)
    magic, descriptor = frame.fields("IB")
    check(magic == 0xFD2FB528, "there is no zstd frame")
    check(descriptor & 0x08 == 0, "a reserved bit of the zstd frame is set")
    is_single, content_flag = descriptor >> 5 & 1, descriptor >> 6
    window = None
    if not is_single:
        byte = frame.take(1)[0]
        base = 1 << (10 + (byte >> 3))
        window = base + base // 8 * (byte & 7)
    check(not any(frame.take([0, 1, 2, 4][descriptor & 3])), "a zstd frame names a dictionary")
    content = frame.take([is_single, 2, 4, 8][content_flag])
    if window is None:
        window = int.from_bytes(content, "little") + (256 if content_flag == 1 else 0)
    check(window <= MAX_ZSTD_WINDOW, f"a zstd frame has a window of {window} bytes")
    while True:
        header = int.from_bytes(frame.take(3), "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        check(kind != 3, "a zstd block is of a reserved kind")
        frame.take(1 if kind == 1 else size)
        if is_last:
            frame.take(4 if descriptor & 4 else 0)
            return frame.at
