#include "diagnose/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

/// "cause/detail in where" of all, in their order; of the side without the slowdown with a minus.
std::vector<std::string> causes(const RunComparison& c) {
  std::vector<std::string> names;
  for (const model::Verdict& v : diagnose(c))
    names.push_back(std::string(v.side == 1 ? "" : "-") + v.cause + (v.detail.empty() ? "" : "/" + v.detail) +
                    (v.where.empty() ? "" : " in " + v.where));
  return names;
}

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

TEST(CpuRules, NeighboursOfALargeMachineThatLowerTheClockAreItsCause) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.cpu.frequency", {3e9, 2.6e9});
  c.host->beside.push_back({"other processes", "fraction", {0.1, 0.3}});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.host->beside.back().value = {0.1, 0.12};
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_frequency_drop"));
}

TEST(CpuRules, StolenTime) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.cpu.steal", {0, 0.2});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/steal"));
}

TEST(CpuRules, FewerCpusThanBefore) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 9}, {1, 1});
  c.environment.push_back({"env.target.cpus_allowed", {"0-7", "0,2"}});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/affinity"));
  c.environment = {{"env.target.cpus_allowed", {"0-1", "2-3"}}};
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
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

RunComparison slow_clock(Outcome outcome) {
  RunComparison c = comparison(outcome);
  set_step(c, {10, 10}, {0.1, 0.1}, {1, outcome == Outcome::regression ? 7.0 : 1.0});
  for (const char* name : {"gemm", "softmax", "norm"})
    add_function(c, name, "gpu_compute", "GPU 7", {0.8, 2.9}, {10, 10});
  add_resource(c, "gpu_sm_frequency", "GPU 7", {1187, 210});
  add_resource(c, "gpu_sm_frequency", "GPU 0", {1187, 210});  // idle: nothing ran there
  return c;
}

TEST(DeviceRules, AClockThatMakesItsKernelsSlowIsTheCauseThere) {
  EXPECT_THAT(causes(slow_clock(Outcome::regression)), testing::ElementsAre("gpu_clock_drop/unknown in GPU 7"));
  const auto hidden = diagnose(slow_clock(Outcome::no_change));
  ASSERT_EQ(hidden.size(), 1U);
  EXPECT_EQ(hidden[0].state, VerdictState::latent);
  EXPECT_NEAR(hidden[0].work_ratio, 3.625, 0.001);
}

TEST(DeviceRules, AClockThatFollowsLessWorkIsNone) {
  RunComparison c = comparison(Outcome::inconclusive);
  add_function(c, "gemm", "gpu_compute", "GPU 7", {0.8, 0.8}, {10, 10});
  add_resource(c, "gpu_sm_frequency", "GPU 7", {1187, 210});
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(DeviceRules, WhyTheClockIsLow) {
  RunComparison c = slow_clock(Outcome::regression);
  add_resource(c, "gpu_temp", "GPU 7", {60, 92});
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/throttle_thermal in GPU 7"));
  c.environment = {{"env.gpu0.power_limit_mw", {"400000", "150000"}},   // another device's
                   {"env.gpu7.power_limit_mw", {"150000", "400000"}}};  // it rose
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/throttle_thermal in GPU 7"));
  c.environment = {{"env.gpu7.power_limit_mw", {"400000", "150000"}}};
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/throttle_power in GPU 7"));
  c.environment.clear();
  c.resources.back().value = {91, 92};  // as hot as before
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU 7"));
}

/// Kernels bound by arithmetic and by memory that take so many times longer; `counter`: the clock was recorded.
RunComparison kernels(double arithmetic, double memory) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.host->step.clear();  // a profiler's trace
  const auto add = [&](const char* name, double times) {
    add_function(c, name, "gpu_compute", "GPU", {1, times}, {4, 4},
                 times > 1.1 ? FunctionStatus::changed : FunctionStatus::same);
  };
  for (const char* name : {"sgemm_a", "sgemm_b", "cutlass_c"}) add(name, arithmetic);
  for (const char* name : {"elementwise_a", "softmax_b", "layer_norm_c"}) add(name, memory);
  return c;
}

TEST(DeviceRules, KernelsThatAreSlowerAlikeShareTheDevice) {
  EXPECT_THAT(causes(kernels(2, 1)), testing::ElementsAre("gpu_clock_drop/unknown in GPU"));
  EXPECT_THAT(causes(kernels(1, 2)), testing::ElementsAre("gpu_contention/memory_pressure in GPU"));
  EXPECT_EQ(diagnose(kernels(2, 1))[0].state, VerdictState::active);
  EXPECT_THAT(diagnose(kernels(2, 1))[0].against, Contains(HasSubstr("No counter")));
}

