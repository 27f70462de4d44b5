// The memory limit of a control group, and what looks like it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace culprit::diagnose
