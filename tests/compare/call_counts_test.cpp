#include "compare/call_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "model/ledger.h"

namespace culprit::compare {
namespace {

using Counts = std::array<std::vector<CycleValue>, 2>;

/// Steps of one kind, so many on each side, each with that many calls.
struct Steps {
  Counts counts;
  LikeWork work;
  void add(std::size_t side, std::uint32_t kind, std::size_t steps, double calls) {
    for (std::size_t i = 0; i < steps; ++i) {
      const auto position = static_cast<std::uint32_t>(work.class_of[side].size());
      work.class_of[side].push_back(kind);
      if (calls > 0) counts[side].push_back({position, calls});
    }
    work.classes = std::max<std::size_t>(work.classes, kind + 1);
  }
};

TEST(SteadyCalls, OneLayerMore) {
  Steps steps;
  steps.add(0, 0, 20, 6);
  steps.add(1, 0, 20, 7);
  EXPECT_EQ(steady_calls(steps.counts, steps.work), (std::array{6.0, 7.0}));
}

TEST(SteadyCalls, OneStepInTenMayDiffer) {
  Steps steps;
  steps.add(0, 0, 18, 6);
  steps.add(0, 0, 2, 9);
  steps.add(1, 0, 20, 6);
  EXPECT_EQ(steady_calls(steps.counts, steps.work), (std::array{6.0, 6.0}));
  steps.add(0, 0, 2, 9);
  EXPECT_FALSE(steady_calls(steps.counts, steps.work));
}

TEST(SteadyCalls, FourStepsDoNotTell) {
  Steps steps;
  steps.add(0, 0, 4, 6);
  steps.add(1, 0, 40, 7);
  EXPECT_FALSE(steady_calls(steps.counts, steps.work));
}

TEST(SteadyCalls, AStepWithoutCallsCallsItNoTime) {
  Steps steps;
  steps.add(0, 0, 10, 0);
  steps.add(1, 0, 10, 2);
  EXPECT_EQ(steady_calls(steps.counts, steps.work), (std::array{0.0, 2.0}));
}

TEST(SteadyCalls, AnotherMixOfTheSameIsNoDifference) {
  Steps steps;  // a step of the second kind loops twice as often
  steps.add(0, 0, 30, 6);
  steps.add(0, 1, 10, 12);
  steps.add(1, 0, 10, 6);
  steps.add(1, 1, 30, 12);
  const auto calls = steady_calls(steps.counts, steps.work);
  ASSERT_TRUE(calls);
  EXPECT_EQ((*calls)[0], (*calls)[1]);
}

TEST(SteadyCalls, WhatVariesAmongStepsOfLikeWorkIsNotSteady) {
  Steps steps;
  for (int i = 0; i < 10; ++i)
    for (const std::size_t side : {0U, 1U}) steps.add(side, 0, 2, i % 3);
  EXPECT_FALSE(steady_calls(steps.counts, steps.work));
}

TEST(SteadyCalls, MoreInOneKindAndFewerInAnotherIsNeither) {
  Steps steps;
  steps.add(0, 0, 10, 6);
  steps.add(0, 1, 10, 6);
  steps.add(1, 0, 10, 5);
  steps.add(1, 1, 10, 7);
  EXPECT_FALSE(steady_calls(steps.counts, steps.work));
}

TEST(SteadyCalls, CallsOfTwoCallersInOneStepAreAdded) {
  Steps steps;
  steps.add(0, 0, 10, 6);
  steps.add(1, 0, 10, 3);
  for (std::uint32_t i = 0; i < 10; ++i) steps.counts[1].push_back({i, 3});
  std::ranges::stable_sort(steps.counts[1], {}, &CycleValue::position);
  EXPECT_EQ(steady_calls(steps.counts, steps.work), (std::array{6.0, 6.0}));
}

class Changes : public testing::Test {
 protected:
  Changes() {
    texts.intern("");
    waterfall.phase = model::Phase::decode;
    waterfall.window_ns = {1e6, 1.3e6};
  }
  /// `lies_in_steps`: on the thread of the steps; else it is another thread's.
  void add(const char* name, std::array<double, 2> calls, std::array<double, 2> time, const char* kind = "cpu_op",
           bool lies_in_steps = true) {
    const bool between = std::string_view(kind) == "between";
    const auto state = between ? model::LedgerState::between : model::LedgerState::function;
    model::FunctionFinding f;
    f.phase = model::Phase::decode;
    f.function = f.short_name = texts.intern(model::ledger_line_name(state, name));
    f.kind = texts.intern(kind);
    f.device = texts.intern("Host");
    f.steady_calls = calls;
    f.time_ns = time;
    if (calls[0] > 0 && calls[1] > 0) f.work_ratio = time[1] / calls[1] / (time[0] / calls[0]);
    findings.push_back(f);
    model::WaterfallLine line;
    line.state = state;
    line.function = texts.intern(name);
    line.time_ns = time;
    if (lies_in_steps) waterfall.lines.push_back(line);
  }
  std::vector<model::CallsChange> changes() { return calls_changes(findings, {&waterfall, 1}, texts); }
  std::string_view example(const model::CallsChange& change, std::size_t side) {
    return texts[findings[change.example[side]].function];
  }

