"""Reads recordings for tests, knowing the published numbers of the Perfetto format and zlib only, nothing of Culprit's code."""

import struct
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
    """(number, value) of every field; raises IndexError or ValueError where the data are cut off."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("cut off")
        elif wire == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise ValueError(f"wire type {wire}")
        yield number, value


def first(data, number, default=None):
    return next((value for field, value in fields(data) if field == number), default)


def plain(path):
    """All packets before deflating; what a killed writer left unfinished at the end is left out."""
    with open(path, "rb") as file:
        data = file.read()
    out = bytearray()
    try:
        for number, packet in fields(data):
            assert number == 1, number
            deflated = first(packet, 50)
            if deflated is None:
                out += b"\x0a" + encode(len(packet)) + packet
            else:
                inflater = zlib.decompressobj()
                out += inflater.decompress(deflated) + inflater.flush()
                assert inflater.eof
    except (IndexError, ValueError):
        pass
    return bytes(out)


def encode(value):
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | value & 0x7F)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Recording:
    """switches: (boottime, cpu, prev tid, prev state, next tid); wakings: (boottime, cpu, tid, waker tid);
    slices: (begin, name, category, arguments) in the order of the file; spans: (begin, end, name, category) of those that have ended; facts: metadata; threads: tid to name; exits: tids, ends:
    when each of them ended (boottime)."""

    def __init__(self, path):
        self.bytes = plain(path)
        self.switches, self.wakings, self.slices, self.threads, self.processes = [], [], [], {}, {}
        self.facts, self.exits, self.ends = {}, [], {}
        self.spans, self._open = [], {}
        names, categories, keys, texts = {}, {}, {}, {}
        for number, packet in fields(self.bytes):
            assert number == 1
            content = list(fields(packet))
            for field, value in content:
                if field == 12:
                    for kind, entry in fields(value):
                        table = {1: categories, 2: names, 3: keys, 29: texts}.get(kind)
                        if table is not None:
                            table[first(entry, 1)] = first(entry, 2, b"").decode(errors="replace")
            for field, value in content:
                if field == 1:
                    self._ftrace(value)
                elif field == 11:
                    self._event(packet, value, names, categories, keys, texts)
                elif field == 5:
                    for fact in (entry for kind, entry in fields(value) if kind == 2):
                        self.facts[first(fact, 1, b"").decode()] = first(fact, 2, b"").decode(errors="replace")
                elif field == 60:
                    self._descriptor(value)
        self.switches.sort()
        self.wakings.sort()

    def _ftrace(self, bundle):
        cpu = first(bundle, 1, 0)
        for field, event in fields(bundle):
            if field != 2:
                continue
            at, pid = first(event, 1, 0), first(event, 2, 0)
            switch, waking, gone = first(event, 4), first(event, 20), first(event, 238)
            if switch is not None:
                self.switches.append((at, cpu, first(switch, 2, 0), first(switch, 4, 0), first(switch, 6, 0)))
            if waking is not None:
                self.wakings.append((at, cpu, first(waking, 2, 0), pid))
            if gone is not None:
                self.exits.append(first(gone, 2, 0))
                self.ends[first(gone, 2, 0)] = at

    def _descriptor(self, descriptor):
        thread, process = first(descriptor, 4), first(descriptor, 3)
        if thread is not None:
            self.threads[first(thread, 2, 0)] = (first(thread, 1, 0), first(thread, 5, b"").decode(errors="replace"))
        if process is not None:
            self.processes[first(process, 1, 0)] = first(process, 6, b"").decode(errors="replace")

    def _event(self, packet, event, names, categories, keys, texts):
        kind = first(event, 9)
        begun = self._open.setdefault(first(event, 11), [])
        if kind == 2:
            if begun:
                begin, name, category = begun.pop()
                self.spans.append((begin, first(packet, 8, 0), name, category))
            return
        name = first(event, 23)
        name = name.decode(errors="replace") if name is not None else names.get(first(event, 10), "")
        category = categories.get(first(event, 3), "")
        arguments = {}
        for field, note in fields(event):
            if field != 4:
                continue
            key = first(note, 10)
            key = key.decode() if key is not None else keys.get(first(note, 1), "")
            for what, value in fields(note):
                if what in (3, 4):
                    arguments[key] = signed(value)
                elif what == 6:
                    arguments[key] = value.decode(errors="replace")
                elif what == 17:
                    arguments[key] = texts.get(value, "")
        if kind == 1:
            begun.append((first(packet, 8, 0), name, category))
        if kind in (1, 3):
            self.slices.append((first(packet, 8, 0), name, category, arguments))
