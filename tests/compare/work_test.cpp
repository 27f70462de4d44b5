#include "compare/work.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compare/compare_runs.h"
#include "compare/make_server.h"
#include "compare/one_side.h"
#include "core/units.h"
#include "stats/log_buckets.h"

namespace culprit::compare {
namespace {

/// Its rate falls by half in the middle, so that it gives no outcome.
void let_drift(model::Recording& recording) {
  std::vector<double>& units = recording.work->units[0].per_window;
  for (std::size_t w = 0; w < units.size(); ++w) units[w] *= w < units.size() / 2 ? 1.3 : 0.7;
}

TEST(CompareWork, SaturatedServerThatFellToAQuarterRegressed) {
  const model::WorkComparison c = compare({.rate = 8000}, {.rate = 2000, .run_queue = 380e3});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_NEAR(c.throughput.change, -0.75, 0.01);
  EXPECT_LT(c.throughput.low, -0.75);
  EXPECT_GT(c.throughput.high, -0.75);
  ASSERT_EQ(c.parts.size(), 2U);
  EXPECT_NEAR(c.parts[1].value[1], 380e3, 380);
}

/// Processes one after the other, each of `length`.
model::Recording compiled(Ns length, double jitter) {
  model::Recording r = recorded({.rate = 1e9 / static_cast<double>(length), .on_cpu = static_cast<double>(length)});
  model::WorkUnit& unit = r.work->units.front();
  unit.kind = model::UnitKind::process;
  unit.receive = unit.send = "";
  unit.per_window.assign(12, 0);
  unit.count = 0;
  Ns at = 0;
  for (int i = 0;; ++i) {
    at += static_cast<Ns>(static_cast<double>(length) * (1 + jitter * ((i * 7) % 5 - 2) / 2));
    if (at >= 12 * kSecond) break;
    unit.ends.push_back(at);
    unit.per_window[static_cast<std::size_t>(at / kSecond)] += 1;
    ++unit.count;
  }
  return r;
}

TEST(CompareWork, LongUnitsAreJudgedFromEndToEnd) {
  const model::Recording fast = compiled(300'000'000, 0.05);
  const model::Recording slow = compiled(900'000'000, 0.05);  // 13 in 12 s: windows of five would be two
  const model::WorkComparison c = compare_work({&fast, 1}, {&slow, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_NEAR(c.throughput.change, -2.0 / 3, 0.05);
  EXPECT_LT(c.throughput.high, -0.5);
  EXPECT_TRUE(c.unit.ends.empty());
  const model::Recording again = compiled(910'000'000, 0.08);
  const model::WorkComparison same = compare_work({&slow, 1}, {&again, 1});
  EXPECT_NE(same.outcome, model::Outcome::regression);
  EXPECT_NE(same.outcome, model::Outcome::improvement);
  EXPECT_TRUE(std::isfinite(same.throughput.low));
}

TEST(CompareWork, LessWithoutAnswersMayBeLessDemandOrALongerWaitOutside) {
  const model::WorkComparison c = compare({.rate = 4000}, {.rate = 1000});
  EXPECT_EQ(c.outcome, model::Outcome::inconclusive);
  EXPECT_NE(c.why.find("perhaps less work arrived, perhaps the program waited longer"), std::string::npos) << c.why;
  EXPECT_NEAR(c.throughput.change, -0.75, 0.01);
  const model::WorkComparison back = compare({.rate = 1000}, {.rate = 4000});
  EXPECT_EQ(back.outcome, model::Outcome::inconclusive);
  EXPECT_NE(back.why.find("perhaps more work arrived"), std::string::npos) << back.why;
}

TEST(CompareWork, WhereNothingIsAskedOnEitherSideThereIsNothingToCompare) {
  const auto idle_one = [] {
    model::Recording r = recorded({});
    r.work->idle = true;
    r.work->units[0] = {};
    r.work->units[0].kind = model::UnitKind::window;
    r.work->units[0].reason = "idle: hardly anything ran";
    return r;
  };
  const model::Recording idle = idle_one();
  model::Recording asleep = idle_one();
  asleep.work->program.clear();
  asleep.work->programs.clear();
  EXPECT_FALSE(why_no_common_work({&idle, 1}, {&asleep, 1}));
  const model::WorkComparison c = compare_work({&idle, 1}, {&asleep, 1});
  EXPECT_TRUE(c.idle);
  EXPECT_EQ(c.outcome, model::Outcome::inconclusive);
  EXPECT_EQ(c.why, "nothing was asked of it on either side (idle: hardly anything ran)");
  EXPECT_EQ(assumption_of(c), "");
  const model::Recording busy = recorded({});
  const auto why = why_no_common_work({&busy, 1}, {&asleep, 1});
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason,
            "the baseline holds requests of server (read to write), the candidate nothing (idle: hardly "
            "anything ran)");
}

TEST(CompareWork, WhatMayHaveGotNoCpuIsNotSaidToHaveBeenAskedForNothing) {
  const model::Recording busy = recorded({});
  model::Recording idle = recorded({});
  idle.work->idle = true;
  idle.work->units[0].reason = "idle: hardly anything ran";
  const auto counted = [](std::string name, double mean) {
    model::HostCounter counter;
    counter.name = std::move(name);
    counter.mean = mean;
    return counter;
  };
  idle.host.counters = {counted("host.cpu.busy", 0.99), counted("host.cpu.used", 1.98),
                        counted("host.cpu.others", 1.5)};
  EXPECT_EQ(why_one_is_idle({&busy, 1}, {&idle, 1})->reason,
            "nothing was asked of the candidate (idle: hardly anything ran)");
  idle.host.counters[2].mean = 1.97;
  EXPECT_EQ(why_one_is_idle({&busy, 1}, {&idle, 1})->reason,
            "the candidate hardly ran: nothing was asked of it, or it got no CPU, of which other programs had 1.97 of "
            "the 1.98 in use");
  idle.host.counters[0].mean = 0.6;
  EXPECT_NE(why_one_is_idle({&busy, 1}, {&idle, 1})->reason.find("nothing was asked of the candidate ("),
            std::string::npos);
}

TEST(CompareWork, LongerWaitsForWorkAreNeverAnImprovement) {
  for (const double rate : {3000.0, 1000.0, 100.0})
    EXPECT_NE(compare({.rate = 4000}, {.rate = rate}).outcome, model::Outcome::improvement) << rate;
}

TEST(CompareWork, ServersThatAreAskedSeldomWorkLongerPerRequest) {
  const Server calm{.rate = 200, .on_cpu = 73e3, .run_queue = 127e3};  // cold caches, sleeping CPUs
  const Server busy{.rate = 8200, .on_cpu = 34e3, .run_queue = 62e3};
  const model::Recording seldom = answering(calm, 210e3);
  const model::Recording often = answering(busy, 240e3);
  EXPECT_EQ(compare_work({&often, 1}, {&seldom, 1}).outcome, model::Outcome::no_change);
  EXPECT_EQ(compare_work({&seldom, 1}, {&often, 1}).outcome, model::Outcome::no_change);
  EXPECT_EQ(compare(busy, calm).outcome, model::Outcome::inconclusive) << "without answers";
}

TEST(CompareWork, CompetitorsForCpusMakeARegressionThoughTheClientIsStarvedAsWell) {
  model::Recording a = recorded({.rate = 4000});
  model::Recording b = recorded({.rate = 1500, .run_queue = 40e3});
  EXPECT_NE(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::regression);
  b.work->others = {{"stress-ng-cpu", 1.9}};
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::regression);
  EXPECT_EQ(compare_work({&b, 1}, {&a, 1}).outcome, model::Outcome::improvement) << "the other way round";
}

TEST(CompareWork, ACompetitorOnAFullMachineMakesARegression) {
  model::Recording a = answering({.rate = 4000}, 150e3);
  model::Recording b = answering({.rate = 2200, .run_queue = 22e3}, 155e3);
  b.work->others = {{"stress-ng-cpu", 0.9}};
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::no_change) << "CPUs are left";
  model::HostCounter& busy = b.host.counters.emplace_back();
  busy.name = "host.cpu.busy";
  busy.mean = 0.99;
  const model::WorkComparison c = compare_work({&a, 1}, {&b, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_EQ(c.reading, "stress-ng-cpu took CPUs that the program, or who asks it, wanted");
  b.host.counters.back().mean = 0.8;
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::no_change) << "CPUs are left";
  b.host.counters.push_back(b.host.counters.back());
  b.host.counters.back().name = "host.cpu.steal";
  b.host.counters.back().mean = 0.15;
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::regression) << "the machine below took those";
  b.work->others.push_back({"backup", 0.5});
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).reading,
            "stress-ng-cpu and others took CPUs that the program, or who asks it, wanted");
}

