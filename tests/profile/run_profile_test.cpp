#include "profile/run_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "profile/profile_tables.h"
#include "support/cpu_time.h"
#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using model::FunctionUse;
using model::Profile;
using model::Provenance;
using testing_support::TraceMaker;

/// Cycles of `period` from 0 on; a slice belongs to the cycle in which it begins.
cycles::Found every(const Trace& trace, Ns period, std::uint32_t n) {
  cycles::Found found;
  found.cycles.method = model::CycleMethod::marker;
  found.cycles.anchor = "step";
  for (std::uint32_t c = 0; c < n; ++c) {
    model::Cycle cycle;
    cycle.number = c + 1;
    cycle.begin = cycle.span_begin = static_cast<Ns>(c) * period;
    cycle.period = period;
    cycle.span_end = cycle.begin + period;
    found.cycles.cycles.push_back(cycle);
  }
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Ns at = period > 0 ? trace.slices[i].begin / period : 0;
    found.cycle_of_slice.push_back(at < static_cast<Ns>(n) ? static_cast<std::uint32_t>(at) : kNone);
  }
  return found;
}

void counter(TraceMaker& maker, TrackId track, std::string_view name, std::vector<CounterSample> samples) {
  Trace& trace = maker.trace();
  trace.counters.push_back({trace.strings.intern(name), trace.tracks[track].process, track, std::move(samples)});
}

const FunctionUse* find(const Profile& profile, std::int64_t cycle, std::string_view name) {
  for (const FunctionUse& use : profile.functions)
    if (profile.cycles[use.cycle].number == cycle && profile.texts[use.function] == name) return &use;
  return nullptr;
}

const model::ResourceUse* resource(const Profile& profile, const FunctionUse* use, std::string_view metric) {
  for (const model::ResourceUse& r : profile.resources)
    if (&profile.functions[r.use] == use && profile.texts[r.metric] == metric) return &r;
  return nullptr;
}

TEST(RunProfile, CountsAndShares) {
  TraceMaker maker;
  const TrackId stream = maker.stream(0, 7);
  for (const Ns at : {10, 40, 110}) maker.gpu(stream, "kernel", "gemm", at, 20);
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 2));
  const FunctionUse* first = find(profile, 1, "gemm");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->count, 2);
  EXPECT_EQ(first->duration, 40);
  EXPECT_EQ(first->exposed, 40);
  EXPECT_DOUBLE_EQ(first->beta, 0.4);
  EXPECT_EQ(profile.texts[first->device], "GPU 0");
  EXPECT_EQ(profile.texts[first->kind], "gpu_compute");
  EXPECT_EQ(find(profile, 2, "gemm")->count, 1);
}

TEST(RunProfile, AddressesOfObjectsMakeNoOtherFunction) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  maker.slice(thread, "python_function", "<built-in method get of Queue object at 0x7f1a90>", 10, 20);
  maker.slice(thread, "python_function", "<built-in method get of Queue object at 0x7f1b40>", 40, 30);
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  ASSERT_EQ(profile.functions.size(), 1U);
  const FunctionUse* use = find(profile, 1, "<built-in method get of Queue object>");
  ASSERT_NE(use, nullptr);
  EXPECT_EQ(use->count, 2);
  EXPECT_EQ(use->duration, 50);
}

TEST(RunProfile, RanksHaveTheirNumbers) {
  TraceMaker maker;
  maker.trace().ranks[0].rank = 5;
  maker.slice(maker.thread(1, 1), "cpu_op", "f", 10, 20);
  counter(maker, maker.thread(1, 1), "queue", {{10, 1}});
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  EXPECT_EQ(profile.cycles[0].rank, 5);
  EXPECT_EQ(profile.processes[0].rank, 5);
  ASSERT_EQ(profile.series.size(), 1U);
  EXPECT_EQ(profile.series[0].rank, 5);
}

TEST(RunProfile, HostTimeIsNeverCalledExposed) {
  TraceMaker maker;
  maker.slice(maker.thread(1, 1), "cpu_op", "aten::mm", 10, 30);
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  EXPECT_EQ(find(profile, 1, "aten::mm")->exposed, -1);
  EXPECT_EQ(profile.texts[find(profile, 1, "aten::mm")->device], "Host");
}