TEST(DeviceRules, WithoutKernelsOfTheOtherKindTheirCodeIsBlamed) {
  RunComparison c = kernels(2, 1);
  c.functions.resize(3);  // three products: a new library is as likely as a clock
  EXPECT_THAT(causes(c), testing::Not(Contains(HasSubstr("gpu_clock_drop"))));
}

TEST(DeviceRules, AKernelThatIsSlowerThanTheClockMakesItIsItsOwn) {
  RunComparison c = comparison();
  set_step(c, {10, 13}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"sgemm", "softmax", "norm"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {4, 4});
  add_function(c, "attention", "gpu_compute", "GPU", {3, 6}, {4, 4}, FunctionStatus::changed);
  add_resource(c, "gpu_sm_frequency", "GPU", {1980, 1870});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].cause, "kernel_regression");
  EXPECT_EQ(verdicts[1].cause, "gpu_clock_drop");
  EXPECT_LT(verdicts[1].share, 0.3);  // 6 % of nine milliseconds
}

TEST(DeviceRules, AClockThatWasRecordedSaysItBetter) {
  RunComparison c = kernels(2, 1);
  add_resource(c, "GPU clock", "GPU", {1.41e9, 0.7e9});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "gpu_clock_drop");
  EXPECT_NEAR(verdicts[0].confidence, 0.9, 1e-9);
}

TEST(DeviceRules, KernelsThatAreSlowerEachInItsWayAreTheirOwn) {
  RunComparison c = kernels(2, 1);
  c.functions[1].work_ratio = 1;
  c.functions[1].status = FunctionStatus::same;
  c.functions[2].work_ratio = 1;
  c.functions[2].status = FunctionStatus::same;
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_regression in sgemm_a"));
}

