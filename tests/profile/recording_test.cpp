#include "profile/recording.h"

#include <gtest/gtest.h>

#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using testing_support::TraceMaker;

/// Six steps of one operator that calls another.
Trace steps() {
  TraceMaker maker;
  const TrackId thread = maker.thread(10, 1);
  for (int i = 0; i < 6; ++i) {
    const Ns at = i * 1000;
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), at, 999);
    maker.slice(thread, "cpu_op", "aten::linear", at + 10, 500);
    maker.slice(thread, "cpu_op", "aten::addmm", at + 20, 400);
  }
  return std::move(maker.trace());
}

TEST(Recording, HasCyclesAndAProfileWithOwnTimes) {
  const Trace trace = steps();
  const auto recording = recording_of(trace, {"a.json"});
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(recording->files, std::vector<std::string>{"a.json"});
  EXPECT_EQ(recording->cycles.cycles.size(), 6U);
  EXPECT_EQ(recording->events, 18U);
  int seen = 0;
  for (const model::FunctionUse& use : recording->profile.functions) {
    if (recording->profile.texts[use.function] != "aten::linear") continue;
    ++seen;
    EXPECT_EQ(use.duration, 500);
    EXPECT_EQ(use.own, 100) << "without aten::addmm";
  }
  EXPECT_GT(seen, 3);
}

TEST(Recording, AnOutlineNeedsNoProfile) {
  const Trace trace = steps();
  const auto outline = outline_of(trace, {"a.json"});
  ASSERT_TRUE(outline.ok());
  EXPECT_EQ(outline->recording.cycles.cycles.size(), 6U);
  EXPECT_TRUE(outline->recording.profile.functions.empty());
}

TEST(Recording, FactsAreThoseOfTheDevicesThatWorked) {
  TraceMaker maker;
  const TrackId thread = maker.thread(10, 1);
  const TrackId stream = maker.stream(1, 7);
  maker.gpu(stream, "kernel", "k", 10, 5, maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", 1, 2, 1));
  Trace& trace = maker.trace();
  trace.ranks[0].rank = 3;
  trace.ranks[0].world_size = 8;
  for (const int id : {0, 1}) {
    Device device;
    device.id = id;
    device.name = id == 0 ? "V100" : "A100";
    trace.devices.push_back(device);
  }
  const auto outline = outline_of(trace, {});
  ASSERT_TRUE(outline.ok());
  EXPECT_EQ(outline->recording.facts.device_models, std::set<std::string>{"A100"});
  EXPECT_EQ(outline->recording.facts.world_size, 8);
  EXPECT_EQ(outline->recording.facts.ranks, std::set<std::int64_t>{3});
  EXPECT_TRUE(outline->recording.facts.gpu_work);
}

TEST(Recording, CostsAndTimesAreNoEnvironment) {
  Trace trace = steps();
  trace.ranks[0].metadata = {{"cost.dropped", "1"}, {"env.cpu.governor", "performance"}, {"missing.sched", "no"}};
  const auto outline = outline_of(trace, {});
  ASSERT_TRUE(outline.ok());
  EXPECT_EQ(outline->recording.environment,
            (model::Environment{{"env.cpu.governor", {"performance"}}, {"missing.sched", {"no"}}}));
}

TEST(Recording, LossesInsideAreToldFromACutEnd) {
  Trace trace = steps();
  trace.losses.add(LossReason::truncated_tail);
  trace.losses.add(LossReason::packets_lost, 7);
  trace.losses.add(LossReason::utf8_repaired, 5);
  const auto outline = outline_of(trace, {});
  ASSERT_TRUE(outline.ok());
  EXPECT_EQ(outline->recording.events_lost, 7U);
  EXPECT_EQ(outline->recording.losses.size(), 3U);
}

}  // namespace
}  // namespace culprit::profile