TEST(RunProfile, GpuWorkBelongsToWhoLaunchedIt) {
  TraceMaker maker;
  const SliceIndex launch = maker.slice(maker.thread(4711, 1), "cuda_runtime", "cudaLaunchKernel", 0, 5, 9);
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 10, 20, launch);
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  EXPECT_EQ(profile.processes[find(profile, 1, "gemm")->process].pid, 4711);
}

TEST(RunProfile, TheParentIsWhoCalledOrLaunchedMostOfIt) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  maker.slice(thread, "cpu_op", "aten::linear", 0, 60);
  maker.slice(thread, "cpu_op", "aten::linear", 1, 58);  // dispatched again under its own name
  maker.slice(thread, "cpu_op", "aten::copy_", 5, 20);
  const auto launch = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", 30, 10);
  maker.slice(thread, "cpu_op", "aten::to", 70, 10);
  maker.slice(thread, "cpu_op", "aten::copy_", 72, 5);
  maker.slice(thread, "cpu_op", "aten::linear", 90, 5);
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 45, 20, launch);
  RunProfileOptions options;
  options.own_times = true;
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1), options);
  const auto parent = [&](std::string_view name) { return profile.texts[find(profile, 1, name)->parent]; };
  EXPECT_EQ(parent("aten::copy_"), "aten::linear");
  EXPECT_EQ(parent("aten::linear"), "") << "not itself";
  EXPECT_EQ(parent("cudaLaunchKernel"), "aten::linear");
  EXPECT_EQ(parent("gemm"), "aten::linear") << "the runtime call between is passed over";
}

TEST(RunProfile, TheParentIsWhoHadTheMostWhoeverCameLast) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Ns at = 0;
  const auto call = [&](const std::string& by, Ns takes) {
    maker.slice(thread, "cpu_op", by, at, takes + 1);
    maker.slice(thread, "cpu_op", "f", at, takes);
    at += takes + 2;
  };
  for (const auto& [by, takes] : {std::pair("a", 5), {"b", 20}, {"c", 4}, {"b", 3}, {"a", 6}}) call(by, takes);
  RunProfileOptions options;
  options.own_times = true;
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1), options);
  const model::FunctionUse* f = find(profile, 1, "f");
  EXPECT_EQ(profile.texts[f->parent], "b");
  EXPECT_EQ(f->duration, 38);
  EXPECT_EQ(f->inside, 23);
}

TEST(RunProfile, ARangeIsAParentWithoutItsNumbers) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 4; ++i) {
    maker.slice(thread, "user_annotation", "layer#" + std::to_string(i), 20 * i, 15);
    maker.slice(thread, "cpu_op", "f", 20 * i + 1, 10);
  }
  RunProfileOptions options;
  options.own_times = true;
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1), options);
  EXPECT_EQ(profile.texts[find(profile, 1, "f")->parent], "layer#N");
  EXPECT_EQ(find(profile, 1, "f")->inside, 40);
}

TEST(RunProfile, WhatAGraphHoldsHasNoParent) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  maker.slice(thread, "cpu_op", "replay", 0, 60);
  const auto launch = maker.slice(thread, "cuda_runtime", "cudaGraphLaunch", 30, 10);
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 45, 20, launch);
  RunProfileOptions options;
  options.own_times = true;
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1), options);
  EXPECT_EQ(find(profile, 1, "gemm")->parent, 0U);
}

TEST(RunProfile, DevicesAreApart) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 0, 20);
  maker.gpu(maker.stream(1, 7), "kernel", "gemm", 0, 30);
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  EXPECT_EQ(profile.functions.size(), 2u);
}

TEST(RunProfile, WhatEnclosesCyclesIsNoPartOfOne) {
  TraceMaker maker;
  maker.slice(maker.thread(1, 1), "python", "main", 0, 1000);
  maker.slice(maker.thread(1, 1), "python", "step", 0, 100);
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 2));
  EXPECT_EQ(find(profile, 1, "main"), nullptr);
  EXPECT_NE(find(profile, 1, "step"), nullptr);
}

TEST(RunProfile, DeviceFunctionsAreMeasuredAgainstTheDevicesWindow) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 10, 20);
  cycles::Found found = every(maker.trace(), 100, 1);
  found.cycles.cycles[0].devices.push_back({.device = 0, .begin = 10, .end = 50});
  EXPECT_DOUBLE_EQ(find(run_profile(maker.trace(), found), 1, "gemm")->beta, 0.5);
}

