// Options, variables and versions that differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

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

TEST(SettingsRules, WhereNothingIsDecidedTheyAreLatent) {
  model::RunComparison c = comparison(model::Outcome::inconclusive);
  set_step(c, {10, 12}, {0, 0}, {0, 0});
  c.environment = {{"env.target.variable.VLLM_LOGGING_LEVEL", {"WARNING", "DEBUG"}}};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(causes(c), std::vector<std::string>{"environment_changed/variable"});
  EXPECT_EQ(verdicts[0].state, model::VerdictState::latent);
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.3);
  EXPECT_EQ(causes(swapped(std::move(c))), std::vector<std::string>{"-environment_changed/variable"});
  model::RunComparison alike = comparison(model::Outcome::inconclusive);
  set_step(alike, {10, 10.8}, {0, 0}, {0, 0});
  alike.environment = {{"env.target.variable.VLLM_LOGGING_LEVEL", {"WARNING", "DEBUG"}}};
  EXPECT_TRUE(diagnose(alike).empty());
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

TEST(SettingsRules, SettingsOfTheMachineAndItsDevicesAreSome) {
  const auto cause_of = [](const std::string& key, std::array<std::string, 2> value) {
    model::RunComparison c = comparison();
    set_step(c, {10, 13}, {0, 0}, {0, 0});
    c.environment = {{key, std::move(value)}};
    const auto verdicts = diagnose(c);
    return verdicts[0].cause == "unknown" ? "" : verdicts[0].detail + ": " + verdicts[0].evidence.front();
  };
  EXPECT_EQ(cause_of("env.memory.transparent_hugepage.enabled", {"always", "never"}),
            "machine: The setting transparent_hugepage/enabled is never instead of always");
  EXPECT_EQ(cause_of("env.kernel.boot.mitigations", {"off", ""}),
            "machine: The kernel's boot option mitigations is none instead of off");
  EXPECT_EQ(cause_of("env.setting.vm.swappiness", {"10", "60"}),
            "machine: The setting vm.swappiness is 60 instead of 10");
  EXPECT_EQ(cause_of("env.gpu3.ecc", {"off", "on"}), "device: ECC of a device is on instead of off");
  EXPECT_EQ(cause_of("env.target.cgroup.cpu.weight", {"100", "10"}),
            "limit: The control group's cpu.weight is 10 instead of 100");
  EXPECT_EQ(cause_of("env.setting.kernel.perf_event_paranoid", {"2", "-1"}), "") << "no program feels it";
  EXPECT_EQ(cause_of("env.cpu.model", {"A", ""}), "") << "one side does not tell it";
}

TEST(SettingsRules, ABootOptionOfASideThatTellsNothingOfItsKernelIsUnknown) {
  model::RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  c.environment = {{"env.kernel.boot.mitigations", {"off", ""}}, {"env.kernel.release", {"6.1", ""}}};
  EXPECT_EQ(diagnose(c)[0].cause, "unknown");
}

TEST(SettingsRules, OfSeveralProcessesWhichHasWhichNumberIsNoDifference) {
  model::RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  c.environment = {{"env.target1.variable.RANK", {"0", "1"}}, {"env.target2.variable.RANK", {"1", "0"}}};
  EXPECT_EQ(diagnose(c)[0].cause, "unknown");
  c.environment = {{"env.target1.option.batch", {"", "8"}}};  // a process more
  EXPECT_EQ(diagnose(c)[0].cause, "unknown");
  c.environment = {{"env.target1.option.batch", {"4", "8"}}, {"env.target2.option.batch", {"4", "8"}}};
  EXPECT_EQ(diagnose(c)[0].evidence.front(), "The option --batch is 8 instead of 4");
}

TEST(SettingsRules, AProcessThatOnlyOneSideHasMovesTheNumbersOfTheOthers) {
  model::RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  c.environment = {{"env.target1.variable.RANK", {"1", ""}},
                   {"env.target2.variable.RANK", {"2", "1"}},
                   {"env.target3.variable.RANK", {"", "2"}}};
  EXPECT_EQ(diagnose(c)[0].cause, "unknown");
  c.environment.push_back({"env.target4.variable.RANK", {"", "3"}});
  EXPECT_EQ(diagnose(c)[0].cause, "unknown");
  c.environment = {{"env.target1.sched.nice", {"", "10"}}, {"env.target2.cgroup.cpu.weight", {"100", ""}}};
  EXPECT_EQ(diagnose(c)[0].cause, "unknown");
  c.environment = {{"env.target1.option.batch", {"4", "8"}}, {"env.target2.option.batch", {"", "8"}}};
  EXPECT_EQ(diagnose(c)[0].evidence.front(), "The option --batch is 8 instead of 4") << "of both, and of one more";
  c.environment = {{"env.target.option.batch", {"4", "8"}}, {"env.target1.option.batch", {"", "4"}}};
  EXPECT_EQ(diagnose(c)[0].evidence.front(), "The option --batch is 8 instead of 4");
}

