#include "diagnose/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

using model::FunctionStatus;
using model::Outcome;
using model::RunComparison;
using model::VerdictState;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

RunComparison contended() {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 8}, {1, 1});
  add_beside(c, "stress-ng-cpu", {0, 1.2});
  return c;
}

TEST(CpuRules, OthersThatTookCpusAreNamed) {
  const auto verdicts = diagnose(contended());
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "cpu_contention");
  EXPECT_EQ(verdicts[0].detail, "other_processes");
  EXPECT_EQ(verdicts[0].state, VerdictState::active);
  EXPECT_NEAR(verdicts[0].impact_ns, 7.9e6, 1);
  EXPECT_NEAR(verdicts[0].share, 1, 1e-9);
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("stress-ng-cpu took 1.2 instead of 0 CPUs")));
  EXPECT_THAT(verdicts[0].next_step, HasSubstr("stress-ng-cpu"));
}

TEST(CpuRules, OthersThatGotLittleCountWhereMuchMoreWaitedForCpus) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {9, 9}, {1.6, 3.2}, {0, 0});
  add_beside(c, "stress-ng-cpu", {0, 0.26});
  EXPECT_THAT(causes(c), IsEmpty());
  add_counter(c, "host.pressure.cpu.some", {0.225, 0.35});
  EXPECT_THAT(causes(c), IsEmpty());
  c.host->counters.back().value[1] = 0.94;
  ASSERT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("94 % instead of 22.5 % of the time")));
  c.host->beside.back().value[1] = 0.1;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(CpuRules, OthersThatGotLittleCountWhereTheProgramWaitedForThem) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 1.1}, {0, 0});
  add_beside(c, "stress-ng-cpu", {0, 0.12});
  c.host->behind_others = {0.1, 0.4};  // 0.43 ms of 1 ms
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.host->behind_others = {0.1, 0.7};
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("had the CPU for 770.000us instead of 10.000us")));
  EXPECT_THAT(causes(swapped(std::move(c))), testing::ElementsAre("-cpu_contention/other_processes"));
}

TEST(CpuRules, ManyThatTookLittleEachHaveNoNames) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10}, {0.3, 2.3}, {0, 0});
  c.host->behind_others = {0.2, 0.8};  // 1.78 ms more
  ASSERT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 1.78e6, 1);
  EXPECT_THAT(diagnose(c)[0].next_step, HasSubstr("--by rival"));
  c.host->behind_others = {0.2, 0.45};  // half of what it waited longer was for its own threads
  EXPECT_THAT(causes(c), IsEmpty());
  set_step(c, {10, 10}, {0.3, 1.2}, {0, 0});  // and a tenth of a step is the least
  c.host->behind_others = {0.2, 0.8};
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(CpuRules, AQueueThatIsFarLongerBesideACompetitorIsIts) {
  RunComparison c = comparison();
  set_step(c, {8.4, 11.4}, {0.3, 1.3}, {0, 0});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  add_beside(c, "stress-ng-cpu", {0, 0.18});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  set_step(c, {8.4, 11.4}, {0.5, 1.3}, {0, 0});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(CpuRules, WhoSharesWhatOthersLeftWaitsForItsOwnThreads) {
  RunComparison c = contended();
  c.host->behind_others = {0, 0.2};
  EXPECT_THAT(diagnose(c)[0].against, Contains(HasSubstr("had the CPU for 1.600ms only: its own threads share")));
}

TEST(CpuRules, OthersWhomTheProgramDidNotFeelAreNone) {
  RunComparison c = comparison(Outcome::no_change);
  set_step(c, {10, 10}, {0.1, 0.2}, {1, 1});
  add_beside(c, "stress-ng-cpu", {0, 1.2});
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(CpuRules, ARunQueueWithoutOthersIsNotTheirs) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10}, {0.1, 8}, {1, 1});
  EXPECT_THAT(causes(c), IsEmpty());
}

/// Tables sum over threads, and of others know the share of the machine.
RunComparison of_tables(std::array<double, 2> on_cpu, std::array<double, 2> runnable,
                        std::array<double, 2> others = {0.02, 0.02}) {
  RunComparison c = comparison();
  set_step(c, on_cpu, runnable, {0, 0});
  c.host->step_thread.clear();
  c.host->step.pop_back();
  c.host->beside = {{"other processes", "fraction", {others[0], others[1]}}};
  return c;
}

