// What held a side that did no step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/comparison.h"

namespace culprit::diagnose {
namespace {

using model::RunComparison;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunComparison still(std::size_t side = 1) {
  RunComparison c = comparison(side == 1 ? model::Outcome::regression : model::Outcome::improvement);
  c.standstill = model::Standstill{.side = side,
                                   .thread = "worker",
                                   .process = "server",
                                   .recorded = 8e9,
                                   .on_cpu = 16e6,
                                   .runnable = 7.9e9,
                                   .steps_per_second = 100,
                                   .at_most = 0.25};
  return c;
}

TEST(StandstillRules, OthersHadTheCpus) {
  RunComparison c = still();
  add_beside(c, "burner", {0, 1.8});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
  const model::Verdict verdict = diagnose(c).front();
  EXPECT_THAT(verdict.evidence, ElementsAre("worker, which runs the steps, waited for a CPU for 7.900s of 8.000s",
                                            HasSubstr("burner took 1.8 instead of 0 CPUs")));
  EXPECT_THAT(verdict.next_step, HasSubstr("burner"));
  EXPECT_EQ(verdict.state, model::VerdictState::active);
}

TEST(StandstillRules, OfWorkNobodyKnowsWhoDoesIt) {
  RunComparison c = still();
  c.standstill->units = "requests";
  EXPECT_THAT(diagnose(c).front().evidence, Contains("worker waited for a CPU for 7.900s of 8.000s"));
}

TEST(StandstillRules, ThatOfTheBaselineIsTheBaselines) {
  RunComparison c = still(0);
  add_beside(c, "burner", {1.8, 0});
  EXPECT_THAT(causes(c), ElementsAre("-cpu_contention/other_processes"));
}

TEST(StandstillRules, AQuotaHeldIt) {
  RunComparison c = still();
  c.host->counters.push_back({"cgroup.cpu.throttled_time", "ns/s", {0.0, 1.9e9}});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/throttled"));
}

TEST(StandstillRules, WhereNobodyIsSeenNobodyIsNamed) {
  RunComparison c = still();
  add_beside(c, "idle", {0, 0.1});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/unknown"));
  EXPECT_THAT(diagnose(c).front().against, Contains("Who had the CPUs meanwhile is not known"));
}

TEST(StandstillRules, WhoNeverGetsACpuWaitsBehindSomebodyThoughNobodyCame) {
  RunComparison c = still();
  c.host->counters.push_back({"host.cpu.others", "count", {1.8, 1.0}});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
  const model::Verdict verdict = diagnose(c).front();
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("Programs beside it took 1 instead of 1.8 CPUs, and somebody had")));
  EXPECT_EQ(verdict.confidence, 0.6);
  c.host->counters.back().value = {1.8, 0.3};
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/unknown"));
}

TEST(StandstillRules, WhereNobodyCameButItsRightsWereLoweredThoseAreWhy) {
  RunComparison c = still();
  c.host->counters.push_back({"host.cpu.others", "count", {1.8, 1.0}});
  c.environment = {{"env.target.cpus_allowed", {"0-1", "0"}}};
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/affinity"));
  c.environment.push_back({"env.target.sched.policy", {"other", "idle"}});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/priority"));
  EXPECT_THAT(diagnose(c).front().evidence,
              ElementsAre("It runs by the policy idle instead of other", "It may use CPUs 0 instead of 0-1",
                          HasSubstr("waited for a CPU"), HasSubstr("took 1 instead of 1.8 CPUs")));
  add_beside(c, "burner", {0, 1.8});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
}

TEST(StandstillRules, StoppedIsNotStarved) {
  RunComparison c = still();
  add_beside(c, "burner", {0, 1.8});
  c.standstill->runnable = 1e9;
  c.standstill->stopped = 6.9e9;
  EXPECT_THAT(causes(c), ElementsAre("process_stopped"));
}

TEST(StandstillRules, WhoDidStepsBeforeHasOtherCausesToo) {
  RunComparison c = still();
  set_step(c, {10, 10}, {0, 0}, {0, 0});
  c.standstill->at_end = c.standstill->compared = true;
  c.standstill->seen = 50;
  c.standstill->runnable = 0;
  c.standstill->stopped = 7.9e9;
  const auto verdicts = diagnose(c);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, "process_stopped");
  EXPECT_EQ(verdicts[0].impact_ns, 8e9 / 50);
  EXPECT_EQ(verdicts[0].evidence[0], "No step began in the last 8.000s of the recording");
  c.standstill->side = 0;
  c.outcome = model::Outcome::improvement;
  EXPECT_THAT(causes(c), Contains("-process_stopped"));
}

TEST(StandstillRules, WhatMadeStepsLongerBeforeIsNamedOnce) {
  RunComparison c = still();
  set_step(c, {10, 10}, {0, 4}, {0, 0});
  add_beside(c, "burner", {0, 1.8});
  c.standstill->at_end = c.standstill->compared = true;
  c.standstill->seen = 50;
  const auto verdicts = diagnose(c);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, "cpu_contention");
  EXPECT_EQ(verdicts[0].detail, "other_processes");
  EXPECT_GT(verdicts[0].impact_ns, 8e9 / 50);
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("waited for a CPU")));
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
}

model::LongEnd stuck(std::string waits_in) {
  model::LongEnd end;
  end.thread.name = "worker";
  end.thread.recorded = 4e9;
  end.thread.on_cpu = 3.9e9;
  end.in_step = true;
  end.waits_in = std::move(waits_in);
  return end;
}

TEST(HangRule, AStepThatDoesNotEndMayHang) {
  RunComparison c = comparison(model::Outcome::inconclusive);
  set_step(c, {10, 10}, {0, 0}, {0, 0});
  c.stuck = model::StuckSide{1, stuck("futex")};
  EXPECT_THAT(causes(c), ElementsAre("hang/wait"));
  const model::Verdict verdict = diagnose(c).front();
  EXPECT_EQ(verdict.state, model::VerdictState::latent);
  EXPECT_THAT(verdict.evidence, ElementsAre("A step that began 4.000s before the end of the recording has not ended: "
                                            "worker, which runs them, was blocked in futex"));
  c.stuck = model::StuckSide{0, stuck("")};
  EXPECT_THAT(causes(c), ElementsAre("-hang/loop"));
}

TEST(StandstillRules, ASleepThatNoSignalEndsIsNotExplained) {
  RunComparison c = still();
  c.standstill->runnable = 0;
  c.standstill->uninterruptible = 7.9e9;
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  EXPECT_THAT(diagnose(c).front().evidence,
              ElementsAre("worker, which runs the steps, was in a sleep that no signal ends for 7.900s of 8.000s"));
}

}  // namespace
}  // namespace culprit::diagnose