TEST(CompareWork, AClearDifferenceShowsThoughWindowsResembleTheirNeighbours) {
  model::Recording a = recorded({.rate = 4000, .seconds = 40});
  model::Recording b = recorded({.rate = 1000, .run_queue = 700e3, .seconds = 40});
  for (model::Recording* r : {&a, &b})
    for (std::size_t w = 0; w < 40; ++w) r->work->units[0].per_window[w] *= w < 20 ? 1.05 : 0.95;
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::regression);
}

TEST(CompareWork, WithoutAnIntervalTheReasonIsSaid) {
  const model::Recording a = recorded({.seconds = 6});
  model::Recording b = recorded({.rate = 800, .seconds = 6});
  for (std::size_t w = 0; w < 6; ++w) b.work->units[0].per_window[w] *= 1 + 0.2 * static_cast<double>(w);
  const model::WorkComparison c = compare_work({&a, 1}, {&b, 1});
  EXPECT_EQ(c.outcome, model::Outcome::inconclusive);
  EXPECT_NE(c.why.find("drifts"), std::string::npos) << c.why;
}

TEST(CompareWork, WhatOthersMadeOneSideDriftIsNoDriftOfTheProgram) {
  const model::Recording a = recorded({.rate = 4000});
  model::Recording b = recorded({.rate = 3000, .run_queue = 130e3});
  for (std::size_t w = 0; w < 12; ++w) b.work->units[0].per_window[w] *= w < 6 ? 1.3 : 0.7;
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::inconclusive);
  b.work->others = {{"stress-ng-cpu", 1.5}};
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::regression);
  EXPECT_EQ(compare_work({&b, 1}, {&a, 1}).outcome, model::Outcome::improvement) << "the mirror of it";
}

