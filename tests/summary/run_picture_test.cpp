#include "summary/run_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "profile/recording.h"
#include "support/trace_maker.h"

namespace culprit::summary {
namespace {

using testing_support::TraceMaker;

constexpr int kSteps = 20;
constexpr Ns kStep = 10'000'000;

/// Steps of `slices` operators each; the eleventh takes twice as long.
Trace& steps(TraceMaker& make, int slices) {
  const TrackId thread = make.thread(1, 1);
  Ns at = 0;
  for (int s = 0; s < kSteps; ++s) {
    const Ns length = s == 10 ? 2 * kStep : kStep;
    make.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(s), at, length - 1000);
    const Ns each = (length - 2000) / slices;
    for (int i = 0; i < slices; ++i) make.slice(thread, "cpu_op", "op", at + i * each, each - 1);
    at += length;
  }
  return make.trace();
}

struct Drawn {
  model::Recording recording;
  model::RunPicture picture;
};

Drawn drawn(const Trace& trace) {
  auto recording = profile::recording_of(trace, {"a.json"});
  EXPECT_TRUE(recording);
  model::RunPicture picture = run_picture(trace, *recording, model::Phase::train_step);
  return {std::move(*recording), std::move(picture)};
}

TEST(RunPicture, ACycleNearTheMedianIsShown) {
  TraceMaker make;
  const auto [recording, picture] = drawn(steps(make, 5));
  ASSERT_TRUE(picture.stretch);
  EXPECT_EQ(picture.stretch->period, kStep);
  ASSERT_EQ(picture.stretch->lanes.size(), 1U);
  EXPECT_EQ(picture.stretch->lanes[0].slices.size(), 6U);
  EXPECT_EQ(picture.stretch->names.size(), 2U);
  EXPECT_EQ(picture.stretch->left_out, 0U);
  EXPECT_EQ(picture.stretch->rank, -1);  // there is only one
  EXPECT_EQ(picture.file, "a.json");
}

TEST(RunPicture, TheCycleOfARankIsShown) {
  TraceMaker make;
  make.trace().ranks[0].rank = 4;
  const std::uint16_t second = make.rank(7);
  for (const std::uint16_t rank : {std::uint16_t{0}, second}) {
    const TrackId thread = make.thread(1 + rank, 1, rank);
    for (int s = 0; s < kSteps; ++s) {
      make.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(s), s * kStep, kStep - 1000);
      make.slice(thread, "cpu_op", rank == 0 ? "first" : "second", s * kStep + 1000, kStep / 2);
    }
  }
  const auto recording = profile::recording_of(make.trace(), {"a.json"});
  ASSERT_TRUE(recording);
  const auto shown = [&](std::int32_t rank) {
    return run_picture(make.trace(), *recording, model::Phase::train_step, {}, rank).stretch;
  };
  for (const auto& [rank, function] : {std::pair(4, "first"), std::pair(7, "second")}) {
    const auto stretch = shown(rank);
    ASSERT_TRUE(stretch);
    EXPECT_EQ(stretch->rank, rank);
    EXPECT_EQ(std::ranges::count(stretch->names, function), 1);
  }
  ASSERT_TRUE(shown(5));  // which there is not: any
  ASSERT_TRUE(shown(-1));
}

TEST(RunPicture, WholeCyclesHaveTheirPeriods) {
  TraceMaker make;
  const auto [recording, picture] = drawn(steps(make, 5));
  ASSERT_EQ(picture.cycles.size(), 1U);
  const model::PictureCycles& cycles = picture.cycles[0];
  EXPECT_EQ(cycles.all, static_cast<std::size_t>(kSteps - 1));  // of the last the end is unknown
  ASSERT_EQ(cycles.period.size(), cycles.all);
  EXPECT_EQ(cycles.at[0], 0);
  EXPECT_EQ(cycles.period[10], 2 * kStep);
}

TEST(RunPicture, FunctionsHaveTheirTimeInEveryCycle) {
  TraceMaker make;
  const auto [recording, picture] = drawn(steps(make, 5));
  const auto op = std::ranges::find(picture.functions, "op", &model::PictureFunction::function);
  ASSERT_NE(op, picture.functions.end());
  ASSERT_GE(op->ns.size(), 11U);
  EXPECT_NEAR(op->ns[10], 2 * op->ns[9], 0.01 * op->ns[9]);
  EXPECT_FALSE(op->device);
}

