#include "formats/perfetto/writer.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <regex>
#include <set>

#include "support.h"

namespace culprit::perfetto::test {
namespace {

using culprit::test::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;

Writer make(const std::string& path, const WriterOptions& options = {}) {
  auto writer = Writer::create(path, options);
  EXPECT_TRUE(writer) << to_string(writer.error());
  return std::move(*writer);
}

TEST(PerfettoWriter, WhatProtocDecodesIsWhatWasHandedOver) {
  const TempDir dir;
  const std::string path = dir.path("x.pftrace");
  Writer writer = make(path);
  writer.process({.pid = 100, .parent = 7, .name = "prog", .rank = 2, .start_ns = 5'000'000'000});
  writer.thread(100, 101, "worker");
  const TrackUuid track = writer.thread_track(100, 101);
  const Argument arguments[] = {
      {"bytes", std::int64_t{-5}}, {"share", 1.5}, {"text", std::string_view("quote\" and \xff")}};
  writer.slice(track, 1000, 2000, "step", "nvtx", arguments);
  writer.instant(track, 1500, "mark", "nvtx");
  writer.sched_switch({.at = 1600,
                       .cpu = 1,
                       .prev_tid = 101,
                       .next_tid = 55,
                       .prev_priority = -3,
                       .prev_state = 1,
                       .prev_name = "worker",
                       .next_name = "other"});
  writer.sched_waking({.at = 1800, .cpu = 0, .target_cpu = 1, .waker_tid = 5, .tid = 101, .name = "worker"});
  writer.process_exit(1900, 101);
  const TrackUuid memory = writer.counter_track("host.memory.free", "bytes");
  const TrackUuid busy = writer.counter_track("cpu.busy", "fraction", 100);
  writer.counter(memory, 1000, 4096);
  writer.counter(busy, 1000, 0.25);
  writer.metadata("env.kernel.release", "old");
  writer.metadata("env.kernel.release", "6.1");
  ASSERT_TRUE(writer.close());
  const std::string text = decode(path);
  for (const std::string part : {"process_name: \"prog\"",
                                 "process_labels: \"rank 2\"",
                                 "ppid: 7",
                                 "process_start_from_boot: 5000000000",
                                 "thread_name: \"worker\"",
                                 "tgid: 100",
                                 "name: \"step\"",
                                 "type: TYPE_SLICE_BEGIN",
                                 "type: TYPE_SLICE_END",
                                 "type: TYPE_INSTANT",
                                 "int_value: -5",
                                 "double_value: 1.5",
                                 "str: \"quote\\\" and \\357\\277\\275\"",
                                 "prev_comm: \"worker\"",
                                 "prev_pid: 101",
                                 "prev_prio: -3",
                                 "prev_state: 1",
                                 "next_pid: 55",
                                 "target_cpu: 1",
                                 "sched_process_exit",
                                 "unit: UNIT_SIZE_BYTES",
                                 "unit_name: \"fraction\"",
                                 "double_counter_value: 4096",
                                 "double_counter_value: 0.25",
                                 "primary_trace_clock: 3",
                                 "timestamp_clock_id: 3",
                                 "trace_uuid",
                                 "utsname",
                                 "first_packet_on_sequence: true",
                                 "string_value: \"6.1\""})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(PerfettoWriter, EveryPacketIsOfTheSequence) {
  const TempDir dir;
  Writer writer = make(dir.path("x.pftrace"));
  writer.slice(writer.named_track("lane"), 1, 2, "a", "b");
  ASSERT_TRUE(writer.close());
  const std::string text = decode(dir.path("x.pftrace"));
  EXPECT_EQ(count_of(text, "\npacket {") + 1, count_of(text, "trusted_packet_sequence_id: 1\n"));
}

TEST(PerfettoWriter, CountersLieBelowGroupsOfTheirNames) {
  const TempDir dir;
  Writer writer = make(dir.path("x.pftrace"));
  writer.process({.pid = 100, .name = "p"});
  for (const std::string name : {"host.cpu0.busy", "host.cpu0.user", "host.memory.free", "uptime"})
    writer.counter(writer.counter_track(name, "fraction"), 1, 1);
  writer.counter(writer.counter_track("process.cpu", "count", 100), 1, 1);
  ASSERT_TRUE(writer.close());
  const std::string text = decode(dir.path("x.pftrace"));
  std::map<std::string, std::string> names;    // by uuid
  std::map<std::string, std::string> parents;  // uuid by name
  const std::regex descriptor(
      R"re(track_descriptor \{\s+uuid: (\d+)\s+(?:name: "([^"]*)"\s+)?(?:process \{[^}]*\}\s+)?(?:parent_uuid: (\d+))?)re");
  for (std::sregex_iterator it(text.begin(), text.end(), descriptor), end; it != end; ++it) {
    names[(*it)[1]] = (*it)[2];
    parents[(*it)[2]] = (*it)[3];
  }
  const auto above = [&](const std::string& name) { return names[parents[name]]; };
  EXPECT_EQ(above("host.cpu0.busy"), "host.cpu0");
  EXPECT_EQ(above("host.cpu0.user"), "host.cpu0");
  EXPECT_EQ(above("host.cpu0"), "host");
  EXPECT_EQ(above("host.memory.free"), "host.memory");
  EXPECT_EQ(parents["host"], "");
  EXPECT_EQ(parents["uptime"], "");
  EXPECT_EQ(above("process.cpu"), "process");
  EXPECT_NE(parents["process"], "");
  const Trace trace = read_file(dir.path("x.pftrace"));
  ASSERT_EQ(trace.counters.size(), 5U);
  const auto of_process = std::ranges::find_if(
      trace.counters, [&](const CounterSeries& s) { return trace.strings[s.name] == "process.cpu"; });
  ASSERT_NE(of_process, trace.counters.end());
  EXPECT_EQ(trace.processes[of_process->process].pid, 100);
}

TEST(PerfettoWriter, RunningTaskStatesAreTheTracepointsOneBit) {
  const TempDir dir;
  Writer writer = make(dir.path("x.pftrace"));
  // Killable and idle sleeps as the task itself has them; preempted.
  int at = 0;
  for (const std::int64_t state : {0x102, 0x402, 0x100, 0x2001, 0})
    writer.sched_switch({.at = ++at, .prev_tid = 1, .next_tid = 2, .prev_state = state});
  ASSERT_TRUE(writer.close());
  const std::string text = decode(dir.path("x.pftrace"));
  for (const std::string part :
       {"prev_state: 2\n", "prev_state: 128\n", "prev_state: 256\n", "prev_state: 1\n", "prev_state: 0\n"})
    EXPECT_EQ(count_of(text, part), 1U) << part;
}

TEST(PerfettoWriter, FileIsForItsOwnerAlone) {
  const TempDir dir;
  const mode_t before = umask(0);
  Writer writer = make(dir.path("x.pftrace"));
  umask(before);
  ASSERT_TRUE(writer.publish());
  struct stat status {};
  ASSERT_EQ(stat(dir.path("x.pftrace").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(PerfettoWriter, ExistingFileIsLeftAloneUnlessReplaced) {
  const TempDir dir;
  const std::string path = dir.file("x.pftrace", "precious");
  const auto refused = Writer::create(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_EQ(bytes_of(path), "precious");
  WriterOptions options;
  options.replace = true;
  ASSERT_TRUE(make(path, options).close());
  EXPECT_THAT(decode(path), HasSubstr("clock_snapshot"));
}

TEST(PerfettoWriter, ALinkIsReplacedNotFollowed) {
  const TempDir dir;
  const std::string target = dir.file("target", "precious");
  ASSERT_EQ(symlink(target.c_str(), dir.path("x.pftrace").c_str()), 0);
  WriterOptions options;
  options.replace = true;
  ASSERT_TRUE(make(dir.path("x.pftrace"), options).close());
  EXPECT_EQ(bytes_of(target), "precious");
}

TEST(PerfettoWriter, WhatIsNeitherPublishedNorClosedLeavesNothing) {
  const TempDir dir;
  const std::string old = dir.file("x.pftrace", "precious");
  WriterOptions options;
  options.replace = true;
  {
    Writer writer = make(old, options);
    writer.instant(writer.named_track("lane"), 5, "mark", "c");
    ASSERT_TRUE(writer.flush());
  }
  EXPECT_EQ(bytes_of(old), "precious");
  {
    Writer writer = make(dir.path("y.pftrace"));
    writer.instant(writer.named_track("lane"), 5, "mark", "c");
    ASSERT_TRUE(writer.publish());
  }
  EXPECT_THAT(decode(dir.path("y.pftrace")), HasSubstr("mark"));
}

TEST(PerfettoWriter, FolderThatIsNotThereIsAnError) {
  const auto writer = Writer::create("/nowhere/at/all.pftrace");
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, ErrorKind::environment);
}

TEST(PerfettoWriter, FullDiskIsReportedByFlushAndClose) {
  const auto at_once = Writer::create("/dev/full");
  ASSERT_FALSE(at_once);
  EXPECT_EQ(at_once.error().kind, ErrorKind::environment);
}

std::string many(int chunks) {
  // Names that do not deflate to nothing.
  std::string name;
  std::uint64_t x = 88172645463325252ULL + static_cast<std::uint64_t>(chunks);
  for (int i = 0; i < 40; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    name += static_cast<char>('a' + x % 26);
  }
  return name;
}

TEST(PerfettoWriter, WhatFitsOnAFullDiskStaysReadable) {
  const TempDir dir;
  const std::string path = dir.path("x.pftrace");
  constexpr rlim_t kLimit = 50'000;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kLimit, kLimit};
    setrlimit(RLIMIT_FSIZE, &limit);
    WriterOptions options;
    options.chunk_bytes = 16 << 10;
    auto writer = Writer::create(path, options);
    if (!writer->publish()) _exit(2);
    const TrackUuid track = writer->named_track("lane");
    for (int i = 0; i < 5000; ++i) writer->slice(track, 10 * i, 10 * i + 5, many(i), "test");
    const bool flush_fails = !writer->flush().ok();
    const bool close_fails = !writer->close().ok();
    const bool counted = writer->stats().file_bytes <= kLimit;
    _exit(flush_fails && close_fails && counted ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const Trace trace = read_file(path);
  EXPECT_EQ(trace.losses[LossReason::truncated_tail], 1U) << "what did not fit is told";
  EXPECT_EQ(trace.losses.total(), 1U);
  EXPECT_GT(trace.slices.size(), 300U);
  EXPECT_THAT(decode(path), HasSubstr("clock_snapshot"));
}

TEST(PerfettoWriter, ChunksDecodeOnTheirOwn) {
  const TempDir dir;
  const std::string path = dir.path("x.pftrace");
  WriterOptions options;
  options.chunk_bytes = 8 << 10;
  Writer writer = make(path, options);
  writer.process({.pid = 100, .name = "prog"});
  writer.thread(100, 101, "worker");
  const TrackUuid track = writer.thread_track(100, 101);
  std::vector<std::uint64_t> ends;
  for (int i = 0; i < 2000; ++i) {
    writer.slice(track, 10 * i, 10 * i + 5, i % 2 == 0 ? "even" : "odd", "test");
    if (ends.empty() || writer.stats().file_bytes != ends.back()) ends.push_back(writer.stats().file_bytes);
  }
  ASSERT_TRUE(writer.close());
  ASSERT_GT(ends.size(), 5U);
  const std::string whole = bytes_of(path);
  // Without the second and third chunk, and without everything before the fourth.
  const std::string hole = whole.substr(0, ends[1]) + whole.substr(ends[3]);
  const Trace with_hole = read_bytes(dir, hole);
  EXPECT_EQ(with_hole.losses[LossReason::packets_lost], 0U);
  EXPECT_EQ(with_hole.losses[LossReason::name_invalid], 0U);
  EXPECT_LT(with_hole.slices.size(), 2000U);
  EXPECT_GT(with_hole.slices.size(), 1000U);
  const Trace tail = read_bytes(dir, whole.substr(ends[3]));
  EXPECT_EQ(tail.losses.total(), 0U);
  ASSERT_GT(tail.slices.size(), 100U);
  EXPECT_EQ(tail.strings[tail.processes[tail.tracks[tail.slices[0].track].process].name], "prog");
  EXPECT_EQ(tail.strings[tail.tracks[tail.slices[0].track].name], "worker");
}

TEST(PerfettoWriter, NumbersOfNamesAreNeverUsedTwice) {
  const TempDir dir;
  WriterOptions options;
  options.chunk_bytes = 4 << 10;
  Writer writer = make(dir.path("x.pftrace"), options);
  const TrackUuid track = writer.named_track("lane");
  for (int i = 0; i < 500; ++i) writer.slice(track, i, i, "name" + std::to_string(i), "c");
  ASSERT_TRUE(writer.close());
  const std::string text = decode(dir.path("x.pftrace"));
  std::set<std::string> seen;
  const std::string head = "event_names {\n      iid: ";
  for (std::size_t at = text.find(head); at != std::string::npos; at = text.find(head, at + 1))
    EXPECT_TRUE(
        seen.insert(text.substr(at + head.size(), text.find('\n', at + head.size()) - at - head.size())).second);
  EXPECT_GE(seen.size(), 500U);
}

TEST(PerfettoWriter, OuterSlicesHandedOverLaterStayOutside) {
  const TempDir dir;
  Writer writer = make(dir.path("x.pftrace"));
  const TrackUuid track = writer.thread_track(1, 1);
  writer.slice(track, 1000, 2000, "inner", "c");
  writer.slice(track, 1000, 3000, "outer", "c");
  writer.slice(track, 500, 1000, "before", "c");
  ASSERT_TRUE(writer.close());
  const Trace trace = read_file(dir.path("x.pftrace"));
  EXPECT_EQ(slice_named(trace, "inner").duration, 1000);
  EXPECT_EQ(slice_named(trace, "outer").duration, 2000);
  EXPECT_EQ(slice_named(trace, "before").duration, 500);
}

TEST(PerfettoWriter, HugeTextsAreCut) {
  const TempDir dir;
  Writer writer = make(dir.path("x.pftrace"));
  const std::string huge(5'000'000, 'x');
  std::vector<Argument> arguments(200, Argument{huge, std::string_view(huge)});
  writer.slice(writer.named_track(huge), 1, 2, huge, huge, arguments);
  writer.metadata(huge, huge);
  ASSERT_TRUE(writer.close());
  EXPECT_LT(writer.stats().raw_bytes, 400'000U);
  const std::string text = decode(dir.path("x.pftrace"));
  EXPECT_THAT(text, HasSubstr("xxx..."));
  EXPECT_THAT(text, HasSubstr("arguments left out"));
}

TEST(PerfettoWriter, AReusedPidIsAnotherProcess) {
  const TempDir dir;
  Writer writer = make(dir.path("x.pftrace"));
  writer.process({.pid = 9, .name = "first", .start_ns = 100});
  const TrackUuid before = writer.thread_track(9, 9);
  writer.process({.pid = 9, .name = "first-renamed", .start_ns = 100});
  EXPECT_EQ(writer.thread_track(9, 9), before);
  writer.process({.pid = 9, .name = "second", .start_ns = 700});
  EXPECT_NE(writer.thread_track(9, 9), before);
}

TEST(PerfettoWriter, TracksAreToldApartByEveryPartOfTheirName) {
  const TempDir dir;
  Writer writer = make(dir.path("x.pftrace"));
  const std::set<TrackUuid> all = {writer.named_track("a"),          writer.named_track("b"),
                                   writer.named_track("a", 1),       writer.named_track("a", 1, 1),
                                   writer.named_track("a", 1, 1, 1), writer.thread_track(1, 1),
                                   writer.counter_track("a", "ns"),  writer.counter_track("a", "ns", 1)};
  EXPECT_EQ(all.size(), 8U);
  EXPECT_EQ(writer.named_track("a", 1, 1, 1), writer.named_track("a", 1, 1, 1));
}

TEST(PerfettoWriter, CloseTwiceAndUseAfterwardsIsHarmless) {
  const TempDir dir;
  Writer writer = make(dir.path("x.pftrace"));
  EXPECT_TRUE(writer.close());
  const std::string before = bytes_of(dir.path("x.pftrace"));
  writer.slice(writer.named_track("late"), 1, 2, "late", "late");
  EXPECT_TRUE(writer.close());
  EXPECT_EQ(bytes_of(dir.path("x.pftrace")), before);
}

}  // namespace
}  // namespace culprit::perfetto::test