TEST(CpuRules, WhoTakesAPartOfTheMachineIsFeltOnItsCpusWithoutAQueue) {
  const RunComparison c = of_tables({800, 1300}, {30, 40}, {0.02, 0.52});
  const auto verdicts = diagnose(c);
  ASSERT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.7);
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("took 1.300s instead of 800.000ms per step on CPUs")));
  EXPECT_THAT(verdicts[0].against, Contains(HasSubstr("for a CPU")));
  EXPECT_THAT(causes(swapped(of_tables({800, 1300}, {30, 40}, {0.02, 0.52}))),
              testing::ElementsAre("-cpu_contention/other_processes"));
  // Nobody else took more, or it took hardly longer.
  EXPECT_THAT(causes(of_tables({800, 1300}, {30, 40})), testing::ElementsAre("unknown"));
  EXPECT_THAT(causes(of_tables({800, 820}, {30, 40}, {0.02, 0.52})), testing::ElementsAre("unknown"));
}

TEST(CpuRules, AThreadOfTheKernelBesideAToolLeavesItTheCause) {
  RunComparison c = comparison();
  set_step(c, {10, 12}, {0.1, 8}, {1, 1});
  c.host->beside = {{"kworker/u8:1-events", "count", {0, 0.6}}, {"perf", "count", {0, 0.4}}};
  c.environment = {{"env.profilers", {"none", "perf"}}};
  EXPECT_THAT(causes(c), testing::ElementsAre("profiler_overhead in perf"));
  c.host->beside[0].what = "busy";
  EXPECT_THAT(causes(c), Contains("cpu_contention/other_processes")) << "a program that took more";
}

TEST(CpuRules, AQueueOfTablesIsTheCpusWhoeverHasThem) {
  const RunComparison c = of_tables({800, 820}, {30, 450});
  ASSERT_THAT(causes(c), testing::ElementsAre("cpu_contention"));
  EXPECT_DOUBLE_EQ(diagnose(c)[0].confidence, 0.6);
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 420e6, 1);
  RunComparison open = of_tables({800, 820}, {30, 450});
  open.outcome = Outcome::inconclusive;
  EXPECT_THAT(causes(open), IsEmpty());
  EXPECT_THAT(causes(of_tables({800, 900}, {100, 150})), testing::ElementsAre("unknown"));
}

TEST(CpuRules, AClientThatWasThereBeforeIsNoCompetitor) {
  RunComparison c = contended();
  c.outcome = Outcome::inconclusive;
  c.host->beside = {{"client", "count", {0.8, 1.2}}};
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(CpuRules, AQuotaIsThrottling) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 30}, {1, 1});
  add_counter(c, "cgroup.cpu.throttled_time", {0, 6e8});
  c.environment.push_back({"env.target.cgroup.cpu.quota", {"none", "0.300"}});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].detail, "throttled");
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("0.300 instead of none")));
}

TEST(CpuRules, QuotaAndOthersShareWhatTheQueueTook) {
  RunComparison c = contended();
  add_counter(c, "cgroup.cpu.throttled_time", {0, 4e8});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].detail, "other_processes");
  EXPECT_EQ(verdicts[1].detail, "throttled");
  EXPECT_NEAR(verdicts[0].share + verdicts[1].share, 1, 1e-9);
  EXPECT_NEAR(verdicts[0].share, 0.75, 0.01);
  EXPECT_THAT(verdicts[1].against, testing::Not(IsEmpty()));
}

TEST(CpuRules, AQuotaBesideOthersThatAreGoneTookNoLessThanTheQueue) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 30}, {1, 1});
  add_counter(c, "cgroup.cpu.throttled_time", {0, 3e8});
  add_beside(c, "stress", {0.5, 0});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].detail, "throttled");
  EXPECT_NEAR(verdicts[0].impact_ns, 29.9e6, 1);
}