TEST(SettingsRules, TwoHostsThatDifferInWhatDoesNoHarm) {
  model::RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  c.environment = {{"env.setting.vm.min_free_kbytes", {"67584", "45056"}},
                   {"env.setting.vm.max_map_count", {"65530", "1048576"}},
                   {"env.setting.kernel.sched_rt_runtime_us", {"950000", "-1"}},
                   {"env.setting.net.core.rmem_max", {"212992", "4194304"}},
                   {"env.setting.net.core.wmem_max", {"212992", "4194304"}},
                   {"env.cpu.microcode", {"0xd0003f5", "0xd000404"}},
                   {"env.disk.sda.rotational", {"0", "1"}}};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "unknown");
}

TEST(SettingsRules, WhatOnlyDiffersBetweenMachinesIsUnsure) {
  model::RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  c.environment = {{"env.cpu.vulnerability.l1tf", {"Not affected", "Mitigation: PTE Inversion"}},
                   {"env.cpu.vulnerability.meltdown", {"Not affected", "Mitigation: PTI"}},
                   {"env.cpu.vulnerability.mds", {"Not affected", "Mitigation: Clear CPU buffers"}}};
  auto verdicts = diagnose(c);
  ASSERT_EQ(causes(c), std::vector<std::string>{"environment_changed/machine"});
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.3);
  EXPECT_THAT(verdicts[0].evidence,
              testing::ElementsAre("What is done against the CPU's vulnerabilities (3 differ, l1tf among them) is "
                                   "Mitigation: PTE Inversion instead of Not affected"));
  c.environment.resize(1);
  EXPECT_THAT(diagnose(c)[0].evidence, testing::ElementsAre("What is done against the CPU's vulnerability l1tf is "
                                                            "Mitigation: PTE Inversion instead of Not affected"));
  c.environment = {{"env.cpu.model", {"A", "B"}}, {"env.target.package.vllm", {"0.32.0", "0.33.0"}}};
  EXPECT_DOUBLE_EQ(diagnose(c)[0].confidence, 0.3);
  c.environment = {{"env.target.package.vllm", {"0.32.0", "0.33.0"}}};
  EXPECT_DOUBLE_EQ(diagnose(c)[0].confidence, 0.5) << "one machine";
  c.environment.push_back({"env.cpu.model", {"A", ""}});
  EXPECT_DOUBLE_EQ(diagnose(c)[0].confidence, 0.5) << "one side does not tell it";
}

TEST(SettingsRules, OnlyWhatIsTheProgramsStandsBesideItsFunctions) {
  model::RunComparison c = with_functions();
  add_function(c, "emit", "python", "Host", {1, 5}, {4, 4}, model::FunctionStatus::changed);
  c.environment = {{"env.setting.vm.swappiness", {"10", "60"}}, {"env.gpu.ecc", {"off", "on"}}};
  auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts[0].cause, "host_bound");
  EXPECT_THAT(verdicts[0].evidence, testing::Not(testing::Contains(testing::HasSubstr("instead of 10"))));
  EXPECT_THAT(verdicts[0].evidence, testing::Not(testing::Contains(testing::HasSubstr("ECC"))));
  c.environment.push_back({"env.target.option.batch", {"4", "8"}});
  EXPECT_THAT(diagnose(c)[0].evidence, testing::Contains("The option --batch is 8 instead of 4"));
}

TEST(SettingsRules, WhichRightToTheCpusItHasIsSaidInWords) {
  const auto text = [](const std::string& key, std::array<std::string, 2> value) {
    model::RunComparison c = comparison();
    set_step(c, {10, 13}, {0, 0}, {0, 0});
    c.environment = {{key, std::move(value)}};
    return diagnose(c)[0].evidence.front();
  };
  EXPECT_EQ(text("env.target.sched.nice", {"0", "10"}), "Its nice value is 10 instead of 0");
  EXPECT_EQ(text("env.target.sched.policy", {"other", "idle"}), "Its scheduling policy is idle instead of other");
}

}  // namespace
}  // namespace culprit::diagnose