TEST(RunProfile, ACycleOfNoLengthHasNoShares) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 0, 20);
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 0, 1));
  ASSERT_NE(find(profile, 1, "gemm"), nullptr);
  EXPECT_TRUE(std::isnan(find(profile, 1, "gemm")->beta));
}

TEST(RunProfile, CyclesWithoutFunctionsStay) {
  TraceMaker maker;
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 3));
  EXPECT_EQ(profile.cycles.size(), 3u);
  EXPECT_TRUE(profile.functions.empty());
  EXPECT_EQ(summary_tables(profile, {}).size(), 1u);
}

TEST(RunProfile, PartialCyclesCanBeLeftOut) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 0, 20);
  cycles::Found found = every(maker.trace(), 100, 2);
  found.cycles.cycles[0].partial = true;
  EXPECT_EQ(run_profile(maker.trace(), found).cycles.size(), 2u);
  const Profile whole = run_profile(maker.trace(), found, {.whole_cycles_only = true});
  EXPECT_EQ(whole.cycles.size(), 1u);
  EXPECT_TRUE(whole.functions.empty());
}

TEST(RunProfile, TheLastCycleWhoseEndIsNotKnownIsNoWholeOne) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 0, 20);
  cycles::Found found = every(maker.trace(), 100, 3);
  found.cycles.cycles[2].ends = model::CycleEnd::open;
  EXPECT_EQ(run_profile(maker.trace(), found).cycles.size(), 3u);
  EXPECT_EQ(run_profile(maker.trace(), found, {.whole_cycles_only = true}).cycles.size(), 2u);
  for (model::Cycle& cycle : found.cycles.cycles) cycle.ends = model::CycleEnd::open;
  EXPECT_EQ(run_profile(maker.trace(), found, {.whole_cycles_only = true}).cycles.size(), 3u) << "all there is";
}

TEST(RunProfile, SamplesInsideAreMeasured) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 0, 50);
  counter(maker, maker.thread(1, 1), "GPU 0 clock.MHz", {{10, 1000}, {20, 1200}, {30, 1400}, {90, 5000}});
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  const auto* clock = resource(profile, find(profile, 1, "gemm"), "GPU clock");
  ASSERT_NE(clock, nullptr);
  EXPECT_EQ(clock->provenance, Provenance::measured);
  EXPECT_EQ(clock->samples, 3u);
  EXPECT_EQ(clock->unit, model::Unit::hertz);
  EXPECT_DOUBLE_EQ(clock->mu, 1.2e9);
  EXPECT_NEAR(clock->sigma, 2e8, 1);
}

TEST(RunProfile, FewSamplesPerCallArePooled) {
  TraceMaker maker;
  for (const Ns at : {0, 50}) maker.gpu(maker.stream(0, 7), "kernel", "gemm", at, 20);
  counter(maker, maker.thread(1, 1), "GPU 0 clock.MHz", {{10, 1000}, {60, 2000}});
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  const auto* clock = resource(profile, find(profile, 1, "gemm"), "GPU clock");
  ASSERT_NE(clock, nullptr);
  EXPECT_EQ(clock->provenance, Provenance::pooled);
  EXPECT_EQ(clock->samples, 2u);
  EXPECT_DOUBLE_EQ(clock->mu, 1.5e9);
}

TEST(RunProfile, BetweenSamplesItIsInterpolatedAndBeyondThemNothing) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "inside", 20, 20);
  maker.gpu(maker.stream(0, 7), "kernel", "beyond", 70, 20);
  counter(maker, maker.thread(1, 1), "GPU 0 clock.MHz", {{10, 1000}, {50, 1400}});
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  const auto* inside = resource(profile, find(profile, 1, "inside"), "GPU clock");
  ASSERT_NE(inside, nullptr);
  EXPECT_EQ(inside->provenance, Provenance::interpolated);
  EXPECT_EQ(inside->samples, 0u);
  EXPECT_DOUBLE_EQ(inside->mu, 1.2e9);
  const auto* beyond = resource(profile, find(profile, 1, "beyond"), "GPU clock");
  ASSERT_NE(beyond, nullptr);
  EXPECT_EQ(beyond->provenance, Provenance::none);
  EXPECT_TRUE(std::isnan(beyond->mu));
}