TEST(CpuRules, AQuotaThatLeavesEnoughIsNone) {
  RunComparison c = comparison(Outcome::no_change);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 1});
  add_counter(c, "cgroup.cpu.throttled_time", {0, 6e8});
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(CpuRules, ALowerClockIsTheCauseUnlessOthersLoadTheCpus) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.cpu0.frequency", {3e9, 2e9});
  add_counter(c, "host.cpu1.frequency", {3e9, 2.2e9});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_frequency_drop"));
  set_step(c, {10, 14}, {0.1, 5}, {1, 1});
  add_beside(c, "avx", {0, 1});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
}

TEST(CpuRules, AClockThatFellByLessThanCountersMustMove) {
  RunComparison c = comparison();
  set_step(c, {10, 12}, {0.1, 0.1}, {1, 1});
  c.host->unshown.push_back({"host.cpu0.frequency", "", {3e9, 2.6e9}});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_frequency_drop"));
}

TEST(CpuRules, NeighboursOfALargeMachineThatLowerTheClockAreItsCause) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.cpu.frequency", {3e9, 2.6e9});
  c.host->beside.push_back({"other processes", "fraction", {0.1, 0.3}});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  c.host->beside.back().value = {0.1, 0.12};
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_frequency_drop"));
}

TEST(CpuRules, StolenTime) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.cpu.steal", {0, 0.2});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/steal"));
}

TEST(CpuRules, StolenTimeThatIsNoMoreOrThatNothingFeltIsNone) {
  for (const std::array<double, 2> stolen : {std::array{0.2, 0.2}, std::array{0.2, 0.22}, std::array{0.0, 0.02}}) {
    RunComparison c = comparison();
    set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
    add_counter(c, "host.cpu.steal", stolen);
    EXPECT_THAT(causes(c), testing::ElementsAre("unknown")) << stolen[1];
  }
  RunComparison c = comparison(Outcome::no_change);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.cpu.steal", {0, 0.2});
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(CpuRules, WaitingForDisksIsNotStolenTime) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 5});
  add_counter(c, "host.cpu.iowait", {0, 0.2});
  EXPECT_THAT(causes(c), testing::Not(Contains("cpu_contention/steal")));
}

TEST(CpuRules, FewerCpusThanBefore) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 9}, {1, 1});
  c.environment.push_back({"env.target.cpus_allowed", {"0-7", "0,2"}});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/affinity"));
  c.host->behind_others = {0.1, 0.9};  // programs that take no more than before
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/affinity"));
  c.host->behind_others = {};
  c.environment = {{"env.target.cpus_allowed", {"0-1", "2-3"}}};
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(CpuRules, FewerCpusThatAreEnoughAreNotWhyStepsAreSlower) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});  // it runs for longer, and waits for no CPU
  c.environment.push_back({"env.target.cpus_allowed", {"0-7", "0,2"}});
  EXPECT_THAT(causes(c), testing::Not(Contains("cpu_contention/affinity")));
  set_step(c, {10, 10}, {0.1, 9}, {1, 1});
  EXPECT_THAT(causes(c), Contains("cpu_contention/affinity"));
}

TEST(CpuRules, RunQueuesOfATraceThatDoesNotKnowWhoHadTheCpus) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {1, 1});
  c.host->step.clear();
  add_function(c, "runq", "runq", "Host", {0.1, 4}, {3, 9}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention"));
  c.functions[0].status = FunctionStatus::unknown;
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

/// A profiler's trace: operators that all take so many times longer.
RunComparison operators(double times) {
  RunComparison c = comparison();
  set_step(c, {10, 10 * times}, {0, 0}, {0, 0});
  c.host->step.clear();
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    add_function(c, name, "torch", "Host", {1, times}, {4, 4}, FunctionStatus::same);
  return c;
}

TEST(CpuRules, AllFunctionsOfTheHostAlikeAreTheCpusWhereNothingElseTells) {
  RunComparison c = operators(2);
  add_function(c, "aten::mm", "torch", "Host", {2, 14}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/unknown"));
  EXPECT_NEAR(diagnose(c)[0].work_ratio, 2, 1e-9);
}

TEST(CpuRules, AProfilerThatRecordedMoreMakesAllFunctionsSlower) {
  RunComparison c = operators(2);
  add_function(c, "aten::mm", "torch", "Host", {1, 2}, {4, 4}, FunctionStatus::same);
  c.profiled_alone[1] = {"with_stack", "python"};
  ASSERT_THAT(causes(c), testing::ElementsAre("profiler_overhead"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("alone recorded with_stack, python")));
  std::swap(c.profiled_alone[0], c.profiled_alone[1]);  // the faster side was looked at closer
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/unknown"));
}

TEST(CpuRules, OneFunctionBesideOthersAsFastAsBeforeIsNotTheCpus) {
  RunComparison c = operators(1);
  set_step(c, {10, 22}, {0, 0}, {0, 0});
  c.host->step.clear();
  add_function(c, "aten::mm", "torch", "Host", {2, 14}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in aten::mm"));
}

TEST(CpuRules, AStoppedProcess) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 20});
  add_state(c, "stopped", {0, 38});
  EXPECT_THAT(causes(c), testing::ElementsAre("process_stopped"));
}

