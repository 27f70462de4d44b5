#include "formats/perfetto/reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "formats/perfetto/packets.h"
#include "formats/perfetto/writer.h"
#include "support.h"

namespace culprit::perfetto::test {
namespace {

using culprit::test::TempDir;

/// A small recording of every kind of event.
std::string recording(const TempDir& dir, std::size_t chunk_bytes = 256 << 10) {
  const std::string path = dir.path("recording.pftrace");
  WriterOptions options;
  options.replace = true;
  options.chunk_bytes = chunk_bytes;
  auto writer = Writer::create(path, options);
  writer->process({.pid = 100, .parent = 1, .name = "prog", .rank = 3});
  writer->thread(100, 101, "worker");
  const TrackUuid track = writer->thread_track(100, 101);
  const Argument arguments[] = {{"correlation", std::int64_t{9}}};
  writer->slice(track, 1000, 9000, "outer", "nvtx", arguments);
  writer->slice(track, 2000, 3000, "inner", "nvtx");
  writer->slice_begin(track, 10000, "open-ended", "nvtx");
  writer->slice_end(track, 11000);
  writer->instant(track, 5000, "mark", "nvtx");
  writer->slice(writer->named_track("blocked", 100, 101), 4000, 6000, "blocked:fsync", "blocked");
  writer->slice(writer->named_track("lanes", 100, 0, 0), 1000, 3000, "one", "x");
  writer->slice(writer->named_track("lanes", 100, 0, 1), 2000, 4000, "two", "x");
  const auto sw = [&](Ns at, std::uint32_t cpu, int prev, int next, std::int64_t state) {
    writer->sched_switch({.at = at,
                          .cpu = cpu,
                          .prev_tid = prev,
                          .next_tid = next,
                          .prev_state = state,
                          .prev_name = prev == 101 ? "worker" : "rival",
                          .next_name = next == 101 ? "worker" : "rival"});
  };
  sw(1000, 0, 55, 101, 0);
  sw(4000, 0, 101, 55, 2);  // asleep 2000
  writer->sched_waking({.at = 6000, .cpu = 1, .target_cpu = 1, .waker_tid = 77, .tid = 101, .name = "worker"});
  sw(6500, 1, 66, 101, 0);    // waited 500, moved to CPU 1
  sw(7000, 1, 101, 66, 256);  // preempted
  sw(9000, 1, 66, 101, 0);    // waited 2000
  sw(9500, 1, 101, 0, 1);
  const TrackUuid counter = writer->counter_track("host.cpu.busy", "fraction");
  writer->counter(counter, 1000, 0.5);
  writer->counter(counter, 2000, 0.75);
  writer->counter(writer->counter_track("rss", "bytes", 100), 1000, 4096);
  writer->metadata("env.kernel.release", "6.1");
  EXPECT_TRUE(writer->close());
  return path;
}

TEST(PerfettoReader, OwnRecordingComesBack) {
  const TempDir dir;
  const Trace trace = read_file(recording(dir));
  EXPECT_EQ(trace.losses.total(), 0U);
  EXPECT_EQ(trace.clock, "realtime");
  EXPECT_GT(trace.base_ns, 1'600'000'000'000'000'000);
  const Slice outer = slice_named(trace, "outer");
  EXPECT_EQ(outer.begin, 1000);
  EXPECT_EQ(outer.duration, 8000);
  EXPECT_EQ(outer.correlation, 9U);
  EXPECT_EQ(trace.slice_class(outer), SliceClass::annotation);
  const Track& track = trace.tracks[outer.track];
  EXPECT_EQ(track.kind, TrackKind::thread);
  EXPECT_EQ(track.tid, 101);
  EXPECT_EQ(trace.strings[track.name], "worker");
  EXPECT_EQ(trace.strings[trace.processes[track.process].name], "prog");
  EXPECT_EQ(slice_named(trace, "inner").duration, 1000);
  EXPECT_EQ(slice_named(trace, "open-ended").duration, 1000);
  EXPECT_EQ(trace.slice_class(slice_named(trace, "blocked:fsync")), SliceClass::syscall);
  EXPECT_EQ(slice_named(trace, "one").track, slice_named(trace, "two").track) << "lanes of one name are one track";
  ASSERT_EQ(trace.instants.size(), 1U);
  EXPECT_EQ(trace.instants[0].at, 5000);
  EXPECT_EQ(trace.ranks.front().rank, 3);
}

TEST(PerfettoReader, WhatTheRecorderDroppedIsALoss) {
  const TempDir dir;
  const std::string path = dir.path("dropped.pftrace");
  auto writer = Writer::create(path);
  writer->process({.pid = 100, .parent = 1, .name = "prog"});
  writer->slice(writer->named_track("blocked", 100, 101), 10, 20, "blocked:read", "blocked");
  writer->metadata("cost.dropped", "871993");
  writer->metadata("cost.syscalls.totals_missed", "12");
  writer->metadata("cost.syscalls.requests_missed", "5");
  writer->metadata("cost.syscalls.times_missed", "7");
  writer->metadata("record.processes_left_out", "3");
  writer->metadata("cost.sched.stacks_missed", "2");
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  EXPECT_EQ(trace.losses[LossReason::recorder_dropped], 871993U);
  EXPECT_EQ(trace.losses[LossReason::calls_uncounted], 12U);
  EXPECT_EQ(trace.losses[LossReason::requests_uncounted], 5U);
  EXPECT_EQ(trace.losses[LossReason::times_uncounted], 7U);
  EXPECT_EQ(trace.losses[LossReason::processes_left_out], 3U);
  EXPECT_EQ(trace.losses[LossReason::stacks_missed], 2U);
  EXPECT_EQ(trace.losses.total(), 871993U + 12U + 5U + 7U + 3U + 2U);
}

TEST(PerfettoReader, TotalsOfSystemCallsComeBack) {
  const TempDir dir;
  const std::string path = dir.path("totals.pftrace");
  auto writer = Writer::create(path);
  writer->process({.pid = 100, .parent = 1, .name = "prog"});
  writer->thread(100, 101, "worker");
  const TrackUuid track = writer->named_track("system call totals", 100, 101);
  const auto total = [&](Ns at, std::string_view name, std::int64_t count, std::int64_t time) {
    const Argument arguments[] = {
        {"count", count}, {"total_ns", time}, {"longest_so_far_ns", std::int64_t{40}}, {"since_ns", std::int64_t{0}}};
    writer->instant(track, at, name, kCallTotals, arguments);
  };
  total(9000, "write", 5, 70);
  total(9000, "read", 7, 90);
  const Argument alien[] = {{"count", std::string_view("many")}, {"total_ns", std::int64_t{1}}};
  writer->instant(track, 9500, "of another program", "mine", alien);
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  EXPECT_EQ(trace.losses.total(), 0U);
  ASSERT_EQ(trace.calls.size(), 2U);
  const CallTotal& first = trace.calls[0];
  EXPECT_EQ(trace.strings[first.name], "read");
  EXPECT_EQ(first.at, 9000);
  EXPECT_EQ(first.count, 7U);
  EXPECT_EQ(first.time, 90);
  EXPECT_EQ(first.longest_so_far, 40);
  EXPECT_EQ(trace.tracks[first.track].tid, 101);
  EXPECT_EQ(trace.processes[trace.tracks[first.track].process].pid, 100);
  EXPECT_EQ(trace.strings[trace.calls[1].name], "write");
}

TEST(PerfettoReader, SchedulingBecomesSlices) {
  const TempDir dir;
  const Trace trace = read_file(recording(dir));
  EXPECT_EQ(sched_time(trace, 101, "oncpu"), 3000 + 500 + 500);
  EXPECT_EQ(sched_time(trace, 101, "runq"), 500 + 2000);
  EXPECT_EQ(sched_time(trace, 101, "blocked_uninterruptible"), 2000);
  ASSERT_EQ(trace.sched.size(), 1U) << "threads of other processes have no track";
  const ThreadSched& sched = trace.sched[0];
  EXPECT_EQ(sched.switches, 3U);
  EXPECT_EQ(sched.preemptions, 1U);
  EXPECT_EQ(sched.migrations, 1U);
  EXPECT_EQ(sched.wakeups, 1U);
  ASSERT_EQ(sched.woken_by.size(), 1U);
  EXPECT_EQ(sched.woken_by[0].tid, 77);
  ASSERT_EQ(sched.ran_instead.size(), 1U);
  EXPECT_EQ(sched.ran_instead[0].tid, 66);
  EXPECT_EQ(sched.ran_instead[0].time, 2500);
  EXPECT_EQ(trace.strings[sched.ran_instead[0].name], "rival");
}

TEST(PerfettoReader, CountersHaveUnitAndOwner) {
  const TempDir dir;
  const Trace trace = read_file(recording(dir));
  ASSERT_EQ(trace.counters.size(), 2U);
  EXPECT_EQ(trace.strings[trace.counters[0].name], "host.cpu.busy");
  EXPECT_EQ(trace.strings[trace.counters[0].unit], "fraction");
  ASSERT_EQ(trace.counters[0].samples.size(), 2U);
  EXPECT_EQ(trace.counters[0].samples[1].value, 0.75);
  EXPECT_EQ(trace.strings[trace.counters[1].unit], "bytes");
  EXPECT_EQ(trace.processes[trace.counters[1].process].pid, 100);
}

TEST(PerfettoReader, FactsAreKept) {
  const TempDir dir;
  const Trace trace = read_file(recording(dir));
  const auto& facts = trace.ranks.front().metadata;
  EXPECT_TRUE(std::ranges::is_sorted(facts));
  EXPECT_NE(std::ranges::find(facts, std::pair<std::string, std::string>("env.kernel.release", "6.1")), facts.end());
}

TEST(PerfettoReader, CutAnywhereKeepsWhatIsWhole) {
  const TempDir dir;
  const std::string whole = bytes_of(recording(dir));
  ASSERT_LT(whole.size(), 4000U);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    auto input = formats::Input::open(dir.file("cut.pftrace", whole.substr(0, size)));
    const auto trace = read(std::move(*input));
    if (!trace) {
      EXPECT_NE(trace.error().what.find("holds no event"), std::string::npos) << size;
      continue;
    }
    EXPECT_EQ(trace->losses[LossReason::truncated_tail], 1U) << size;
    EXPECT_EQ(trace->losses.total(), 1U) << size;
  }
  EXPECT_EQ(read_bytes(dir, whole).losses.total(), 0U);
}

TEST(PerfettoReader, AFileThatEndsBetweenTwoPacketsIsCut) {
  const TempDir dir;
  const std::string path = dir.path("x.pftrace");
  auto writer = Writer::create(path);
  ASSERT_TRUE(writer);
  const TrackUuid track = writer->thread_track(5, 5);
  writer->slice(track, 10, 20, "first", "c");
  ASSERT_TRUE(writer->flush());
  writer->slice(track, 30, 40, "second", "c");
  ASSERT_TRUE(writer->close());
  const std::string whole = bytes_of(path);
  // Where a kill between two chunks would have left it: behind the first three or the first four packets.
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < whole.size();) {
    Packet rest(reinterpret_cast<const std::uint8_t*>(whole.data()) + at + 1, whole.size() - at - 1);
    std::uint64_t size = 0;
    ASSERT_TRUE(take_varint(rest, size));
    at = whole.size() - rest.size() + size;
    ends.push_back(at);
  }
  ASSERT_GE(ends.size(), 5U);
  const Trace flushed = read_bytes(dir, whole.substr(0, ends[3]));
  EXPECT_EQ(flushed.slices.size(), 1U);
  EXPECT_EQ(flushed.losses[LossReason::truncated_tail], 1U);
  for (const std::size_t end : {ends[0], ends[1], ends[2]}) {
    auto input = formats::Input::open(dir.file("killed.pftrace", whole.substr(0, end)));
    const auto killed = read(std::move(*input));
    ASSERT_FALSE(killed) << end;
    EXPECT_EQ(killed.error().kind, ErrorKind::input);
    EXPECT_EQ(killed.error().remedy, "record again");
  }
  const Trace complete = read_bytes(dir, whole);
  EXPECT_EQ(complete.losses.total(), 0U);
  EXPECT_TRUE(
      std::ranges::none_of(complete.ranks[0].metadata, [](const auto& fact) { return fact.first == kFileState; }));
}