TEST(CompareWork, WaitsForCpusThatOthersTookDecideWhereTheRateSpreadsTooMuch) {
  model::Recording a = recorded({.rate = 4000});
  model::Recording b = recorded({.rate = 2900, .run_queue = 150e3});
  let_drift(a);
  let_drift(b);
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::inconclusive);
  b.work->others = {{"stress-ng-cpu", 1.5}};
  const model::WorkComparison c = compare_work({&a, 1}, {&b, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression) << c.why;
  EXPECT_NE(c.reading.find("for a CPU"), std::string::npos) << c.reading;
  EXPECT_TRUE(c.why.empty()) << c.why;
  EXPECT_EQ(compare_work({&b, 1}, {&a, 1}).outcome, model::Outcome::improvement) << "the mirror of it";
}

TEST(CompareWork, AStallIsNoWaitOfEveryUnit) {
  model::Recording a = recorded({.rate = 4000});
  model::Recording b = recorded({.rate = 2900, .run_queue = 150e3});
  let_drift(a);
  for (std::size_t w = 0; w < 12; ++w) b.work->units[0].per_window[w] *= w < 4 ? 0.1 : 1.45;
  b.work->others = {{"stress-ng-cpu", 1.5}};
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::inconclusive) << "two of three windows are fine";
}

TEST(CompareWork, MostHalfSecondsDecideWhereOthersTookItsCpusAndNeitherTheRateNorTheWaitsDo) {
  model::Recording a = recorded({.rate = 4000, .run_queue = 60e3});
  model::Recording b = recorded({.rate = 1500, .on_cpu = 250e3, .run_queue = 150e3});
  let_drift(a);
  b.work->others = {{"stress-ng-hdd", 0.8}};
  // Slow most of the time, not all of it.
  for (std::size_t w = 0; w < 12; ++w) b.work->units[0].per_window[w] *= w % 3 == 0 ? 2.2 : 0.6;
  const model::WorkComparison c = compare_work({&a, 1}, {&b, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression) << c.why;
  EXPECT_NE(c.reading.find("of its stretches the candidate did fewer"), std::string::npos) << c.reading;
  EXPECT_EQ(compare_work({&b, 1}, {&a, 1}).outcome, model::Outcome::improvement) << "the mirror of it";
  const auto others = std::exchange(b.work->others, {});
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::inconclusive) << "nobody took its CPUs";
  b.work->others = others;
  for (model::WorkWindow& window : b.work->windows) window.on_cpu /= 3;
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::inconclusive) << "it was asked for less";
}

