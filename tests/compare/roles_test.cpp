#include "compare/roles.h"

#include <gtest/gtest.h>

#include <string>

namespace culprit::compare {
namespace {

using model::Phase;
using model::Profile;

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
  ASSERT_EQ(roles.pairs.size(), 2U);
  EXPECT_EQ(roles.pairs[0].pid, (std::array<std::optional<std::int64_t>, 2>{10, 98}));
  EXPECT_EQ(roles.pairs[1].pid, (std::array<std::optional<std::int64_t>, 2>{11, 99}));
  EXPECT_EQ(roles.of_side[0], (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(roles.of_side[1], (std::vector<std::uint32_t>{1, 0}));
}

TEST(MatchRoles, TellWhichProcessesHaveSteps) {
  Profile base = profile_of({{10, 0, 0}, {11, 0, 0}}, {500, 400});
  Profile candidate = profile_of({{20, 0, 0}, {21, 0, 0}}, {500, 400});
  for (const model::ProcessPair& pair : match_roles(base, candidate).pairs) EXPECT_TRUE(pair.has_steps);
  base.cycles[0].pid = 10;
  candidate.cycles[0].pid = 20;
  const Roles roles = match_roles(base, candidate);
  ASSERT_EQ(roles.pairs.size(), 2U);
  EXPECT_TRUE(roles.pairs[0].has_steps);
  EXPECT_FALSE(roles.pairs[1].has_steps);
}

/// A server and its worker, of which the server takes more time on one side only: time alone would exchange them.
TEST(MatchRoles, WhatProcessesRunTellsThemApart) {
  const auto made = [](std::int64_t pid, std::array<Ns, 2> times) {
    Profile profile = profile_of({{pid, 0, 0}, {pid + 1, 0, 0}}, {times[0], times[1]}, "Host");
    for (model::FunctionUse& use : profile.functions) use.exposed = -1;
    profile.functions[0].function = profile.texts.intern("serve");
    profile.functions[1].function = profile.texts.intern("work");
    return profile;
  };
  for (const std::int64_t pid : {10, 20}) {
    const Roles roles = match_roles(made(10, {500, 400}), made(pid, {400, 500}));
    ASSERT_EQ(roles.pairs.size(), 2U);
    EXPECT_EQ(roles.pairs[0].pid, (std::array<std::optional<std::int64_t>, 2>{10, pid}));
    EXPECT_EQ(roles.pairs[1].pid, (std::array<std::optional<std::int64_t>, 2>{11, pid + 1}));
  }
}

TEST(MatchRoles, WorkersThatRunTheSameAreToldApartByTheirNumber) {
  const auto made = [](std::array<Ns, 2> times) {
    Profile profile = profile_of({{10, 0, 0}, {11, 0, 0}}, {times[0], times[1]}, "Host");
    for (model::FunctionUse& use : profile.functions) use.exposed = -1;
    return profile;
  };
  const Roles roles = match_roles(made({500, 400}), made({400, 500}));
  EXPECT_EQ(roles.of_side[0], roles.of_side[1]);
}

TEST(MatchRoles, OneNumberOnTwoHostsIsTwoProcesses) {
  const Profile base = profile_of({{1, 0, 0}, {1, 0, 1}}, {500, 500});
  const Roles roles = match_roles(base, base);
  EXPECT_EQ(roles.pairs.size(), 2U);
  EXPECT_NE(roles.of_side[0][0], roles.of_side[0][1]);
  EXPECT_EQ(roles.of_side[0], roles.of_side[1]);
}

TEST(MatchRoles, WhatIsNewHasNoPartner) {
  const Profile base = profile_of({{10, 0, 0}}, {500});
  const Profile candidate = profile_of({{98, 0, 0}, {99, 0, 1}}, {500, 500});
  const Roles roles = match_roles(base, candidate);
  ASSERT_EQ(roles.pairs.size(), 2U);
  EXPECT_FALSE(roles.pairs[1].pid[0]);
  EXPECT_EQ(roles.pairs[1].pid[1], 99);
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
