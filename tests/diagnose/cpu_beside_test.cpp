// Threads of the kernel beside the program work for somebody: for who writes, for who is short of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison.h"
#include "diagnose/cpu.h"
#include "diagnose/diagnose.h"

namespace culprit::diagnose {
namespace {

using model::RunComparison;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(CpuBeside, ThreadsOfTheKernelAreKnownByTheirNames) {
  for (const char* name : {"kswapd0", "kworker/u8:1-writeback", "kworker/0:1H", "jbd2/vda1-8", "ksoftirqd/3",
                           "rcu_preempt", "rcuop/1", "migration/0", "kcompactd0", "irq/24-nvidia", "[kswapd0]"})
    EXPECT_TRUE(is_kernel_thread(name)) << name;
  for (const char* name : {"", "[", "stress-ng-hdd", "kswap", "irqbalance", "btrfs-convert", "python3", "jbd2",
                           "kworker", "xfs_repair", "a kswapd0", "other processes"})
    EXPECT_FALSE(is_kernel_thread(name)) << name;
}

TEST(CpuBeside, NamesThatOnlyBeginAsThoseOfTheKernelAreOfPrograms) {
  for (const char* name : {"kdevtmpfs",
                           "md0_raid1",
                           "md127_resync",
                           "loop7",
                           "nfsd",
                           "nvme-wq",
                           "arc_evict",
                           "arc_prune",
                           "z_wr_int_3",
                           "z_wr_iss",
                           "scsi_eh_0",
                           "kdamond.0",
                           "rcu_tasks_kthre",
                           "rcu_tasks_trace",
                           "rcu_exp_gp_kthread_worker/0",
                           "rcu_exp_gp_kthr",
                           "rcu_gp",
                           "btrfs-transacti",
                           "dmcrypt_write/253:0",
                           "[kworker/u8:1-writeback"})
    EXPECT_TRUE(is_kernel_thread(name)) << name;
  for (const char* name : {"kdevtmpfsi", "kswapd0x", "kswapd", "rcu_bench", "rcu_torture", "rcu_g", "loop", "loopback",
                           "md_raid1", "mdadm", "md5sum", "md0_sum", "nfsdcld", "nvme-cli", "arc_train", "ksmd2",
                           "z_write", "btrfs-trans", "[kdevtmpfsi]"})
    EXPECT_FALSE(is_kernel_thread(name)) << name;
}

RunComparison beside(const char* name, std::array<double, 2> cpus) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 8}, {1, 1});
  add_beside(c, name, cpus);
  return c;
}

TEST(CpuBeside, AThreadOfTheKernelAloneIsNoCompetitor) {
  for (const char* name : {"kswapd0", "jbd2/vda1-8", "kworker/u8:2-ext4-rsv-conversion"}) {
    RunComparison c = beside(name, {0, 0.9});
    EXPECT_THAT(causes(c), ElementsAre("unknown")) << name;
    c.host->behind_others = {0.1, 0.9};
    EXPECT_THAT(causes(c), ElementsAre("unknown")) << "behind it, by the switches";
  }
  EXPECT_THAT(causes(beside("kswapper", {0, 0.9})), ElementsAre(kOthers));
}

TEST(CpuBeside, OfManyThatLiveShortTheOneThatHadMostIsNamed) {
  RunComparison c = comparison(model::Outcome::inconclusive);
  set_step(c, {10, 10}, {0.3, 2.3}, {0, 0});
  add_state(c, "runnable", {0.3, 2.3});
  c.host->behind_others = {0.2, 0.8};
  c.off_cpu.per = "step";
  c.off_cpu.rivals = {{"dd", "", {0, 0.6e6}, {0, 1}}};
  ASSERT_THAT(causes(c), ElementsAre(kOthers));
  EXPECT_THAT(diagnose(c)[0].evidence,
              testing::Contains("While they waited dd had the CPUs, for 600.000us instead of 0.000us per step of all "
                                "threads together"));
  set_step(c, {10, 12}, {0.3, 2.3}, {0, 0});
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 1.78e6, 1) << "nobody knows that they made it slower on its CPUs";
  add_counter(c, "host.cpu.others", {0.4, 0.1});
  EXPECT_THAT(causes(c), testing::IsEmpty()) << "they took less";
  set_counter(c, "host.cpu.others", {0.4, 0.5});
  c.off_cpu.rivals[0].ns_per_unit[1] = 0.3e6;
  EXPECT_THAT(diagnose(c)[0].evidence, testing::Not(testing::Contains(testing::HasSubstr("dd"))));
}

TEST(CpuBeside, WhatTookFewCpusCannotHaveSlowedWhatRanWithoutIt) {
  RunComparison c = beside("grep", {0, 0.4});
  set_step(c, {40, 50}, {1, 5}, {0, 0});
  ASSERT_THAT(causes(c), Contains(kOthers));
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 14e6, 1) << "what it waited longer, and all that it ran longer";
  set_step(c, {40, 70}, {1, 5}, {0, 0});
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 4e6 + 0.4 * 70e6, 1) << "it ran beside it for two fifths of the time at most";
}

TEST(CpuBeside, AProgramThatHidesBehindSuchANameIsOne) {
  for (const char* name : {"kdevtmpfsi", "kswapd0x", "rcu_bench"})
    EXPECT_THAT(causes(beside(name, {0, 0.9})), ElementsAre(kOthers)) << name;
}

TEST(CpuBeside, MemoryThatIsReclaimedIsNotWhoReclaimsIt) {
  RunComparison c = beside("kswapd0", {0, 0.9});
  set_step(c, {10, 10}, {0.1, 2}, {1, 9});
  add_state(c, "blocked in page_fault", {0, 8});
  add_counter(c, "host.swap.in", {0, 5e7});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/swap"));
}

