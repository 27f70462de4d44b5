#include "compare/compare_runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compare/make_recording.h"
#include "compare/one_side.h"

namespace culprit::compare {
namespace {

using model::Comparable;
using model::Outcome;
using model::Phase;
using model::Recording;
using model::RunComparison;
using testing::HasSubstr;

std::vector<Ns> steps(Ns period, int n = 40) {
  std::vector<Ns> periods;
  for (int i = 0; i < n; ++i) periods.push_back(period + i * 7 % 5 * 100);
  return periods;
}

RunComparison compared(Recording base, Recording candidate, const CompareOptions& options = {}) {
  auto result = compare_runs(one(std::move(base)), one(std::move(candidate)), options);
  EXPECT_TRUE(result.ok());
  return result.ok() ? std::move(*result) : RunComparison();
}

TEST(CompareRuns, SlowerStepsAreARegressionWithTheFunctionThatGrew) {
  const RunComparison c = compared(make_recording(steps(100'000'000), {{"gemm", std::vector<double>(40, 3e7)}}),
                                   make_recording(steps(130'000'000), {{"gemm", std::vector<double>(40, 6e7)}}));
  EXPECT_EQ(c.outcome, Outcome::regression);
  ASSERT_EQ(c.cycle_times.size(), 1U);
  EXPECT_NEAR(c.cycle_times[0].change, 0.3, 0.01);
  EXPECT_NEAR(c.cycle_times[0].time_ns[1], 130'000'200, 500);
  EXPECT_EQ(c.cycle_times[0].cycles[0], 39U) << "the end of the last is not known";
  ASSERT_EQ(c.functions.size(), 1U);
  EXPECT_EQ(c.functions[0].status, model::FunctionStatus::changed);
  EXPECT_EQ(c.comparability.level, Comparable::yes);
  EXPECT_TRUE(c.why.empty());
}

TEST(CompareRuns, NothingIsStatedOfCyclesThatMayBeNoSteps) {
  for (const int doubtful : {0, 1}) {
    Recording a = make_recording(steps(1'000'000));
    Recording b = make_recording(steps(1'600'000));
    (doubtful == 0 ? a : b).cycles.period_confidence = 0.4;
    (doubtful == 0 ? a : b).cycles.reason = "half of the launches lie outside";
    const RunComparison c = compared(std::move(a), std::move(b));
    EXPECT_EQ(c.outcome, Outcome::inconclusive);
    EXPECT_EQ(c.cycle_times[0].outcome, Outcome::inconclusive);
    EXPECT_NEAR(c.cycle_times[0].change, 0.6, 0.01) << "the numbers are still there";
    EXPECT_THAT(c.why, HasSubstr(doubtful == 0 ? "baseline" : "candidate"));
    EXPECT_THAT(c.why, HasSubstr("40 %"));
    EXPECT_THAT(c.why, HasSubstr("half of the launches"));
  }
}

TEST(CompareRuns, EightyPercentAreEnough) {
  Recording a = make_recording(steps(1'000'000));
  a.cycles.period_confidence = 0.8;
  EXPECT_EQ(compared(std::move(a), make_recording(steps(1'600'000))).outcome, Outcome::regression);
}

TEST(CompareRuns, LostEventsLimitTheOutcome) {
  Recording lossy = make_recording(steps(1'600'000));
  lossy.events = 980;
  lossy.events_lost = 20;
  RunComparison c = compared(make_recording(steps(1'000'000)), std::move(lossy));
  EXPECT_EQ(c.outcome, Outcome::inconclusive);
  EXPECT_THAT(c.why, HasSubstr("20 of 1000 events of the candidate were lost"));
  Recording nearly_whole = make_recording(steps(1'600'000));
  nearly_whole.events_lost = 5;
  c = compared(make_recording(steps(1'000'000)), std::move(nearly_whole));
  EXPECT_EQ(c.outcome, Outcome::regression) << "half a percent";
}

/// Steps of so many requests each, 20 ms and 5 ms for each request.
Recording steps_of(const std::vector<std::int64_t>& requests, double factor = 1) {
  std::vector<Ns> periods;
  std::vector<double> op;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const double ms = factor * static_cast<double>(20 + 5 * requests[i]) + static_cast<double>(i % 5) * 0.01;
    periods.push_back(static_cast<Ns>(ms * 1e6));
    op.push_back(ms * 5e5);
  }
  Recording r = make_recording(periods, {{".aten::mm", op}, {".aten::add", std::vector<double>(requests.size(), 1e6)}});
  for (std::size_t i = 0; i < requests.size(); ++i)
    r.cycles.cycles[i].workload.batch = r.profile.cycles[i].workload.batch = requests[i];
  return r;
}

TEST(CompareRuns, OtherWorkIsNoRegression) {
  const RunComparison c =
      compared(steps_of(std::vector<std::int64_t>(40, 4)), steps_of(std::vector<std::int64_t>(40, 12)));
  EXPECT_EQ(c.outcome, Outcome::inconclusive);
  EXPECT_THAT(c.why, HasSubstr("no steps of like work"));
  ASSERT_EQ(c.cycle_times.size(), 1U);
  EXPECT_EQ(c.cycle_times[0].cycles[0], 0U);
  EXPECT_EQ(c.cycle_times[0].other_work[1], 39U);
  EXPECT_EQ(c.cycle_times[0].usual_work[1], "12 requests");
  EXPECT_TRUE(c.functions.empty()) << "of other work nothing follows for functions";
}

TEST(CompareRuns, StepsOfLikeWorkAreComparedWhateverTheMix) {
  std::vector<std::int64_t> few;
  std::vector<std::int64_t> many;
  for (int i = 0; i < 200; ++i) {
    few.push_back(i % 4 == 0 ? 8 : 2);
    many.push_back(i % 4 == 0 ? 2 : 8);
  }
  RunComparison c = compared(steps_of(few), steps_of(many));
  EXPECT_NE(c.outcome, Outcome::regression);
  EXPECT_NEAR(c.cycle_times[0].change, 0, 0.001);
  EXPECT_TRUE(std::ranges::none_of(c.functions, model::has_changed)) << "functions are freed of the mix as well";
  EXPECT_EQ(c.comparability.level, Comparable::partly);
  EXPECT_THAT(c.comparability.reasons.at(0), HasSubstr("most often of 2 requests, of the candidate of 8 requests"));
  c = compared(steps_of(few), steps_of(many, 1.5));
  EXPECT_EQ(c.outcome, Outcome::regression);
  EXPECT_NEAR(c.cycle_times[0].change, 0.5, 0.01);
}

TEST(CompareRuns, WhatAllFunctionsShareIsNoneOfTheirs) {
  // All take 12 % longer: two recordings of one machine may differ by that. One of them takes twice as long.
  Times base;
  Times candidate;
  for (int f = 0; f < 12; ++f) {
    for (int i = 0; i < 40; ++i) {
      const double ns = 10'000 + i * 13 % 7 * 100;
      base[fmt::format(".op{}", f)].push_back(ns);
      candidate[fmt::format(".op{}", f)].push_back(ns * (f == 3 ? 2 : 1.12));
    }
  }
  const RunComparison c = compared(make_recording(steps(1'000'000), base), make_recording(steps(1'050'000), candidate));
  for (const model::FunctionFinding& f : c.functions)
    EXPECT_EQ(f.status == model::FunctionStatus::changed, c.texts[f.function] == ".op3") << c.texts[f.function];
}

TEST(CompareRuns, OneThatIsMostOfTheStepMakesNoOtherGuilty) {
  for (const double factor : {2.0, 0.5}) {
    Times base;
    Times candidate;
    for (int f = 0; f < 8; ++f)
      for (int i = 0; i < 40; ++i) {
        const double ns = (f == 3 ? 300'000 : 10'000) + i * 13 % 7 * 100;
        base[fmt::format(".op{}", f)].push_back(ns);
        candidate[fmt::format(".op{}", f)].push_back(ns * (f == 3 ? factor : 1.12));
      }
    const RunComparison c =
        compared(make_recording(steps(1'000'000), base), make_recording(steps(1'050'000), candidate));
    for (const model::FunctionFinding& f : c.functions)
      EXPECT_EQ(f.status == model::FunctionStatus::changed, c.texts[f.function] == ".op3") << c.texts[f.function];
  }
}

TEST(CompareRuns, LongerPromptsBehindDecodeStepsAreNoRegression) {
  const auto behind = [](double factor, std::int64_t tokens) {
    Recording r = steps_of(std::vector<std::int64_t>(40, 4), factor);
    for (auto& cycle : r.cycles.cycles) {
      cycle.phase = model::Phase::decode;
      cycle.workload.cached_tokens = tokens;
    }
    for (auto& cycle : r.profile.cycles) {
      cycle.phase = model::Phase::decode;
      cycle.workload.cached_tokens = tokens;
    }
    return r;
  };
  EXPECT_EQ(compared(behind(1, 400), behind(1.5, 1000)).outcome, Outcome::inconclusive);
  EXPECT_EQ(compared(behind(1, 400), behind(1.5, 400)).outcome, Outcome::regression);
  // An older recording does not tell: then nobody's do.
  EXPECT_EQ(compared(behind(1, -1), behind(1.5, 1000)).outcome, Outcome::regression);
}

TEST(CompareRuns, RanksOfOneStepMayHaveOtherBatches) {
  const auto two_ranks = [](double factor) {
    Recording r = steps_of(std::vector<std::int64_t>(40, 4));
    r.profile.processes.push_back({8, 0, 1});
    const std::size_t cycles = r.profile.cycles.size();
    for (std::size_t i = 0; i < cycles; ++i) {
      model::Cycle cycle = r.cycles.cycles[i];
      cycle.rank = 1;
      cycle.workload.batch = 5;
      r.cycles.cycles.push_back(cycle);
      model::ProfileCycle row = r.profile.cycles[i];
      row.rank = 1;
      row.pid = 8;
      row.workload.batch = 5;
      r.profile.cycles.push_back(row);
      model::FunctionUse use = r.profile.functions[2 * i];
      use.cycle = static_cast<std::uint32_t>(cycles + i);
      use.process = 1;
      use.own = use.duration = static_cast<Ns>(factor * static_cast<double>(1'000'000 + i % 7 * 1000));
      use.function = use.short_name = r.profile.texts.intern(".of_rank_1");
      r.profile.functions.push_back(use);
    }
    return r;
  };
  const RunComparison c = compared(two_ranks(1), two_ranks(3));
  const auto found = std::ranges::find_if(
      c.functions, [&](const model::FunctionFinding& f) { return c.texts[f.function] == ".of_rank_1"; });
  ASSERT_NE(found, c.functions.end());
  EXPECT_EQ(found->status, model::FunctionStatus::changed);
}

TEST(CompareRuns, WhatRunsInFewStepsIsJudgedByItsMean) {
  Times base = {{".step", std::vector<double>(200, 50'000)}};
  Times candidate = base;
  for (int i = 0; i < 200; ++i) {
    base[".flush"].push_back(i % 4 == 0 ? 40'000 + i : 0);
    candidate[".flush"].push_back(i % 4 == 0 ? 160'000 + i : 0);
  }
  const RunComparison c =
      compared(make_recording(steps(1'000'000, 200), base), make_recording(steps(1'000'000, 200), candidate));
  ASSERT_EQ(c.texts[c.functions[0].function], ".flush");
  EXPECT_EQ(c.functions[0].status, model::FunctionStatus::changed);
  EXPECT_EQ(c.functions[1].status, model::FunctionStatus::same);
}

TEST(CompareRuns, TheToleranceIsAnOption) {
  CompareOptions options;
  options.between = options.between_on_host = 0.001;
  EXPECT_EQ(compared(make_recording(steps(1'000'000)), make_recording(steps(1'020'000)), options).outcome,
            Outcome::no_change);
  options.tolerance = 0.01;
  EXPECT_EQ(compared(make_recording(steps(1'000'000)), make_recording(steps(1'020'000)), options).outcome,
            Outcome::regression);
}

TEST(CompareRuns, OneRecordingOnBothSidesIsTheSame) {
  Recording a = make_recording(steps(1'000'000));
  Recording b = make_recording(steps(1'000'000));
  a.digest = b.digest = 42;
  const RunComparison c = compared(std::move(a), std::move(b));
  EXPECT_TRUE(c.same_recording);
  EXPECT_EQ(c.outcome, Outcome::no_change);
}

TEST(CompareRuns, UnknownContentIsNotTheSame) {
  EXPECT_FALSE(compared(make_recording(steps(1'000'000)), make_recording(steps(1'000'000))).same_recording);
}

TEST(CompareRuns, ARecordingThatComesTwiceIsRefused) {
  std::vector<Recording> base;
  for (int i = 0; i < 2; ++i) {
    base.push_back(make_recording(steps(1'000'000)));
    base.back().digest = 42;
  }
  const auto result = compare_runs(std::move(base), one(make_recording(steps(1'000'000))));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::usage);
  EXPECT_THAT(result.error().what, HasSubstr("the same recording"));
}

TEST(CompareRuns, ACutCopyIsNoRecordingOfItsOwn) {
  std::vector<Recording> base;
  for (const char* name : {"cut.json", "whole.json"}) {
    base.push_back(make_recording(steps(1'000'000)));
    base.back().digest = 42;
    base.back().files = {name};
  }
  base[0].is_part = true;
  const auto result = compare_runs(std::move(base), one(make_recording(steps(1'000'000))));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::usage);
  EXPECT_EQ(result.error().what, "'cut.json' is a part of the recording 'whole.json', and no recording of its own");
}

TEST(CompareRuns, ACutCopyOnTheOtherSideIsTheSame) {
  for (const bool is_cut : {false, true}) {
    Recording a = make_recording(steps(1'000'000));
    Recording b = make_recording(steps(1'000'000));
    a.digest = b.digest = 42;
    b.is_part = is_cut;
    const RunComparison c = compared(std::move(a), std::move(b));
    EXPECT_TRUE(c.same_recording);
    EXPECT_EQ(c.notes.size(), is_cut ? 1U : 0U);
  }
}

TEST(CompareRuns, BothSidesMustHaveARecording) {
  EXPECT_FALSE(compare_runs({}, one(make_recording(steps(1000)))).ok());
}

TEST(CompareRuns, SeveralRecordingsOfASideArePooled) {
  std::vector<Recording> base;
  base.push_back(make_recording(steps(100'000'000), {{"f", std::vector<double>(40, 1000)}}));
  base.push_back(make_recording(steps(100'000'000), {{"f", std::vector<double>(40, 1000)}}, model::Phase::decode, 8));
  const auto c =
      compare_runs(std::move(base), one(make_recording(steps(130'000'000), {{"f", std::vector<double>(40, 1000)}})));
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->sides[0].recordings, 2U);
  EXPECT_EQ(c->cycle_times[0].cycles[0], 78U);
  ASSERT_EQ(c->functions.size(), 1U);
  EXPECT_EQ(c->functions[0].calls[0], 2);
  EXPECT_EQ(c->outcome, Outcome::regression);
}

TEST(CompareRuns, RecordingsOfOtherRunsDoNotBelongOnOneSide) {
  std::vector<Recording> base;
  base.push_back(make_recording(steps(1'000'000)));
  base.push_back(make_recording(steps(1'000'000)));
  base.back().cycles.anchor = "Layer.forward";
  base.back().files = {"other.json"};
  const auto result = compare_runs(std::move(base), one(make_recording(steps(1'000'000))));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::input);
  EXPECT_EQ(result.error().where, "other.json");
}

TEST(CompareRuns, RecordingsOfOneSideBelongTogetherInAnyOrder) {
  // Decode, both, prefill: the first and the last have nothing in common.
  const auto of = [](std::size_t which) {
    Recording r = make_recording(steps(1'000'000));
    for (std::size_t i = 0; i < r.cycles.cycles.size(); ++i) {
      const bool prefill = which == 2 || (which == 1 && i % 2 == 0);
      r.cycles.cycles[i].phase = r.profile.cycles[i].phase = prefill ? Phase::prefill : Phase::decode;
    }
    return r;
  };
  for (const auto& order : {std::array{0, 1, 2}, std::array{1, 0, 2}, std::array{2, 0, 1}}) {
    std::vector<Recording> base;
    for (const int which : order) base.push_back(of(static_cast<std::size_t>(which)));
    EXPECT_TRUE(compare_runs(std::move(base), one(of(1))).ok());
  }
  std::vector<Recording> base;
  base.push_back(of(0));
  base.push_back(of(2));
  EXPECT_FALSE(compare_runs(std::move(base), one(of(1))).ok());
}

TEST(CompareRuns, GuessedPhasesNeverStandBetweenRecordingsOfOneSide) {
  const auto of = [](Phase phase) {
    Recording r = make_recording(steps(1'000'000), {}, phase);
    for (model::Cycle& cycle : r.cycles.cycles) cycle.phase_guessed = true;
    return r;
  };
  std::vector<Recording> base;
  base.push_back(of(Phase::decode));
  base.push_back(of(Phase::prefill));
  EXPECT_TRUE(compare_runs(std::move(base), one(of(Phase::decode))).ok());
}

TEST(CompareRuns, OtherAnchorsAreNotComparable) {
  Recording b = make_recording(steps(500'000));
  b.cycles.anchor = "Layer.forward";
  const RunComparison c = compared(make_recording(steps(1'000'000)), std::move(b));
  EXPECT_EQ(c.outcome, Outcome::not_comparable);
  EXPECT_EQ(c.comparability.level, Comparable::no);
  EXPECT_THAT(c.why, HasSubstr("Layer.forward"));
  EXPECT_THAT(c.comparability.remedy, HasSubstr("--anchor"));
  EXPECT_TRUE(c.functions.empty());
  EXPECT_EQ(c.sides[0].median_period, 1'000'200);
}

TEST(CompareRuns, OtherDevicesAreToldBeforeProfilesAreMade) {
  Recording a = make_recording(steps(1'000'000));
  Recording b = make_recording(steps(1'000'000));
  a.facts.device_models = {"A100"};
  b.facts.device_models = {"V100"};
  const model::Comparability c = comparability_of(one(std::move(a)), one(std::move(b)));
  EXPECT_EQ(c.level, Comparable::no);
  EXPECT_THAT(c.reasons.front(), HasSubstr("device model A100 against V100"));
}

TEST(CompareRuns, TheMedianIsThatOfTwoMiddleValues) {
  const RunComparison c = compared(make_recording({100, 200, 1}), make_recording({100, 200, 1}));
  EXPECT_EQ(c.sides[0].median_period, 150) << "as `culprit cycles` has it";
}

TEST(CompareRuns, ARecordingWithOneCycleGivesNoOutcome) {
  const RunComparison c = compared(make_recording({1000}), make_recording({2000}));
  EXPECT_EQ(c.outcome, Outcome::inconclusive);
  EXPECT_THAT(c.why, HasSubstr("whole cycle"));
  EXPECT_TRUE(c.cycle_times.empty());
}

/// Steps that take the same, and wait twice as long for the next one.
RunComparison of_longer_waits(const std::map<std::string, double>& beside) {
  const auto side = [](Ns period, Ns no_work, const std::map<std::string, double>& others) {
    Recording r = make_recording(steps(period));
    for (model::Cycle& cycle : r.cycles.cycles) cycle.no_work = no_work;
    r.host.scheduling = true;
    r.host.cycles[kDecode] = r.cycles.cycles.size();
    r.host.period_ns[kDecode] = static_cast<double>(period) * static_cast<double>(r.cycles.cycles.size());
    r.host.beside = others;
    return r;
  };
  return compared(side(1'000'000, 0, {}), side(2'000'000, 1'000'000, beside));
}

TEST(CompareRuns, LongerWaitsAreARegressionOnlyWhenOthersTookTheCpus) {
  EXPECT_EQ(of_longer_waits({}).outcome, Outcome::inconclusive) << "less may have been asked of it";
  EXPECT_EQ(of_longer_waits({{"cron", 0.2}}).outcome, Outcome::inconclusive);
  const RunComparison c = of_longer_waits({{"stress", 1.9}});
  EXPECT_EQ(c.outcome, Outcome::regression);
  EXPECT_THAT(c.notes, testing::Contains(HasSubstr("others took the CPUs")));
}

/// Steps whose level wanders from eighth to eighth of the recording.
std::vector<Ns> wandering(Ns period) {
  std::vector<Ns> periods;
  for (int i = 0; i < 400; ++i) periods.push_back(period + period * (i / 50 * 5 % 8) / 8 + i * 7 % 5 * 1000);
  return periods;
}

/// Steps that spread too much to decide, of which the second side's wait `for_cpu` ns for a CPU instead of 50,000.
RunComparison of_waits_for_cpus(double for_cpu, const std::map<std::string, double>& beside) {
  const auto side = [](Ns period, double waited, const std::map<std::string, double>& others) {
    Recording r = make_recording(wandering(period));
    const auto steps = static_cast<double>(r.cycles.cycles.size());
    r.host.scheduling = true;
    r.host.cycles[kDecode] = r.cycles.cycles.size();
    r.host.period_ns[kDecode] = static_cast<double>(period) * steps;
    model::StepThread& thread = r.host.step.emplace();
    thread.runnable[kDecode] = waited * steps;
    thread.on_cpu[kDecode] = (static_cast<double>(period) - waited) * steps;
    r.host.beside = others;
    return r;
  };
  return compared(side(1'000'000, 50'000, {}), side(1'400'000, for_cpu, beside));
}

TEST(CompareRuns, WaitsForCpusThatOthersTookDecideWhereTheTimesSpreadTooMuch) {
  EXPECT_EQ(of_waits_for_cpus(500'000, {}).outcome, Outcome::inconclusive) << "nobody took them";
  EXPECT_EQ(of_waits_for_cpus(200'000, {{"stress", 1.9}}).outcome, Outcome::inconclusive) << "so may two of the same";
  const RunComparison c = of_waits_for_cpus(500'000, {{"stress", 1.9}});
  EXPECT_EQ(c.outcome, Outcome::regression);
  EXPECT_THAT(c.notes, testing::Contains(HasSubstr("30 % longer at least")));
}

TEST(CompareRuns, WhatOthersMadeTheCandidateDriftIsNoDriftOfTheProgram) {
  const auto outcome = [](const std::map<std::string, double>& beside) {
    Recording a = make_recording(std::vector<Ns>(400, 10'000'000));
    Recording b = make_recording(wandering(10'000'000));
    for (Recording* r : {&a, &b}) {
      r->host.scheduling = true;
      r->host.cycles[kDecode] = r->cycles.cycles.size();
      for (const model::Cycle& cycle : r->cycles.cycles)
        r->host.period_ns[kDecode] += static_cast<double>(cycle.period);
    }
    b.host.beside = beside;
    return compared(std::move(a), std::move(b)).outcome;
  };
  EXPECT_EQ(outcome({}), Outcome::inconclusive) << "two recordings of the same may differ as much as this one drifts";
  EXPECT_EQ(outcome({{"stress-ng-cpu", 1.9}}), Outcome::regression);
}

/// Three recordings a side of the same program, the k-th of a side begun at `begins`[k].
RunComparison of_replicates(const std::array<std::vector<Ns>, 2>& begins) {
  std::array<std::vector<Recording>, 2> sides;
  for (std::size_t s = 0; s < 2; ++s)
    for (const Ns begin : begins[s]) {
      Recording& r = sides[s].emplace_back(make_recording(std::vector<Ns>(40, 1'000'000 + begin % 1000)));
      for (model::ProfileCycle& cycle : r.profile.cycles) cycle.begin += begin * 1'000'000'000;
    }
  auto result = compare_runs(std::move(sides[0]), std::move(sides[1]));
  EXPECT_TRUE(result.ok());
  return std::move(*result);
}

TEST(CompareRuns, RecordingsInTurnsNeedNoAssumption) {
  constexpr Ns kToday = 1'700'000'000;
  const auto at = [](Ns a, Ns b, Ns c) { return std::vector<Ns>{a, b, c}; };
  const RunComparison turns =
      of_replicates({at(kToday, kToday + 20, kToday + 40), at(kToday + 10, kToday + 30, kToday + 50)});
  EXPECT_EQ(turns.outcome, Outcome::no_change);
  EXPECT_THAT(turns.assumptions, testing::IsEmpty());
  EXPECT_TRUE(model::is_measured(turns.cycle_times));
  EXPECT_THAT(of_replicates({at(10, 30, 50), at(20, 40, 60)}).assumptions, testing::SizeIs(1))
      << "times that are of no day tell no order";
  const RunComparison blocks =
      of_replicates({at(kToday, kToday + 10, kToday + 20), at(kToday + 30, kToday + 40, kToday + 50)});
  EXPECT_EQ(blocks.outcome, Outcome::inconclusive);
  EXPECT_THAT(blocks.assumptions[0], HasSubstr("not recorded in turns"));
}

TEST(CompareRuns, ShortRecordingsOnHostsDifferMore) {
  const auto between = [](Ns period) {
    return compared(make_recording(steps(period)), make_recording(steps(period))).cycle_times.at(0).between;
  };
  EXPECT_NEAR(between(1'000'000), 0.12, 1e-9) << "40 ms";
  EXPECT_NEAR(between(25'000'000), 0.087, 0.001) << "a second";
  EXPECT_NEAR(between(200'000'000), 0.05, 1e-9) << "eight";
}

TEST(CompareRuns, HostsDifferMoreFromOneRecordingToTheNextThanDevices) {
  const auto outcome = [](bool gpu_work) {
    Recording a = make_recording(steps(1'000'000));
    Recording b = make_recording(steps(1'080'000));
    a.facts.gpu_work = b.facts.gpu_work = gpu_work;
    return compared(std::move(a), std::move(b)).outcome;
  };
  EXPECT_EQ(outcome(true), Outcome::regression);
  EXPECT_EQ(outcome(false), Outcome::inconclusive);
}

TEST(CompareRuns, AnotherRankIsSaidAndCompared) {
  Recording a = make_recording(steps(1'000'000));
  Recording b = make_recording(steps(1'000'000));
  a.facts.gpu_work = b.facts.gpu_work = true;
  a.facts.world_size = b.facts.world_size = 8;
  a.facts.ranks = {0};
  b.facts.ranks = {1};
  const RunComparison c = compared(std::move(a), std::move(b));
  EXPECT_EQ(c.comparability.level, Comparable::partly);
  EXPECT_EQ(c.outcome, Outcome::no_change);
}

model::HostCounter counter_of(std::string_view name, double mean, double spread) {
  model::HostCounter counter;
  counter.name = name;
  counter.mean = mean;
  counter.samples = 20;
  for (int w = 0; w < 20; ++w) counter.windows.push_back(mean + (w * 7 % 5 - 2) * spread);
  return counter;
}

TEST(CompareRuns, OfRecordingsWithStepsOnlyCountersThatMovedByMoreThanTheySpreadAreListed) {
  model::Recording a = make_recording(std::vector<Ns>(60, 1000));
  model::Recording b = make_recording(std::vector<Ns>(60, 1000));
  a.host.counters = {counter_of("host.disk.busy", 100, 60), counter_of("host.pressure", 1, 0.01)};
  b.host.counters = {counter_of("host.disk.busy", 140, 60), counter_of("host.pressure", 9, 0.01)};
  const auto result = compare_runs(one(std::move(a)), one(std::move(b)));
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->host);
  ASSERT_EQ(result->host->counters.size(), 1U);
  EXPECT_EQ(result->host->counters[0].what, "host.pressure");
}

}  // namespace
}  // namespace culprit::compare
