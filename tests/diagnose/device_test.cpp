// Rules about what devices do.
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

TEST(DeviceRules, AClockWhoseUnitIsKnownIsToldInMegahertz) {
  RunComparison c = slow_clock(Outcome::no_change);
  EXPECT_THAT(diagnose(c)[0].evidence, testing::Not(Contains(HasSubstr("MHz"))));
  c.resources[0].unit = model::Unit::hertz;
  c.resources[0].value = {1.187e9, 2.1e8};
  EXPECT_THAT(diagnose(c)[0].evidence[0], HasSubstr("18 % of what it was: 210 instead of 1187 MHz"));
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
  c.environment = {{"env.gpu7.application_sm_clock_mhz", {"1980", "210"}}};
  ASSERT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/locked in GPU 7"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains("gpu7.application_sm_clock_mhz is 210 instead of 1980"));
  c.environment = {{"env.gpu7.application_sm_clock_mhz", {"210", "1980"}},  // it rose
                   {"env.gpu0.application_sm_clock_mhz", {"1980", "210"}},  // another device's
                   {"env.gpu7.max_sm_clock_mhz", {"1980", "210"}}};         // it is set by nobody
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/throttle_thermal in GPU 7"));
  c.environment.clear();
  c.resources.back().value = {91, 92};  // as hot as before
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU 7"));
}

/// Kernels, a collective and copies that take so many times longer while so many bytes a second went over a link.
RunComparison beside_traffic(const char* counter, std::array<double, 2> bytes, double kernels, double collective,
                             double copies) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.host->step.clear();
  const auto add = [&](const char* name, const char* kind, double ms, double times) {
    add_function(c, name, kind, "GPU 7", {ms, ms * times}, {4, 4},
                 times > 1 ? FunctionStatus::changed : FunctionStatus::same);
  };
  for (const char* name : {"sgemm_a", "cutlass_c", "elementwise_a", "softmax_b"}) add(name, "gpu_compute", 1, kernels);
  add("ncclDevKernel_AllReduce", "gpu_comm", 2, collective);
  add("Memcpy HtoD", "gpu_memcpy_h2d", 2, copies);
  c.resources.push_back({counter, "GPU 7", -1, model::Unit::bytes_per_second, {bytes[0], bytes[1]}});
  return c;
}

TEST(DeviceRules, OthersOnTheLinksOfItsDeviceSlowKernelsAndCollectives) {
  const std::vector<std::string> nvlink = {"interconnect_contention/nvlink in GPU 7"};
  EXPECT_EQ(causes(beside_traffic("gpu_link_transmit", {1e6, 1e10}, 1.5, 1, 1)), nvlink);
  EXPECT_EQ(causes(beside_traffic("gpu_link_receive", {0, 1e10}, 1, 2, 1)), nvlink);
  EXPECT_EQ(causes(beside_traffic("DCGM_FI_PROF_NVLINK_TX bytes/s", {0, 1e10}, 1.5, 2, 1)), nvlink);
  const RunComparison c = beside_traffic("gpu_link_transmit", {1e6, 1e10}, 1.5, 2, 1);
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.8);
  EXPECT_NEAR(verdicts[0].impact_ns, 4e6, 1);
  EXPECT_THAT(verdicts[0].against, Contains(HasSubstr("does not say whose")));
  // It makes some kernels slower than others.
  RunComparison uneven = beside_traffic("gpu_link_transmit", {1e6, 1e10}, 1.5, 1, 1);
  uneven.functions[0].work_ratio = 2;
  uneven.functions[0].time_ns[1] = 2e6;
  EXPECT_EQ(causes(uneven), nvlink);
  EXPECT_THAT(causes(swapped(beside_traffic("gpu_link_transmit", {1e6, 1e10}, 1.5, 1, 1))),
              testing::ElementsAre("-interconnect_contention/nvlink in GPU 7"));
}

