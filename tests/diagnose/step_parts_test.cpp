// The phases of one run against each other.
#include "diagnose/step_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "recording.h"

namespace culprit::diagnose {
namespace {

using model::Phase;
using model::PhaseTime;
using model::Recording;
using testing::IsEmpty;

constexpr auto kPrefill = static_cast<std::size_t>(Phase::prefill);

/// Steps of a phase on rank 0, which take `step` ms and whose kernels take `kernels` of them.
void add_steps(Recording& made, Phase phase, std::size_t count, double step, double kernels) {
  if (made.profile.processes.empty()) made.profile.processes.push_back({100, 0, 0});
  const auto p = static_cast<std::size_t>(phase);
  made.host.cycles[p] += count;
  made.host.period_ns[p] += static_cast<double>(count) * step * kMs;
  for (std::size_t i = 0; i < count; ++i) {
    model::Cycle cycle;
    cycle.number = static_cast<std::uint32_t>(made.cycles.cycles.size() + 1);
    cycle.phase = phase;
    cycle.ends = model::CycleEnd::at_next;
    made.cycles.cycles.push_back(cycle);
    model::ProfileCycle of_profile;
    of_profile.number = cycle.number;
    of_profile.rank = 0;
    of_profile.phase = phase;
    made.profile.cycles.push_back(of_profile);
    if (kernels <= 0) continue;
    model::FunctionUse use;
    use.cycle = static_cast<std::uint32_t>(made.profile.cycles.size() - 1);
    use.function = made.profile.texts.intern("gemm");
    use.kind = made.profile.texts.intern("gpu_compute");
    use.device = made.profile.texts.intern("GPU 0");
    use.duration = use.exposed = static_cast<Ns>(kernels * kMs);
    made.profile.functions.push_back(use);
  }
}

/// Prefill steps of 20 ms and fifty decode steps of 10 ms; the device works for so many ms of each.
Recording two_phases(double in_prefill, double in_decode, std::size_t prefills = 10) {
  Recording made;
  made.profile.texts.intern("");
  add_steps(made, Phase::prefill, prefills, 20, in_prefill);
  add_steps(made, Phase::decode, 50, 10, in_decode);
  return made;
}

TEST(Phases, AreHeldAgainstEachOther) {
  const std::vector<PhaseTime> times = phase_times(two_phases(18, 4));
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].phase, Phase::prefill);
  EXPECT_EQ(times[0].steps, 10U);
  EXPECT_NEAR(times[0].step_ns, 20 * kMs, 1);
  EXPECT_NEAR(times[0].share, 200.0 / 700, 1e-9);
  EXPECT_EQ(times[0].where, "GPU 0");
  EXPECT_EQ(times[0].what, "gpu_compute");
  EXPECT_NEAR(times[0].part_share, 0.9, 1e-9);
  EXPECT_NEAR(times[0].others_share, 0.4, 1e-9);
  EXPECT_EQ(times[1].phase, Phase::decode);
  EXPECT_EQ(times[1].steps, 50U);
  EXPECT_EQ(times[1].what, "idle");
  EXPECT_NEAR(times[1].part_share, 0.6, 1e-9);
  EXPECT_NEAR(times[1].others_share, 0.1, 1e-9);
}

TEST(Phases, OfFewStepsOrOneAloneAreNot) {
  EXPECT_THAT(phase_times(two_phases(18, 4, 4)), IsEmpty());
  EXPECT_EQ(phase_times(two_phases(18, 4, 5)).size(), 2U);
  Recording made = two_phases(18, 4);
  made.host.per_second = true;
  EXPECT_THAT(phase_times(made), IsEmpty());
  EXPECT_THAT(phase_times(run(9, 0.1, 0.9)), IsEmpty());
}

TEST(Phases, WhoseStepsAreMadeOfTheSamePartsDifferInTimeAlone) {
  const std::vector<PhaseTime> times = phase_times(two_phases(18, 8.8));
  ASSERT_EQ(times.size(), 2U);
  for (const PhaseTime& time : times) EXPECT_EQ(time.where, "");
}

TEST(Phases, OfWhichOneAloneUsesADeviceSayNothingOfItsIdleTime) {
  const std::vector<PhaseTime> times = phase_times(two_phases(0, 1));
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].where, "");
  EXPECT_EQ(times[1].what, "gpu_compute");
  EXPECT_NEAR(times[1].others_share, 0, 1e-9);
}

TEST(Phases, ThatAreToldByTheThreadOfTheSteps) {
  Recording made = two_phases(0, 0);
  made.host.step.emplace();
  made.host.step->name = "worker";
  made.host.step->on_cpu[kPrefill] = 10 * 19 * kMs;
  made.host.step->blocked[kPrefill] = 10 * 1 * kMs;
  made.host.step->on_cpu[kDecode] = 50 * 4 * kMs;
  made.host.step->runnable[kDecode] = 50 * 5 * kMs;
  made.host.step->blocked[kDecode] = 50 * 1 * kMs;
  const std::vector<PhaseTime> times = phase_times(made);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].what, "on a CPU");
  EXPECT_EQ(times[1].where, "thread worker");
  EXPECT_EQ(times[1].what, "waiting for a CPU");
  EXPECT_NEAR(times[1].part_share, 0.5, 1e-9);
  EXPECT_NEAR(times[1].others_share, 0, 1e-9);
}

TEST(Phases, ThatAreToldByTheirCollectives) {
  Recording made = two_phases(0, 0);
  model::RankCollectives rank;
  rank.rank = 0;
  rank.cycles = 60;
  for (const model::Cycle& cycle : made.cycles.cycles) {
    model::StepCollectives step;
    step.number = cycle.number;
    step.wait_ns = (cycle.phase == Phase::prefill ? 8 : 1) * kMs;
    rank.steps.push_back(step);
  }
  made.collectives.push_back(rank);
  const std::vector<PhaseTime> times = phase_times(made);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].where, "collectives of rank 0");
  EXPECT_EQ(times[0].what, "waiting for the last rank");
  EXPECT_NEAR(times[0].part_share, 0.4, 1e-9);
  EXPECT_NEAR(times[0].others_share, 0.1, 1e-9);
  EXPECT_EQ(times[1].where, "");
}

TEST(Phases, CountAStepOfSeveralRanksOnce) {
  Recording made = two_phases(18, 4);
  const std::vector<model::Cycle> of_first = made.cycles.cycles;
  for (model::Cycle cycle : of_first) {
    cycle.rank = 1;
    made.cycles.cycles.push_back(cycle);
  }
  for (std::size_t p = 0; p < made.host.cycles.size(); ++p) {
    made.host.cycles[p] *= 2;
    made.host.period_ns[p] *= 2;
  }
  const std::vector<PhaseTime> times = phase_times(made);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].steps, 10U);
  EXPECT_NEAR(times[0].step_ns, 20 * kMs, 1);
}

}  // namespace
}  // namespace culprit::diagnose
