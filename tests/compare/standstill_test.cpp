// A side that did no step because its thread could not run.
#include "compare/standstill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "compare/compare_runs.h"
#include "compare/make_recording.h"
#include "compare/make_server.h"
#include "compare/one_side.h"
#include "core/units.h"

namespace culprit::compare {
namespace {

using model::Comparable;
using model::Outcome;
using model::Recording;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// 100 steps of 10 ms, of which the thread is on a CPU for 8.
Recording working() {
  Recording r = make_recording(std::vector<Ns>(100, 10'000'000));
  r.host.scheduling = true;
  r.host.steps_per_second = 100;
  r.host.cycles[1] = 100;
  model::StepThread& step = r.host.step.emplace();
  step.name = "worker";
  step.process = "server";
  step.main = true;
  step.on_cpu[1] = 100 * 8e6;
  return r;
}

/// In 8 s it had a CPU for 16 ms.
Recording standing() {
  Recording r;
  r.files = {"still.json"};
  r.cycles.reason = "nothing repeats";
  r.host.scheduling = true;
  r.host.per_second = true;
  r.host.held = {{.name = "helper", .process = "server", .recorded = 8 * kSecond, .runnable = 8 * kSecond},
                 {.name = "worker", .process = "server", .recorded = 8 * kSecond, .runnable = 8 * kSecond},
                 {.name = "worker",
                  .process = "server",
                  .main = true,
                  .recorded = 8 * kSecond,
                  .on_cpu = 0.016 * kSecond,
                  .runnable = 7.98 * kSecond}};
  return r;
}

std::optional<model::Standstill> found(Recording base, Recording candidate) {
  const std::vector<Recording> a = one(std::move(base));
  const std::vector<Recording> b = one(std::move(candidate));
  return standstill_of(a, b, comparability_of(a, b));
}

TEST(Standstill, AThreadThatCouldNotRunDidNoStep) {
  const auto still = found(working(), standing());
  ASSERT_TRUE(still.has_value());
  EXPECT_EQ(still->side, 1U);
  EXPECT_EQ(still->thread, "worker");
  EXPECT_EQ(still->runnable, 7.98 * kSecond);
  EXPECT_EQ(still->steps_per_second, 100);
  EXPECT_NEAR(still->at_most, 0.25, 1e-9) << "two steps' worth in 8 s";
  EXPECT_EQ(standstill_text(*still),
            "no step was seen in the candidate: worker, which runs them, was on a CPU for 16.000ms of 8.000s");
}

TEST(Standstill, OneStepOrTwoAreNearlyNone) {
  Recording one_step = standing();
  one_step.cycles = make_recording({0}).cycles;
  one_step.cycles.anchor = "ProfilerStep#1";
  one_step.host.held.back().on_cpu = 0;
  const auto still = found(working(), std::move(one_step));
  ASSERT_TRUE(still.has_value());
  EXPECT_EQ(still->seen, 1U);
  EXPECT_NEAR(still->at_most, 0.125, 1e-9);
  EXPECT_THAT(standstill_text(*still), HasSubstr("1 step was seen in the candidate"));
  Recording alike = standing();  // it is called as those of the other side
  alike.cycles = make_recording({0}).cycles;
  alike.cycles.cycles[0].ends = model::CycleEnd::open;
  const auto result = compare_runs(one(working()), one(std::move(alike)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::regression);
  EXPECT_TRUE(result->standstill.has_value());
  model::Standstill two = *still;
  two.seen = 2;
  EXPECT_THAT(standstill_text(two), HasSubstr("2 steps were seen"));
}

TEST(Standstill, AFewWholeStepsAreComparedAndTellNoOther) {
  const auto few = [] {
    Recording r = make_recording(std::vector<Ns>(4, 2'000'000'000));
    r.host = standing().host;
    r.host.per_second = false;
    r.host.steps_per_second = 0.5;
    return r;
  };
  const auto result = compare_runs(one(working()), one(few()), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::regression);
  ASSERT_TRUE(result->standstill.has_value());
  EXPECT_TRUE(result->standstill->compared);
  EXPECT_FALSE(result->cycle_times.empty());
  EXPECT_THAT(result->notes, Contains(HasSubstr("steps were seen in the candidate")));
  Recording ran = few();
  ran.host.held.clear();  // its thread could run
  const auto other = compare_runs(one(working()), one(std::move(ran)), {});
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->standstill.has_value());
}

TEST(Standstill, ThatOfTheBaselineIsAnImprovement) {
  const auto result = compare_runs(one(standing()), one(working()), {});
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->standstill.has_value());
  EXPECT_EQ(result->standstill->side, 0U);
  EXPECT_EQ(result->outcome, Outcome::improvement);
}

TEST(Standstill, ItIsARegression) {
  Recording still = standing();
  still.host.beside = {{"other", 1.5}};
  const auto result = compare_runs(one(working()), one(std::move(still)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::regression);
  EXPECT_EQ(result->comparability.level, Comparable::partly);
  EXPECT_THAT(result->comparability.reasons, ElementsAre(HasSubstr("no step was seen in the candidate")));
  EXPECT_EQ(result->comparability.remedy, "");
  ASSERT_TRUE(result->host.has_value());
  ASSERT_EQ(result->host->beside.size(), 1U);
  EXPECT_EQ(result->host->beside[0].what, "other");
}

TEST(Standstill, WhoWaitsForWorkDoesNotStandStill) {
  Recording idle = standing();
  idle.host.held.clear();
  EXPECT_FALSE(found(working(), std::move(idle)).has_value());
}

TEST(Standstill, AnotherThreadIsAnother) {
  Recording other = standing();
  other.host.held.pop_back();
  EXPECT_FALSE(found(working(), std::move(other)).has_value()) << "of the name, but not the main one";
  Recording elsewhere = standing();
  elsewhere.host.held.back().process = "client";
  EXPECT_FALSE(found(working(), std::move(elsewhere)).has_value());
}

TEST(Standstill, WhoHadTimeForStepsMayHaveDoneThem) {
  Recording busy = standing();
  busy.host.held.back().on_cpu = 0.9 * kSecond;  // 14 steps a second
  EXPECT_FALSE(found(working(), std::move(busy)).has_value());
}

TEST(Standstill, StepsHaveToBeMarkedAndTheirThreadKnown) {
  Recording guessed = working();
  guessed.cycles.method = model::CycleMethod::host_function;
  EXPECT_FALSE(found(std::move(guessed), standing()).has_value());
  Recording unknown = working();
  unknown.host.step.reset();
  EXPECT_FALSE(found(std::move(unknown), standing()).has_value());
  EXPECT_FALSE(found(standing(), standing()).has_value());
}

TEST(Standstill, EveryRecordingOfTheSideHasToStand) {
  std::vector<Recording> base = one(working());
  std::vector<Recording> candidate = one(standing());
  candidate.push_back(working());
  EXPECT_FALSE(standstill_of(base, candidate, comparability_of(base, candidate)).has_value());
  candidate.pop_back();
  candidate.push_back(standing());
  const auto still = standstill_of(base, candidate, comparability_of(base, candidate));
  ASSERT_TRUE(still.has_value());
  EXPECT_EQ(still->recorded, 16 * kSecond);
  EXPECT_NEAR(still->at_most, 0.25, 1e-9);
}

TEST(Standstill, OneThatStoodBesideSomeThatWorkedIsLeftOut) {
  std::vector<Recording> base = one(working());
  std::vector<Recording> candidate = one(standing());
  for (int i = 0; i < 2; ++i) candidate.push_back(working());
  const auto result = compare_runs(std::move(base), std::move(candidate), {});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->standstill.has_value());
  EXPECT_EQ(result->sides[1].recordings, 2U);
  EXPECT_THAT(
      result->notes,
      Contains("1 of 3 recordings of the candidate did no step, or none with an end, as worker, which runs them, "
               "could not run; left out: still.json"));
}

TEST(Standstill, OfMostThatStoodTheOthersAreLeftOut) {
  std::vector<Recording> candidate = one(working());
  for (int i = 0; i < 2; ++i) candidate.push_back(standing());
  candidate.front().files = {"works.json"};
  const auto result = compare_runs(one(working()), std::move(candidate), {});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->standstill.has_value());
  EXPECT_EQ(result->outcome, Outcome::regression);
  EXPECT_THAT(result->notes, Contains(HasSubstr("2 of 3 recordings of the candidate did no step")));
  EXPECT_THAT(result->notes, Contains(HasSubstr("left out: works.json")));
}

TEST(Standstill, OneThatOnlyWaitedIsNoneOfTheSame) {
  std::vector<Recording> candidate = one(standing());
  candidate.front().host.held.clear();
  for (int i = 0; i < 2; ++i) candidate.push_back(working());
  EXPECT_FALSE(compare_runs(one(working()), std::move(candidate), {}).ok());
}

/// 20 steps in 0.2 s, then it was stopped for 4 s.
Recording stopped_at_the_end() {
  Recording r = make_recording(std::vector<Ns>(20, 10'000'000));
  r.host.scheduling = true;
  r.host.steps_per_second = 4.8;
  model::LongEnd& end = r.host.long_end.emplace();
  end.thread = {.name = "worker", .process = "server", .main = true, .recorded = 4e9, .on_cpu = 1e6, .stopped = 3.9e9};
  end.held = true;
  return r;
}

/// 20 steps in 0.2 s, then none for 4 s.
Recording stuck(bool in_step, std::string waits_in = "futex", bool for_work = false) {
  Recording r = stopped_at_the_end();
  r.host.long_end->held = false;
  r.host.long_end->in_step = in_step;
  r.host.long_end->waits_in = std::move(waits_in);
  r.host.long_end->for_work = for_work;
  return r;
}

TEST(Standstill, WhoStoppedDoingStepsIsSlowerThanWhoDoesThem) {
  const auto still = found(working(), stopped_at_the_end());
  ASSERT_TRUE(still.has_value());
  EXPECT_TRUE(still->at_end);
  EXPECT_EQ(still->seen, 20U);
  EXPECT_EQ(still->steps_per_second, 100);
  EXPECT_EQ(still->at_most, 4.8);
  EXPECT_EQ(still->stopped, 3.9e9);
  EXPECT_EQ(standstill_text(*still),
            "no step began in the last 4.000s of the candidate: worker, which runs them, was on a CPU for 1.000ms of "
            "that");
  const auto result = compare_runs(one(working()), one(stopped_at_the_end()), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::regression);
  EXPECT_EQ(result->why, "");
  EXPECT_FALSE(result->cycle_times.empty()) << "steps before it are compared";
  const auto swapped = compare_runs(one(stopped_at_the_end()), one(working()), {});
  ASSERT_TRUE(swapped.ok());
  EXPECT_EQ(swapped->outcome, Outcome::improvement);
}

TEST(Standstill, ThatNoGuessedCyclesComeAnyMoreSaysNothing) {
  Recording guessed = stopped_at_the_end();
  guessed.cycles.method = model::CycleMethod::host_function;
  EXPECT_FALSE(found(working(), std::move(guessed)).has_value());
  Recording unsure = stopped_at_the_end();
  unsure.cycles.period_confidence = 0.5;
  EXPECT_FALSE(found(working(), std::move(unsure)).has_value());
}

TEST(Standstill, WhereBothEndSoItIsNoDifference) {
  EXPECT_FALSE(found(stopped_at_the_end(), stopped_at_the_end()).has_value());
  Recording faster = stopped_at_the_end();
  faster.host.steps_per_second = 120;
  EXPECT_FALSE(found(working(), std::move(faster)).has_value()) << "it did more all the same";
}

TEST(Standstill, WhereEventsWereLostNobodyIsSureOfIt) {
  Recording lossy = stopped_at_the_end();
  lossy.events_lost = 1000;
  const auto result = compare_runs(one(working()), one(std::move(lossy)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->standstill.has_value());
  EXPECT_EQ(result->outcome, Outcome::inconclusive);
}

TEST(StuckSide, AStepThatDoesNotEndLeavesItOpen) {
  const auto result = compare_runs(one(working()), one(stuck(true)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::inconclusive);
  EXPECT_EQ(result->why,
            "a step that began 4.000s before the end of the candidate has not ended: worker, which runs them, was "
            "blocked in futex");
  const auto swapped = compare_runs(one(stuck(true, "")), one(working()), {});
  ASSERT_TRUE(swapped.ok());
  EXPECT_EQ(swapped->outcome, Outcome::inconclusive);
  EXPECT_THAT(swapped->why,
              HasSubstr("of the baseline has not ended: worker, which runs them, was on a CPU for 1.000ms"));
}

TEST(StuckSide, SoDoesALongWaitThatIsNotForWork) {
  const auto result = compare_runs(one(working()), one(stuck(false)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::inconclusive);
  EXPECT_THAT(result->why, HasSubstr("no step began in the last 4.000s of the candidate: worker"));
}

TEST(StuckSide, WhoWaitsForWorkOrDoesAsTheOtherIsNone) {
  const auto side = [](Recording base, Recording candidate) {
    return stuck_side(one(std::move(base)), one(std::move(candidate)));
  };
  EXPECT_FALSE(side(working(), stuck(false, "epoll_wait", true)).has_value());
  EXPECT_FALSE(side(working(), stuck(false, "")).has_value()) << "nobody tells";
  EXPECT_FALSE(side(stuck(true), stuck(true)).has_value());
  EXPECT_FALSE(side(stuck(false, "epoll_wait", true), stuck(true)).has_value()) << "neither goes on";
  Recording guessed = stuck(true);
  guessed.cycles.method = model::CycleMethod::host_function;
  EXPECT_FALSE(side(working(), std::move(guessed)).has_value());
}

/// None of its threads ran.
Recording asleep(bool for_each_other) {
  Recording recording = working();
  recording.cycles.cycles.clear();
  recording.cycles.method = model::CycleMethod::none;
  recording.host.asleep = model::Asleep{"futex (2)", for_each_other};
  return recording;
}

TEST(StuckSide, OneThatWasDeadlockedBeforeItWasRecorded) {
  const auto result = compare_runs(one(working()), one(asleep(true)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::not_comparable);
  ASSERT_TRUE(result->deadlocked.has_value());
  EXPECT_EQ(result->deadlocked->side, 1U);
  EXPECT_EQ(deadlocked_side(one(asleep(true)), one(working()))->side, 0U);
  EXPECT_FALSE(deadlocked_side(one(asleep(true)), one(asleep(true))).has_value());
  EXPECT_FALSE(deadlocked_side(one(working()), one(asleep(false))).has_value()) << "it is idle";
}

TEST(StuckSide, WhereEventsWereLostTheyAreTheReason) {
  Recording lossy = stuck(true);
  lossy.events_lost = 1000;
  const auto result = compare_runs(one(working()), one(std::move(lossy)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->why, HasSubstr("lost"));
}

TEST(StuckSide, WhoWasSlowerBeforeStaysIt) {
  Recording slow = stuck(true);
  for (model::Cycle& cycle : slow.cycles.cycles) cycle.period *= 3;
  const auto result = compare_runs(one(working()), one(std::move(slow)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome, Outcome::regression);
  EXPECT_THAT(result->notes, Contains(HasSubstr("has not ended")));
}

TEST(Standstill, WhatMustNotBeComparedIsNot) {
  Recording base = working();
  Recording candidate = standing();
  base.facts.world_size = 1;
  candidate.facts.world_size = 2;
  const auto result = compare_runs(one(std::move(base)), one(std::move(candidate)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->standstill.has_value());
  EXPECT_EQ(result->outcome, Outcome::not_comparable);
}

/// Hardly anything of it ran, and its thread waited for a CPU for so long of 8 s.
Recording idle_server(double runnable) {
  Recording r = recorded({.rate = 0, .seconds = 8});
  r.work->idle = true;
  r.host.held = {{.name = "helper", .process = "server", .recorded = 8 * kSecond, .uninterruptible = 8 * kSecond},
                 {.name = "server", .process = "server", .main = true, .recorded = 8 * kSecond, .runnable = runnable}};
  return r;
}

TEST(Standstill, AServerWithoutACpuAnsweredNothing) {
  const auto still = found(recorded({.rate = 1000}), idle_server(8 * kSecond));
  ASSERT_TRUE(still.has_value());
  EXPECT_EQ(still->side, 1U);
  EXPECT_EQ(still->thread, "server");
  EXPECT_NEAR(still->steps_per_second, 1000, 10);
  EXPECT_EQ(still->at_most, 0);
  EXPECT_EQ(standstill_text(*still),
            "no requests were seen in the candidate: its thread server was on a CPU for 0.000us of 8.000s");
  EXPECT_EQ(found(idle_server(8 * kSecond), recorded({.rate = 1000}))->side, 0U);
}

TEST(Standstill, WhoIsAskedForNothingHasNoThreadThatWaitsForACpu) {
  EXPECT_FALSE(found(recorded({.rate = 1000}), idle_server(0)));
  Recording asleep = idle_server(8 * kSecond);
  asleep.host.held.clear();
  EXPECT_FALSE(found(recorded({.rate = 1000}), std::move(asleep)));
  EXPECT_FALSE(found(idle_server(8 * kSecond), idle_server(8 * kSecond)));
  Recording busy = idle_server(8 * kSecond);
  busy.work->idle = false;
  EXPECT_FALSE(found(recorded({.rate = 1000}), std::move(busy)));
}

}  // namespace
}  // namespace culprit::compare