TEST(MemoryRules, SwappingThatIsFelt) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 9});
  add_state(c, "blocked in page_fault", {0, 8});
  add_counter(c, "host.swap.in", {0, 5e7});
  add_counter(c, "target.faults.major", {0, 400});
  EXPECT_THAT(causes(c), testing::ElementsAre("host_memory_pressure/swap"));
  c.host->counters.erase(c.host->counters.begin());
  EXPECT_THAT(causes(c), testing::ElementsAre("host_memory_pressure/major_faults"));
}

TEST(MemoryRules, OthersThatSwapWhileTheProgramRunsOnAreNone) {
  RunComparison c = comparison(Outcome::no_change);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.swap.out", {0, 5e6});
  add_counter(c, "host.pressure.memory.some", {0, 0.03});
  EXPECT_THAT(causes(c), IsEmpty());
  c.outcome = Outcome::regression;
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  EXPECT_THAT(causes(c), testing::ElementsAre("host_memory_pressure/swap"));
}

TEST(MemoryRules, BandwidthTakesTheCpusOfWhoUsesItUp) {
  RunComparison c = comparison();
  set_step(c, {10, 16}, {0.1, 3}, {1, 1});
  add_beside(c, "stream", {0, 1});
  add_counter(c, "host.speed.memory", {1000, 1500});
  EXPECT_THAT(causes(c), testing::ElementsAre("host_memory_pressure/bandwidth"));
  EXPECT_DOUBLE_EQ(diagnose(c)[0].impact_ns, 8.9e6);
  RunComparison queued = comparison();
  set_step(queued, {7.3, 11.4}, {0.9, 4.3}, {0, 0});
  add_beside(queued, "stress-ng-cpu", {0, 0.5});
  add_counter(queued, "host.speed.memory", {1000, 1500});
  EXPECT_THAT(causes(queued), testing::ElementsAre("cpu_contention/other_processes")) << "caches were lost by waiting";
  EXPECT_DOUBLE_EQ(diagnose(queued)[0].impact_ns, 7.5e6);
  add_counter(c, "host.speed.arithmetic", {1000, 1480});  // everything is slower: a clock, or a shared core
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
}

TEST(DiskRules, SyncsThatTakeLongerOnABusyDisk) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 9});
  add_state(c, "blocked in fsync", {0.5, 8.5});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));  // the disk is as it was: it syncs more
  c.disks.push_back({"vda write", {10, 10}, {1e5, 9e8}, {3e5, 1.5e7}, {}});
  EXPECT_THAT(causes(c), testing::ElementsAre("disk_io"));
}

TEST(DiskRules, CallsThatOnlyBecameAsSlowAsTheCpuAreNone) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 9});
  add_state(c, "blocked in write", {0.5, 8.5});
  c.disks.push_back({"write()", {}, {}, {1184, 2318}, {}});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(DiskRules, ReadingFromAClientBesideABackupIsNone) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 9});
  add_state(c, "blocked in read", {0.5, 8.5});
  c.disks.push_back({"vda write", {10, 1000}, {1e5, 9e8}, {3e5, 3.1e5}, {}});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.disks.back().mean_ns = {3e5, 1.5e7};
  EXPECT_THAT(causes(c), testing::ElementsAre("disk_io"));
}

