#include "profile/collected.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace culprit::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::vector<model::WorkWindow> kWindows = {{0, 100}, {100, 200}, {200, 300}};

std::uint32_t frame(Trace& trace, std::string_view function) {
  StackFrame frame;
  frame.function = trace.strings.intern(function);
  trace.stack_frames.push_back(frame);
  return static_cast<std::uint32_t>(trace.stack_frames.size() - 1);
}

void sample(Trace& trace, Ns at, std::uint32_t frame, StackSample::Kind kind = StackSample::Kind::on_cpu) {
  StackSample sample;
  sample.at = at;
  sample.frame = frame;
  sample.kind = kind;
  trace.stack_samples.push_back(sample);
}

TEST(Collected, FunctionsHaveTheirShareOfEachWindowWithSamples) {
  Trace trace;
  const std::uint32_t f = frame(trace, "f");
  const std::uint32_t g = frame(trace, "g");
  sample(trace, 0, f);
  sample(trace, 50, g);
  sample(trace, 60, g);
  sample(trace, 99, g);
  sample(trace, 200, f);
  const model::Collected collected = collected_in(trace, kWindows, {});
  EXPECT_THAT(collected.functions, ElementsAre(Pair("f", ElementsAre(0.25, 1)), Pair("g", ElementsAre(0.75, 0))));
  EXPECT_EQ(collected.windows, 2U) << "nothing ran between 100 and 200";
  EXPECT_EQ(collected.samples, 5U);
}

TEST(Collected, SamplesCountByTheTimeTheyStandFor) {
  Trace trace;
  const std::uint32_t f = frame(trace, "f");
  const std::uint32_t g = frame(trace, "g");
  for (const auto& [at, row, time] :
       std::vector<std::tuple<Ns, std::uint32_t, Ns>>{{0, f, 10}, {10, f, 10}, {90, g, 60}}) {
    sample(trace, at, row);
    trace.stack_samples[trace.stack_samples.size() - 1].time = time;
  }
  const model::Collected collected = collected_in(trace, kWindows, {});
  EXPECT_THAT(collected.functions, ElementsAre(Pair("f", ElementsAre(0.25)), Pair("g", ElementsAre(0.75))));
  EXPECT_EQ(collected.samples, 3U);
}

TEST(Collected, BlockedThreadsAndOtherTimesAreNotOnTheCpu) {
  Trace trace;
  const std::uint32_t f = frame(trace, "f");
  sample(trace, 10, f, StackSample::Kind::off_cpu);
  sample(trace, -1, f);
  sample(trace, 300, f);
  sample(trace, 20, kNone);
  EXPECT_THAT(collected_in(trace, kWindows, {}).functions, IsEmpty());
}

TEST(Collected, NativeCodeCountsForTheFunctionOfPythonThatCalledIt) {
  Trace trace;
  const auto called_by = [&](std::string_view function, std::uint32_t caller) {
    const std::uint32_t f = frame(trace, function);
    trace.stack_frames[f].caller = caller;
    return f;
  };
  const std::uint32_t forward = called_by("forward (model.py:12)", frame(trace, "main"));
  const std::uint32_t gemm = called_by("sgemm", called_by("at::linear", forward));
  sample(trace, 10, gemm);
  sample(trace, 20, forward);
  sample(trace, 30, called_by("sgemm", called_by("step (loop.py:3)", forward)));
  sample(trace, 40, frame(trace, "malloc"));
  const model::Collected collected = collected_in(trace, {{0, 100}}, {});
  EXPECT_THAT(collected.python,
              ElementsAre(Pair("forward (model.py)", ElementsAre(0.5)), Pair("step (loop.py)", ElementsAre(0.25))));
  EXPECT_THAT(collected.functions, ElementsAre(Pair("forward (model.py)", ElementsAre(0.25)),
                                               Pair("malloc", ElementsAre(0.25)), Pair("sgemm", ElementsAre(0.5))));
}

TEST(Collected, CodeWithoutANameIsOneFunctionForEachFile) {
  Trace trace;
  sample(trace, 10, frame(trace, "libx.so+0x1a2b"));
  sample(trace, 20, frame(trace, "libx.so+0x1c"));
  EXPECT_THAT(collected_in(trace, {{0, 100}}, {}).functions, ElementsAre(Pair("[libx.so]", ElementsAre(1))));
}

TEST(Collected, CallsAndRequestsOfAllThreadsAndStretchesAdd) {
  Trace trace;
  const StringId read = trace.strings.intern("read");
  const StringId disk = trace.strings.intern("vda");
  const StringId write = trace.strings.intern("write");
  trace.calls = {{100, read, 0, 2, 20, 15}, {100, read, 1, 1, 10, 10}, {200, read, 0, 3, 30, 15}};
  trace.disks = {{100, disk, write, 0, 1, 4096, 500, 500}, {200, disk, write, 1, 2, 8192, 700, 500}};
  trace.durations = {{read, 0, 0, {0, 3}}, {read, 0, 1, {1, 0, 2}}, {write, disk, 0, {5}}};
  const model::Collected collected = collected_in(trace, kWindows, {});
  ASSERT_EQ(collected.calls.size(), 1U);
  EXPECT_EQ(collected.calls.at("read").count, 6U);
  EXPECT_DOUBLE_EQ(collected.calls.at("read").total_ns, 60);
  EXPECT_THAT(collected.calls.at("read").buckets, ElementsAre(1, 3, 2));
  ASSERT_EQ(collected.disks.size(), 1U);
  EXPECT_EQ(collected.disks.at("vda write").bytes, 12288U);
  EXPECT_DOUBLE_EQ(collected.disks.at("vda write").total_ns, 1200);
  EXPECT_THAT(collected.disks.at("vda write").buckets, ElementsAre(5));
}

TEST(Collected, OfRequestsThoseOfRecordedProcessesAreToldApart) {
  Trace trace;
  const StringId disk = trace.strings.intern("vda");
  const StringId write = trace.strings.intern("write");
  const StringId flush = trace.strings.intern("flush");
  for (const std::int64_t pid : {-1, 100, 101}) trace.processes.emplace_back().pid = pid;
  trace.disks = {{100, disk, write, 0, 10, 81920, 900, 300},
                 {100, disk, flush, 0, 1, 0, 50, 50},
                 {100, disk, write, 1, 2, 8192, 700, 500},
                 {200, disk, write, 2, 1, 4096, 300, 300}};
  const model::Collected collected = collected_in(trace, kWindows, {});
  EXPECT_EQ(collected.disks.at("vda write").count, 13U);
  ASSERT_EQ(collected.own_disks.size(), 1U) << "the kernel flushed";
  const model::CountedDurations& own = collected.own_disks.at("vda write");
  EXPECT_EQ(own.count, 3U);
  EXPECT_EQ(own.bytes, 12288U);
  EXPECT_DOUBLE_EQ(own.total_ns, 1000);
}

TEST(Collected, RequestsAreCountedOverTheRecordingAndNotOverTheWindows) {
  Trace trace;
  trace.ranks.emplace_back().metadata = {{"record.duration_ns", "5000"}};
  const StringId disk = trace.strings.intern("vda");
  trace.calls = {{100, disk, 0, 2, 20, 15}};
  trace.disks = {{100, disk, disk, 0, 1, 4096, 500, 500}};
  EXPECT_DOUBLE_EQ(collected_in(trace, kWindows, {}).seconds, 5000e-9);
}

}  // namespace
}  // namespace culprit::profile
