#include "compare/comparable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace culprit::compare {
namespace {

using model::Cycles;
using model::Phase;
using model::Profile;
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

TEST(ComparisonNotes, NameAnotherMixOfPhases) {
  const Cycles a = cycles_of(kMarker, "s", {Phase::decode, Phase::decode});
  EXPECT_TRUE(comparison_notes(a, a).empty());
  EXPECT_EQ(comparison_notes(a, cycles_of(kMarker, "s", {Phase::decode, Phase::prefill})).size(), 1u);
}

/// One cycle; each process runs `name` for `time` on a device.
Profile profile_of(const std::vector<model::ProfileProcess>& processes, const std::vector<Ns>& times,
                   const std::string& device = "GPU 0") {
  Profile profile;
  profile.processes = processes;
  model::ProfileCycle cycle;
  cycle.number = 1;
  cycle.duration = 1000;
  cycle.phase = Phase::decode;
  profile.cycles.push_back(cycle);
  for (std::size_t p = 0; p < processes.size(); ++p) {
    model::FunctionUse use;
    use.process = static_cast<std::uint32_t>(p);
    use.function = profile.texts.intern("f");
    use.device = profile.texts.intern(device);
    use.kind = profile.texts.intern("gpu_compute");
    use.count = 2;
    use.duration = times[p];
    use.exposed = times[p];
    use.beta = static_cast<double>(times[p]) / 1000;
    profile.functions.push_back(use);
    model::ResourceUse none;
    none.use = static_cast<std::uint32_t>(p);
    profile.resources.push_back(none);
  }
  return profile;
}

TEST(MatchRoles, RestartedProcessesKeepTheirPlace) {
  const Profile base = profile_of({{10, 0, 0}, {11, 0, 1}}, {500, 500});
  const Profile candidate = profile_of({{99, 0, 1}, {98, 0, 0}}, {500, 500});
  const Roles roles = match_roles(base, candidate);
  EXPECT_EQ(roles.base, (std::vector<std::int64_t>{10, 11}));
  EXPECT_EQ(roles.candidate, (std::vector<std::int64_t>{11, 10}));
}

TEST(MatchRoles, OneNumberOnTwoHostsIsTwoProcesses) {
  const Profile base = profile_of({{1, 0, 0}, {1, 0, 1}}, {500, 500});
  const Roles roles = match_roles(base, base);
  EXPECT_NE(roles.base[0], roles.base[1]);
  EXPECT_EQ(roles.base, roles.candidate);
}

TEST(MatchRoles, WhatIsNewHasANumberOfItsOwn) {
  const Profile base = profile_of({{10, 0, 0}}, {500});
  const Profile candidate = profile_of({{98, 0, 0}, {99, 0, 1}}, {500, 500});
  const Roles roles = match_roles(base, candidate);
  EXPECT_EQ(roles.candidate[0], 10);
  EXPECT_NE(roles.candidate[1], 10);
}

TEST(AppendReplicate, PutsTheSameRoleTogether) {
  Profile run = profile_of({{10, 0, 0}}, {500});
  append_replicate(run, profile_of({{77, 0, 0}}, {600}));
  EXPECT_EQ(run.processes.size(), 1u);
  EXPECT_EQ(run.cycles.size(), 2u);
  ASSERT_EQ(run.functions.size(), 2u);
  EXPECT_EQ(run.functions[1].process, 0u);
  EXPECT_EQ(run.functions[1].cycle, 1u);
  EXPECT_EQ(run.resources[1].use, 1u);
  EXPECT_EQ(run.texts[run.functions[1].function], "f");
}

}  // namespace
}  // namespace culprit::compare
