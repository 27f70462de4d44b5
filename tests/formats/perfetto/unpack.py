"""Prints the packets of a Perfetto trace as they are before deflating: what stands in compressed_packets is inflated in
place. Knows nothing of Culprit's code: field numbers of the format and Python's zlib only."""
import os
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../e2e"))
from pftrace import encode, fields  # noqa: E402


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