TEST(RunPicture, ManyCyclesOfSeveralProcessesAreMeansOfThoseOfTheFunctionsProcess) {
  constexpr int kMany = 150;
  constexpr Ns kLength = 1'000'000;
  TraceMaker make;
  for (const std::int64_t pid : {1, 2}) {
    const TrackId thread = make.thread(pid, 1);
    for (int s = 0; s < kMany; ++s) {
      make.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(s), s * kLength, kLength - 1000);
      make.slice(thread, "cpu_op", "op", s * kLength + 1000, pid * 400'000);
    }
  }
  const auto [recording, picture] = drawn(make.trace());
  std::size_t rows = 0;
  for (const model::PictureFunction& f : picture.functions) {
    if (f.function != "op") continue;
    ++rows;
    EXPECT_EQ(f.ns.size(), 100U);
    for (const double ns : f.ns) EXPECT_NEAR(ns, static_cast<double>(f.pid) * 400'000, 1);
  }
  EXPECT_EQ(rows, 2U);
}

TEST(RunPicture, TheShortestSlicesAreLeftOut) {
  TraceMaker make;
  const auto [recording, picture] = drawn(steps(make, 25'000));
  ASSERT_TRUE(picture.stretch);
  EXPECT_EQ(picture.stretch->lanes[0].slices.size(), 20'000U);
  EXPECT_EQ(picture.stretch->left_out, 5'001U);
  EXPECT_EQ(picture.stretch->names[picture.stretch->lanes[0].slices[0].name].substr(0, 12), "ProfilerStep");
}

TEST(RunPicture, OfFunctionsOnlyThoseOfFindingsAreKept) {
  TraceMaker make;
  auto [recording, picture] = drawn(steps(make, 5));
  model::RunComparison comparison;
  comparison.texts.intern("");
  comparison.processes.push_back({-1, {1, 1}});
  comparison.sides[1].recordings = 3;
  model::FunctionFinding finding;
  finding.phase = picture.functions.front().phase;
  finding.function = comparison.texts.intern("op");
  finding.device = comparison.texts.intern("Host");
  comparison.functions = {finding};
  keep_what_matters(picture, comparison, 1);
  ASSERT_EQ(picture.functions.size(), 1U);
  EXPECT_EQ(picture.functions[0].function, "op");
  EXPECT_EQ(picture.others, 2U);
}

TEST(RunPicture, WithoutCyclesThereIsNothing) {
  TraceMaker make;
  make.slice(make.thread(1, 1), "cpu_op", "op", 0, 10);
  const auto [recording, picture] = drawn(make.trace());
  EXPECT_TRUE(picture.cycles.empty());
  EXPECT_FALSE(picture.stretch);
}

TEST(RunPicture, StepsStandOnTheClockOfTheCycles) {
  TraceMaker make;
  Trace& trace = steps(make, 5);
  trace.base_ns = 1'795'610'000'000'000'000;
  auto recording = profile::recording_of(trace, {"a.json"});
  ASSERT_TRUE(recording);
  const std::vector<model::PictureStep> took = {{model::Phase::train_step, 0, 7}, {model::Phase::train_step, kStep, 8}};
  const auto picture = run_picture(trace, *recording, model::Phase::train_step, took);
  ASSERT_EQ(picture.steps.size(), 1U);
  EXPECT_EQ(picture.steps[0].at, (std::vector<Ns>{0, kStep}));
  EXPECT_EQ(picture.steps[0].period, (std::vector<Ns>{7, 8}));
  // Of runs that are not compared there is no profile to stand on.
  recording->profile = {};
  EXPECT_TRUE(run_picture(trace, *recording, model::Phase::train_step, took).steps.empty());
}

TEST(UsualPhase, IsTheOneThatBothHaveMostOf) {
  const auto of = [](std::size_t prefills, std::size_t decodes) {
    model::Cycles cycles;
    for (std::size_t i = 0; i < prefills + decodes + 1; ++i) {
      model::Cycle cycle;
      cycle.number = static_cast<std::uint32_t>(i + 1);
      cycle.phase = i < prefills ? model::Phase::prefill : model::Phase::decode;
      cycle.begin = static_cast<Ns>(i) * 100;
      cycle.period = 100;
      cycles.cycles.push_back(cycle);
    }
    return cycles;
  };
  EXPECT_EQ(usual_phase(of(30, 20), of(2, 40)), model::Phase::decode);
  EXPECT_EQ(usual_phase(of(30, 20), of(40, 2)), model::Phase::prefill);
}

}  // namespace
}  // namespace culprit::summary