TEST(DiskRules, ABusyDiskThatNobodyWaitedForIsNone) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 1});
  c.disks.push_back({"vda write", {10, 10}, {1e5, 9e8}, {3e5, 1.5e7}, {}});
  add_counter(c, "host.pressure.io.some", {0, 0.6});
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(Diagnose, NothingMadeStepsLongerThatTakeAsLongAsBefore) {
  RunComparison c = comparison(Outcome::no_change);
  set_step(c, {10, 10}, {0.1, 0.9}, {1, 1});
  add_beside(c, "stress", {0, 0.4});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].state, VerdictState::latent);
  EXPECT_FALSE(std::isfinite(verdicts[0].share));
}

TEST(Diagnose, ASlowdownWithoutACauseSaysWhereTheTimeWent) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "unknown");
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("on a CPU: 14.000ms instead of 10.000ms")));
}

TEST(Diagnose, WhatTakesLessThanHalfOfTheGrowthIsNotMostOfIt) {
  RunComparison c = of_tables({1188, 1208}, {30, 30});
  c.cycle_times[0].time_ns = {528e6, 792e6};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "unknown");
  EXPECT_THAT(verdicts[0].evidence, IsEmpty());
}

TEST(Diagnose, OfATraceTheLedgerSaysWhereTheTimeWent) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  add_function(c, "void gemm<float>(float*)", "gpu_compute", "GPU", {1, 2}, {1, 1});
  c.functions.back().short_name = c.texts.intern("gemm");
  model::Waterfall waterfall;
  waterfall.phase = model::Phase::other;
  waterfall.device = 0;
  const auto add = [&](model::LedgerState state, StringId function, double without, double with) {
    model::WaterfallLine line;
    line.state = state;
    line.function = function;
    line.time_ns = {without * 1e6, with * 1e6};
    waterfall.lines.push_back(line);
  };
  add(model::LedgerState::function, c.functions.back().function, 1, 2);
  add(model::LedgerState::idle_host, c.texts.intern("forward"), 0.1, 2.6);
  add(model::LedgerState::idle_launch, 0, 0.1, 0.3);
  add(model::LedgerState::idle_graph, 0, 1, 0.1);
  c.waterfalls = {waterfall};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "unknown");
  EXPECT_THAT(verdicts[0].evidence,
              testing::ElementsAre("idle, not launched: forward: 2.600ms instead of 100.000us per step",
                                   "gemm: 2.000ms instead of 1.000ms per step"));
}

TEST(Diagnose, WhatDidNotMakeStepsLongerIsLatent) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {20, 12}, {0.1, 3}, {1, 1});  // less work, and less CPU
  add_beside(c, "stress-ng-cpu", {0, 1.2});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].state, VerdictState::latent);
  EXPECT_FALSE(verdicts[0].share >= 0);
}

TEST(Diagnose, SharesAreOfWhatAStepTakesLonger) {
  RunComparison c = comparison();
  set_step(c, {10, 20}, {0.1, 5.1}, {1, 1});
  add_counter(c, "cgroup.cpu.throttled_time", {0, 6e8});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_NEAR(verdicts[0].share, 5.0 / 15, 1e-9);
}

TEST(Diagnose, WhatOneSideDoesNotTellIsNotKnown) {
  RunComparison c = comparison();
  set_step(c, {10, 16}, {0.1, 3}, {1, 1});
  add_beside(c, "stream", {0, 1});
  c.host->counters = {{"host.speed.memory", "ns", {std::nullopt, 60.0}}, {"host.cpu.steal", "", {std::nullopt, 0.5}}};
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
}

