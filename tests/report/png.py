"""Reads the PNG that plots are written as, by nothing but the format's own description."""
import re
import struct
import zlib


def chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, []
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + body), kind
        found.append((kind, body))
        at += 12 + length
    return found


class Picture:
    """Red, green and blue of a pixel: picture[x, y]."""

    def __init__(self, data):
        found = chunks(data)
        assert [kind for kind, _ in found] == [b"IHDR", b"IDAT", b"IEND"]
        self.width, self.height, *form = struct.unpack(">IIBBBBB", found[0][1])
        assert form == [8, 2, 0, 0, 0], "8 bits, colours, deflate, the usual filters, not interlaced"
        rows, stride = zlib.decompress(found[1][1]), 3 * self.width + 1
        assert len(rows) == self.height * stride
        row, self.rows = bytearray(3 * self.width), []
        for y in range(self.height):
            assert rows[y * stride] == 2, "each row is what differs from the one above"
            for change in re.finditer(rb"[^\0]", rows[y * stride + 1:(y + 1) * stride], re.DOTALL):
                at = change.start()
                row[at] = (row[at] + change[0][0]) & 0xff
            self.rows.append(bytes(row))

    def __getitem__(self, place):
        x, y = place
        return tuple(self.rows[y][3 * x:3 * x + 3])

    def count(self, colour, left, top, right, bottom):
        """Pixels of a colour in a part of the picture."""
        return sum(self[x, y] == colour
                   for y in range(max(int(top), 0), min(int(bottom), self.height))
                   for x in range(max(int(left), 0), min(int(right), self.width)))
