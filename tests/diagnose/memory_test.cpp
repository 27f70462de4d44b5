// The memory limit of a control group, and what looks like it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

using model::Outcome;
using model::RunComparison;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// Steps that take 8 ms longer by waits for pages.
RunComparison waiting_for_pages(Outcome outcome = Outcome::regression) {
  RunComparison c = comparison(outcome);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 9});
  add_state(c, "blocked in page_fault", {0, 8});
  return c;
}

/// The same in a pod that meets its limit.
RunComparison limited() {
  RunComparison c = waiting_for_pages();
  add_counter(c, "cgroup.memory.limit_hits", {0, 300});
  add_counter(c, "cgroup.memory.refaults", {0, 4000});
  add_counter(c, "target.faults.major", {0, 400});
  return c;
}

TEST(MemoryLimit, APodAtItsLimit) {
  RunComparison c = limited();
  c.host->counters.push_back({"cgroup.memory.limit", "bytes", {std::nullopt, 4 * kGiB}});
  add_counter(c, "cgroup.memory.used", {6 * kGiB, 3.99 * kGiB});
  ASSERT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit"));
  const model::Verdict verdict = diagnose(c)[0];
  EXPECT_THAT(verdict.evidence, Contains("The memory limit of its control group is 4.00 GiB instead of none"));
  EXPECT_THAT(verdict.evidence, Contains("The group used 3.99 GiB instead of 6.00 GiB"));
  EXPECT_THAT(verdict.evidence, Contains("300 allocations a second more met the limit"));
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("read 400 pages a second more from a disk")));
  EXPECT_THAT(verdict.next_step, AllOf(HasSubstr("memory.max"), HasSubstr("--memory")));
  EXPECT_NEAR(verdict.impact_ns, 8e6, 1);
  EXPECT_EQ(verdict.state, model::VerdictState::active);
  EXPECT_THAT(causes(swapped(std::move(c))), ElementsAre("-host_memory_pressure/memory_limit"));
}

TEST(MemoryLimit, OneThatDidNotMoveIsToldOnceAndMoreIsAskedOfIt) {
  RunComparison c = limited();
  c.host->unshown.push_back({"cgroup.memory.limit", "bytes", {4 * kGiB, 4 * kGiB}});
  c.host->unshown.push_back({"cgroup.memory.used", "bytes", {3 * kGiB, 3.99 * kGiB}});
  ASSERT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains("The memory limit of its control group is 4.00 GiB"));
}

TEST(MemoryLimit, AGroupThatIsSlowedDownAboveMemoryHigh) {
  RunComparison c = waiting_for_pages();
  c.host->counters.push_back({"cgroup.memory.high", "bytes", {std::nullopt, 2 * kGiB}});
  add_counter(c, "cgroup.memory.high_hits", {0, 50});
  add_counter(c, "cgroup.pressure.memory.some", {0, 0.4});
  ASSERT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit"));
  EXPECT_THAT(diagnose(c)[0].evidence,
              Contains("Its control group is slowed down above 2.00 GiB instead of none (memory.high)"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("waited for memory 40 % of the time more")));
}

TEST(MemoryLimit, WhoFreesTheMemoryItselfWaitsForNobody) {
  RunComparison c = comparison();
  set_step(c, {10, 16}, {0.1, 0.1}, {1, 1});
  add_counter(c, "cgroup.memory.limit_hits", {0, 5000});
  add_counter(c, "cgroup.pressure.memory.some", {0, 0.3});
  ASSERT_THAT(causes(c), Contains("host_memory_pressure/memory_limit"));
  c.outcome = Outcome::no_change;
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 1});
  EXPECT_THAT(causes(c), IsEmpty()) << "nothing takes longer";
}

TEST(MemoryLimit, AGroupUsesItsLimitUpThoughNobodyCountedHits) {
  RunComparison c = waiting_for_pages();
  add_counter(c, "cgroup.memory.limit", {8 * kGiB, 2 * kGiB});
  add_counter(c, "cgroup.memory.used", {5 * kGiB, 1.98 * kGiB});
  add_counter(c, "target.faults.major", {0, 400});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit"));
  c.host->counters[1].value[1] = 1.5 * kGiB;
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/major_faults")) << "there is room";
}

