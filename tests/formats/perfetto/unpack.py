"""Prints the packets of a Perfetto trace as they are before deflating: what stands in compressed_packets is inflated in
place. Knows nothing of Culprit's code: field numbers of the format and Python's zlib only."""
import sys
import zlib


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = data[at:at + 8], at + 8
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("cut off")
        else:
            value, at = data[at:at + 4], at + 4
        yield number, value


def encode(size):
    out = bytearray()
    while size > 0x7F:
        out.append(0x80 | size & 0x7F)
        size >>= 7
    out.append(size)
    return bytes(out)


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    out = sys.stdout.buffer
    for number, packet in fields(data):
        assert number == 1, number
        deflated = [value for field, value in fields(packet) if field == 50]
        if not deflated:
            out.write(b"\x0a" + encode(len(packet)) + packet)
            continue
        assert len(packet) < 512 << 10, len(packet)
        inflater = zlib.decompressobj()
        plain = inflater.decompress(deflated[0]) + inflater.flush()
        assert inflater.eof and not inflater.unused_data
        out.write(plain)


main()