TEST(DeviceRules, TrafficThatNothingFeltOrThatIsItsOwnIsNoCause) {
  EXPECT_THAT(causes(beside_traffic("gpu_link_transmit", {1e6, 1e10}, 1, 1, 1)), testing::ElementsAre("unknown"));
  // Busy before, or next to nothing.
  EXPECT_THAT(causes(beside_traffic("gpu_link_transmit", {4e9, 1e10}, 1, 2, 1)), testing::ElementsAre("unknown"));
  EXPECT_THAT(causes(beside_traffic("gpu_link_transmit", {1e3, 1e6}, 1, 2, 1)), testing::ElementsAre("unknown"));
  // It sends itself what it did not send.
  RunComparison own = beside_traffic("gpu_link_transmit", {1e6, 1e10}, 1, 2, 1);
  own.functions[4].calls = {4, 8000};
  EXPECT_THAT(causes(own), testing::ElementsAre("unknown"));
  own.functions[4].calls = {0, 4};
  EXPECT_THAT(causes(own), testing::ElementsAre("unknown"));
  own = beside_traffic("gpu_link_transmit", {0, 1e10}, 1.5, 1, 1);
  own.functions[4].calls = {0, 4};
  EXPECT_THAT(causes(own), testing::Not(Contains(HasSubstr("interconnect"))));
}

TEST(DeviceRules, TrafficExplainsNoMoreThanAClockLeaves) {
  RunComparison c = beside_traffic("gpu_link_transmit", {1e6, 1e10}, 2, 1, 1);
  add_resource(c, "gpu_sm_frequency", "GPU 7", {1400, 700});
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU 7"));
  c.resources.back().value = {1400, 1300};
  EXPECT_THAT(causes(c),
              testing::ElementsAre("interconnect_contention/nvlink in GPU 7", "gpu_clock_drop/unknown in GPU 7"));
}

TEST(DeviceRules, CopiesBesideTrafficAreThePciesForSure) {
  const RunComparison c = beside_traffic("gpu_pcie_receive", {1e6, 1e10}, 1, 1, 2.5);
  const auto verdicts = diagnose(c);
  ASSERT_THAT(causes(c), testing::ElementsAre("interconnect_contention/pcie in GPU 7"));
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.8);
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("went over PCIe of GPU 7")));
  // Kernels work on what lies on their device.
  EXPECT_THAT(causes(beside_traffic("gpu_pcie_receive", {1e6, 1e10}, 1.5, 1, 1)),
              testing::Not(Contains(HasSubstr("interconnect"))));
}

TEST(DeviceRules, KernelsThatAreSlowerAlikeShareTheDevice) {
  EXPECT_THAT(causes(kernels(2, 1)), testing::ElementsAre("gpu_clock_drop/unknown in GPU"));
  EXPECT_THAT(causes(kernels(1, 2)), testing::ElementsAre("gpu_contention/memory_pressure in GPU"));
  EXPECT_EQ(diagnose(kernels(2, 1))[0].state, VerdictState::active);
  EXPECT_THAT(diagnose(kernels(2, 1))[0].against, Contains(HasSubstr("No counter")));
}

TEST(DeviceRules, WithoutKernelsOfTheOtherKindNeitherTheClockNorOneKernelIsBlamed) {
  RunComparison c = kernels(2, 1);
  c.functions.resize(3);  // three products: a new library is as likely as a clock
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.functions.resize(2);
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_regression in sgemm_a"));
}

/// A device that idles for so long per step, ms, in this state.
RunComparison idles(model::LedgerState state, std::array<double, 2> ms, double longer = 4) {
  RunComparison c = kernels(1, 1);
  add_function(c, "hit", "gpu_compute", "GPU", {0.5, 0.5 * longer}, {4, 4},
               longer > 1 ? FunctionStatus::changed : FunctionStatus::same);
  model::Waterfall waterfall;
  waterfall.device = 0;
  model::WaterfallLine line;
  line.state = state;
  line.time_ns = {ms[0] * 1e6, ms[1] * 1e6};
  waterfall.lines = {line};
  c.waterfalls = {waterfall};
  return c;
}

