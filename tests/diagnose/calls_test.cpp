// Functions that are called more often, and other work of programs without steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

/// Three operators are called seven times instead of six, one as before; a step takes 30 % longer.
model::RunComparison with_a_layer_more(model::Outcome outcome) {
  model::RunComparison c = comparison(outcome);
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  for (const char* name : {"mm", "norm", "rope"}) {
    add_function(c, name, "cpu_op", "Host", {2, 2.8}, {6, 7}, model::FunctionStatus::changed);
    c.functions.back().steady_calls = {6, 7};
  }
  add_function(c, "rest", "cpu_op", "Host", {4, 4.6}, {2, 2});
  c.functions.back().steady_calls = {2, 2};
  model::CallsChange change;
  change.functions = 4;
  change.more = 3;
  change.moved_ns = {0, 1.2e6};
  change.of_both_ns = {0, 1.2e6};
  change.speed = 1.15;
  change.change = 0.1;
  change.change_with_between = 0.1;
  c.calls = {change};
  return c;
}

bool calls_are_named(const model::RunComparison& c) {
  const auto verdicts = diagnose(c);
  return std::ranges::any_of(verdicts, [](const model::Verdict& v) { return v.detail == "calls"; });
}

TEST(Calls, ALayerMoreIsTheWork) {
  const auto verdicts = diagnose(with_a_layer_more(model::Outcome::regression));
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, "workload_changed");
  EXPECT_EQ(verdicts[0].detail, "calls");
  EXPECT_EQ(verdicts[0].state, model::VerdictState::active);
  EXPECT_NEAR(verdicts[0].impact_ns, 1e6, 1);
  EXPECT_EQ(verdicts[0].against.size(), 1U);  // the rest takes longer as well
  for (const model::Verdict& v : verdicts) EXPECT_NE(v.cause, "host_bound") << v.where;
}

TEST(Calls, WhereNothingIsDecidedItIsToldAndNotActive) {
  const auto verdicts = diagnose(with_a_layer_more(model::Outcome::inconclusive));
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].detail, "calls");
  EXPECT_EQ(verdicts[0].state, model::VerdictState::latent);
}

TEST(Calls, AFunctionWhoseCallsTakeLongerAsWellIsNamedBesides) {
  model::RunComparison c = with_a_layer_more(model::Outcome::regression);
  add_function(c, "victim", "cpu_op", "Host", {0.5, 2.5}, {1, 2}, model::FunctionStatus::changed);
  c.functions.back().steady_calls = {1, 2};
  bool named = false;
  for (const model::Verdict& v : diagnose(c)) named = named || v.where == "victim";
  EXPECT_TRUE(named);
}

TEST(Calls, AKernelThatWorksForAllLayersTakesLongerByAsMuch) {
  const auto with_adam = [](double times) {
    model::RunComparison c = with_a_layer_more(model::Outcome::regression);
    for (const char* name : {"x", "y", "z"}) add_function(c, name, "gpu_compute", "GPU", {1, 1}, {1, 1});
    add_function(c, "adam", "gpu_compute", "GPU", {2, 2 * times}, {4, 4}, model::FunctionStatus::changed);
    std::vector<std::string> named;
    for (const model::Verdict& v : diagnose(c)) named.push_back(v.cause);
    return named;
  };
  EXPECT_THAT(with_adam(7.0 / 6), testing::ElementsAre("workload_changed"));
  EXPECT_THAT(with_adam(2), testing::UnorderedElementsAre("workload_changed", "kernel_regression"));
}

TEST(Calls, NewFunctionsAreToldByThemselves) {
  model::RunComparison c = with_a_layer_more(model::Outcome::regression);
  c.calls[0].of_both_ns = {0, 0.3e6};
  EXPECT_FALSE(calls_are_named(c));
}

TEST(Calls, AnotherWayToDoTheSameIsNoMoreWork) {
  model::RunComparison c = with_a_layer_more(model::Outcome::regression);
  c.calls[0].moved_ns[0] = 0.6e6;
  EXPECT_FALSE(calls_are_named(c));
}

TEST(Calls, FewerCallsAreTheOtherSides) {
  model::RunComparison c = swapped(with_a_layer_more(model::Outcome::regression));
  for (model::FunctionFinding& f : c.functions) std::swap(f.steady_calls[0], f.steady_calls[1]);
  model::CallsChange& change = c.calls[0];
  std::swap(change.more, change.fewer);
  std::swap(change.moved_ns[0], change.moved_ns[1]);
  std::swap(change.of_both_ns[0], change.of_both_ns[1]);
  change.change = change.change_with_between = 1 / 1.1 - 1;
  change.speed = 1 / change.speed;
  const auto verdicts = diagnose(c);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].detail, "calls");
  EXPECT_EQ(verdicts[0].side, 0U);
}

TEST(Calls, LittleMoreOfFewFunctionsIsNoCause) {
  model::RunComparison c = with_a_layer_more(model::Outcome::regression);
  c.calls[0].change = 0.02;
  EXPECT_FALSE(calls_are_named(c));
  c.calls[0].change = 0.1;
  c.calls[0].more = 2;
  EXPECT_FALSE(calls_are_named(c));
}

TEST(Load, OtherAnswersOfAProgramWithoutSteps) {
  model::RunComparison c = comparison(model::Outcome::inconclusive);
  set_work(c, model::UnitKind::request, {0.1, 0.2}, {0, 0});
  c.work->unit.process = "server";
  c.work->answer_bytes = {60, 20'000};
  EXPECT_THAT(causes(c), testing::IsEmpty());
  c.work->other_answers = true;
  ASSERT_THAT(causes(c), testing::ElementsAre("workload_changed"));
  EXPECT_THAT(diagnose(c)[0].evidence, testing::Contains("An answer of server is of 19.53 KiB instead of 60 B"));
  EXPECT_EQ(diagnose(c)[0].state, model::VerdictState::active);
}

}  // namespace
}  // namespace culprit::diagnose
