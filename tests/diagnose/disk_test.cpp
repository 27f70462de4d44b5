// Files that are read from a disk because they are not in memory, and what looks like it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

using model::Outcome;
using model::RunComparison;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Steps that are blocked for 8 ms longer in that state; nothing was read from the disk before.
RunComparison reading(const std::string& state, Outcome outcome = Outcome::regression) {
  RunComparison c = comparison(outcome);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 9});
  add_state(c, state, {0, 8});
  c.disks.push_back({"vda read", {0, 800}, {0, 4e8}, {0, 3e5}, {}});
  return c;
}

TEST(ColdReads, AFileThatIsNotInMemory) {
  for (const char* state : {"blocked in read, uninterruptible", "blocked in readv, uninterruptible",
                            "blocked in pread64", "blocked in sendfile, uninterruptible"}) {
    const RunComparison c = reading(state);
    ASSERT_THAT(causes(c), ElementsAre("disk_io")) << state;
    const model::Verdict verdict = diagnose(c)[0];
    EXPECT_THAT(verdict.evidence[0], HasSubstr("waited 8.000ms instead of 0.000us per step in calls that read"))
        << state;
    EXPECT_THAT(verdict.evidence[1], HasSubstr("8.000ms instead of 0.000us per step until what it read was there"));
    EXPECT_THAT(verdict.evidence, Contains("vda read by everybody: 381.47 MiB/s instead of 0 B/s"));
    EXPECT_THAT(verdict.against, Contains(HasSubstr("more to read, or other files")));
    EXPECT_THAT(verdict.next_step, HasSubstr("fits into memory"));
    EXPECT_NEAR(verdict.impact_ns, 8e6, 1);
    EXPECT_EQ(verdict.state, model::VerdictState::active);
  }
  EXPECT_THAT(causes(swapped(reading("blocked in read, uninterruptible"))), ElementsAre("-disk_io"));
}

TEST(ColdReads, AReadFromAConnectionIsNone) {
  EXPECT_THAT(causes(reading("blocked in read")), ElementsAre("unknown")) << "somebody else reads the disk";
  RunComparison c = reading("blocked in read");
  add_state(c, "blocked in read, uninterruptible", {0, 0.2});
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "hardly anything of it is of a file";
}

TEST(ColdReads, WaitsForAConnectionBesideAreNotCountedAsTheDisks) {
  RunComparison c = reading("blocked in read, uninterruptible");
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 20});
  add_state(c, "blocked in read", {0, 11});
  ASSERT_THAT(causes(c), Contains("disk_io"));
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 8e6, 1);
}

TEST(ColdReads, AnotherProgramThatReadsAndIsNotFeltIsNone) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.disks.push_back({"vda read", {0, 800}, {0, 4e8}, {0, 3e5}, {}});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(ColdReads, ThatNothingWasReadFromADiskTellsAgainstIt) {
  RunComparison c = reading("blocked in read, uninterruptible");
  c.disks.clear();
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  add_counter(c, "cgroup.pressure.io.some", {0, 0.3});
  ASSERT_THAT(causes(c), ElementsAre("disk_io"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains("Its control group waited for disks 30 % instead of 0 % of the time"));
}

TEST(ColdReads, UnitsOfWorkReadFilesWhereNoSignalEndsARead) {
  RunComparison c = comparison();
  c.work.emplace();
  c.work->worked.value = {10e6, 18e6};
  c.work->parts = {{"on CPU", "ns", {10e6, 10e6}},
                   {"runnable, in the run queue", "ns", {0, 0}},
                   {"blocked in read, uninterruptible", "ns", {0, 8e6}}};
  c.disks.push_back({"vda read", {0, 800}, {0, 4e8}, {0, 3e5}, {}});
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
  for (const char* state : {"blocked in read", "blocked in readv", "blocked in write"}) {
    c.work->parts.back().what = state;
    EXPECT_THAT(causes(c), testing::Not(Contains("disk_io"))) << "of a pipe or a backend, perhaps";
  }
}

TEST(ColdReads, AMappedFileThatIsNotInMemory) {
  RunComparison c = reading("blocked in page_fault");
  add_counter(c, "target.faults.major", {0, 400});
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
  add_counter(c, "host.memory.available", {8e9, 1e9});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/major_faults")) << "memory is short";
  c.host->counters.back() = {"host.pressure.memory.some", "", {0.0, 0.2}};
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/major_faults"));
  c.host->counters.back() = {"cgroup.memory.refaults", "", {0.0, 900}};
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/major_faults"));
  c.host->counters.pop_back();
  c.disks[0].bytes_per_second = {3e8, 4e8};
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/major_faults")) << "no more is read than before";
}

TEST(ColdReads, NormalAgainstNormalHasNone) {
  RunComparison c = comparison(Outcome::no_change);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 1.2});
  add_state(c, "blocked in read, uninterruptible", {0.1, 0.3});
  c.disks.push_back({"vda read", {5, 30}, {5e5, 3e6}, {3e5, 4e5}, {}});
  EXPECT_THAT(causes(c), IsEmpty());
}

}  // namespace
}  // namespace culprit::diagnose