TEST(PerfettoReader, CutRecordingKeepsEarlierChunks) {
  const TempDir dir;
  const std::string path = dir.path("x.pftrace");
  WriterOptions options;
  options.chunk_bytes = 4 << 10;
  auto writer = Writer::create(path, options);
  const TrackUuid track = writer->thread_track(5, 5);
  for (int i = 0; i < 400; ++i) writer->slice(track, 10 * i, 10 * i + 5, "s", "c");
  ASSERT_TRUE(writer->close());
  const std::string whole = bytes_of(path);
  const Trace trace = read_bytes(dir, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(trace.losses[LossReason::truncated_tail], 1U);
  EXPECT_GT(trace.slices.size(), 50U);
  EXPECT_LT(trace.slices.size(), 400U);
}

TEST(PerfettoReader, DamagedChunkIsCountedAndTheNextIsRead) {
  const TempDir dir;
  const std::string path = dir.path("x.pftrace");
  WriterOptions options;
  options.chunk_bytes = 4 << 10;
  auto writer = Writer::create(path, options);
  const TrackUuid track = writer->thread_track(5, 5);
  std::vector<std::uint64_t> ends;
  for (int i = 0; i < 400; ++i) {
    writer->slice(track, 10 * i, 10 * i + 5, "s", "c");
    if (ends.empty() || ends.back() != writer->stats().file_bytes) ends.push_back(writer->stats().file_bytes);
  }
  ASSERT_TRUE(writer->close());
  ASSERT_GT(ends.size(), 3U);
  std::string bytes = bytes_of(path);
  bytes[ends[1] + 40] = static_cast<char>(bytes[ends[1] + 40] ^ 0x55);
  bytes[ends[1] + 41] = static_cast<char>(bytes[ends[1] + 41] ^ 0x55);
  const Trace trace = read_bytes(dir, bytes);
  EXPECT_EQ(trace.losses[LossReason::compressed_damage], 1U);
  EXPECT_GT(trace.slices.size(), 250U);
  EXPECT_LE(trace.slices.size(), 400U);
}

TEST(PerfettoReader, EveryDamagedByteIsSurvived) {
  const TempDir dir;
  const std::string whole = bytes_of(recording(dir));
  for (std::size_t at = 0; at < whole.size(); at += 1) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0xff);
    auto input = formats::Input::open(dir.file("bytes.pftrace", bytes));
    ASSERT_TRUE(input);
    const auto trace = read(std::move(*input));
    if (trace) continue;
    EXPECT_EQ(trace.error().kind, ErrorKind::input) << "byte " << at;
    EXPECT_NE(trace.error().what.find("holds no event"), std::string::npos) << "byte " << at;
  }
}