  StringTable texts;
  std::vector<model::FunctionFinding> findings;
  model::Waterfall waterfall;
};

TEST_F(Changes, CalledAsBeforeIsNone) {
  add("a", {6, 6}, {6e5, 9e5});
  EXPECT_TRUE(changes().empty());
}

TEST_F(Changes, WhatALayerMoreMakesDoesNotMoveWithTheMachine) {
  // Six layers of 100 us and 400 us of the rest; then seven, on a machine that takes 30 % longer for everything.
  waterfall.window_ns = {1e6, 1.43e6};
  add("mm", {6, 7}, {6e5, 9.1e5});
  add("rest", {2, 2}, {4e5, 5.2e5});
  const auto found = changes();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].functions, 2U);
  EXPECT_EQ(found[0].more, 1U);
  EXPECT_EQ(found[0].fewer, 0U);
  EXPECT_NEAR(found[0].change, 0.1, 1e-9);
  EXPECT_NEAR(found[0].speed, 1.3, 1e-9);
  EXPECT_EQ(example(found[0], 1), "mm");
}

TEST_F(Changes, TimeBetweenFunctionsIsToldApart) {
  waterfall.window_ns = {1e6, 1.1e6};
  add("mm", {6, 7}, {3e5, 3.5e5});
  add("rest", {6, 6}, {1e5, 1e5});
  add("step", {12, 13}, {6e5, 6.5e5}, "between");
  const auto found = changes();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].functions, 2U);
  EXPECT_EQ(found[0].more, 1U);
  EXPECT_NEAR(found[0].change, 0.05 / 1.05, 1e-9);
  EXPECT_NEAR(found[0].change_with_between, 0.1, 1e-9);
}

TEST_F(Changes, WhatBecameSlowerByItselfCountsAsOthersWould) {
  waterfall.window_ns = {5e5, 1.1e6};
  for (const char* name : {"a", "b", "c"}) add(name, {2, 2}, {1e5, 1e5});
  add("slow", {1, 2}, {1e5, 8e5});  // four times as long a call
  const auto found = changes();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].moved_ns[1], 1e5, 1);
}

TEST_F(Changes, SmallCallsBetweenWhichMuchTimeLiesMakeLittle) {
  waterfall.window_ns = {5e7, 5e7};
  for (const char* name : {"a", "b", "c"}) add(name, {1, 3}, {1e4, 3e4});
  add("step", {4, 10}, {4.9e7, 4.9e7}, "between");
  const auto found = changes();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].change, 0.0012, 1e-4);
}

TEST_F(Changes, WhatAnotherThreadCallsIsNoTimeOfTheStep) {
  add("mm", {6, 6}, {6e5, 6e5});
  add("beside", {2, 4}, {4e5, 8e5}, "cpu_op", false);
  EXPECT_TRUE(changes().empty());
}

TEST_F(Changes, SidesTurnedTurnTheChange) {
  waterfall.window_ns = {1.43e6, 1e6};
  add("mm", {7, 6}, {9.1e5, 6e5});
  add("rest", {2, 2}, {5.2e5, 4e5});
  const auto found = changes();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].fewer, 1U);
  EXPECT_NEAR(found[0].change, 1 / 1.1 - 1, 1e-9);
  EXPECT_EQ(example(found[0], 0), "mm");
}

TEST_F(Changes, EachDirectionHasItsExample) {
  waterfall.window_ns = {1e6, 1e6};
  add("few", {10, 5}, {4e5, 2e5});
  for (const char* name : {"a", "b", "c"}) add(name, {2, 3}, {1e5, 1.5e5});
  const auto found = changes();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].more, 3U);
  EXPECT_EQ(found[0].fewer, 1U);
  EXPECT_EQ(example(found[0], 0), "few");
  EXPECT_EQ(example(found[0], 1), "a");
}

TEST_F(Changes, NewAndGoneAreNotCalledMoreOften) {
  waterfall.window_ns = {1e6, 9e5};
  add("a", {4, 0}, {1e5, 0});
  add("b", {4, 0}, {1e5, 0});
  add("fused", {0, 4}, {0, 1e5});
  add("rest", {2, 2}, {8e5, 8e5});
  const auto found = changes();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].added, 1U);
  EXPECT_EQ(found[0].gone, 2U);
  EXPECT_EQ(found[0].more + found[0].fewer, 0U);
  EXPECT_NEAR(found[0].change, -0.1, 1e-9);
  EXPECT_EQ(found[0].of_both_ns, (std::array{0.0, 0.0}));
}

TEST_F(Changes, WhatThreadsDidIsNoCall) {
  add("on CPU", {6, 7}, {6e5, 9e5}, "oncpu");
  add("waits", {6, 7}, {6e5, 9e5}, "sync");
  EXPECT_TRUE(changes().empty());
}

TEST_F(Changes, WhatVariesInOneProcessIsNotSteady) {
  add("mm", {6, 7}, {6e5, 9e5});
  findings.push_back(findings.back());
  findings.back().process = 1;
  findings.back().steady_calls = {model::kNoNumber, model::kNoNumber};
  EXPECT_TRUE(changes().empty());
}

}  // namespace
}  // namespace culprit::compare
