#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "ab/recorded_steps.h"
#include "ab/turns.h"
#include "core/units.h"

namespace culprit::ab {
namespace {

/// `pairs` pairs of turns of 300 ms, the baseline first, one after the other.
std::vector<Turn> turns_of(std::uint32_t pairs) {
  std::vector<Turn> turns;
  for (std::uint32_t pair = 0; pair < pairs; ++pair)
    for (std::uint8_t side = 0; side < 2; ++side) {
      const Ns begin = (Ns{pair} * 2 + side) * 300 * kMs;
      turns.push_back({{begin, begin + 300 * kMs}, side, pair});
    }
  return turns;
}

/// Steps of `ms` in all turns of a side, from their begin on; the first ones of a turn, that begin within `slow` ms,
/// take twice as long. The last one of each turn ends in the side's next.
std::vector<Step> steps_in(const std::vector<Turn>& turns, std::uint8_t side, double ms, double slow = 0) {
  std::mt19937 random(side + 1U);
  std::uniform_real_distribution<double> around(0.9, 1.1);
  std::vector<Step> steps;
  for (const Turn& turn : turns) {
    if (turn.side != side) continue;
    for (Ns at = turn.span.begin; at < turn.span.end;) {
      const double factor = static_cast<double>(at - turn.span.begin) < slow * 1e6 ? 2 : 1;
      const auto time = static_cast<Ns>(ms * 1e6 * factor * around(random));
      const bool spans = at + time > turn.span.end;
      steps.push_back({at,
                       at + time + (spans ? 300 * kMs : 0),
                       model::Phase::decode,
                       {4, -1},
                       static_cast<double>(time + (spans ? 300 * kMs : 0))});
      at += time;
    }
  }
  return steps;
}

TEST(Settling, IsTheLeastWhereTurnsBeginAsTheyGoOn) {
  const auto turns = turns_of(30);
  EXPECT_EQ(settling_of({steps_in(turns, 0, 7), steps_in(turns, 1, 7)}, turns), kLeastSettling);
}

TEST(CounterOfTurns, IsTheMeanOfWhatLiesWhollyInATurn) {
  const auto turns = turns_of(2);
  std::array<StepsOf, 2> sides;
  for (std::uint8_t side = 0; side < 2; ++side)
    for (Ns at = 0; at < 1200 * kMs; at += 40 * kMs) {
      const Turn& turn = turns[static_cast<std::size_t>(at / (300 * kMs))];
      const bool inside = turn.side == side && at >= turn.span.begin + kLeastSettling && at + 40 * kMs <= turn.span.end;
      sides[side].steps.push_back({at, at + 40 * kMs, model::Phase::other, {}, inside ? 2.0 + side + turn.pair : 100});
    }
  const auto found = values_of(sides, turns, {Quantity::Kind::counter, "host.cpu.used"});
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->quantity, "host.cpu.used");
  EXPECT_EQ(found->unit, "");
  EXPECT_FALSE(found->of_steps);
  ASSERT_EQ(found->values.size(), 4U);
  for (const Value& value : found->values) EXPECT_DOUBLE_EQ(value.value, 2.0 + value.side + value.pair);
}

TEST(CounterOfTurns, OneThatIsMeantIsNamed) {
  std::array<StepsOf, 2> sides;
  for (StepsOf& side : sides) {
    side.steps.push_back({0, 40 * kMs, model::Phase::other, {}, 1});
    side.meant = "host.cpu.used";
  }
  const auto found = values_of(sides, turns_of(2), {Quantity::Kind::counter, "host.cpu"});
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->quantity, "host.cpu.used");
}

TEST(CounterOfTurns, OneThatASideLacksIsAnErrorThatSaysWhy) {
  std::array<StepsOf, 2> sides;
  sides[0].steps.push_back({0, 40 * kMs, model::Phase::other, {}, 1});
  sides[1].how = "no counter 'gpu.power' is recorded";
  const auto found = values_of(sides, turns_of(2), {Quantity::Kind::counter, "gpu.power"});
  ASSERT_FALSE(found);
  EXPECT_THAT(to_string(found.error()), ::testing::HasSubstr("candidate: no counter 'gpu.power' is recorded"));
}

TEST(MeanValue, IsByTime) {
  EXPECT_EQ(mean_value({}), 0);
  EXPECT_DOUBLE_EQ(mean_value({{0, 30, model::Phase::other, {}, 1}, {30, 40, model::Phase::other, {}, 5}}), 2);
}