TEST(CpuBeside, ADiskThatIsBusyIsNotTheThreadThatWritesItsJournal) {
  RunComparison c = beside("jbd2/vda1-8", {0, 0.4});
  set_step(c, {10, 10}, {0.1, 2}, {1, 9});
  add_state(c, "blocked in fsync", {0.5, 8.5});
  c.disks.push_back({"vda write", {10, 10}, {1e5, 9e8}, {3e5, 1.5e7}, {}});
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
}

TEST(CpuBeside, WhoWritesIsNamedBeforeTheThreadsThatWriteForIt) {
  RunComparison c = beside("kworker/u8:1-writeback", {0, 0.5});
  add_beside(c, "backup", {0, 0.2});
  const auto verdicts = diagnose(c);
  ASSERT_THAT(causes(c), ElementsAre(kOthers));
  EXPECT_THAT(verdicts[0].evidence[0], HasSubstr("backup took 0.2"));
  EXPECT_THAT(verdicts[0].evidence[1], HasSubstr("kworker/u8:1-writeback took 0.5"));
  EXPECT_THAT(verdicts[0].next_step, HasSubstr("see why backup runs"));
}

TEST(CpuBeside, WhoHardlyRanIsNotWhyTheKernelDid) {
  RunComparison c = beside("kswapd0", {0, 0.9});
  add_beside(c, "journald", {0, 0.12});
  EXPECT_THAT(causes(c), Not(Contains(kOthers)));
}

TEST(CpuBeside, AThreadOfTheKernelThatIsGoneTookNothingFromAProgram) {
  RunComparison c = beside("kswapd0", {0.5, 0});
  add_beside(c, "busy", {0, 0.5});
  EXPECT_THAT(causes(c), ElementsAre(kOthers));
  c.host->beside[0].what = "idle";
  EXPECT_THAT(causes(c), Not(Contains(kOthers))) << "a program that is gone";
}

/// Whoever has the CPUs ends before it has a name; its own threads wait for each other, too.
RunComparison beside_short_programs() {
  RunComparison c = comparison();
  set_step(c, {23, 175}, {3.7, 258}, {0.2, 1.8});
  c.host->behind_others = {0.3, 0.35};
  add_counter(c, "host.cpu.others", {0.07, 1.1});
  add_counter(c, "host.cpu.forks", {0, 1276});
  return c;
}

TEST(CpuBeside, ManyShortProgramsAreCountedWithoutTheirNames) {
  const RunComparison c = beside_short_programs();
  ASSERT_THAT(causes(c), ElementsAre(kOthers));
  EXPECT_THAT(
      diagnose(c)[0].evidence,
      Contains("Programs that end at once took 1.1 instead of 0.07 CPUs; 1.28e+03 instead of 0 processes and threads "
               "a second were started"));
}

TEST(CpuBeside, ManyProgramsThatTakeLittleOrWereThereOrHeldNothingUpAreNoRivals) {
  RunComparison little = beside_short_programs();
  set_counter(little, "host.cpu.others", {0.07, 0.3});
  EXPECT_THAT(causes(little), Not(Contains(kOthers)));
  RunComparison there = beside_short_programs();
  set_counter(there, "host.cpu.forks", {900, 1276});
  EXPECT_THAT(causes(there), Not(Contains(kOthers)));
  RunComparison apart = beside_short_programs();
  apart.host->behind_others = {0.3, 0.02};
  EXPECT_THAT(causes(apart), Not(Contains(kOthers)));
}

/// Others came and went, and a step waited for CPUs then.
RunComparison visited() {
  RunComparison c = comparison();
  set_step(c, {10, 12}, {0.5, 4.5}, {0, 0});
  add_state(c, "runnable", {0.5, 4.5});
  c.host->bursts = model::Bursts{1, 0.4, 0.25, {0.1, 1.5}, {10e6, 30e6}};
  return c;
}

TEST(CpuBeside, WhoComesAndGoesIsTheCauseWhereStepsAreSlowJustThen) {
  RunComparison c = visited();
  ASSERT_THAT(causes(c), ElementsAre(kOthers));
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 0.25 * 20e6, 1);
  EXPECT_EQ(diagnose(c)[0].evidence[0],
            "Programs that were not recorded came and went: for 40 % of the time they had 1.5 instead of 0.1 CPUs, and "
            "a step came every 30.000ms then and every 10.000ms else");
  EXPECT_THAT(diagnose(c)[0].evidence, Not(Contains(HasSubstr("While they waited"))));
  c.off_cpu.per = "step";
  c.off_cpu.newcomers[1] = {"backup", "", {0, 1e6}, {0, 0.1}};
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("While they waited backup had the CPUs")));
}

TEST(CpuBeside, WhoComesAndGoesIsNamedOnceAndOnlyWhereItWasFelt) {
  RunComparison named = visited();
  add_beside(named, "backup", {0, 0.6});
  EXPECT_THAT(causes(named), ElementsAre(kOthers));
  EXPECT_THAT(diagnose(named)[0].evidence[0], HasSubstr("backup took"));
  RunComparison unfelt = visited();
  set_step(unfelt, {10, 14}, {0.5, 0.5}, {0, 0});
  EXPECT_THAT(causes(unfelt), Not(Contains(kOthers)));
  RunComparison of_baseline = visited();
  of_baseline.host->bursts->side = 0;
  EXPECT_THAT(causes(of_baseline), Not(Contains(kOthers)));
}

}  // namespace
}  // namespace culprit::diagnose