TEST(CompareWork, WaitsPerUnitAreNoSurerThanTheNumberOfUnits) {
  model::Recording a = recorded({.rate = 4000});
  model::Recording b = recorded({.rate = 2900, .run_queue = 80e3});
  let_drift(a);
  let_drift(b);
  b.work->others = {{"stress-ng-cpu", 1.5}};
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::regression);
  b.work->units[0].count_error = 0.3;
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::inconclusive);
}

TEST(CompareWork, SystemCallsThatAreEstimatesAreANoteWhereUnitsAreNone) {
  for (const bool said : {false, true}) {
    model::Recording b = recorded({.rate = 1010});
    model::WorkUnit turns;
    turns.kind = model::UnitKind::iteration;
    turns.count_error = 0.056;
    b.work->units.push_back(turns);
    if (said) b.work->units.front().count_error = 0.056;  // the number of units says it
    const auto compared = compare_runs(one(recorded({})), one(std::move(b)));
    ASSERT_TRUE(compared) << compared.error().what;
    ASSERT_EQ(compared->notes.size(), said ? 0U : 1U);
    if (said) continue;
    EXPECT_EQ(compared->notes[0],
              "System calls of the candidate are estimates, ± 5.6 %: they were looked at in windows");
  }
}

TEST(CompareWork, EarlierRecordingsTellHowMuchTwoOfTheSameDiffer) {
  const model::Recording a = recorded({.rate = 4000});
  const model::Recording b = recorded({.rate = 3700, .run_queue = 30e3});
  EXPECT_EQ(compare_work({&a, 1}, {&b, 1}).outcome, model::Outcome::inconclusive);
  const std::array earlier = {recorded({.rate = 4010}), recorded({.rate = 3990}), recorded({.rate = 4000}),
                              recorded({.rate = 4005})};
  const std::array<const model::Recording*, 4> seen = {&earlier[0], &earlier[1], &earlier[2], &earlier[3]};
  WorkOptions options;
  options.earlier = seen;
  const model::WorkComparison c = compare_work({&a, 1}, {&b, 1}, options);
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_EQ(c.earlier, 4U);
  EXPECT_LT(c.between, 0.01);
}

TEST(CompareWork, CallsThatStandInNoTotalDecideNothing) {
  const auto with = [](std::uint64_t missed) {
    model::Recording slow = recorded({.rate = 2000, .run_queue = 380e3});
    slow.losses.push_back({"calls_uncounted", "data_loss", "", "", "", missed});
    slow.collected.calls["read"].count = 99'100;
    return compare_runs(one(recorded({.rate = 8000})), one(std::move(slow)));
  };
  const auto few = with(900);
  ASSERT_TRUE(few) << to_string(few.error());
  EXPECT_EQ(few->outcome, model::Outcome::regression);
  const auto many = with(1200);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->outcome, model::Outcome::inconclusive);
  EXPECT_EQ(many->why, "1200 of 100300 system calls of the candidate stand in no total");
}

TEST(CompareWork, MoreDemandIsNoImprovement) {
  const model::Recording calm = answering({.rate = 1000}, 150e3);
  const model::Recording busy = answering({.rate = 4000}, 150e3);
  const model::WorkComparison c = compare_work({&calm, 1}, {&busy, 1});
  EXPECT_EQ(c.outcome, model::Outcome::no_change);
  EXPECT_NE(c.reading.find("more work arrived"), std::string::npos);
}

TEST(CompareWork, FasterUnitsAreAnImprovement) {
  EXPECT_EQ(compare({.rate = 2000, .on_cpu = 400e3}, {.rate = 6000, .on_cpu = 120e3}).outcome,
            model::Outcome::improvement);
}

TEST(CompareWork, UnderFixedDemandSlowerUnitsAreARegression) {
  const model::WorkComparison c = compare({.rate = 1000}, {.rate = 1000, .run_queue = 300e3});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_NEAR(c.throughput.change, 0, 0.01);
}

TEST(CompareWork, MoreThroughputIsNoRegressionThoughUnitsTookLonger) {
  for (const double rate : {4400.0, 4700.0, 6000.0})
    EXPECT_NE(compare({.rate = 4000}, {.rate = rate, .run_queue = 60e3, .wobble = 0.05}).outcome,
              model::Outcome::regression)
        << rate;
}