TEST(DeviceRules, ADeviceThatIdlesThoughWorkWasLaunchedWorksForSomebodyElse) {
  RunComparison c = idles(model::LedgerState::idle_latency, {0.1, 3});
  ASSERT_THAT(causes(c), testing::ElementsAre("gpu_contention/other_process in GPU"));
  const auto verdicts = diagnose(c);
  EXPECT_EQ(verdicts[0].state, VerdictState::active);
  EXPECT_NEAR(verdicts[0].impact_ns, 2.9e6 + 1.5e6, 1e3);
  EXPECT_THAT(verdicts[0].against, Contains(HasSubstr("waiting for another device")));
  // What it waited for on another device is no lateness of its host.
  RunComparison also = idles(model::LedgerState::idle_latency, {0.1, 3});
  also.waterfalls[0].lines.push_back(also.waterfalls[0].lines[0]);
  also.waterfalls[0].lines[1].state = model::LedgerState::idle_dependency;
  also.waterfalls[0].lines[1].time_ns[1] = 9e6;
  EXPECT_THAT(causes(also), testing::ElementsAre("gpu_contention/other_process in GPU"));
  // What waits for it is not slow, and neither are the kernels that it left in the middle.
  add_function(c, "cudaMemcpyAsync", "cuda_api", "", {0.1, 3}, {1, 1}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_contention/other_process in GPU"));
}

TEST(DeviceRules, KernelsThatAreTooShortToBeLeftAreNotAsked) {
  RunComparison c = idles(model::LedgerState::idle_latency, {0.1, 3}, 1);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));  // one long wait makes a mean, too
  c.waterfalls[0].lines[0].apart = true;
  ASSERT_THAT(causes(c), testing::ElementsAre("gpu_contention/other_process in GPU"));
  EXPECT_NEAR(diagnose(c)[0].confidence, 0.6, 1e-9);
  // Its host was late besides, by which the device may have slept.
  c.waterfalls[0].lines.push_back(c.waterfalls[0].lines[0]);
  c.waterfalls[0].lines[1].state = model::LedgerState::idle_host;
  c.waterfalls[0].lines[1].time_ns[1] = 0.5e6;
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(DeviceRules, ADeviceThatWaitsForItsHostOrALittleLongerWorksForNobodyElse) {
  const auto one_kernel = testing::ElementsAre("kernel_regression in hit");
  EXPECT_THAT(causes(idles(model::LedgerState::idle_host, {0.1, 3})), one_kernel);
  EXPECT_THAT(causes(idles(model::LedgerState::idle_launch, {0.1, 3})), one_kernel);
  EXPECT_THAT(causes(idles(model::LedgerState::idle_dependency, {0.1, 3})), one_kernel);
  EXPECT_THAT(causes(idles(model::LedgerState::idle_latency, {0.1, 0.5})), one_kernel);
  EXPECT_THAT(causes(idles(model::LedgerState::idle_latency, {3, 4})), one_kernel);
  // It waited for its host for longer than that.
  RunComparison late = idles(model::LedgerState::idle_latency, {0.1, 1});
  late.waterfalls[0].lines.push_back(late.waterfalls[0].lines[0]);
  late.waterfalls[0].lines[1].state = model::LedgerState::idle_host;
  late.waterfalls[0].lines[1].time_ns[1] = 3e6;
  EXPECT_THAT(causes(late), one_kernel);
  // No kernel takes longer: it began late.
  for (const std::array<double, 2> ms : {std::array{0.4, 3.0}, std::array{0.1, 1.9}}) {
    RunComparison c = idles(model::LedgerState::idle_latency, ms, 1);
    c.waterfalls[0].lines[0].apart = true;
    EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  }
}

TEST(DeviceRules, MoreWorkIsToldByKernelsWhoseThreadsAreThatOfTheirWork) {
  RunComparison c = kernels(1.4, 1.4);
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU"));
  for (std::size_t i = 0; i < c.functions.size(); ++i)
    c.functions[i].size = {132 * 384, i < 3 ? 132 * 384 : 1.5 * 132 * 384};  // products are launched as the device is
  EXPECT_THAT(causes(c), testing::ElementsAre("workload_changed"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("among those that")));
}

