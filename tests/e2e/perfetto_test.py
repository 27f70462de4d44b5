#!/usr/bin/env python3
"""Recordings as Perfetto's own definitions of its format read them (PyPI's `perfetto`), in the environment that scripts/python-env makes.

    perfetto_test.py --env BUILD_DIR/python --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import collections
import json
import os
import sys
import zlib

from python_package_test import ARGS, WHY, Case, main, run

if WHY is None:
    import culprit

try:
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as official
    MISSING = None
except ImportError as error:
    MISSING = str(error)

TRACK_EVENT = ("TYPE_SLICE_BEGIN", "TYPE_SLICE_END")
CLEARED = 1  # SEQ_INCREMENTAL_STATE_CLEARED


def unknown_fields(message, where):
    """Places and numbers of what the definitions have no field for."""
    found = {f"{where}: field {field.field_number}" for field in UnknownFieldSet(message)}
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        # A list, or one message: only lists have no ListFields.
        for one in [value] if hasattr(value, "ListFields") else value:
            found |= unknown_fields(one, f"{where}.{field.name}")
    return found


class Official(Case):
    def setUp(self):
        super().setUp()
        if MISSING is not None:
            self.skipTest(MISSING)

    def recorded(self):
        """tinyserve, which marks its steps and the parts of them; the plain packets."""
        self.path = self.at("official.pftrace")
        done = run(os.path.join(ARGS.bin, "culprit"), "record", "--json", "--force", "-o", self.path, "--", sys.executable,
                   os.path.join(ARGS.bin, "examples", "tinyserve", "tinyserve.py"), "--requests", "12", "--rate", "0", "--layers", "2", "--width", "128", "--threads", "1")
        if done.returncode == 4:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.packets(self.path)

    def packets(self, path):
        trace = official.Trace()
        with open(path, "rb") as file:
            trace.ParseFromString(file.read())
        packets = []
        for packet in trace.packet:
            if packet.HasField("compressed_packets"):
                inner = official.Trace()
                inner.ParseFromString(zlib.decompress(packet.compressed_packets))
                self.assertEqual(unknown_fields(inner, "compressed"), set())
                packets += inner.packet
            else:
                packets.append(packet)
        self.assertGreater(len(packets), 100)
        return packets

    def assert_known(self, packets):
        found = set()
        for packet in packets:
            found |= unknown_fields(packet, "packet")
        self.assertEqual(found, set())

    def test_what_is_unknown_is_found(self):
        """In a message within a message."""
        packet = official.TracePacket()
        packet.track_event.ParseFromString(b"\x48\x01\xf8\xff\xff\x7f\x01")  # its type, and a number that nobody has
        self.assertEqual(len(unknown_fields(packet, "packet")), 1)

    def test_no_field_is_unknown(self):
        packets = self.recorded()
        self.assert_known(packets)
        kinds = {packet.WhichOneof("data") for packet in packets}
        self.assertLessEqual({"track_event", "track_descriptor", "clock_snapshot"}, kinds)

    def test_no_field_of_an_exported_trace_is_unknown(self):
        path = self.at("exported.pftrace")
        done = run(os.path.join(ARGS.bin, "culprit"), "export", self.trace, "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_known(self.packets(path))

    def test_switches_are_as_many_for_each_thread(self):
        packets = self.recorded()
        switches = collections.Counter(event.sched_switch.prev_pid for packet in packets for event in packet.ftrace_events.event if event.HasField("sched_switch"))
        if not switches:
            self.skipTest("eBPF cannot be used here")
        threads = json.loads(run(os.path.join(ARGS.bin, "culprit"), "info", self.path, "--json").stdout)["scheduling"]["threads"]
        self.assertGreater(sum(thread["switches"] for thread in threads), 0)
        self.assertEqual({thread["tid"]: thread["switches"] for thread in threads}, {thread["tid"]: switches[thread["tid"]] for thread in threads})

    def test_ranges_are_as_many_and_as_long(self):
        """By name, of what the program marked itself."""
        begin, end = (getattr(official.TrackEvent, name) for name in TRACK_EVENT)
        names, categories = {}, {}
        running = collections.defaultdict(list)  # of each track
        theirs = collections.defaultdict(lambda: [0, 0])
        for packet in self.recorded():
            if packet.sequence_flags & CLEARED:
                names, categories = {}, {}
            names.update((entry.iid, entry.name) for entry in packet.interned_data.event_names)
            categories.update((entry.iid, entry.name) for entry in packet.interned_data.event_categories)
            event = packet.track_event
            if event.type == begin:
                category = next(iter(event.categories), None) or next((categories[iid] for iid in event.category_iids), "")
                running[event.track_uuid].append((packet.timestamp, event.name or names[event.name_iid], category))
            elif event.type == end and running[event.track_uuid]:
                since, name, category = running[event.track_uuid].pop()
                if category == "nvtx":
                    theirs[name][0] += 1
                    theirs[name][1] += packet.timestamp - since
        ours = collections.defaultdict(lambda: [0, 0])
        for row in culprit.load(self.path).slices():
            if row["category"] == "nvtx":
                ours[row["name"]][0] += 1
                ours[row["name"]][1] += row["duration_ns"]
        self.assertGreater(sum(count for count, _ in ours.values()), 20)
        self.assertEqual(dict(ours), dict(theirs))


if __name__ == "__main__":
    main()