TEST(MemoryLimit, StagesOfItAreOneThing) {
  RunComparison c = limited();
  add_counter(c, "host.swap.in", {0, 5e7});
  c.host->counters.push_back({"cgroup.memory.limit", "bytes", {std::nullopt, 4 * kGiB}});
  c.disks.push_back({"vda read", {10, 900}, {1e5, 9e8}, {3e5, 1.5e7}, {}});
  add_state(c, "blocked in read, uninterruptible", {0, 8});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].detail, "memory_limit");
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("47.68 MiB/s more were swapped")));
}

TEST(MemoryLimit, FilesFillAGroupWithoutHarm) {
  RunComparison c = waiting_for_pages();
  add_counter(c, "cgroup.memory.limit_hits", {0, 300});
  add_counter(c, "cgroup.memory.used", {1 * kGiB, 4 * kGiB});
  EXPECT_THAT(causes(c), Not(Contains(HasSubstr("memory_limit"))));
  add_counter(c, "cgroup.memory.refaults", {4000, 4500});
  EXPECT_THAT(causes(c), Not(Contains(HasSubstr("memory_limit")))) << "as in the baseline";
}

TEST(MemoryLimit, OneThatIsNotFeltIsNone) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "cgroup.memory.limit_hits", {0, 300});
  add_counter(c, "cgroup.memory.refaults", {0, 4000});
  EXPECT_THAT(causes(c), Not(Contains(HasSubstr("memory_limit"))));
}

TEST(MemoryLimit, AMachineWithoutMemoryPushesTheGroupsPagesOutAsWell) {
  RunComparison c = limited();
  add_counter(c, "host.memory.reclaim.stalls", {0, 30});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/reclaim"));
  c.host->counters.push_back({"cgroup.memory.limit", "bytes", {std::nullopt, 4 * kGiB}});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit")) << "its limit is new";
}

/// A pod that its files fill, reads back more than before, and was given no less; nobody counted hits.
RunComparison full(std::array<double, 2> refaults) {
  RunComparison c = waiting_for_pages();
  add_counter(c, "cgroup.memory.limit", {4 * kGiB, 4 * kGiB});
  add_counter(c, "cgroup.memory.used", {3.99 * kGiB, 3.99 * kGiB});
  add_counter(c, "cgroup.memory.refaults", refaults);
  return c;
}

TEST(MemoryLimit, AFullPodThatReadsMoreBackWithoutMoreToDo) {
  EXPECT_THAT(causes(full({100, 400})), ElementsAre("host_memory_pressure/memory_limit"));
  EXPECT_THAT(causes(full({100, 140})), Not(Contains(HasSubstr("memory_limit")))) << "two recordings of one";
}

TEST(MemoryLimit, MoreClientsReadMoreBackAndMeetTheLimitMoreOften) {
  RunComparison c = full({100, 400});
  add_counter(c, "cgroup.memory.limit_hits", {100, 400});
  ASSERT_THAT(causes(c), Contains("host_memory_pressure/memory_limit"));
  c.host->answered_per_second = {1000, 4000};
  EXPECT_THAT(causes(c), Not(Contains(HasSubstr("memory_limit"))));
  c.host->answered_per_second = {1000, 1500};
  EXPECT_THAT(causes(c), Contains("host_memory_pressure/memory_limit")) << "they read four times as much";
  c.host->steps_per_second = {10, 40};
  EXPECT_THAT(causes(c), Not(Contains(HasSubstr("memory_limit")))) << "as much per step";
  c.host->counters[0].value[0] = 8 * kGiB;
  EXPECT_THAT(causes(c), Contains("host_memory_pressure/memory_limit")) << "half of its memory is gone";
}

