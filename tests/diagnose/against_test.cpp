// What is said against a cause that is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

using model::FunctionStatus;
using model::Outcome;
using model::RunComparison;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Against the first cause.
std::vector<std::string> against(const RunComparison& c) {
  const auto verdicts = diagnose(c);
  return verdicts.empty() ? std::vector<std::string>{"no cause"} : verdicts.front().against;
}

TEST(Against, AQuotaIsMetSoonerByWhoDoesMore) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 30}, {1, 1});
  add_counter(c, "cgroup.cpu.throttled_time", {0, 6e8});
  EXPECT_THAT(against(c), IsEmpty());
  set_step(c, {10, 14}, {0.1, 30}, {1, 1});
  EXPECT_THAT(against(c), Contains(HasSubstr("14.000ms instead of 10.000ms per step on CPUs: who does more")));
}

TEST(Against, StolenTimeThatWasNeitherRunNorWaited) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.cpu.steal", {0, 0.2});
  EXPECT_THAT(against(c), IsEmpty());
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 5});
  EXPECT_THAT(against(c), Contains(HasSubstr("neither on a CPU nor waiting for one")));
}

TEST(Against, FewerCpusBesideMoreOthers) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 9}, {1, 1});
  c.environment.push_back({"env.target.cpus_allowed", {"0-7", "0,2"}});
  EXPECT_THAT(against(c), IsEmpty());
  add_beside(c, "make", {0, 0.8});
  const auto verdicts = diagnose(c);
  const auto affinity = std::ranges::find(verdicts, "affinity", &model::Verdict::detail);
  ASSERT_NE(affinity, verdicts.end());
  EXPECT_THAT(affinity->against, Contains(HasSubstr("0.8 CPUs more, too")));
}

TEST(Against, WhoLookedAtAProcessMayHaveStoppedIt) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 20});
  add_state(c, "stopped", {0, 19});
  EXPECT_THAT(against(c), testing::ElementsAre(HasSubstr("Who stopped it was not recorded")));
  c.host->states.back().value[1] = 38e6;  // two threads
  EXPECT_THAT(against(c), testing::ElementsAre(HasSubstr("can have felt 19.000ms of what that is more")));
}

TEST(Against, ALowerClockBesideALongerQueue) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.cpu0.frequency", {3e9, 2e9});
  EXPECT_THAT(against(c), IsEmpty());
  set_step(c, {10, 14}, {0.1, 2}, {1, 1});
  EXPECT_THAT(against(c), Contains(HasSubstr("for a CPU")));
}

TEST(Against, SwappingThatItsOwnThreadsDidNotWaitFor) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  add_counter(c, "host.swap.out", {0, 5e6});
  add_counter(c, "host.pressure.memory.some", {0, 0.03});
  EXPECT_THAT(against(c), Contains("Its own threads waited no longer for pages"));
  add_state(c, "blocked in page_fault", {0, 4});
  EXPECT_THAT(against(c), IsEmpty());
}

TEST(Against, CrowdedMemoryBesideALongerQueue) {
  RunComparison c = comparison();
  set_step(c, {10, 16}, {0.1, 0.1}, {1, 1});
  add_beside(c, "stream", {0, 1});
  add_counter(c, "host.speed.memory", {1000, 1500});
  EXPECT_THAT(against(c), IsEmpty());
  set_step(c, {10, 16}, {0.1, 2}, {1, 1});
  EXPECT_THAT(against(c), Contains(HasSubstr("2.000ms instead of 100.000us per step for a CPU, too")));
}

TEST(Against, ADiskOfWhichNoRequestTookLonger) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 9});
  add_state(c, "blocked in fsync", {0.5, 8.5});
  c.disks.push_back({"vda write", {10, 10}, {1e6, 9e8}, {3e5, 3.1e5}, {}});
  EXPECT_THAT(against(c), Contains(HasSubstr("No request of a disk")));
  c.disks.back().mean_ns = {3e5, 1.5e7};
  EXPECT_THAT(against(c), IsEmpty());
}

TEST(Against, SamplesDoNotSayWhoHeldALock) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.2}, {0.2, 8});
  add_state(c, "blocked in futex", {0.2, 9});
  c.python.push_back({"_hold (gil_fault.py)", {0, 0.47}});
  EXPECT_THAT(against(c), Contains(HasSubstr("not who held the lock")));
}

TEST(Against, CodeThatOnlySamplesTell) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.on_cpu.push_back({"parse", {0.1, 0.4}});
  EXPECT_THAT(against(c), Contains(HasSubstr("Only samples tell it")));
}

TEST(Against, AnInputWhoseWorkersMayHaveHadNoCpu) {
  RunComparison c = with_functions();
  add_function(c, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "annotation", "Host", {1, 5}, {1, 1},
               FunctionStatus::changed);
  EXPECT_THAT(against(c), IsEmpty());
  set_step(c, {10, 14}, {0.1, 2}, {1, 1});
  EXPECT_THAT(against(c), Contains(HasSubstr("for a CPU, too")));
  c.host->step.clear();
  EXPECT_THAT(against(c), Contains(HasSubstr("Scheduling was not recorded")));
}