TEST(RunProfile, AnotherDevicesCounterSaysNothing) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 0, 50);
  counter(maker, maker.thread(1, 1), "GPU 1 clock.MHz", {{10, 1000}, {20, 1200}, {30, 1400}});
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  EXPECT_EQ(resource(profile, find(profile, 1, "gemm"), "GPU clock"), nullptr);
  ASSERT_EQ(profile.series.size(), 1u);
  EXPECT_EQ(profile.texts[profile.series[0].device], "GPU 1");
}

TEST(RunProfile, ClocksAreJudgedOnlyWhileTheDeviceWorks) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 0, 50);
  counter(maker, maker.thread(1, 1), "GPU 0 clock.MHz", {{10, 1410}, {60, 210}, {80, 210}});
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  ASSERT_EQ(profile.series.size(), 1u);
  EXPECT_TRUE(profile.series[0].only_while_busy);
  EXPECT_EQ(profile.series[0].busy_samples, 1u);
  EXPECT_DOUBLE_EQ(profile.series[0].busy_mean, 1.41e9);
  EXPECT_EQ(profile.series[0].values.size(), 3u) << "the series itself keeps its samples";
}

TEST(RunProfile, ValuesThatAreNoNumberAreLeftOut) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 7), "kernel", "gemm", 0, 50);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  counter(maker, maker.thread(1, 1), "GPU 0 clock.MHz", {{10, nan}, {20, 1200}, {30, nan}});
  counter(maker, maker.thread(1, 1), "GPU 0 power.watt", {{10, nan}});
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  const auto* clock = resource(profile, find(profile, 1, "gemm"), "GPU clock");
  ASSERT_NE(clock, nullptr);
  EXPECT_EQ(clock->samples, 1u);
  EXPECT_DOUBLE_EQ(clock->mu, 1.2e9);
  EXPECT_TRUE(std::isnan(clock->sigma)) << "one sample has no spread";
  EXPECT_EQ(profile.series.size(), 1u);
}

TEST(RunProfile, HostileNamesAreOnlyNames) {
  TraceMaker maker;
  const std::string hostile = "=cmd|' /C calc'!A0\x1b[31m\n,\"" + std::string(10000, '<');
  maker.gpu(maker.stream(0, 7), "kernel", hostile, 0, 50);
  counter(maker, maker.thread(1, 1), "GPU 99999999999999999999 x", {{10, 1}});
  counter(maker, maker.thread(1, 1), "", {{10, 1}});
  counter(maker, maker.thread(1, 1), "GPU ", {{10, 1}});
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  EXPECT_NE(find(profile, 1, hostile), nullptr);
  EXPECT_EQ(profile.series.size(), 3u);
  EXPECT_EQ(functions_table(profile).rows.size(), 1u);
}

TEST(RunProfile, SumsOfHugeDurationsStopAtTheEndOfTheRange) {
  TraceMaker maker;
  for (int i = 0; i < 4; ++i) maker.gpu(maker.stream(0, i), "kernel", "gemm", 0, 3'000'000'000'000'000'000);
  const Profile profile = run_profile(maker.trace(), every(maker.trace(), 100, 1));
  EXPECT_EQ(find(profile, 1, "gemm")->duration, std::numeric_limits<Ns>::max());
  EXPECT_EQ(find(profile, 1, "gemm")->exposed, 3'000'000'000'000'000'000);
  EXPECT_EQ(summary_tables(profile, {}).size(), 1U);
}

TEST(RunProfile, TimeGrowsWithTheNumberOfNamesNotItsSquare) {
  const auto steps_all_called_differently = [](TraceMaker& maker, std::uint32_t n) {
    const TrackId thread = maker.thread(1, 1);
    for (std::uint32_t i = 0; i < n; ++i)
      maker.slice(thread, "user_annotation", "step " + std::to_string(i), static_cast<Ns>(i) * 100, 90);
    return every(maker.trace(), 100, n);
  };
  TraceMaker few, many;
  const cycles::Found few_steps = steps_all_called_differently(few, 6'000);
  const cycles::Found many_steps = steps_all_called_differently(many, 24'000);
  EXPECT_LT(test::times_as_long([&] { EXPECT_EQ(run_profile(many.trace(), many_steps).functions.size(), 24'000U); },
                                [&] { EXPECT_EQ(run_profile(few.trace(), few_steps).functions.size(), 6'000U); }, 8),
            8);
}

}  // namespace
}  // namespace culprit::profile