TEST(Diagnose, WhatWasOnlyTimedHasNoCause) {
  RunComparison c;
  c.outcome = Outcome::regression;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(CpuRules, OneCompetitorInsteadOfAnotherIsNoMore) {
  RunComparison c = contended();
  c.outcome = Outcome::inconclusive;
  add_beside(c, "stress-ng-hdd", {1.2, 0});
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(DiskRules, AThreadBesideTheStepsMayWait) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 1});
  add_state(c, "blocked in fsync", {0.5, 8.5});  // of a thread that writes a log
  c.disks.push_back({"vda write", {10, 10}, {1e5, 9e8}, {3e5, 1.5e7}, {}});
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(Diagnose, NothingThatDiffersIsSilent) {
  for (const Outcome outcome : {Outcome::no_change, Outcome::inconclusive}) {
    RunComparison c = comparison(outcome);
    set_step(c, {10, 10.1}, {0.1, 0.1}, {1, 1});
    EXPECT_THAT(causes(c), IsEmpty());
  }
  EXPECT_THAT(causes(RunComparison()), IsEmpty());
}

TEST(Diagnose, RunsThatAreNotComparedGetNone) {
  RunComparison c = contended();
  c.outcome = Outcome::not_comparable;
  EXPECT_THAT(causes(c), IsEmpty());
  c = contended();
  c.same_recording = true;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(Diagnose, TheBaselineMayHaveTheCause) {
  const auto verdicts = diagnose(swapped(contended()));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].side, 0U);
  EXPECT_EQ(verdicts[0].cause, "cpu_contention");
  EXPECT_EQ(diagnose(contended())[0].evidence, verdicts[0].evidence);
}

TEST(Diagnose, EachSideMayHaveItsOwn) {
  RunComparison c = contended();
  c.outcome = Outcome::inconclusive;
  set_step(c, {10, 10}, {0.1, 8}, {5, 1});
  add_state(c, "stopped", {40, 0});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes", "-process_stopped"));
}

/// A program without steps whose requests wait for a backend on the candidate's side; others took CPUs on the other's.
RunComparison waiting_inside() {
  RunComparison c = comparison();
  model::WorkComparison& work = c.work.emplace();
  work.outcome = Outcome::regression;
  work.waits_in = "recvfrom";
  work.waited = {5e6, 10e6};
  work.unit.kind = model::UnitKind::request;
  const auto part = [](std::string what, double base, double candidate) {
    return model::WorkChange{std::move(what), "ns", {base, candidate}};
  };
  work.parts = {part("on CPU", 33e3, 27e3), part("runnable, in the run queue", 60e3, 40e3)};
  work.others = {{"loop", "CPUs", {0.9, 0}}};
  add_beside(c, "loop", {0.9, 0});
  return c;
}

TEST(Diagnose, WhatAProgramWaitsForInItsRequestsIsToBeLookedFor) {
  const auto verdicts = diagnose(waiting_inside());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, "unknown");
  EXPECT_EQ(verdicts[0].next_step,
            "culprit top --stacks off-cpu shows where it calls recvfrom: a backend, a lock or a sleep");
}

TEST(Diagnose, WhatIsLittleBesideALongerWaitInsideIsNotItsCause) {
  RunComparison c = waiting_inside();
  c.outcome = Outcome::regression;
  c.work->parts[1].value = {55e3, 70e3};
  c.work->others[0].value = {0, 0.9};
  add_beside(c, "stress-ng-cpu", {0, 0.9});
  const auto verdicts = diagnose(c);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, "unknown");
  for (const model::Verdict& v : verdicts)
    EXPECT_EQ(v.state, v.cause == "unknown" ? VerdictState::active : VerdictState::latent) << v.cause;
}

TEST(Diagnose, WhatWasRecordedInEveryDetailIsNotToBeRecordedSoAgain) {
  RunComparison c = with_functions();
  EXPECT_THAT(diagnose(c)[0].next_step, HasSubstr("--preset deep sees more"));
  c.recorded_deep = true;
  EXPECT_THAT(diagnose(c)[0].next_step, testing::Not(HasSubstr("deep")));
}

TEST(Diagnose, WhatTheFasterSideHadIsLatent) {
  const auto verdicts = diagnose(waiting_inside());
  const auto beside = std::ranges::find(verdicts, "cpu_contention", &model::Verdict::cause);
  ASSERT_NE(beside, verdicts.end());
  EXPECT_EQ(beside->side, 0U);
  EXPECT_EQ(beside->state, model::VerdictState::latent);
}

}  // namespace
}  // namespace culprit::diagnose