TEST(Against, WhatTheMachineDidToAll) {
  RunComparison c = with_functions();
  add_function(c, "parse", "python", "Host", {1, 5}, {1, 1}, FunctionStatus::changed);
  EXPECT_THAT(against(c), IsEmpty());
  c.host->machine = {0.12, 0.1, 0.14};
  EXPECT_THAT(against(c), Contains("Fixed work of the recorder took +12 %: the machine itself was slower"));
  c.host->machine = {-0.12, -0.14, -0.1};
  EXPECT_THAT(against(c), IsEmpty());
}

TEST(Against, AClockThatExplainsLessThanItsKernelsTook) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 7});
  for (const char* name : {"gemm", "softmax", "norm"})
    add_function(c, name, "gpu_compute", "GPU 7", {0.8, 2.9}, {10, 10});
  add_resource(c, "gpu_sm_frequency", "GPU 7", {1000, 500});
  EXPECT_THAT(against(c), Contains(HasSubstr("They took x3.63; the lower clock alone makes no more than x2.00")));
  c.resources.back().value = {1000, 270};
  EXPECT_THAT(against(c), IsEmpty());
}

TEST(Against, OthersOnADeviceWhoseUseNobodyCounted) {
  RunComparison c = comparison();
  add_function(c, "gemm", "gpu_compute", "GPU 3", {2, 4}, {10, 10});
  add_resource(c, "gpu_usage", "GPU 3", {42, 98});
  EXPECT_THAT(against(c), Contains(HasSubstr("Whose use it is was not counted")));
  add_resource(c, "process_gpu_usage", "GPU 3", {41, 45});
  EXPECT_THAT(against(c), IsEmpty());
}

TEST(Against, AKernelOnADeviceOfUnknownClock) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {4, 4});
  add_function(c, "sgemm", "gpu_compute", "GPU", {2, 6}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(against(c), Contains("The clock of its device was not recorded"));
  add_resource(c, "gpu_sm_frequency", "GPU", {1500, 1500});
  EXPECT_THAT(against(c), IsEmpty());
}

TEST(Against, CopiesOverALinkThatNobodyCounted) {
  RunComparison c = comparison();
  add_function(c, "gemm", "gpu_compute", "GPU", {2, 2}, {10, 10});
  add_function(c, "Memcpy HtoD", "gpu_memcpy_h2d", "GPU", {2, 6}, {10, 10}, FunctionStatus::changed);
  EXPECT_THAT(against(c), Contains(HasSubstr("No counter of the link")));
  c.resources.push_back({"gpu_pcie_transmit", "GPU", -1, model::Unit::bytes_per_second, {1e6, 5e9}});
  EXPECT_THAT(against(c), Not(Contains(HasSubstr("No counter of the link"))));
}

TEST(Against, StepsOfLikeWorkThatAreSlowerAsWell) {
  RunComparison c = comparison();
  set_step(c, {10, 10.1}, {0, 0}, {0, 0});
  c.host->step.clear();
  c.cycle_times[0].usual_work = {"8 requests", "32 requests"};
  c.cycle_times[0].all_ns = {10e6, 18e6};
  c.cycle_times[0].other_share = 0.9;
  EXPECT_THAT(against(c), IsEmpty());
  c.cycle_times[0].time_ns = {10e6, 12e6};
  c.cycle_times[0].change = 0.2;
  EXPECT_THAT(against(c), Contains(HasSubstr("Steps of like work (other) take 12.000ms instead of 10.000ms, too")));
}

TEST(Against, ALinkOfWhichOnlyCallsAreKnownAndARankThatNobodyExplains) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  for (const std::int32_t rank : {0, 1, 2, 3}) add_collectives(c, rank, {0.1, 0.1}, {1, 5}, {0.1, 0.1});
  EXPECT_THAT(against(c), Contains(HasSubstr("How much they sent is not recorded")));
  for (model::CollectiveChange& rank : c.collectives) rank.elements = {100, 100};
  EXPECT_THAT(against(c), IsEmpty());
  RunComparison late = comparison();
  set_step(late, {10, 14}, {0, 0}, {0, 0});
  for (const std::int32_t rank : {0, 1, 2, 3})
    add_collectives(late, rank, {0.1, rank == 2 ? 0.1 : 4}, {1, 1}, {0.1, rank == 2 ? 4 : 0.1});
  ASSERT_EQ(diagnose(late)[0].cause, "straggler");
  EXPECT_THAT(against(late), Contains(HasSubstr("Nothing that was recorded says why")));
}

}  // namespace
}  // namespace culprit::diagnose