TEST(DeviceRules, AClockFarDownMakesSomeOfWhatIsBoundByMemorySlower) {
  RunComparison c = kernels(5, 5);
  c.functions[3].work_ratio = 1;
  c.functions[3].status = FunctionStatus::same;
  c.functions[3].q_of_calls = 1;
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU"));
  EXPECT_NEAR(diagnose(c)[0].confidence, 0.5, 1e-9);
  EXPECT_THAT(diagnose(c)[0].against, Contains(HasSubstr("Another process on the device")));
  add_resource(c, "GPU clock", "GPU", {1.4e9, 1.4e9});  // it did not fall
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(DeviceRules, AKernelThatIsSlowerByAsMuchAsTwoOthersIsNotTheFault) {
  RunComparison c = kernels(1, 1);
  c.functions.resize(4);
  for (const auto& [name, times] : {std::pair("x", 7.2), std::pair("y", 7.3), std::pair("z", 7.0)})
    add_function(c, name, "gpu_compute", "GPU", {0.2, 0.2 * times}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.functions.back().work_ratio = 1.5;  // two are no many
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_regression in y"));
  c.functions.back().work_ratio = 7;
  add_function(c, "partly", "gpu_compute", "GPU", {1, 3}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.functions.back().work_ratio = 12;
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_regression in partly"));
}

TEST(DeviceRules, AClockFarDownMakesEachOfWhatIsBoundByMemorySlowerInItsWay) {
  RunComparison c = kernels(5, 1);
  for (std::size_t i = 0; i < 3; ++i) {
    model::FunctionFinding& f = c.functions[3 + i];
    f.work_ratio = i == 0 ? 1.1 : i == 1 ? 1.4 : 7;
    f.status = FunctionStatus::changed;
    f.q_of_calls = 0;
  }
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU"));
  EXPECT_NEAR(diagnose(c)[0].work_ratio, 5, 1e-9);
  EXPECT_NEAR(diagnose(c)[0].confidence, 0.5, 1e-9);
}

TEST(DeviceRules, AKernelThatIsSlowerThanTheClockMakesItIsItsOwn) {
  RunComparison c = comparison();
  set_step(c, {10, 13}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"sgemm", "softmax", "norm"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {4, 4});
  add_function(c, "attention", "gpu_compute", "GPU", {3, 6}, {4, 4}, FunctionStatus::changed);
  add_resource(c, "gpu_sm_frequency", "GPU", {1980, 1870});
  add_resource(c, "gpu_sm_frequency", "GPU 5", {1980, 210});  // another one, which idles
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].cause, "kernel_regression");
  EXPECT_EQ(verdicts[1].cause, "gpu_clock_drop");
  EXPECT_NEAR(verdicts[1].impact_ns, 9e6 * (1980.0 / 1870 - 1), 1);  // half a millisecond of three
  EXPECT_EQ(verdicts[1].state, VerdictState::latent);
}

TEST(DeviceRules, AClockThatExplainsLittleDoesNotHideWhatElseSlowedTheDevice) {
  RunComparison c = kernels(2, 2);
  set_step(c, {10, 16}, {0.1, 0.1}, {1, 1});
  c.host->step.clear();
  add_resource(c, "gpu_sm_frequency", "GPU", {1980, 1870});
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_contention/other_process in GPU", "gpu_clock_drop/unknown in GPU"));
  EXPECT_EQ(diagnose(c)[1].state, VerdictState::latent);
  c.resources[0].value = {1980, 990};
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU"));
  EXPECT_EQ(diagnose(c)[0].state, VerdictState::active);
}

TEST(DeviceRules, WhereTheClockExplainsLittleAndNothingElseIsKnownNoCauseWasFound) {
  RunComparison c = comparison();
  set_step(c, {10, 13}, {0.1, 0.1}, {1, 1});
  add_function(c, "attention", "gpu_compute", "GPU", {3, 6}, {4, 4});
  add_resource(c, "gpu_sm_frequency", "GPU", {1980, 1870});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown", "gpu_clock_drop/unknown in GPU"));
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
  c.steady.clear();  // and now it is not known: its own kernels, twice as long, make 84 %
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_contention/other_process in GPU 3"));
  c.resources[0].value = {42, 86};
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.resources[0].value = {42, 98};
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

TEST(DeviceRules, KernelsThatWereChosenAnewAreNoSlowerDevice) {
  RunComparison c = kernels(2, 1);
  for (std::size_t i = 0; i < 3; ++i) c.functions[i].was = c.texts.intern("sgemm_" + std::to_string(i));
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_changed in sgemm_a"));
}

}  // namespace
}  // namespace culprit::diagnose