TEST(CompareWork, ASmallDifferenceBetweenTwoRecordingsIsNone) {
  for (const double factor : {0.93, 0.97, 1.0, 1.04, 1.08}) {
    const model::WorkComparison c =
        compare({.rate = 4000}, {.rate = 4000 * factor, .on_cpu = 100e3 / factor, .wobble = 0.04});
    EXPECT_NE(c.outcome, model::Outcome::regression) << factor;
    EXPECT_NE(c.outcome, model::Outcome::improvement) << factor;
  }
}

TEST(CompareWork, ACallThatOnlyOneSideMakesIsListed) {
  const Server without{.rate = 500};
  const Server with{.rate = 400, .blocked = 800e3};
  const model::WorkComparison more = compare(without, with);
  ASSERT_EQ(more.calls.size(), 1U);
  EXPECT_EQ(more.calls[0].name, "fdatasync");
  EXPECT_EQ(more.calls[0].per_unit[0], 0);
  EXPECT_NEAR(more.calls[0].per_unit[1], 1, 0.01);
  const model::WorkComparison less = compare(with, without);
  ASSERT_EQ(less.calls.size(), 1U);
  EXPECT_EQ(less.calls[0].per_unit[1], 0);
}

TEST(CompareWork, CallsAreComparedOneByOne) {
  const model::WorkComparison c =
      compare({.rate = 500, .blocked = 800e3}, {.rate = 250, .run_queue = 100e3, .blocked = 1200e3});
  ASSERT_EQ(c.calls.size(), 1U);
  EXPECT_NEAR(c.calls[0].per_call_ns[1] / c.calls[0].per_call_ns[0], 1.5, 0.02) << "though its sum fell";
  ASSERT_EQ(c.parts.size(), 3U);
  EXPECT_EQ(c.parts[2].what, "blocked in fdatasync");
}

TEST(CompareWork, CompetitorsHaveNames) {
  model::Recording a = recorded({});
  model::Recording b = recorded({});
  a.work->others = {{"client", 0.8}};
  b.work->others = {{"stress-ng-cpu", 1.9}, {"client", 0.7}};
  const model::WorkComparison c = compare_work({&a, 1}, {&b, 1});
  ASSERT_EQ(c.others.size(), 1U);
  EXPECT_EQ(c.others[0].what, "stress-ng-cpu");
  EXPECT_DOUBLE_EQ(c.others[0].value[1], 1.9);
}

TEST(CompareWork, AnUnsureUnitGivesNoOutcome) {
  model::Recording a = recorded({.rate = 8000});
  model::Recording b = recorded({.rate = 2000, .run_queue = 380e3});
  a.work->units[0].confidence = 0.4;
  const model::WorkComparison c = compare_work({&a, 1}, {&b, 1});
  EXPECT_EQ(c.outcome, model::Outcome::inconclusive);
  EXPECT_NE(c.why.find("40 %"), std::string::npos);
}

TEST(CompareWork, OtherProgramsAreRefused) {
  model::Recording b = recorded({});
  b.work->program = b.work->units[0].process = "nginx";
  b.work->programs = {"nginx"};
  const auto compared = compare_runs(one(recorded({})), one(std::move(b)));
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->outcome, model::Outcome::not_comparable);
  EXPECT_NE(compared->why.find("nginx"), std::string::npos);
}

TEST(CompareWork, CommandsThatAreNotTheSameAreNamed) {
  model::Recording a = recorded({});
  model::Recording b = recorded({});
  for (model::Recording* recording : {&a, &b}) {
    recording->work->units[0].kind = model::UnitKind::process;
    recording->work->units[0].process = "the command";
  }
  a.work->program = "make";
  b.work->program = "ninja";
  a.work->programs = {"make"};
  b.work->programs = {"ninja"};
  const auto refused = why_no_common_work({&a, 1}, {&b, 1});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "the baseline runs make, the candidate ninja");
}