// ---- other people's traces, encoded by protoc

TEST(PerfettoReader, DefaultsOfTheSequenceApply) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { clock_snapshot { clocks { clock_id: 6 timestamp: 1000000 } clocks { clock_id: 64 timestamp: 5 unit_multiplier_ns: 1000 }
                              clocks { clock_id: 1 timestamp: 1700000000000000000 } } trusted_packet_sequence_id: 7 }
    packet { trusted_packet_sequence_id: 7 sequence_flags: 1
             trace_packet_defaults { timestamp_clock_id: 64 track_event_defaults { track_uuid: 11 } }
             track_descriptor { uuid: 11 thread { pid: 3 tid: 4 thread_name: "io" } } }
    packet { trusted_packet_sequence_id: 7 sequence_flags: 2 timestamp: 7
             interned_data { event_names { iid: 1 name: "work" } event_categories { iid: 2 name: "cat" } }
             track_event { type: TYPE_SLICE_BEGIN name_iid: 1 category_iids: 2 } }
    packet { trusted_packet_sequence_id: 7 sequence_flags: 2 timestamp: 9 track_event { type: TYPE_SLICE_END } })"));
  const Slice work = slice_named(trace, "work");
  EXPECT_EQ(work.begin, 1'002'000) << "7 us on a clock that showed 5 us at 1 ms";
  EXPECT_EQ(work.duration, 2000);
  EXPECT_EQ(trace.tracks[work.track].tid, 4);
  EXPECT_EQ(trace.categories[work.category].name, "cat");
  EXPECT_EQ(trace.base_ns, 1'699'999'999'999'000'000);
}