TEST(Settling, LastsWhileStepsAreUnlikeTheRest) {
  const auto turns = turns_of(30);
  const Ns settling = settling_of({steps_in(turns, 0, 7, 60), steps_in(turns, 1, 7, 60)}, turns);
  EXPECT_GE(settling, 60 * kMs);
  EXPECT_LE(settling, 100 * kMs);
}

TEST(TurnValues, StepsThatSpanASwitchAreCountedAndLeftOut) {
  const auto turns = turns_of(20);
  StepsOf base{steps_in(turns, 0, 7)};
  StepsOf candidate{steps_in(turns, 1, 7.7)};
  const auto found = values_of({base, candidate}, turns);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->quantity, "step time");
  for (const Value& v : found->values) EXPECT_LT(v.value, 10e6);
  // The one at the end of each turn, and three in its first 20 ms.
  EXPECT_EQ(found->spanning[0], base.steps.size() - static_cast<std::size_t>(std::ranges::count_if(
                                                        found->values, [](const Value& v) { return v.side == 0; })));
  EXPECT_GE(found->spanning[0], 60U);
  EXPECT_LE(found->spanning[0], 100U);
  const auto differences = differences_of(found->values);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].change.pairs, 20U);
  EXPECT_NEAR(differences[0].change.change, 0.1, 0.01);
}

TEST(TurnValues, WhatIsCutLimitsWhatFollows) {
  using enum model::Outcome;
  const auto turns = turns_of(40);
  const auto values = [&](double base, double candidate) {
    return *values_of({StepsOf{steps_in(turns, 0, base)}, StepsOf{steps_in(turns, 1, candidate)}}, turns);
  };
  const TurnValues short_steps = values(7, 7.5);
  EXPECT_GT(short_steps.left_out.cut[0], 0.003);
  EXPECT_LT(short_steps.left_out.cut[1], 0.05);
  for (const model::Outcome outcome : {no_change, regression, improvement, inconclusive})
    EXPECT_EQ(limited(outcome, short_steps.left_out, 0.05), outcome);
  // Most of a turn belongs to a step that does not end in it.
  const TurnValues long_steps = values(190, 190);
  EXPECT_GT(long_steps.left_out.cut[0], 1.0 / 3);
  EXPECT_EQ(limited(no_change, long_steps.left_out, 0.05), inconclusive);
  EXPECT_EQ(limited(regression, long_steps.left_out, 0.05), inconclusive);
  const TurnValues unlike = values(7, 80);
  EXPECT_EQ(limited(no_change, unlike.left_out, 0.05), inconclusive);
  EXPECT_EQ(limited(regression, unlike.left_out, 0.05), regression);
  EXPECT_EQ(why_limited(regression, unlike.left_out, 0.05), "");
  EXPECT_THAT(why_limited(no_change, unlike.left_out, 0.05), testing::StartsWith("That nothing changed would follow"));
}

TEST(TurnValues, TurnsInWhichASideStalledAreCounted) {
  const auto turns = turns_of(20);
  StepsOf base;
  StepsOf candidate;
  for (const Turn& turn : turns)
    for (Ns at = turn.span.begin; at < turn.span.end && !(turn.side == 1 && turn.pair < 5); at += 10 * kMs)
      (turn.side == 0 ? base : candidate).units.push_back(at);
  const auto units = values_of({base, candidate}, turns);
  ASSERT_TRUE(units) << to_string(units.error());
  EXPECT_EQ(units->left_out.stalled[0], 0);
  EXPECT_DOUBLE_EQ(units->left_out.stalled[1], 0.25);
  EXPECT_EQ(differences_of(units->values).at(0).change.pairs, 15U);
  const auto throughput = values_of({StepsOf{steps_in(turns, 0, 7)}, StepsOf{steps_in(turns_of(10), 1, 7)}}, turns,
                                    {Quantity::Kind::throughput});
  ASSERT_TRUE(throughput) << to_string(throughput.error());
  EXPECT_EQ(throughput->left_out.stalled[0], 0);
  EXPECT_DOUBLE_EQ(throughput->left_out.stalled[1], 0.5);
}

