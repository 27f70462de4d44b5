#include "compare/comparable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace culprit::compare {
namespace {

using model::Cycles;
using model::Phase;
using testing::HasSubstr;

Cycles cycles_of(model::CycleMethod method, std::string anchor, std::vector<Phase> phases) {
  Cycles cycles;
  cycles.method = method;
  cycles.anchor = std::move(anchor);
  cycles.period_confidence = 1;
  for (const Phase phase : phases) {
    model::Cycle cycle;
    cycle.phase = phase;
    cycles.cycles.push_back(cycle);
  }
  return cycles;
}

constexpr auto kMarker = model::CycleMethod::marker;

TEST(WhyNotComparable, EqualAnchorsAre) {
  const Cycles a = cycles_of(kMarker, "ProfilerStep#1", {Phase::decode});
  const Cycles b = cycles_of(kMarker, "ProfilerStep#23", {Phase::decode, Phase::prefill});
  EXPECT_FALSE(why_not_comparable(a, b)) << "a number in the name is only the number of the step";
}

TEST(WhyNotComparable, AStepIsNoLayer) {
  const auto why =
      why_not_comparable(cycles_of(model::CycleMethod::host_function, "Scheduler.run_batch", {Phase::decode}),
                         cycles_of(model::CycleMethod::host_function, "DecoderLayer.forward", {Phase::decode}));
  ASSERT_TRUE(why);
  EXPECT_THAT(why->reason, HasSubstr("Scheduler.run_batch"));
  EXPECT_THAT(why->reason, HasSubstr("DecoderLayer.forward"));
}

TEST(WhyNotComparable, MethodsMustAgree) {
  EXPECT_TRUE(why_not_comparable(cycles_of(kMarker, "s", {Phase::decode}),
                                 cycles_of(model::CycleMethod::launch_sequence, "s", {Phase::decode})));
}

TEST(WhyNotComparable, DescriptionsOfSequencesMayDiffer) {
  constexpr auto kSequence = model::CycleMethod::launch_sequence;
  EXPECT_FALSE(why_not_comparable(cycles_of(kSequence, "120 launches", {Phase::decode}),
                                  cycles_of(kSequence, "121 launches and more", {Phase::decode})));
}

TEST(WhyNotComparable, WithoutCyclesOrACommonPhase) {
  const Cycles decode = cycles_of(kMarker, "s", {Phase::decode});
  EXPECT_TRUE(why_not_comparable(decode, cycles_of(model::CycleMethod::none, "", {})));
  EXPECT_TRUE(why_not_comparable(cycles_of(kMarker, "s", {}), decode));
  const auto why = why_not_comparable(decode, cycles_of(kMarker, "s", {Phase::prefill, Phase::prefill}));
  ASSERT_TRUE(why);
  EXPECT_THAT(why->reason, HasSubstr("2 prefill"));
  EXPECT_THAT(why->remedy, testing::Not(HasSubstr("--anchor"))) << "another anchor gives no other phase";
}

TEST(OtherMixOfPhases, IsSaidBeyondATenth) {
  const Cycles a = cycles_of(kMarker, "s", {Phase::decode, Phase::decode});
  EXPECT_FALSE(other_mix_of_phases(a, a));
  EXPECT_TRUE(other_mix_of_phases(a, cycles_of(kMarker, "s", {Phase::decode, Phase::prefill})));
}

TEST(WorkToldByOne, LeavesAllStepsToBeCompared) {
  Cycles told = cycles_of(kMarker, "s", {Phase::decode, Phase::prefill});
  Cycles untold = cycles_of(kMarker, "s", {Phase::other, Phase::other});
  ASSERT_TRUE(work_told_by_one(told, untold));
  EXPECT_THAT(*work_told_by_one(told, untold), HasSubstr("Steps of the candidate do not tell"));
  EXPECT_THAT(*work_told_by_one(untold, told), HasSubstr("Steps of the baseline do not tell"));
  EXPECT_TRUE(why_not_comparable(told, untold));
  told.cycles[0].workload.batch = 4;
  for (Cycles* side : {&told, &untold}) forget_work(side->cycles);
  EXPECT_FALSE(why_not_comparable(told, untold));
  EXPECT_EQ(told.cycles[0].workload.batch, -1);
}

TEST(WorkToldByOne, IsSaidOnlyOfTheSameSteps) {
  const Cycles told = cycles_of(kMarker, "s", {Phase::decode});
  const Cycles untold = cycles_of(kMarker, "s", {Phase::other});
  EXPECT_FALSE(work_told_by_one(told, told));
  EXPECT_FALSE(work_told_by_one(untold, untold));
  EXPECT_FALSE(work_told_by_one(told, cycles_of(kMarker, "t", {Phase::other})));
  EXPECT_FALSE(work_told_by_one(told, cycles_of(model::CycleMethod::host_function, "s", {Phase::other})));
  EXPECT_FALSE(work_told_by_one(cycles_of(kMarker, "s", {Phase::decode, Phase::other, Phase::other}), untold))
      << "of most steps nothing was known";
  EXPECT_FALSE(work_told_by_one(cycles_of(kMarker, "s", {Phase::decode, Phase::decode}),
                                cycles_of(kMarker, "s", {Phase::decode, Phase::other})));
}

TEST(ForgottenPhases, WhatThreadsDidIsAddedUp) {
  model::HostEvidence host;
  const auto at = [](Phase phase) { return static_cast<std::size_t>(phase); };
  host.cycles[at(Phase::decode)] = 5;
  host.cycles[at(Phase::prefill)] = 2;
  host.period_ns[at(Phase::decode)] = 10;
  host.states.push_back({"running", {}});
  host.states[0].total_ns[at(Phase::prefill)] = 3;
  host.states[0].total_ns[at(Phase::other)] = 4;
  host.step.emplace();
  host.step->blocked[at(Phase::decode)] = 6;
  forget_phases(host);
  EXPECT_EQ(host.cycles[at(Phase::other)], 7U);
  EXPECT_EQ(host.cycles[at(Phase::decode)], 0U);
  EXPECT_EQ(host.period_ns[at(Phase::other)], 10);
  EXPECT_EQ(host.states[0].total_ns[at(Phase::other)], 7);
  EXPECT_EQ(host.step->blocked[at(Phase::other)], 6);
  EXPECT_EQ(host.step->blocked[at(Phase::decode)], 0);
}

Cycles with_phases(std::vector<std::pair<Phase, bool>> phases) {
  Cycles cycles;
  for (const auto& [phase, guessed] : phases) {
    model::Cycle& cycle = cycles.cycles.emplace_back();
    cycle.phase = phase;
    cycle.phase_guessed = guessed;
  }
  return cycles;
}

TEST(GuessedPhases, DoNotStandBetweenTwoRuns) {
  Cycles a = with_phases({{Phase::prefill, true}, {Phase::prefill, true}});
  const Cycles b = with_phases({{Phase::other, false}});
  EXPECT_TRUE(needs_forgetting(a, b));
  forget_guessed_phases(a.cycles);
  EXPECT_EQ(common_phases(a, b), std::vector<Phase>{Phase::other});
}

TEST(GuessedPhases, StayWhereTheyAgree) {
  EXPECT_FALSE(needs_forgetting(with_phases({{Phase::prefill, true}, {Phase::decode, true}}),
                                with_phases({{Phase::decode, true}})));
}

TEST(GuessedPhases, WhatWasStatedStays) {
  EXPECT_FALSE(needs_forgetting(with_phases({{Phase::prefill, false}}), with_phases({{Phase::decode, false}})));
}

}  // namespace
}  // namespace culprit::compare
