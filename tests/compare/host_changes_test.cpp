#include "compare/host_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compare/one_side.h"

namespace culprit::compare {
namespace {

using testing::ElementsAre;

model::HostEvidence evidence(std::uint64_t prefills, std::uint64_t decodes, double run_queue_per_step) {
  model::HostEvidence side;
  side.scheduling = true;
  side.cycles[kPrefill] = prefills;
  side.cycles[kDecode] = decodes;
  side.period_ns[kPrefill] = 40e6 * static_cast<double>(prefills);
  side.period_ns[kDecode] = 10e6 * static_cast<double>(decodes);
  model::HostState waiting{"runnable", {}};
  waiting.total_ns[kPrefill] = run_queue_per_step * static_cast<double>(prefills);
  waiting.total_ns[kDecode] = run_queue_per_step * static_cast<double>(decodes);
  side.states = {waiting};
  return side;
}

TEST(HostChanges, SameRunHasOnlyThePeriod) {
  const auto changes = host_changes(evidence(2, 10, 1e6), evidence(2, 10, 1e6));
  ASSERT_EQ(changes.states.size(), 1U);
  EXPECT_EQ(changes.states[0].what, "period");
  EXPECT_DOUBLE_EQ(*changes.states[0].value[0], *changes.states[0].value[1]);
}

TEST(HostChanges, AnotherMixOfPhasesIsNoChange) {
  const auto changes = host_changes(evidence(2, 10, 1e6), evidence(20, 10, 1e6));
  ASSERT_EQ(changes.states.size(), 1U);
  EXPECT_DOUBLE_EQ(*changes.states[0].value[0], 15e6);
  EXPECT_DOUBLE_EQ(*changes.states[0].value[1], 15e6);
}

TEST(HostChanges, WaitingThatGrewIsListedPerStep) {
  const auto changes = host_changes(evidence(2, 10, 1e6), evidence(4, 30, 5e6));
  ASSERT_EQ(changes.states.size(), 2U);
  EXPECT_EQ(changes.states[1].what, "runnable");
  EXPECT_DOUBLE_EQ(*changes.states[1].value[0], 1e6);
  EXPECT_DOUBLE_EQ(*changes.states[1].value[1], 5e6);
}

TEST(HostChanges, StateOfOneSideIsZeroOnTheOther) {
  auto candidate = evidence(0, 10, 1e6);
  model::HostState stopped{"stopped", {}};
  stopped.total_ns[kDecode] = 20e6;
  candidate.states.push_back(stopped);
  const auto changes = host_changes(evidence(0, 10, 1e6), candidate);
  ASSERT_EQ(changes.states.size(), 2U);
  EXPECT_THAT(changes.states[1].value, ElementsAre(0.0, 2e6));
}

TEST(HostChanges, WithoutACommonPhaseThereAreNoStates) {
  EXPECT_TRUE(host_changes(evidence(5, 0, 1e6), evidence(0, 5, 9e6)).states.empty());
}

TEST(HostChanges, WithoutSchedulingOnASideThereAreNoStates) {
  auto candidate = evidence(2, 10, 9e6);
  candidate.scheduling = false;
  EXPECT_TRUE(host_changes(evidence(2, 10, 1e6), candidate).states.empty());
}

TEST(HostChanges, CountersThatMovedAreListedAndTheOthersCounted) {
  auto base = evidence(2, 10, 1e6);
  auto candidate = base;
  base.counters = {{"a", "count", 1.0, 10}, {"b", "count", 1.0, 10}, {"gone", "count", 1.0, 10}};
  candidate.counters = {{"a", "count", 1.05, 10}, {"b", "count", 2.0, 10}};
  const auto changes = host_changes(base, candidate);
  EXPECT_EQ(changes.counters_alike, 1U);
  ASSERT_EQ(changes.counters.size(), 2U);
  EXPECT_EQ(changes.counters[0].what, "b");
  EXPECT_EQ(changes.counters[1].what, "gone");
  EXPECT_FALSE(changes.counters[1].value[1].has_value());
}

TEST(HostChanges, OfASideWithoutSamplesNoCounterMovedButALimitThatWasFelt) {
  const auto base = evidence(2, 10, 1e6);
  auto candidate = base;
  candidate.counters = {{"cgroup.cpu.throttled_time", "ns/s", 0.0, 10}, {"host.cpu.busy", "fraction", 1.0, 10}};
  EXPECT_TRUE(host_changes(base, candidate).counters.empty());
  candidate.counters[0].mean = 4e8;
  ASSERT_EQ(host_changes(base, candidate).counters.size(), 1U);
  EXPECT_EQ(host_changes(base, candidate).counters[0].what, "cgroup.cpu.throttled_time");
}

model::HostEvidence answered(const char* what, double first_ms, std::size_t count) {
  model::HostEvidence side;
  for (std::size_t i = 0; i < count; ++i)
    side.requests[what].push_back((first_ms + static_cast<double>(i * 7 % count) * 0.01) * 1e6);
  return side;
}

TEST(HostChanges, RequestsThatTookLongerMoved) {
  const auto changes = host_changes(answered("queue wait", 10, 40), answered("queue wait", 20, 30));
  ASSERT_EQ(changes.requests.size(), 1U);
  const model::RequestChange& queue = changes.requests[0];
  EXPECT_THAT(queue.count, ElementsAre(40U, 30U));
  EXPECT_NEAR(queue.median[0], 10.195e6, 1);
  EXPECT_NEAR(queue.median[1], 20.145e6, 1);
  EXPECT_GT(queue.p99[1], queue.median[1]);
  EXPECT_TRUE(queue.moved);
}

TEST(HostChanges, RequestsThatDifferAsServersDoDidNotMove) {
  EXPECT_FALSE(host_changes(answered("decode", 10, 400), answered("decode", 13, 400)).requests[0].moved);
  EXPECT_FALSE(host_changes(answered("decode", 10, 3), answered("decode", 20, 3)).requests[0].moved) << "too few";
  EXPECT_TRUE(host_changes(answered("decode", 10, 3), answered("prefill", 20, 3)).requests.empty());
}

TEST(HostChanges, RequestsOfReplicatesAreOneSide) {
  model::HostEvidence side = answered("decode", 10, 5);
  add_replicate(side, answered("decode", 12, 4));
  EXPECT_EQ(side.requests["decode"].size(), 9U);
}

TEST(HostChanges, StepsPerSecondOfReplicatesAreTheirMean) {
  model::HostEvidence side;
  model::HostEvidence one = evidence(1, 2, 0);
  for (const double rate : {10.0, 20.0, 60.0}) {
    one.steps_per_second = rate;
    add_replicate(side, one);
  }
  EXPECT_THAT(host_changes(side, one).steps_per_second, ElementsAre(30, 60));
  add_replicate(side, evidence(1, 2, 0));
  EXPECT_EQ(side.steps_per_second, 0) << "of one it is not known";
}

TEST(SurroundingsOf, WhoRanBesideAndWhatLimitsTheGroup) {
  auto base = evidence(2, 10, 1e6);
  base.counters = {{"cgroup.cpu.quota", "count", 2.0, 10}, {"process.memory.rss", "byte", 1e9, 10}};
  model::HostEvidence candidate;
  candidate.per_second = candidate.scheduling = true;
  candidate.counters = {{"cgroup.cpu.quota", "count", 0.3, 10}, {"process.memory.rss", "byte", 2e9, 10}};
  candidate.beside = {{"stress-ng-cpu", 1.9}};
  const model::HostChanges around = surroundings_of(base, candidate);
  ASSERT_EQ(around.beside.size(), 1U);
  EXPECT_EQ(around.beside[0].what, "stress-ng-cpu");
  ASSERT_EQ(around.counters.size(), 1U);
  EXPECT_EQ(around.counters[0].what, "cgroup.cpu.quota");
  EXPECT_TRUE(around.states.empty() && around.step.empty());
}

TEST(HostChanges, ReplicatesAddUp) {
  auto side = evidence(2, 10, 1e6);
  side.counters = {{"a", "count", 1.0, 10}};
  auto other = evidence(2, 10, 3e6);
  other.counters = {{"a", "count", 4.0, 20}, {"b", "count", 7.0, 1}};
  add_replicate(side, other);
  EXPECT_EQ(side.cycles[kDecode], 20U);
  EXPECT_DOUBLE_EQ(side.states[0].total_ns[kDecode], 40e6);
  EXPECT_DOUBLE_EQ(side.counters[0].mean, 3.0);
  EXPECT_EQ(side.counters[0].samples, 30U);
  EXPECT_EQ(side.counters[1].name, "b");
}

}  // namespace
}  // namespace culprit::compare