TEST(LeftOut, NothingFollowsToTheFavourOfTheSideThatStalls) {
  using enum model::Outcome;
  const LeftOut candidate{{}, {0, 0.2}};
  EXPECT_EQ(limited(no_change, candidate, 0.05), inconclusive);
  EXPECT_EQ(limited(improvement, candidate, 0.05), inconclusive);
  EXPECT_EQ(limited(regression, candidate, 0.05), regression);
  EXPECT_EQ(limited(improvement, candidate, 0.25), improvement);
  EXPECT_EQ(why_limited(improvement, candidate, 0.05),
            "A difference would follow, but in 0 and 20 % of the turns no work came to its end: leaving those out "
            "favours the side that stalls");
  EXPECT_EQ(why_limited(regression, candidate, 0.05), "");
  EXPECT_THAT(why_limited(inconclusive, candidate, 0.05), testing::StartsWith("In 0 and 20 % of the turns no work"));
  const LeftOut baseline{{}, {0.2, 0}};
  EXPECT_EQ(limited(regression, baseline, 0.05), inconclusive);
  EXPECT_EQ(limited(improvement, baseline, 0.05), improvement);
  const LeftOut both{{}, {0.4, 0.4}};
  EXPECT_EQ(limited(regression, both, 0.05), inconclusive);
  EXPECT_THAT(why_limited(regression, both, 0.05), testing::EndsWith("and longer ones (--turns) are needed"));
}

TEST(LeftOut, OfSeveralStartsIsTheMost) {
  const LeftOut worst = worst_of({{0.1, 0.3}, {0, 0.2}}, {{0.2, 0.1}, {0.1, 0.1}});
  EXPECT_EQ(worst.cut, (std::array<double, 2>{0.2, 0.3}));
  EXPECT_EQ(worst.stalled, (std::array<double, 2>{0.1, 0.2}));
}

TEST(TurnValues, StepsOutsideOfEveryTurnDoNotCount) {
  const auto turns = turns_of(2);
  std::vector<Step> outside = {{-5 * kMs, -1 * kMs, model::Phase::decode, {}, 4e6},
                               {310 * kMs, 315 * kMs, model::Phase::decode, {}, 5e6}};  // the other side's turn
  const auto found = values_of({StepsOf{outside}, StepsOf{steps_in(turns, 1, 7)}}, turns);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->spanning[0], 2U);
}

TEST(TurnValues, WhereThereAreNoStepsANoteSaysWhyAndWhichUnitIsCounted) {
  const auto turns = turns_of(4);
  StepsOf base;
  base.how = "nothing marks them";
  base.unit = "requests (recvmsg to sendmsg)";
  for (const Turn& turn : turns)
    for (Ns at = turn.span.begin; at < turn.span.end; at += 10 * kMs) base.units.push_back(at);
  StepsOf candidate = base;
  candidate.how = "";
  const auto found = values_of({base, candidate}, turns);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(
      found->note,
      "No steps are found in the baseline (nothing marks them) nor in the candidate (nothing repeats): whole turns "
      "are compared by the work done in them, counted in requests (recvmsg to sendmsg)");
  candidate.steps = steps_in(turns, 1, 7);
  candidate.unit = "messages (recvmsg to sendmsg)";
  EXPECT_EQ(values_of({base, candidate}, turns)->note,
            "No steps are found in the baseline (nothing marks them): whole turns are compared by the work done in "
            "them, counted in requests (recvmsg to sendmsg) of the baseline and messages (recvmsg to sendmsg) of the "
            "candidate");
  base.steps = steps_in(turns, 0, 7);
  EXPECT_EQ(values_of({base, candidate}, turns)->note, "");
  EXPECT_EQ(values_of({base, candidate}, turns, {Quantity::Kind::throughput})->note, "") << "that was asked for";
}

TEST(TurnValues, UnitsOfWorkAreCountedInWholeTurns) {
  const auto turns = turns_of(10);
  StepsOf base;
  StepsOf candidate;
  for (const Turn& turn : turns)
    for (Ns at = turn.span.begin; at < turn.span.end; at += (turn.side == 0 ? 10 : 20) * kMs)
      (turn.side == 0 ? base : candidate).units.push_back(at);
  const auto found = values_of({base, candidate}, turns);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->quantity, "time per unit of work");
  candidate.unit = "messages";
  EXPECT_TRUE(values_of({base, candidate}, turns));
  candidate.wait = "recvmsg";
  EXPECT_FALSE(values_of({base, candidate}, turns));
  EXPECT_NEAR(differences_of(found->values).at(0).change.change, 1, 0.01);
}