TEST(DeviceRules, OthersOnTheDevice) {
  RunComparison c = comparison();
  add_function(c, "gemm", "gpu_compute", "GPU 3", {2, 4}, {10, 10});
  add_resource(c, "gpu_usage", "GPU 3", {42, 98});
  add_resource(c, "process_gpu_usage", "GPU 3", {41, 45});
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_contention/other_process in GPU 3"));
  c.steady.push_back(c.resources.back());
  c.resources.pop_back();  // its own use did not move
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_contention/other_process in GPU 3"));
  c.steady.clear();  // and now it is not known: a slower clock or more work would look alike
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  add_resource(c, "gpu_sm_frequency", "GPU 3", {1980, 1970});
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_contention/other_process in GPU 3"));
  c.resources.pop_back();
  add_resource(c, "process_gpu_usage", "GPU 3", {41, 97});  // it is its own
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(DeviceRules, SlowCopiesBesideKernelsAsFastAsBefore) {
  RunComparison c = comparison();
  add_function(c, "gemm", "gpu_compute", "GPU", {2, 2}, {10, 10});
  add_function(c, "Memcpy HtoD", "gpu_memcpy_h2d", "GPU", {2, 6}, {10, 10}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("interconnect_contention/pcie in GPU"));
  c.functions[0].work_ratio = 3;  // everything there is slower
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

RunComparison with_functions() {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "python", "Host", {2, 2}, {1, 1});
  return c;
}

TEST(ProgramRules, AFunctionThatAloneTakesLonger) {
  RunComparison c = with_functions();
  add_function(c, "tokenize", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in tokenize"));
}

TEST(ProgramRules, WhatAllFunctionsShareIsNoneOfOne) {
  RunComparison c = with_functions();
  for (auto& f : c.functions) {
    f.work_ratio = 1.4;
    f.status = FunctionStatus::changed;
    f.time_ns[1] = 1.4 * f.time_ns[0];
  }
  add_function(c, "tokenize", "python", "Host", {5, 7}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, AFunctionInWhichItsThreadWaitsIsNotSlow) {
  RunComparison c = with_functions();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 5});
  add_function(c, "forward", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, AFunctionWhoseThreadWaitedForACpuIsNotSlow) {
  RunComparison c = with_functions();
  set_step(c, {10, 13}, {0.1, 6}, {1, 1});
  add_beside(c, "stress-ng-cpu", {0, 1.2});
  add_function(c, "forward", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  set_step(c, {10, 16}, {0.1, 1}, {1, 1});
  const auto line = [&](model::LedgerState state, double without, double with) {
    model::WaterfallLine l;
    l.state = state;
    l.function = c.functions.back().function;
    l.time_ns = {without * 1e6, with * 1e6};
    return l;
  };
  c.waterfalls.emplace_back();
  c.waterfalls[0].lines = {line(model::LedgerState::run_queue, 0, 3.9), line(model::LedgerState::function, 1, 1.1)};
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  c.waterfalls[0].lines[1].time_ns[1] = 4.5e6;
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes", "host_bound/function in forward"));
}

/// A device that works and waits for its host, ms per step.
void add_device(RunComparison& c, std::array<double, 2> works, std::array<double, 2> waits) {
  model::Waterfall waterfall;
  waterfall.device = 0;
  for (const auto& [state, ms] :
       {std::pair(model::LedgerState::function, works), std::pair(model::LedgerState::idle_host, waits)}) {
    model::WaterfallLine line;
    line.state = state;
    line.time_ns = {ms[0] * 1e6, ms[1] * 1e6};
    waterfall.lines.push_back(line);
  }
  c.waterfalls.push_back(waterfall);
}

TEST(ProgramRules, ACallThatWaitsForTheDeviceIsNotSlow) {
  RunComparison c = kernels(2, 2);
  set_step(c, {10, 16}, {0, 0}, {0, 0});
  c.host->step.clear();
  for (const char* name : {"aten::mm", "aten::add", "aten::view"})
    add_function(c, name, "torch", "Host", {1, 1}, {4, 4});
  add_function(c, "cudaMemcpyAsync", "cuda_api", "Host", {2, 8}, {4, 4}, FunctionStatus::changed);
  add_device(c, {6, 12}, {3, 3.1});
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU"));
}

TEST(ProgramRules, AFunctionThatTheDeviceWaitsForCostsNoMoreThanItWaits) {
  RunComparison c = with_functions();
  c.host->step.clear();
  add_function(c, "tokenize", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  add_device(c, {6, 6}, {3, 5.5});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].where, "tokenize");
  EXPECT_NEAR(verdicts[0].impact_ns, 2.5e6, 1);
}

TEST(ProgramRules, AFunctionOfRareStepsIsWeighedByThem) {
  RunComparison c = with_functions();
  c.cycle_times[0].phase = model::Phase::decode;
  c.cycle_times[0].cycles = {990, 990};
  c.cycle_times.push_back(c.cycle_times[0]);
  c.cycle_times[1].phase = model::Phase::prefill;
  c.cycle_times[1].cycles = {10, 10};
  add_function(c, "rare", "python", "Host", {1, 6}, {1, 1}, FunctionStatus::changed);
  c.functions.back().phase = model::Phase::prefill;
  add_function(c, "often", "python", "Host", {1, 2}, {1, 1}, FunctionStatus::changed);
  c.functions.back().phase = model::Phase::decode;
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].where, "often");
  EXPECT_NEAR(verdicts[0].impact_ns, 0.99e6, 1);
}

TEST(ProgramRules, WorkThatMovedInsideOfAFunctionIsNone) {
  RunComparison c = with_functions();
  add_function(c, "fused", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  c.functions.back().moved_inside = c.texts.intern("forward");
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, KernelsThatAreSlowerOrNew) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {1, 1});
  add_function(c, "gemm", "gpu_compute", "GPU", {2, 5}, {8, 8}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_regression in gemm"));
  c.functions.pop_back();
  add_function(c, "slow_gemm", "gpu_compute", "GPU", {0, 5}, {0, 8}, FunctionStatus::added);
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_changed in slow_gemm"));
}

TEST(ProgramRules, AFunctionThatIsInAnotherProcessNowIsNotNew) {
  RunComparison c = with_functions();
  add_function(c, "serve", "python", "Host", {0, 5}, {0, 1}, FunctionStatus::added);
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in serve"));
  add_function(c, "serve", "python", "Host", {4, 0}, {1, 0}, FunctionStatus::gone);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, CollectionsOfGarbage) {
  RunComparison c = with_functions();
  add_function(c, "gc generation 2", "python", "Host", {0, 4}, {0, 1}, FunctionStatus::added);
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/gc in gc generation 2"));
}

TEST(ProgramRules, AKernelWhoseTimeHardlyMattersIsLatent) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10.2}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {1, 1});
  add_function(c, "flash", "gpu_compute", "GPU", {0.2, 0.4}, {8, 8}, FunctionStatus::changed);
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "kernel_regression");
  EXPECT_EQ(verdicts[0].state, VerdictState::latent);
}

