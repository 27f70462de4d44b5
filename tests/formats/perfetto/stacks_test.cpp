// Call stacks: what the writer writes is read back, and what others write is understood.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "formats/perfetto/writer.h"
#include "support.h"

namespace culprit::perfetto::test {
namespace {

using testing::ElementsAre;

/// The names of a stack, outermost first.
std::vector<std::string> names(const Trace& trace, std::uint32_t frame) {
  std::vector<std::string> all;
  for (; frame != kNone; frame = trace.stack_frames[frame].caller) {
    const StackFrame& f = trace.stack_frames[frame];
    all.insert(all.begin(), std::string(trace.strings[f.function]) + (f.kernel ? " k" : ""));
  }
  return all;
}

std::string write(const culprit::test::TempDir& dir, const std::vector<std::vector<CodeFrame>>& stacks, Ns step = 10) {
  const std::string path = dir.path() + "/stacks.pftrace";
  auto writer = Writer::create(path);
  EXPECT_TRUE(writer);
  writer->process({.pid = 7, .name = "prog"});
  writer->thread(7, 8, "helper");
  writer->sampling_rate(100);
  Ns at = 1000;
  for (const auto& stack : stacks) {
    writer->stack({.at = at, .cpu = 1, .pid = 7, .tid = 8}, stack);
    at += step;
  }
  EXPECT_TRUE(writer->close());
  return path;
}

TEST(PerfettoStacks, AreReadBackAsTheyWereWritten) {
  const culprit::test::TempDir dir;
  const CodeFrame main{"main", "/usr/bin/prog", "\x01\x02", 0x100, CodeFrame::Kind::native};
  const CodeFrame unnamed{"", "/usr/lib/libx.so", "", 0xabc, CodeFrame::Kind::native};
  const CodeFrame kernel{"vfs_read", "[kernel]", "", 0, CodeFrame::Kind::kernel};
  const CodeFrame nowhere{};
  const Trace trace = read_file(write(dir, {{main, kernel}, {main, unnamed}, {main, nowhere}, {}, {main, kernel}}));
  ASSERT_EQ(trace.stack_samples.size(), 5U);
  EXPECT_THAT(names(trace, trace.stack_samples[0].frame), ElementsAre("main", "vfs_read k"));
  EXPECT_THAT(names(trace, trace.stack_samples[1].frame), ElementsAre("main", "libx.so+0xabc"));
  EXPECT_THAT(names(trace, trace.stack_samples[2].frame), ElementsAre("main", "[unknown]"));
  EXPECT_EQ(trace.stack_samples[3].frame, kNone);
  EXPECT_EQ(trace.stack_samples[4].frame, trace.stack_samples[0].frame);
  for (std::size_t i = 0; i < 5; ++i) {
    const StackSample& sample = trace.stack_samples[i];
    EXPECT_EQ(sample.time, 10'000'000);
    EXPECT_EQ(sample.kind, StackSample::Kind::on_cpu);
    EXPECT_EQ(trace.tracks[sample.track].tid, 8);
    EXPECT_EQ(trace.strings[trace.tracks[sample.track].name], "helper");
    EXPECT_EQ(trace.strings[trace.processes[trace.tracks[sample.track].process].name], "prog");
  }
  EXPECT_EQ(trace.losses.total(), 0U);
}

TEST(PerfettoStacks, EveryChunkHoldsWhatItsStacksAreMadeOf) {
  const culprit::test::TempDir dir;
  std::vector<std::string> texts;
  for (int i = 0; i < 40'000; ++i) texts.push_back("function_number_" + std::to_string(i % 5000));
  std::vector<std::vector<CodeFrame>> stacks;
  for (const std::string& text : texts) stacks.push_back({{"main", "/bin/p", "", 1}, {text, "/bin/p", "", 2}});
  const Trace trace = read_file(write(dir, stacks));
  ASSERT_EQ(trace.stack_samples.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); i += 997)
    EXPECT_THAT(names(trace, trace.stack_samples[i].frame), ElementsAre("main", texts[i]));
  EXPECT_EQ(trace.stack_frames.size(), 5001U);
  EXPECT_EQ(trace.losses.total(), 0U);
}

TEST(PerfettoStacks, ASampleStandsForTheAsksSinceTheLast) {
  const culprit::test::TempDir dir;
  const std::string path = dir.path() + "/weights.pftrace";
  auto writer = Writer::create(path);
  ASSERT_TRUE(writer);
  writer->sampling_rate(100);
  const std::vector<CodeFrame> stack = {{"main", "/bin/p", "", 1}};
  // More than a chunk holds, each of which begins with a stack for one ask.
  const auto asks_of = [](int i) { return i < 3 ? static_cast<std::uint32_t>(i) : i < 20'000 ? 3U : 1U + i % 7 / 6U; };
  for (int i = 0; i < 40'000; ++i)
    writer->stack({.at = 1000 + i, .cpu = 1, .pid = 7, .tid = 8, .in_kernel = false, .asks = asks_of(i)}, stack);
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  ASSERT_EQ(trace.stack_samples.size(), 40'000U);
  EXPECT_EQ(trace.stack_samples[0].time, 10'000'000) << "no ask is one";
  for (int i = 1; i < 40'000; ++i) {
    const StackSample& sample = trace.stack_samples[static_cast<std::size_t>(i)];
    ASSERT_EQ(sample.time, 10'000'000 * asks_of(i)) << i;
    ASSERT_EQ(sample.at, 1000 + i);
    ASSERT_NE(sample.frame, kNone);
    ASSERT_EQ(sample.kind, StackSample::Kind::on_cpu);
  }
  EXPECT_EQ(trace.losses.total(), 0U);
}

TEST(PerfettoStacks, TimesOfRatesThatDivideNoSecondAddUp) {
  const culprit::test::TempDir dir;
  const std::string path = dir.path() + "/weights.pftrace";
  auto writer = Writer::create(path);
  ASSERT_TRUE(writer);
  writer->sampling_rate(99);
  for (int i = 0; i < 11; ++i)
    writer->stack({.at = 1000 + i, .cpu = 1, .pid = 7, .tid = 8, .in_kernel = false, .asks = 9}, {});
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  Ns time = 0;
  for (std::size_t i = 0; i < trace.stack_samples.size(); ++i) time += trace.stack_samples[i].time;
  EXPECT_NEAR(static_cast<double>(time), 1e9, 20) << "99 asks are a second";
}

const std::string kOthers = R"(
packet { trusted_packet_sequence_id: 5 sequence_flags: 1
  trace_packet_defaults { timestamp_clock_id: 6 perf_sample_defaults { timebase { TIMEBASE } } }
  interned_data {
    function_names { iid: 1 str: "outer" } function_names { iid: 2 str: "inner" }
    mapping_paths { iid: 1 str: "system" } mapping_paths { iid: 2 str: "libc.so" }
    mappings { iid: 1 path_string_ids: 1 path_string_ids: 2 }
    frames { iid: 1 function_name_id: 1 mapping_id: 1 rel_pc: 16 } frames { iid: 2 function_name_id: 2 }
    frames { iid: 3 mapping_id: 1 rel_pc: 32 }
    callstacks { iid: 1 frame_ids: 1 frame_ids: 2 } callstacks { iid: 2 frame_ids: 1 frame_ids: 3 }
  } }
packet { trusted_packet_sequence_id: 5 sequence_flags: 2 timestamp: 500
  perf_sample { cpu: 0 pid: 40 tid: 41 callstack_iid: 1 cpu_mode: MODE_USER } }
packet { trusted_packet_sequence_id: 5 sequence_flags: 2 timestamp: 600
  perf_sample { cpu: 0 pid: 40 tid: 41 callstack_iid: 2 } }
)";

std::string others(const std::string& timebase) {
  std::string text = kOthers;
  return text.replace(text.find("TIMEBASE"), 8, timebase);
}

TEST(PerfettoStacks, OfOtherWritersAreRead) {
  const culprit::test::TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, others("frequency: 200 counter: SW_CPU_CLOCK")));
  ASSERT_EQ(trace.stack_samples.size(), 2U);
  EXPECT_THAT(names(trace, trace.stack_samples[0].frame), ElementsAre("outer", "inner"));
  EXPECT_THAT(names(trace, trace.stack_samples[1].frame), ElementsAre("outer", "libc.so+0x20"));
  EXPECT_EQ(trace.strings[trace.stack_frames[0].module], "/system/libc.so");
  EXPECT_EQ(trace.stack_samples[0].time, 5'000'000);
}

TEST(PerfettoStacks, OfACounterStandForNoTime) {
  const culprit::test::TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, others("period: 100000 tracepoint { name: \"sched_switch\" }")));
  ASSERT_EQ(trace.stack_samples.size(), 2U);
  EXPECT_EQ(trace.stack_samples[0].time, 0);
  EXPECT_EQ(trace.stack_samples[0].kind, StackSample::Kind::other);
}