/// Requests counted every 100 ms, of which some reach beyond a turn; `each` in a millisecond of a side's own turns.
StepsOf counted_in(const std::vector<Turn>& turns, std::uint8_t side, double each) {
  StepsOf result;
  result.unit = "requests (read to write)";
  result.counted_what = "request";
  result.counted_from = "read";
  const Ns end = turns.back().span.end;
  for (Ns at = 70 * kMs; at < end; at += 100 * kMs) {
    double count = 0;
    for (const Turn& turn : turns)
      if (turn.side == side)
        count += each *
                 static_cast<double>(
                     std::max<Ns>(0, std::min(at + 100 * kMs, turn.span.end) - std::max(at, turn.span.begin))) /
                 1e6;
    result.counted.push_back({at, at + 100 * kMs, count});
  }
  return result;
}

TEST(TurnValues, RequestsThatWereCountedInStretchesOfTimeAreThoseOfTheTurnTheyReachInto) {
  auto turns = turns_of(10);
  std::swap(turns[6].span, turns[7].span);  // two turns of one side in a row
  const auto found = values_of({counted_in(turns, 0, 20), counted_in(turns, 1, 10)}, turns);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->quantity, "time per unit of work");
  EXPECT_EQ(found->shortest, 200 * kMs);
  EXPECT_NE(found->note.find("counted in requests (read to write)"), std::string::npos) << found->note;
  ASSERT_EQ(found->values.size(), 16U) << "not of the first and the last one of a side";
  for (const Value& value : found->values) EXPECT_NEAR(value.value, value.side == 0 ? 50e3 : 100e3, 1) << value.pair;
  EXPECT_NEAR(differences_of(found->values).at(0).change.change, 1, 1e-6);
}

TEST(TurnValues, RequestsAreCountedOnBothSidesAlike) {
  const auto turns = turns_of(10);
  const StepsOf base = counted_in(turns, 0, 20);
  StepsOf candidate = counted_in(turns, 1, 20);
  candidate.unit = "requests (read to writev)";
  EXPECT_TRUE(values_of({base, candidate}, turns)) << "answers of another length";
  candidate.counted_from = "recvfrom";
  const auto other = values_of({base, candidate}, turns);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("seen to do requests (read to write), the candidate"), std::string::npos);
  candidate.counted_from = model::kAnswers;
  EXPECT_TRUE(values_of({base, candidate}, turns));
  candidate.counted_what = "transaction";
  EXPECT_FALSE(values_of({base, candidate}, turns));
  EXPECT_FALSE(values_of({base, counted_in(turns, 1, 20)}, turns, {Quantity::Kind::cpu})) << "of steps";
}

TEST(TurnValues, TurnsHaveToBeLongEnoughToCountIn) {
  const auto turns = turns_of(10);
  StepsOf side = counted_in(turns, 0, 20);
  for (Counted& stretch : side.counted) stretch.end = stretch.begin + 200 * kMs;
  const auto found = values_of({side, side}, {});
  ASSERT_TRUE(found) << "before the first turn";
  EXPECT_TRUE(is_long_enough(400 * kMs, found->shortest));
  EXPECT_TRUE(is_long_enough(1, 0)) << "steps need none";
  const Status shorter = is_long_enough(300 * kMs, found->shortest);
  ASSERT_FALSE(shorter);
  EXPECT_NE(to_string(shorter.error()).find("counted every 200.000ms, and turns are of 300.000ms (give --turns 401ms"),
            std::string::npos)
      << to_string(shorter.error());
}

TEST(TurnValues, ThroughputIsTheTimeOfATurnByItsSteps) {
  const auto turns = turns_of(20);
  // Steps take the same, but the candidate waits as long between them.
  StepsOf base{steps_in(turns, 0, 7)};
  StepsOf candidate{steps_in(turns, 1, 14)};
  for (Step& step : candidate.steps) step.value /= 2;
  EXPECT_NEAR(differences_of(values_of({base, candidate}, turns)->values).at(0).change.change, 0, 0.03);
  const auto found = values_of({base, candidate}, turns, {Quantity::Kind::throughput});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->of_steps);
  EXPECT_NEAR(differences_of(found->values).at(0).change.change, 1, 0.06);
}

TEST(TurnValues, NothingThatRepeatsIsAnError) {
  const auto turns = turns_of(2);
  const auto found = values_of({StepsOf{steps_in(turns, 0, 7)}, StepsOf{{}, {}, "", "", "nothing repeats"}}, turns);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("candidate (nothing repeats)"), std::string::npos) << found.error().what;
}

TEST(Spans, BeginWhenTheTurnHasSettled) {
  const auto spans = spans_of(turns_of(2), 1, 20 * kMs);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].begin, 320 * kMs);
  EXPECT_EQ(spans[0].end, 600 * kMs);
}

}  // namespace
}  // namespace culprit::ab