TEST(PerfettoReader, IncrementalClocksAddUp) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { clock_snapshot { clocks { clock_id: 6 timestamp: 100 } clocks { clock_id: 65 timestamp: 0 is_incremental: true } }
             trusted_packet_sequence_id: 1 sequence_flags: 1 }
    packet { timestamp: 10 timestamp_clock_id: 65 trusted_packet_sequence_id: 1 track_event { type: TYPE_SLICE_BEGIN name: "a" track_uuid: 1 } }
    packet { timestamp: 20 timestamp_clock_id: 65 trusted_packet_sequence_id: 1 track_event { type: TYPE_SLICE_END track_uuid: 1 } })"));
  EXPECT_EQ(slice_named(trace, "a").begin, 110);
  EXPECT_EQ(slice_named(trace, "a").duration, 20);
}

TEST(PerfettoReader, LostPacketsInvalidateWhatWasInterned) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { trusted_packet_sequence_id: 1 sequence_flags: 1 interned_data { event_names { iid: 1 name: "old" } } }
    packet { trusted_packet_sequence_id: 1 sequence_flags: 2 previous_packet_dropped: 1 timestamp: 5
             track_event { type: TYPE_INSTANT name_iid: 1 track_uuid: 1 } }
    packet { trusted_packet_sequence_id: 1 sequence_flags: 1 interned_data { event_names { iid: 1 name: "new" } } }
    packet { trusted_packet_sequence_id: 1 sequence_flags: 2 timestamp: 6 track_event { type: TYPE_INSTANT name_iid: 1 track_uuid: 1 } })"));
  ASSERT_EQ(trace.instants.size(), 1U);
  EXPECT_EQ(trace.strings[trace.instants[0].name], "new");
  EXPECT_EQ(trace.losses[LossReason::packets_lost], 2U);
}