TEST(PerfettoStacks, LostAndUnknownOnesAreCounted) {
  const culprit::test::TempDir dir;
  const Trace trace = read_bytes(dir, encode(dir, others("frequency: 100") + R"(
packet { trusted_packet_sequence_id: 5 sequence_flags: 2 timestamp: 700 perf_sample { kernel_records_lost: 5 } }
packet { trusted_packet_sequence_id: 5 sequence_flags: 2 timestamp: 800
  perf_sample { sample_skipped_reason: PROFILER_SKIP_UNKNOWN } }
packet { trusted_packet_sequence_id: 5 sequence_flags: 2 timestamp: 900 perf_sample { pid: 1 tid: 1 callstack_iid: 9 } }
)"));
  EXPECT_EQ(trace.losses[LossReason::packets_lost], 7U);
  ASSERT_EQ(trace.stack_samples.size(), 3U);
  EXPECT_EQ(trace.stack_samples[2].frame, kNone);
}

TEST(PerfettoStacks, WhoEndedAWaitIsToldWhereItIsKnown) {
  const culprit::test::TempDir dir;
  const std::string path = dir.path() + "/wakers.pftrace";
  auto writer = Writer::create(path);
  ASSERT_TRUE(writer);
  writer->thread(7, 8, "helper");
  const TrackUuid track = writer->named_track("blocked", 7, 8);
  const Argument waker{"waker", std::string_view("main")};
  const Argument interrupt{"woken_by", std::string_view("interrupt")};
  const Argument softirq{"woken_by", std::string_view("softirq")};
  const Argument open{"open", std::int64_t{1}};
  const std::vector<std::pair<std::vector<Argument>, std::string_view>> waits = {
      {{waker}, "main"}, {{interrupt, waker}, "interrupt"}, {{waker, softirq}, "main (softirq)"}, {{}, kNoThread},
      {{open}, ""},
  };
  Ns at = 1000;
  for (const auto& [arguments, name] : waits) {
    writer->slice(track, at, at + 500, "blocked:futex", "blocked", arguments);
    at += 1000;
  }
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  ASSERT_EQ(trace.stack_samples.size(), waits.size());
  for (std::size_t i = 0; i < waits.size(); ++i)
    EXPECT_EQ(trace.strings[trace.stack_samples[i].waker], waits[i].second) << i;
}

TEST(PerfettoStacks, WhereAThreadWasBlockedIsAStackToo) {
  const culprit::test::TempDir dir;
  const std::string path = dir.path() + "/blocked.pftrace";
  auto writer = Writer::create(path);
  ASSERT_TRUE(writer);
  writer->thread(7, 8, "helper");
  const Argument stack{"stack", std::string_view("main;work;poll")};
  const TrackUuid track = writer->named_track("blocked", 7, 8);
  writer->slice(track, 1000, 4000, "blocked:poll", "blocked", std::span(&stack, 1));
  writer->slice(track, 5000, 6000, "blocked:read", "blocked");
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  ASSERT_EQ(trace.stack_samples.size(), 2U);
  EXPECT_THAT(names(trace, trace.stack_samples[0].frame), ElementsAre("main", "work", "poll"));
  EXPECT_EQ(trace.stack_samples[0].time, 3000);
  EXPECT_EQ(trace.stack_samples[0].kind, StackSample::Kind::off_cpu);
  EXPECT_EQ(trace.stack_samples[1].frame, kNone);
  EXPECT_EQ(trace.strings[trace.tracks[trace.stack_samples[0].track].name], "helper");
}

TEST(PerfettoTotals, OfDisksAndDurationsAreReadBack) {
  const culprit::test::TempDir dir;
  const std::string path = dir.path() + "/totals.pftrace";
  auto writer = Writer::create(path);
  ASSERT_TRUE(writer);
  writer->process({.pid = 7, .name = "prog"});
  const std::vector<Argument> total = {{"count", std::int64_t{3}},
                                       {"total_ns", std::int64_t{500}},
                                       {"longest_so_far_ns", std::int64_t{300}},
                                       {"bytes", std::int64_t{4096}}};
  writer->instant(writer->named_track("disk vda totals", 7), 1000, "write", kDiskTotals, total);
  for (const std::string_view text : {"5:2 40:1", "40:3", "9999:1 x 7"}) {
    const Argument buckets{"buckets", text};
    writer->instant(writer->named_track("disk vda times", 7), 1000, "write", kDurations, std::span(&buckets, 1));
    writer->instant(writer->named_track("system call times", 7), 1000, "read", kDurations, std::span(&buckets, 1));
  }
  for (const std::int64_t number : {2, 1, -5}) {
    const std::vector<Argument> unended = {{"buckets", std::string_view()}, {"unended", number}};
    writer->instant(writer->named_track("system call times", 7), 2000, "read", kDurations, unended);
  }
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  ASSERT_EQ(trace.disks.size(), 1U);
  EXPECT_EQ(trace.strings[trace.disks[0].disk], "vda");
  EXPECT_EQ(trace.strings[trace.disks[0].operation], "write");
  EXPECT_EQ(trace.processes[trace.disks[0].process].pid, 7);
  EXPECT_EQ(trace.disks[0].bytes, 4096U);
  EXPECT_EQ(trace.disks[0].count, 3U);
  ASSERT_EQ(trace.durations.size(), 2U);
  for (const DurationCounts& counts : trace.durations) {
    EXPECT_EQ(counts.buckets[5], 2U);
    EXPECT_EQ(counts.buckets[40], 4U);
  }
  EXPECT_EQ(trace.durations[0].disk, 0U);
  EXPECT_EQ(trace.strings[trace.durations[0].name], "read");
  EXPECT_EQ(trace.durations[0].unended, 3U);
  EXPECT_EQ(trace.durations[1].unended, 0U);
  EXPECT_EQ(trace.losses[LossReason::argument_invalid], 6U);
}

TEST(PerfettoTotals, AnswersOfAPortAreOfThatPortAndThoseOverUnixSocketsOfThose) {
  const culprit::test::TempDir dir;
  const std::string path = dir.path() + "/answers.pftrace";
  auto writer = Writer::create(path);
  ASSERT_TRUE(writer);
  writer->process({.pid = 7, .name = "prog"});
  const Argument buckets{"buckets", "5:2"};
  const std::vector<Argument> with_bytes = {buckets, {"bytes", std::int64_t{300}}};
  for (const Ns at : {1000, 2000})
    writer->instant(writer->named_track(answers_track(80), 7), at, "answer", kDurations, with_bytes);
  writer->instant(writer->named_track(answers_track(0), 7), 1000, "answer", kDurations, std::span(&buckets, 1));
  writer->instant(writer->named_track("port 80 answers"), 1000, "answer of 9 bytes after others", kDurations,
                  std::span(&buckets, 1));
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(path);
  ASSERT_EQ(trace.durations.size(), 3U);
  std::size_t over_unix = 0;
  for (const DurationCounts& counts : trace.durations) {
    const bool is_unix = trace.strings[counts.disk] == "Unix sockets";
    over_unix += is_unix ? 1 : 0;
    EXPECT_TRUE(is_unix || trace.strings[counts.disk] == "port 80");
    EXPECT_EQ(trace.processes[counts.process].pid == 7, trace.strings[counts.name] == "answer");
    const bool is_port = !is_unix && trace.strings[counts.name] == "answer";
    EXPECT_EQ(counts.buckets[5], is_port ? 4U : 2U);
    EXPECT_EQ(counts.bytes, is_port ? 600U : 0U);
  }
  EXPECT_EQ(over_unix, 1U);
}

}  // namespace
}  // namespace culprit::perfetto::test
