#include "compare/held_back.h"

#include <gtest/gtest.h>

#include <utility>

#include "compare/one_side.h"

namespace culprit::compare {
namespace {

using model::Outcome;
using model::Phase;

/// `steps` of a phase that compute for so long and wait so long for a CPU, ns.
void add(model::HostEvidence& side, std::size_t phase, std::uint64_t steps, double on_cpu, double waits) {
  if (!side.step) side.step.emplace();
  side.cycles[phase] = steps;
  side.step->on_cpu[phase] = on_cpu * static_cast<double>(steps);
  side.step->runnable[phase] = waits * static_cast<double>(steps);
}

model::CycleTimeOutcome period(Phase phase, double change, Outcome outcome = Outcome::inconclusive) {
  model::CycleTimeOutcome judged;
  judged.phase = phase;
  judged.change = change;
  judged.outcome = outcome;
  judged.cycles = {100, 100};
  return judged;
}

/// Two sides of 100 decode steps of 10 ms; the candidate's wait 4 ms for a CPU.
struct HostPair {
  model::HostEvidence base, candidate;
  std::vector<model::CycleTimeOutcome> periods = {period(Phase::decode, 0.35)};
  model::RunComparison result;

  HostPair() {
    add(base, kDecode, 100, 10e6, 0);
    add(candidate, kDecode, 100, 10e6, 4e6);
    result.cycle_times = {period(Phase::decode, 0.02)};
    result.host.emplace();
  }
  [[nodiscard]] std::string why() const { return why_slower(result, periods, {&base, &candidate}, 1); }
};

TEST(WhySlower, TheWaitForCpusSaysSo) {
  const HostPair pair;
  EXPECT_EQ(pair.why(),
            "On the average a step of the candidate waited 4.000ms instead of 0.000us for a CPU, by which it is 35 % "
            "longer at least; by how much in all is not decided");
}

TEST(WhySlower, TheOtherSideIsJudgedAlike) {
  HostPair pair;
  std::swap(pair.base, pair.candidate);
  pair.periods.front().change = 1 / 1.35 - 1;
  EXPECT_NE(why_slower(pair.result, pair.periods, {&pair.base, &pair.candidate}, 0).find("of the baseline waited"),
            std::string::npos);
  EXPECT_EQ(why_slower(pair.result, pair.periods, {&pair.base, &pair.candidate}, 1), "");
}

TEST(WhySlower, OneLongStallIsNoSlowerStep) {
  HostPair pair;
  pair.periods.front().change = 0.013;  // one of 400 steps took 200 times as long
  EXPECT_EQ(pair.why(), "");
}

TEST(WhySlower, AStallThatIsLongerThanAllStepsIsMostOfTheTime) {
  HostPair pair;
  pair.candidate = {};
  add(pair.candidate, kDecode, 100, 10e6, 11e6);
  pair.periods.front().change = 0.02;
  EXPECT_NE(pair.why().find("waited 11.000ms instead of 0.000us for a CPU"), std::string::npos);
}

TEST(WhySlower, FewStepsSayNothing) {
  HostPair pair;
  pair.base.cycles[kDecode] = 29;
  EXPECT_EQ(pair.why(), "");
}

/// Half seconds in which so many steps began.
void add_stretches(model::HostEvidence& side, std::vector<double> steps) {
  for (const double n : steps) side.stretches.push_back({.others = 0, .steps = n, .period_ns = 0.5e9});
}

/// Most steps are as long as ever, and long ones lie between them: in most half seconds there are few.
HostPair stalled() {
  HostPair pair;
  pair.candidate = {};
  add(pair.candidate, kDecode, 100, 25e6, 2e6);
  pair.periods.front().change = 0.02;
  add_stretches(pair.base, {12, 12, 11, 13, 13, 14, 14, 16, 14, 14, 15, 18, 19, 19, 19, 15});
  add_stretches(pair.candidate, {2, 0, 1, 1, 7, 9, 8, 1, 0, 2, 10, 16, 21, 5, 13, 4});
  return pair;
}

TEST(WhySlower, FewStepsInMostOfTheTimeSaySo) {
  HostPair pair = stalled();
  EXPECT_EQ(pair.why(),
            "In most half seconds the candidate did fewer steps than the baseline in nine of ten, 4.5 instead of 14 in "
            "the median, while others took its CPUs; by how much a step is longer is not decided");
  std::swap(pair.base, pair.candidate);
  EXPECT_EQ(pair.why(), "");
  EXPECT_NE(why_slower(pair.result, pair.periods, {&pair.base, &pair.candidate}, 0), "");
}

TEST(WhySlower, FewStepsInSomeOfTheTimeAreNoMeasure) {
  HostPair pair = stalled();
  pair.candidate.stretches.clear();
  add_stretches(pair.candidate, {2, 0, 1, 1, 12, 14, 15, 1, 0, 2, 12, 16, 21, 14, 13, 12});
  EXPECT_EQ(pair.why(), "") << "half of it";
  pair.candidate.stretches.clear();
  add_stretches(pair.candidate, {11, 10, 11, 11, 10, 11, 10, 11, 10, 11, 10, 11, 11, 10, 11, 10});
  EXPECT_EQ(pair.why(), "") << "a quarter fewer, as two recordings of the same may have";
  pair.candidate.stretches.resize(7);
  for (model::Stretch& stretch : pair.candidate.stretches) stretch.steps = 1;
  EXPECT_EQ(pair.why(), "") << "three and a half seconds";
}

TEST(WhySlower, WhoSleepsMostOfTheTimeIsAskedForLess) {
  HostPair pair = stalled();
  pair.candidate.step->on_cpu[kDecode] = 100 * 12e6;
  pair.candidate.step->blocked[kDecode] = 100 * 13e6;
  EXPECT_EQ(pair.why(), "");
}

TEST(WhySlower, APhaseThatIsShownToBeFasterContradicts) {
  HostPair pair;
  pair.result.cycle_times.push_back(period(Phase::prefill, -0.2, Outcome::improvement));
  EXPECT_EQ(pair.why(), "");
}

TEST(WhySlower, OtherWorkIsNoMeasure) {
  HostPair pair;
  pair.result.cycle_times.front().other_share = 0.6;
  EXPECT_EQ(pair.why(), "");
  pair.result.cycle_times.front().requests = {2, 4};
  EXPECT_EQ(pair.why(), "");
  pair.result.cycle_times.front().requests = {4, 2};
  EXPECT_NE(pair.why(), "") << "less work takes no longer";
}

TEST(WhySlower, AnotherMixOfPhasesIsNoWait) {
  // Prefill waits on both sides, and the candidate has more of it.
  HostPair pair;
  pair.base = pair.candidate = {};
  for (auto* side : {&pair.base, &pair.candidate}) {
    const bool first = side == &pair.base;
    add(*side, kDecode, first ? 900 : 100, 10e6, 0);
    add(*side, kPrefill, first ? 100 : 900, 10e6, 8e6);
  }
  pair.periods = {period(Phase::decode, 0.2), period(Phase::prefill, 0.2)};
  EXPECT_EQ(pair.why(), "");
}

TEST(WhySlower, APeriodThatIsShownToBeLongerIsEnough) {
  HostPair pair;
  pair.candidate.step.reset();
  pair.periods = {period(Phase::decode, 0.35, Outcome::regression)};
  EXPECT_NE(pair.why().find("others took the CPUs of the candidate"), std::string::npos);
}

TEST(WhySlower, APhaseThatIsNotDecidedStandsInNoSidesWay) {
  HostPair pair;
  pair.periods = {period(Phase::decode, 0.5, Outcome::regression), period(Phase::prefill, 0.3)};
  EXPECT_NE(pair.why(), "");
  EXPECT_NE(why_later(pair.result, pair.periods, 1), "");
  pair.periods = {period(Phase::decode, -0.33, Outcome::improvement), period(Phase::prefill, -0.2)};
  EXPECT_NE(why_slower(pair.result, pair.periods, {&pair.base, &pair.candidate}, 0), "") << "the mirror of it";
  EXPECT_NE(why_later(pair.result, pair.periods, 0), "");
}

TEST(WhySlower, APeriodIsContradictedByAnotherPhase) {
  HostPair pair;
  pair.periods = {period(Phase::decode, 0.5, Outcome::regression)};
  pair.result.cycle_times.push_back(period(Phase::prefill, -0.2, Outcome::improvement));
  EXPECT_EQ(pair.why(), "");
  EXPECT_EQ(why_later(pair.result, pair.periods, 1), "");
}

TEST(WhyUndecided, StepsThatTakeLessAndComeLaterDecideNothing) {
  const std::vector later = {period(Phase::decode, 0.24)};
  EXPECT_EQ(why_undecided(Outcome::improvement, later),
            "steps of the candidate themselves take less, and the next one comes 24 % later: what lies between them is "
            "slower, or there was less to do");
  EXPECT_EQ(why_undecided(Outcome::regression, later), "") << "they take more, and come later";
  EXPECT_EQ(why_undecided(Outcome::inconclusive, later), "");
  EXPECT_NE(why_undecided(Outcome::regression, {period(Phase::decode, 1 / 1.24 - 1)}).find("of the baseline"),
            std::string::npos)
      << "the mirror of it";
}

TEST(WhyUndecided, AsMuchTimeUntilTheNextIsDemand) {
  EXPECT_EQ(why_undecided(Outcome::improvement, {period(Phase::decode, 0.01)}), "");
  EXPECT_EQ(why_undecided(Outcome::improvement, {}), "");
  std::vector few = {period(Phase::decode, 0.24)};
  few.front().cycles = {29, 400};
  EXPECT_EQ(why_undecided(Outcome::improvement, few), "") << "one stall is a large part of their mean";
  few.front().change = 1.6;
  EXPECT_NE(why_undecided(Outcome::improvement, few), "") << "no stall";
  EXPECT_EQ(why_undecided(Outcome::regression, few), "");
}

TEST(WhyUndecided, PhasesCountByTheirSteps) {
  std::vector phases = {period(Phase::decode, -0.01), period(Phase::prefill, 0.3)};
  phases.front().cycles = {1000, 1000};
  EXPECT_EQ(why_undecided(Outcome::improvement, phases), "");
  phases.front().cycles = {50, 50};
  EXPECT_NE(why_undecided(Outcome::improvement, phases), "");
}

TEST(HeldBack, WhoWaitsBehindOthersIsHoweverLittleTheyTake) {
  model::HostChanges host;
  host.beside = {{"stream", "count", {0, 0.34}}};
  host.step = {{"on CPU", "ns per step", {9e6, 9e6}}, {"runnable, in the run queue", "ns per step", {1e6, 5e6}}};
  EXPECT_FALSE(was_held_back(host, 1)) << "nobody tells behind whom";
  host.behind_others = {0.3, 0.6};  // 0.3 and 3 ms of 10
  EXPECT_TRUE(was_held_back(host, 1));
  EXPECT_FALSE(was_held_back(host, 0));
  host.behind_others = {0.3, 0.2};
  EXPECT_FALSE(was_held_back(host, 1)) << "its own threads had them";
  host.beside[0].value[1] = 0.45;
  EXPECT_TRUE(was_held_back(host, 1)) << "who share what those left";
  host.beside[0].value[1] = 0.36;
  EXPECT_TRUE(was_held_back(host, 1)) << "it waited far longer";
  host.step[1].value[1] = 3.5e6;
  EXPECT_FALSE(was_held_back(host, 1)) << "a quarter of a step";
  host.beside[0].value[1] = 0.45;
  host.step[1].value[1] = 1.5e6;
  EXPECT_FALSE(was_held_back(host, 1)) << "it did not wait for CPUs much longer";
}

TEST(AnsweredLater, TokensThatComeLaterSaySo) {
  model::HostChanges host;
  EXPECT_FALSE(answered_later(host, 1));
  host.requests = {{.what = "time per output token", .median = {5e6, 10e6}, .moved = true}};
  EXPECT_TRUE(answered_later(host, 1));
  EXPECT_FALSE(answered_later(host, 0));
  host.requests.front().moved = false;
  EXPECT_FALSE(answered_later(host, 1)) << "recordings of the same differ so";
  host.requests = {{.what = "queue wait", .median = {5e6, 10e6}, .moved = true}};
  EXPECT_FALSE(answered_later(host, 1)) << "that is more requests at once, too";
}

TEST(WhyLater, APeriodThatIsShownToBeLongerOfLikeWork) {
  HostPair pair;
  EXPECT_EQ(why_later(pair.result, pair.periods, 1), "") << "not shown";
  pair.periods.front().outcome = Outcome::regression;
  EXPECT_NE(why_later(pair.result, pair.periods, 1).find("requests to the candidate waited longer"), std::string::npos);
  EXPECT_EQ(why_later(pair.result, pair.periods, 0), "");
  pair.result.cycle_times.front().other_share = 0.6;
  EXPECT_EQ(why_later(pair.result, pair.periods, 1), "");
}

TEST(WhyLater, MoreRequestsAtOnceOfWhichFewerAreAnsweredAreNoOtherWork) {
  HostPair pair;
  pair.periods.front().outcome = Outcome::regression;
  pair.result.cycle_times.front().other_share = 0.6;
  pair.result.host->answered_per_second = {24, 19};
  EXPECT_EQ(why_later(pair.result, pair.periods, 1), "") << "they come no later";
  pair.result.host->requests = {{.what = "time per output token", .median = {5e6, 10e6}, .moved = true}};
  EXPECT_NE(why_later(pair.result, pair.periods, 1), "");
  pair.result.host->answered_per_second = {24, 23};
  EXPECT_EQ(why_later(pair.result, pair.periods, 1), "") << "about as many";
  pair.result.host->answered_per_second = {24, 0};
  EXPECT_EQ(why_later(pair.result, pair.periods, 1), "") << "not known";
  pair.result.host->answered_per_second = {24, 19};
  pair.result.cycle_times.push_back(period(Phase::prefill, 0.1));
  pair.result.cycle_times.back().other_share = 0.6;
  EXPECT_EQ(why_later(pair.result, pair.periods, 1), "") << "they are other requests";
  pair.result.cycle_times.back().cycles = {51, 2};
  EXPECT_NE(why_later(pair.result, pair.periods, 1), "") << "two steps do not tell";
}

}  // namespace
}  // namespace culprit::compare