TEST(PerfettoReader, CountersAsDifferencesAndWithMultiplier) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { track_descriptor { uuid: 5 name: "n" counter { is_incremental: true unit: UNIT_COUNT unit_multiplier: 10 } } }
    packet { trusted_packet_sequence_id: 1 sequence_flags: 1 timestamp: 1 track_event { type: TYPE_COUNTER track_uuid: 5 counter_value: 3 } }
    packet { trusted_packet_sequence_id: 1 timestamp: 2 track_event { type: TYPE_COUNTER track_uuid: 5 counter_value: -1 } }
    packet { trusted_packet_sequence_id: 1 timestamp: 3 track_event { type: TYPE_INSTANT name: "i" track_uuid: 6
             extra_counter_track_uuids: 5 extra_counter_values: 4 } })"));
  ASSERT_EQ(trace.counters.size(), 1U);
  ASSERT_EQ(trace.counters[0].samples.size(), 3U);
  EXPECT_EQ(trace.counters[0].samples[0].value, 30);
  EXPECT_EQ(trace.counters[0].samples[1].value, 20);
  EXPECT_EQ(trace.counters[0].samples[2].value, 60);
}

TEST(PerfettoReader, AStepOfTheWallClockMovesNothing) {
  constexpr std::int64_t kBefore = 1'700'000'000'000'000'000;
  constexpr std::int64_t kHour = 3'600'000'000'000;
  const auto file = [&](std::int64_t second_realtime) {
    return fmt::format(R"(
      packet {{ clock_snapshot {{ primary_trace_clock: 3
        clocks {{ clock_id: 3 timestamp: 1000 }} clocks {{ clock_id: 6 timestamp: 1000 }} clocks {{ clock_id: 1 timestamp: {} }} }} }}
      packet {{ timestamp: 2000 timestamp_clock_id: 3 trusted_packet_sequence_id: 1
        track_event {{ type: TYPE_SLICE_BEGIN name: "a" track_uuid: 1 }} }}
      packet {{ clock_snapshot {{ primary_trace_clock: 3
        clocks {{ clock_id: 3 timestamp: 4000 }} clocks {{ clock_id: 6 timestamp: 4000 }} clocks {{ clock_id: 1 timestamp: {} }} }} }}
      packet {{ timestamp: 5000 timestamp_clock_id: 3 trusted_packet_sequence_id: 1
        track_event {{ type: TYPE_SLICE_END track_uuid: 1 }} }})",
                       kBefore, second_realtime);
  };
  const TempDir dir;
  for (const std::int64_t step : {std::int64_t{0}, kHour, -kHour}) {
    const Trace trace = read_bytes(dir, encode(dir, file(kBefore + 3000 + step)));
    const Slice slice = slice_named(trace, "a");
    EXPECT_EQ(slice.duration, 3000) << step;
    EXPECT_EQ(trace.base_ns + slice.begin, kBefore + 1000) << step;
  }
}

TEST(PerfettoReader, AThreadThatSleepsToTheEndOfARecordingSleepsToItsEnd) {
  const TempDir dir;
  for (const bool ours : {true, false}) {
    WriterOptions options;
    options.replace = true;
    const std::string path = dir.path("asleep.pftrace");
    auto writer = Writer::create(path, options);
    ASSERT_TRUE(writer);
    writer->process({.pid = 10, .name = "own"});
    writer->sched_switch({.at = 100, .prev_tid = 0, .next_tid = 10});
    writer->sched_switch({.at = 300, .prev_tid = 10, .next_tid = 0, .prev_state = 1});
    writer->counter(writer->counter_track("host.cpu.busy", "fraction"), 5000, 0.5);
    if (ours) writer->metadata("record.version", "1");
    ASSERT_TRUE(writer->close());
    EXPECT_EQ(sched_time(read_file(path), 10, "blocked"), ours ? 4700 : 0);
  }
}