TEST(CompareWork, ProgramsWithTheSameFrontAreToldApartByWhatElseTheyRun) {
  model::Recording a = recorded({});
  model::Recording b = recorded({});
  a.work->programs = {"VLLM::Worker", "server"};
  a.work->program = "VLLM::Worker";
  b.work->programs = {"server", "sglang::scheduler"};
  b.work->program = "sglang::scheduler";
  EXPECT_TRUE(why_no_common_work({&a, 1}, {&b, 1}).has_value());
  b.work->programs = {"VLLM::Worker", "server"};
  b.work->program = "server";
  EXPECT_FALSE(why_no_common_work({&a, 1}, {&b, 1}).has_value());
}

TEST(CompareWork, TheWholeComparisonTakesThisWay) {
  const auto compared = compare_runs(one(recorded({.rate = 8000})), one(recorded({.rate = 2000, .run_queue = 380e3})));
  ASSERT_TRUE(compared) << compared.error().what;
  EXPECT_EQ(compared->outcome, model::Outcome::regression);
  EXPECT_TRUE(compared->work.has_value());
  EXPECT_TRUE(compared->cycle_times.empty());
}

TEST(CompareWork, ReplicatesArePooled) {
  const Server normal{.rate = 4000};
  const Server slow{.rate = 3500, .run_queue = 60e3};
  const std::array a = {recorded(normal), recorded(normal), recorded(normal)};
  const std::array b = {recorded(slow), recorded(slow), recorded(slow)};
  const double one = compare_work(std::span(a).first(1), std::span(b).first(1)).throughput.high;
  const double three = compare_work(a, b).throughput.high;
  EXPECT_LT(three, one) << "several recordings say more";
}

TEST(CompareWork, AnOutcomeIsBorneByTheIntervalThatIsShown) {
  const model::Recording base = recorded({.seconds = 120});
  model::Recording candidate = recorded({.seconds = 120});
  model::WorkUnits& work = *candidate.work;
  // Two thirds of the windows lose 40 %, the others win 50 %, as beside a disk that stalls: a tenth less in all.
  double units = 0;
  for (std::size_t i = 0; i < work.windows.size(); ++i) {
    units += work.units[0].per_window[i] = (i * 7) % 3 == 0 ? 1500 : 600;
    work.windows[i].on_cpu = 100e3 * 1000;
  }
  work.units[0].count = static_cast<std::uint64_t>(units);
  const model::WorkComparison c = compare_work(std::span(&base, 1), std::span(&candidate, 1));
  ASSERT_LT(c.throughput.low, 0);
  ASSERT_GT(c.throughput.high, 0);
  EXPECT_EQ(c.outcome, model::Outcome::inconclusive);
}

/// The same work, told in windows of 30 to 400 ms, every second of which sees no unit end.
model::Recording in_uneven_windows(const Server& server) {
  model::Recording r = recorded(server);
  model::WorkUnits& work = *r.work;
  const std::vector<model::WorkWindow> whole = std::exchange(work.windows, {});
  const std::vector<double> units = std::exchange(work.units[0].per_window, {});
  constexpr std::array<double, 6> kShares = {0.4, 0.1, 0.06, 0.03, 0.3, 0.11};
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Ns begin = whole[i].begin;
    for (std::size_t k = 0; k < kShares.size(); ++k) {
      model::WorkWindow& window = work.windows.emplace_back(whole[i]);
      window.begin = begin;
      window.end = begin += static_cast<Ns>(kShares[k] * 1e9);
      window.on_cpu *= kShares[k];
      work.units[0].per_window.push_back(k % 2 == 0 ? units[i] * (kShares[k] + kShares[k + 1]) : 0);
    }
  }
  return r;
}

TEST(CompareWork, WindowsOfAnyLengthGiveTheRateThatIsThere) {
  const model::Recording base = in_uneven_windows({.seconds = 10});
  const model::Recording half = in_uneven_windows({.rate = 500, .on_cpu = 200e3, .seconds = 10});
  const model::WorkComparison c = compare_work(std::span(&base, 1), std::span(&half, 1));
  EXPECT_NEAR(c.throughput.change, -0.5, 0.01);
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_GT(c.throughput.low, -0.7) << "windows without an end of a unit are no pauses";
  EXPECT_LT(c.throughput.high, -0.2);
  const model::WorkComparison same = compare_work(std::span(&base, 1), std::span(&base, 1));
  EXPECT_NE(same.outcome, model::Outcome::regression);
  EXPECT_NE(same.outcome, model::Outcome::improvement);
}

}  // namespace
}  // namespace culprit::compare