TEST(MemoryLimit, MoreUnitsOfWorkReadMoreBack) {
  RunComparison c = full({100, 400});
  c.work.emplace();
  c.work->throughput.value = {100, 110};
  c.work->worked.value = {10e6, 18e6};
  c.work->parts = {{"on CPU", "ns", {10e6, 10e6}}, {"blocked in page_fault", "ns", {0, 8e6}}};
  ASSERT_THAT(causes(c), Contains("host_memory_pressure/memory_limit"));
  c.work->throughput.value = {100, 400};
  EXPECT_THAT(causes(c), Not(Contains(HasSubstr("memory_limit"))));
}

TEST(MemoryLimit, ALimitThatDiffersByLessThanPodsDoIsNotTighter) {
  RunComparison c = waiting_for_pages();
  add_counter(c, "cgroup.memory.limit", {4 * kGiB, 3.99 * kGiB});
  add_counter(c, "cgroup.memory.used", {3.98 * kGiB, 3.98 * kGiB});
  add_counter(c, "target.faults.major", {0, 400});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/major_faults"));
  c.host->counters[0].value[1] = 3.7 * kGiB;
  c.host->counters[1].value[1] = 3.69 * kGiB;
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit"));
}

TEST(MemoryLimit, AMachineThatSwapsPushesTheFilesOfFullGroupsOut) {
  RunComparison c = full({100, 400});
  add_counter(c, "host.swap.out", {0, 5e7});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/swap"));
  add_counter(c, "cgroup.memory.limit_hits", {0, 300});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit")) << "it met its own limit";
}

TEST(MemoryLimit, WaitsToSyncFilesAreTheDisks) {
  RunComparison c = full({100, 400});
  c.host->states.pop_back();
  add_state(c, "blocked in fsync", {0, 8});
  c.disks.push_back({"vda write", {10, 900}, {1e5, 9e7}, {3e5, 1.5e7}, {}});
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
  add_counter(c, "cgroup.pressure.memory.some", {0.01, 0.3});
  EXPECT_THAT(causes(c), ElementsAre("disk_io")) << "a late disk gives what was pushed out back late";
  c.disks.clear();
  ASSERT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit"));
  EXPECT_FALSE(diagnose(c)[0].against.empty());
}

TEST(MemoryLimit, ALateDiskIsToldBesideALimitThatIsTheSame) {
  RunComparison c = limited();
  c.disks.push_back({"vda read", {10, 900}, {1e5, 9e8}, {3e5, 1.5e7}, {}});
  add_state(c, "blocked in read, uninterruptible", {0, 8});
  EXPECT_THAT(causes(c), testing::UnorderedElementsAre("host_memory_pressure/memory_limit", "disk_io"));
  c.disks[0].mean_ns = {3e5, 3.1e5};
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit")) << "it reads back what was pushed out";
  add_state(c, "blocked in fsync", {0, 40});
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 57});
  EXPECT_THAT(causes(c), Contains("disk_io")) << "it waits for more than that";
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 48e6, 1);
}

TEST(MemoryLimit, ShortSleepWhoseCallWasNotKeptIsOfPagesUnlessADiskIsLate) {
  RunComparison c = full({100, 400});
  c.host->states.back().what = "blocked, uninterruptible";
  ASSERT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit"));
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 8e6, 1);
  c.disks.push_back({"vda write", {10, 900}, {1e5, 9e7}, {3e5, 1.5e7}, {}});
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
  c.host->counters[0].value[0] = 8 * kGiB;
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/memory_limit")) << "half of its memory is gone";
}

TEST(MemoryLimit, WhatOneSideDoesNotTellIsNotMore) {
  RunComparison c = waiting_for_pages();
  c.host->counters.push_back({"cgroup.memory.limit", "bytes", {4 * kGiB, 4 * kGiB}});
  c.host->counters.push_back({"cgroup.memory.used", "bytes", {3.99 * kGiB, 3.99 * kGiB}});
  for (const char* name : {"cgroup.memory.refaults", "cgroup.memory.high_hits", "cgroup.pressure.memory.some"})
    c.host->counters.push_back({name, "", {std::nullopt, 4000.0}});
  EXPECT_THAT(causes(c), Not(Contains(HasSubstr("memory_limit"))));
}

}  // namespace
}  // namespace culprit::diagnose