TEST(PerfettoReader, ProcessesThatAreOnlyNamedHaveNoScheduling) {
  const TempDir dir;
  const std::string path = dir.path("named.pftrace");
  auto writer = Writer::create(path);
  ASSERT_TRUE(writer);
  writer->process({.pid = 10, .name = "own"});
  writer->process({.pid = 20, .name = "other", .recorded = false});
  writer->sched_switch({.at = 100, .prev_tid = 20, .next_tid = 10});
  writer->sched_switch({.at = 300, .prev_tid = 10, .next_tid = 20});
  writer->sched_switch({.at = 400, .prev_tid = 20, .next_tid = 10});
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  EXPECT_EQ(sched_time(trace, 10, "oncpu"), 200);
  EXPECT_EQ(sched_time(trace, 10, "runq"), 100);
  EXPECT_EQ(sched_time(trace, 20, "oncpu"), 0);
}

TEST(PerfettoReader, CompactSchedulingAndWakeups) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { process_tree { processes { pid: 10 cmdline: "/usr/bin/app" } threads { tid: 11 tgid: 10 name: "t" } } }
    packet { ftrace_events { cpu: 0 compact_sched { switch_timestamp: 100 switch_timestamp: 50 switch_timestamp: 150
      switch_prev_state: 0 switch_prev_state: 1 switch_prev_state: 0 switch_next_pid: 11 switch_next_pid: 0 switch_next_pid: 11
      switch_next_prio: 120 switch_next_prio: 120 switch_next_prio: 120
      intern_table: "t" intern_table: "swapper" switch_next_comm_index: 0 switch_next_comm_index: 1 switch_next_comm_index: 0
      waking_timestamp: 250 waking_pid: 11 waking_target_cpu: 0 waking_prio: 120 waking_comm_index: 0 } } }
    packet { ftrace_events { cpu: 0 event { timestamp: 400 pid: 11 sched_switch { prev_pid: 11 prev_state: 256 next_pid: 12 } } } }
    packet { ftrace_events { cpu: 1 event { timestamp: 500 pid: 0 sched_wakeup { pid: 10 target_cpu: 1 } } } }
    packet { ftrace_events { cpu: 1 event { timestamp: 510 pid: 0 sched_switch { prev_pid: 0 next_pid: 10 } } } })"));
  EXPECT_EQ(sched_time(trace, 11, "oncpu"), 50 + 100);
  EXPECT_EQ(sched_time(trace, 11, "blocked"), 100);
  EXPECT_EQ(sched_time(trace, 11, "runq"), 50 + 110) << "preempted at the end, still waiting";
  EXPECT_EQ(sched_time(trace, 10, "runq"), 10);
}

TEST(PerfettoReader, TimesOfOtherFtraceClocksAreRelated) {
  const TempDir dir;
  const std::string head = R"(
    packet { clock_snapshot { clocks { clock_id: 6 timestamp: 5000 } clocks { clock_id: 5 timestamp: 1000 } } }
    packet { process_tree { processes { pid: 1 cmdline: "a" } threads { tid: 2 tgid: 1 } } }
    packet { ftrace_events { cpu: 0 )";
  const std::string events = R"( event { timestamp: 100 sched_switch { prev_pid: 0 next_pid: 2 } }
                                 event { timestamp: 150 sched_switch { prev_pid: 2 prev_state: 1 next_pid: 0 } } } })";
  const auto begin = [&](const std::string& clock) -> Ns {
    const Trace trace = read_bytes(dir, encode(dir, head + clock + events));
    return trace.slices.empty() ? -static_cast<Ns>(trace.losses[LossReason::time_invalid]) : trace.slices[0].begin;
  };
  EXPECT_EQ(begin(""), 100);
  EXPECT_EQ(begin("ftrace_clock: FTRACE_CLOCK_MONO_RAW"), 4100);
  EXPECT_EQ(begin("ftrace_clock: FTRACE_CLOCK_GLOBAL ftrace_timestamp: 80 boot_timestamp: 7080"), 7100);
  EXPECT_EQ(begin("ftrace_clock: FTRACE_CLOCK_GLOBAL"), -2) << "nothing says what that clock showed when";
  EXPECT_EQ(begin("ftrace_clock: FTRACE_CLOCK_LOCAL ftrace_timestamp: 80 boot_timestamp: 7080"), -2);
}