TEST(ProgramRules, AThreadThatHoldsTheLock) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.2}, {0.2, 8});
  add_state(c, "blocked in futex", {0.2, 9});
  c.python.push_back({"_hold (gil_fault.py)", {0, 0.47}});
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/gil in _hold (gil_fault.py)"));
  set_step(c, {10, 10}, {0.1, 0.2}, {0.2, 0.2});  // it runs beside, and nobody waits
  c.outcome = Outcome::no_change;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(ProgramRules, ALockHeldInAnotherProcessThanThatOfTheSteps) {
  const auto made = [](double request_ms, double share_before) {
    RunComparison c = comparison(Outcome::inconclusive);
    set_step(c, {2.4, 2.5}, {0.3, 0.3}, {0, 0});
    c.host->states[0].value = {2.7e6, 6.8e6};  // from step to step
    add_state(c, "blocked in futex", {3, 12});
    c.host->requests.push_back({"request", {345, 137}, {88e6, request_ms * 1e6}, {154e6, 380e6}, true});
    c.python.push_back({"_hold (gil_fault.py)", {share_before, 0.3}});
    return c;
  };
  const auto verdicts = diagnose(made(215, 0));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].detail, "gil");
  EXPECT_EQ(verdicts[0].state, VerdictState::latent);
  RunComparison decided = made(215, 0);
  decided.outcome = Outcome::regression;
  ASSERT_EQ(diagnose(decided).size(), 1U);
  EXPECT_EQ(diagnose(decided)[0].detail, "gil");
  EXPECT_EQ(diagnose(decided)[0].state, VerdictState::active);
  EXPECT_TRUE(diagnose(made(88, 0)).empty());     // fewer requests come, and each takes as long
  EXPECT_TRUE(diagnose(made(215, 0.1)).empty());  // it was there before
}

TEST(ProgramRules, CodeThatTakesMoreOfTheCpus) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.on_cpu.push_back({"parse", {0.1, 0.4}});
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in parse"));
  c.outcome = Outcome::inconclusive;  // another mix of work moves shares, too
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

TEST(SettingsRules, WhatNothingElseExplainsIsASettingThatDiffers) {
  model::RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  c.environment = {{"env.target.option.max-num-seqs", {"16", "4"}}, {"env.target.cpus_allowed", {"0-1", "2-3"}}};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "environment_changed");
  EXPECT_EQ(verdicts[0].detail, "option");
  EXPECT_EQ(verdicts[0].state, model::VerdictState::active);
  EXPECT_NEAR(verdicts[0].share, 1, 1e-9);
  EXPECT_THAT(verdicts[0].evidence, testing::ElementsAre("The option --max-num-seqs is 4 instead of 16"));
}

TEST(SettingsRules, StepsThatAreNotLongerNeedNone) {
  for (const auto outcome : {model::Outcome::no_change, model::Outcome::inconclusive}) {
    model::RunComparison c = comparison(outcome);
    set_step(c, {10, 10}, {0, 0}, {0, 0});
    c.environment = {{"env.target.package.vllm", {"0.32.0", "0.33.0"}}};
    EXPECT_TRUE(diagnose(c).empty());
  }
}

TEST(SettingsRules, AnotherPortIsNoCause) {
  model::RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  c.environment = {{"env.target.option.port", {"8000", "8001"}}};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "unknown");
}

TEST(SettingsRules, WhatWasFeltComesFirst) {
  model::RunComparison c = comparison();
  set_step(c, {10, 10}, {0, 5}, {0, 0});
  add_beside(c, "stress", {0, 1});
  c.environment = {{"env.target.variable.VLLM_LOGGING_LEVEL", {"", "DEBUG"}}};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "cpu_contention");
  EXPECT_THAT(verdicts[0].evidence, testing::Not(testing::Contains(testing::HasSubstr("LOGGING"))));
}

TEST(SettingsRules, AFunctionThatTakesLongerHasItBesideIt) {
  model::RunComparison c = with_functions();
  add_function(c, "emit", "python", "Host", {1, 5}, {4, 4}, model::FunctionStatus::changed);
  c.environment = {{"env.target.variable.VLLM_LOGGING_LEVEL", {"", "DEBUG"}}};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "host_bound");
  EXPECT_THAT(verdicts[0].evidence, testing::Contains("The variable VLLM_LOGGING_LEVEL is DEBUG instead of none"));
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
  add_state(c, "stopped", {40, 0});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes", "-process_stopped"));
}

}  // namespace
}  // namespace culprit::diagnose
