"""Reads Protocol Buffers without a schema: field → its values, in their order."""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Numbers as int or float, everything else as bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif key & 7 == 5:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        else:
            assert key & 7 == 2, "no other kinds are in use"
            length, at = varint(data, at)
            assert at + length <= len(data)
            value, at = data[at:at + length], at + length
        found.setdefault(key >> 3, []).append(value)
    return found