TEST(PerfettoReader, OfAThreadThatLeftUnseenNothingIsInvented) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { process_tree { processes { pid: 1 cmdline: "a" } threads { tid: 2 tgid: 1 } } }
    packet { ftrace_events { cpu: 0 event { timestamp: 100 sched_switch { prev_pid: 0 next_pid: 2 } }
                                    event { timestamp: 900 sched_switch { prev_pid: 99 prev_state: 1 next_pid: 2 } }
                                    event { timestamp: 950 sched_switch { prev_pid: 2 prev_state: 1 next_pid: 0 } } } })"));
  EXPECT_EQ(sched_time(trace, 2, "oncpu"), 50);
}

TEST(PerfettoReader, OldWritersPhasesAndThreads) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { trusted_packet_sequence_id: 1 sequence_flags: 1 thread_descriptor { pid: 8 tid: 9 thread_name: "old" } }
    packet { trusted_packet_sequence_id: 1 timestamp: 1000 track_event { name: "x" categories: "c" legacy_event { phase: 88 duration_us: 3 } } }
    packet { trusted_packet_sequence_id: 1 timestamp: 9000 track_event { name: "b" legacy_event { phase: 83 } } })"));
  EXPECT_EQ(slice_named(trace, "x").duration, 3000);
  EXPECT_EQ(trace.tracks[slice_named(trace, "x").track].tid, 9);
  EXPECT_EQ(trace.losses[LossReason::phase_unknown], 1U);
}

TEST(PerfettoReader, SlicesThatDoNotEndAreClosedAndCounted) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { trusted_packet_sequence_id: 1 timestamp: 10 track_event { type: TYPE_SLICE_BEGIN name: "a" track_uuid: 1 } }
    packet { trusted_packet_sequence_id: 1 timestamp: 30 track_event { type: TYPE_INSTANT name: "i" track_uuid: 2 } }
    packet { trusted_packet_sequence_id: 1 timestamp: 20 track_event { type: TYPE_SLICE_END track_uuid: 2 } })"));
  EXPECT_EQ(slice_named(trace, "a").duration, 20);
  EXPECT_EQ(trace.losses[LossReason::begin_without_end], 1U);
  EXPECT_EQ(trace.losses[LossReason::end_without_begin], 1U);
}

TEST(PerfettoReader, SlicesThatDoNotEndLastToTheLastValueOfACounter) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { track_descriptor { uuid: 2 name: "busy" counter { } } }
    packet { trusted_packet_sequence_id: 1 timestamp: 10 track_event { type: TYPE_SLICE_BEGIN name: "a" track_uuid: 1 } }
    packet { trusted_packet_sequence_id: 1 timestamp: 50 track_event { type: TYPE_COUNTER track_uuid: 2 counter_value: 1 } })"));
  EXPECT_EQ(slice_named(trace, "a").duration, 40);
}

TEST(PerfettoReader, MissingNamesTimesAndOddValuesAreCounted) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { trusted_packet_sequence_id: 1 timestamp: 10 track_event { type: TYPE_INSTANT name_iid: 77 track_uuid: 1 } }
    packet { trusted_packet_sequence_id: 1 track_event { type: TYPE_INSTANT name: "untimed" track_uuid: 1 } }
    packet { trusted_packet_sequence_id: 1 timestamp: 18446744073709551615 track_event { type: TYPE_INSTANT name: "far" track_uuid: 1 } }
    packet { trusted_packet_sequence_id: 1 timestamp: 10 track_event { type: TYPE_COUNTER track_uuid: 2 double_counter_value: nan } })"));
  EXPECT_EQ(trace.losses[LossReason::name_invalid], 1U);
  EXPECT_EQ(trace.losses[LossReason::time_missing], 1U);
  EXPECT_EQ(trace.losses[LossReason::time_invalid], 1U);
  EXPECT_EQ(trace.losses[LossReason::counter_value_invalid], 1U);
  EXPECT_EQ(trace.instants.size(), 1U);
}

TEST(PerfettoReader, NegativeArgumentsAreLeftOutAndCounted) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { trusted_packet_sequence_id: 1 timestamp: 10 track_event { type: TYPE_SLICE_BEGIN name: "k" categories: "kernel" track_uuid: 1
      debug_annotations { name: "correlation" int_value: -3 } debug_annotations { name: "bytes" int_value: -1 }
      debug_annotations { name: "grid" string_value: "[8,-4,2]" } debug_annotations { name: "block" string_value: "[128,70000,1]" }
      debug_annotations { name: "stream" int_value: 7 } debug_annotations { name: "registers per thread" int_value: 70000 } } }
    packet { trusted_packet_sequence_id: 1 timestamp: 20 track_event { type: TYPE_SLICE_END track_uuid: 1 } })"));
  ASSERT_EQ(trace.gpu.size(), 1U);
  EXPECT_EQ(trace.gpu[0].stream, 7);
  EXPECT_EQ(trace.gpu[0].bytes, 0U);
  EXPECT_EQ(trace.gpu[0].grid[0] + trace.gpu[0].block[0] + trace.gpu[0].registers, 0U);
  EXPECT_EQ(trace.slices[0].correlation, 0U);
  EXPECT_EQ(trace.losses[LossReason::argument_invalid], 5U);
}

TEST(PerfettoReader, ParentsInACircleEnd) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, R"(
    packet { track_descriptor { uuid: 1 parent_uuid: 2 name: "a" } }
    packet { track_descriptor { uuid: 2 parent_uuid: 1 name: "b" } }
    packet { timestamp: 10 track_event { type: TYPE_INSTANT name: "x" track_uuid: 1 } })"));
  EXPECT_EQ(trace.instants.size(), 1U);
}

// ---- hostile bytes

std::string packet_of(const std::string& payload) {
  std::string size;
  for (std::size_t n = payload.size();; n >>= 7) {
    if (n < 0x80) {
      size += static_cast<char>(n);
      break;
    }
    size += static_cast<char>(n | 0x80);
  }
  return "\x0a" + size + payload;
}

TEST(PerfettoReader, ABombIsDefused) {
  const TempDir dir;
  // 64 MiB of zeroes: each pair of bytes would be a field, and as packets they are none.
  const std::string bomb =
      run("/usr/bin/python3 -c \"import sys,zlib; sys.stdout.buffer.write(zlib.compress(b'\\0'*(64<<20), 9))\"");
  std::string field = "\x92\x03";
  for (std::size_t n = bomb.size();; n >>= 7) {
    if (n < 0x80) {
      field += static_cast<char>(n);
      break;
    }
    field += static_cast<char>(n | 0x80);
  }
  const Trace trace = read_bytes(dir, packet_of(field + bomb));
  EXPECT_EQ(trace.losses[LossReason::compressed_damage], 1U);
}

TEST(PerfettoReader, APacketThatClaimsGigabytesIsSkipped) {
  const TempDir dir;
  const Trace trace = read_bytes(dir, std::string("\x0a\xff\xff\xff\xff\x0f") + "tail");
  EXPECT_EQ(trace.losses[LossReason::event_too_large], 1U);
  EXPECT_EQ(trace.losses[LossReason::truncated_tail], 1U);
}

TEST(PerfettoReader, GarbageBetweenPacketsIsCounted) {
  const TempDir dir;
  const std::string good =
      encode(dir, R"(packet { timestamp: 10 track_event { type: TYPE_INSTANT name: "x" track_uuid: 1 } })");
  const Trace trace = read_bytes(dir, good + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" + good);
  EXPECT_EQ(trace.instants.size(), 1U);
  EXPECT_EQ(trace.losses[LossReason::event_malformed], 1U);
  EXPECT_GT(trace.losses[LossReason::text_after_damage], 10U);
}

TEST(PerfettoReader, LooksLikeOneByItsBytesOnly) {
  const TempDir dir;
  const std::string bytes = bytes_of(recording(dir));
  EXPECT_TRUE(looks_like(bytes));
  EXPECT_TRUE(looks_like(bytes.substr(0, 100)));
  EXPECT_FALSE(looks_like("\n\n\n{\"traceEvents\":[]}"));
  EXPECT_FALSE(looks_like("\n{\"traceEvents\":[]}"));
  EXPECT_FALSE(looks_like(""));
  EXPECT_FALSE(looks_like("\x0a"));
  EXPECT_FALSE(looks_like(std::string_view("\x0a\x02\x00\x00", 4)));
  EXPECT_FALSE(looks_like("SQLite format 3"));
  EXPECT_FALSE(looks_like("\x1f\x8b\x08"));
}

}  // namespace
}  // namespace culprit::perfetto::test
