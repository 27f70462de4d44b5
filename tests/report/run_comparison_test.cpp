#include "report/run_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "core/display_width.h"
#include "report/comparison_files.h"

namespace culprit::report {
namespace {

using model::FunctionStatus;
using model::Outcome;
using model::RunComparison;
using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

model::FunctionFinding finding(RunComparison& c, const std::string& name, FunctionStatus status, double from, double to,
                               const std::string& kind = "gpu_compute") {
  model::FunctionFinding f;
  f.phase = model::Phase::decode;
  f.function = f.short_name = c.texts.intern(name);
  f.kind = c.texts.intern(kind);
  f.device = c.texts.intern("GPU");
  f.status = status;
  f.time_ns = {from, to};
  f.impact_ns = to - from;
  f.calls = {2, 2};
  f.per_call_ns = {from / 2, to / 2};
  f.work_ratio = to / from;
  f.q = 0.001;
  return f;
}

RunComparison regression(const std::string& name = "gemm") {
  RunComparison c;
  c.outcome = Outcome::regression;
  model::CycleTimeOutcome o;
  o.phase = model::Phase::decode;
  o.outcome = Outcome::regression;
  o.time_ns = {1e6, 1.3e6};
  o.change = 0.3;
  o.low = 0.25;
  o.high = 0.35;
  o.smallest_seen = 0.05;
  o.tolerance = 0.03;
  o.between = 0.01;
  o.cycles = {23, 22};
  o.effective = {20, 19};
  c.cycle_times = {o};
  c.assumptions = {"two recordings of the same differ by 1 % (standard deviation)"};
  c.processes.push_back({0, {7, 9}});
  c.functions.push_back(finding(c, name, FunctionStatus::changed, 2e5, 5e5));
  c.functions.push_back(finding(c, "norm", FunctionStatus::same, 1e4, 1e4));
  for (auto& side : c.sides) {
    side.files = {"run.json"};
    side.recordings = 1;
    side.anchor = "step";
    side.reason = "markers";
    side.period_confidence = 0.99;
  }
  return c;
}

TEST(RunComparison, TheOutcomeComesFirst) {
  const std::string text = comparison_terminal(regression(), 10);
  EXPECT_THAT(text, StartsWith("Outcome (decode): regression; cycle time +30.0 % (95 % interval +25.0 to +35.0\n"
                               "  %), from 23 and 22 whole cycles\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("gemm"), HasSubstr("300.000us"), HasSubstr("x2.50"), Not(HasSubstr("norm"))));
  EXPECT_THAT(text, HasSubstr("same time within 5 %: 1; not decided:"));
}

TEST(RunComparison, AFunctionsShareOfTheChangeStandsWhereTheCycleChanged) {
  RunComparison c = regression();
  c.functions.push_back(finding(c, "copy", FunctionStatus::changed, 9e4, 3e4));
  EXPECT_THAT(comparison_terminal(c, 10), AllOf(HasSubstr("Of it"), testing::ContainsRegex("gemm .* 100%  2.0"),
                                                testing::ContainsRegex("copy .* -20%  2.0")));
  const json document = json::parse(comparison_json(c));
  EXPECT_NEAR(document["findings"][0]["share"], 1.0, 1e-9);
  EXPECT_NEAR(document["findings"][2]["share"], -0.2, 1e-9);
  c.outcome = c.cycle_times[0].outcome = Outcome::inconclusive;
  EXPECT_THAT(comparison_terminal(c, 10), Not(HasSubstr("Of it")));
  EXPECT_TRUE(json::parse(comparison_json(c))["findings"][0]["share"].is_null());
}

TEST(RunComparison, AnAssumptionSaysWhatWouldMeasureIt) {
  RunComparison c = regression();
  EXPECT_THAT(comparison_markdown(c),
              HasSubstr("Assumed: two recordings of the same differ by 1 % (standard deviation). Three recordings of "
                        "each side, taken in turns, or --history would measure it.\n"));
  c.cycle_times[0].recordings = {3, 3};
  EXPECT_THAT(comparison_markdown(c),
              AllOf(HasSubstr("Measured: recordings of a side differ by 1 %"),
                    HasSubstr("in turns would need no such assumption.\n"), Not(HasSubstr("would measure it"))));
  c.cycle_times[0].recordings = {};
  c.cycle_times[0].earlier = 3;
  c.assumptions.clear();
  EXPECT_THAT(comparison_markdown(c),
              AllOf(HasSubstr("Measured: 3 earlier recordings of the same differ by 1 %"), Not(HasSubstr("would"))));
  c.cycle_times[0].earlier_side = 0;
  EXPECT_THAT(comparison_markdown(c), HasSubstr("Measured: 3 recordings of the baseline differ by 1 % (standard"));
}

TEST(RunComparison, WorkThatMovedIsSaidAndAccusesNobody) {
  RunComparison c = regression();
  for (auto f :
       {finding(c, "fused", FunctionStatus::added, 0, 4e5), finding(c, "half", FunctionStatus::gone, 3.8e5, 0)}) {
    f.parent = f.moved_inside = c.texts.intern("aten::linear");
    c.functions.push_back(f);
  }
  const std::string text = comparison_markdown(c);
  EXPECT_THAT(text,
              HasSubstr("Work moved inside aten::linear (decode, GPU): fused +400.000us, half -380.000us; together "
                        "+20.000us per cycle, so none of them is listed"));
  EXPECT_THAT(text, Not(HasSubstr("| fused")));
  EXPECT_THAT(comparison_json(c), HasSubstr("\"moved_inside\": \"aten::linear\""));
  c.functions.erase(c.functions.begin());
  EXPECT_THAT(comparison_markdown(c), HasSubstr("No function is shown to have changed but those between which"));
}

TEST(RunComparison, OfMuchThatMovedTheMostIsSaidFirst) {
  RunComparison c = regression();
  for (int i = 1; i <= 5; ++i)
    for (auto f : {finding(c, "b" + std::to_string(i), FunctionStatus::added, 0, i * 1e5),
                   finding(c, "a" + std::to_string(i), FunctionStatus::gone, i * 1e5, 0)}) {
      f.moved_inside = c.texts.intern("layer" + std::to_string(i));
      c.functions.push_back(f);
    }
  const std::string text = comparison_markdown(c);
  const std::size_t first = text.find("inside layer5");
  EXPECT_NE(first, std::string::npos);
  EXPECT_LT(first, text.find("inside layer4"));
  EXPECT_THAT(text, AllOf(HasSubstr("inside layer4"), HasSubstr("Work moved inside 2 more; --json shows them")));
  EXPECT_THAT(text, Not(HasSubstr("inside layer2 ")));
}

TEST(RunComparison, WhatLimitsTheOutcomeComesBeforeTheNumbers) {
  RunComparison c = regression();
  c.outcome = c.cycle_times[0].outcome = Outcome::inconclusive;
  c.why = "it is not sure that a cycle of the baseline is one step (40 %: guessed)";
  for (const std::string& text : {comparison_terminal(c, 10), comparison_markdown(c)}) {
    EXPECT_LT(text.find("inconclusive: it is not sure"), text.find("Cycle time (decode): +30.0 %"));
    EXPECT_THAT(text, Not(HasSubstr("regression")));
  }
}

TEST(RunComparison, WhereNothingIsDecidedSettingsThatDifferStandBehindTheOutcome) {
  RunComparison c = regression();
  for (const char* name : {"A", "B", "C", "D"})
    c.environment.push_back({std::string("env.target.variable.") + name, {"1", ""}});
  c.environment.push_back({"env.target.option.port", {"1", "2"}});
  EXPECT_THAT(comparison_markdown(c), Not(HasSubstr("The variable"))) << "verdicts say it";
  c.outcome = c.cycle_times[0].outcome = Outcome::inconclusive;
  EXPECT_THAT(
      comparison_markdown(c),
      HasSubstr("\n- The variable A: 1 -&gt; none; The variable B: 1 -&gt; none; The variable C: 1 -&gt; none; 1 more "
                "setting differs\n"));
}

TEST(RunComparison, RefusalsNameTheReasonAndWhatToDo) {
  RunComparison c = regression();
  c.outcome = Outcome::not_comparable;
  c.why = "device model A100 against V100";
  c.comparability.level = model::Comparable::no;
  c.comparability.reasons = {c.why};
  c.comparability.remedy = "Compare runs on devices of one model";
  c.functions.clear();
  model::HostChanges host;
  host.states = {{"running", "ns per step", {1e6, 2e6}}};
  host.counters = {{"host.cpu.busy", "fraction", {0.1, 0.9}}};
  c.host = host;
  for (int i = 0; i < 30; ++i) c.environment.push_back({"env.fact" + std::to_string(i), {"a", "b"}});
  const std::string text = comparison_terminal(c, 10);
  EXPECT_THAT(text, AllOf(Not(HasSubstr("running")), Not(HasSubstr("host.cpu.busy")), HasSubstr("25 more facts")))
      << "what differs between unlike runs is no answer";
  EXPECT_LE(std::ranges::count(text, '\n'), 25);
  EXPECT_THAT(comparison_markdown(c), Not(HasSubstr("host.cpu.busy")));
  EXPECT_THAT(text, StartsWith("Not comparable: device model A100 against V100\n"));
  EXPECT_THAT(text, HasSubstr("Compare runs on devices of one model.\n"));
}

TEST(RunComparison, CausesLeaveRoomForTheirTables) {
  RunComparison c = regression();
  const auto lines_of_first_part = [&] {
    const std::string text = comparison_terminal(c, 10);
    return std::ranges::count(text.substr(0, text.find("\n\n") + 1), '\n');
  };
  const auto add_cause = [&](const std::string& cause, int sentences) {
    model::Verdict& v = c.verdicts.emplace_back();
    v.cause = cause;
    for (int i = 0; i < sentences; ++i) v.evidence.push_back(cause + " is seen in place " + std::to_string(i));
    v.next_step = "look at " + cause;
  };
  add_cause("first", 4);
  EXPECT_THAT(comparison_terminal(c, 10), AllOf(HasSubstr("first is seen in place 3"), Not(HasSubstr("about causes"))));
  for (const char* cause : {"second", "third"}) add_cause(cause, 9);
  EXPECT_LE(lines_of_first_part(), 25);
  EXPECT_THAT(comparison_terminal(c, 10),
              AllOf(HasSubstr("first is seen in place 3\n"), HasSubstr("Next: look at first\n"),
                    HasSubstr("second is seen in place 0\n"), HasSubstr("Next: look at second\n"),
                    HasSubstr("Next: look at third\n"), Not(HasSubstr("third is seen in place 1"))));
  EXPECT_THAT(comparison_terminal(c, 10), HasSubstr(" more sentences about causes: --format md, --json or"));
  EXPECT_THAT(comparison_markdown(c),
              AllOf(HasSubstr("third is seen in place 8"), HasSubstr("look at third"), Not(HasSubstr("about causes"))));
  c.verdicts.clear();
  add_cause("first", 40);
  EXPECT_LE(lines_of_first_part(), 25);
  EXPECT_THAT(comparison_terminal(c, 10), AllOf(HasSubstr("first is seen in place 0\n"), HasSubstr("Next: look at")));
}

TEST(RunComparison, WhatSurroundsTheOutcomeLeavesRoomToo) {
  RunComparison c = regression();
  c.outcome = Outcome::inconclusive;
  model::CycleTimeOutcome phase = c.cycle_times[0];
  phase.outcome = Outcome::inconclusive;
  phase.enough = model::kMostRecordings + 1;
  c.cycle_times.clear();
  for (const model::Phase one : {model::Phase::prefill, model::Phase::decode, model::Phase::mixed,
                                 model::Phase::train_step, model::Phase::other}) {
    phase.phase = one;
    c.cycle_times.push_back(phase);
  }
  model::HostChanges host;
  host.states = {{"period", "ns per step", {10e6, 20e6}}};
  host.beside = {{"stress-ng-cpu", "count", {0.0, 1.9}}};
  c.host = host;
  const auto first_part = [&] {
    const std::string text = comparison_terminal(c, 10);
    return text.substr(0, text.find("\n\n") + 1);
  };
  EXPECT_THAT(first_part(),
              AllOf(HasSubstr("Outcome (other)"), HasSubstr("Changes within 3 %"), Not(HasSubstr("more sentence"))))
      << "five phases fit";
  for (const char* cause : {"first", "second", "third", "fourth"}) {
    model::Verdict& v = c.verdicts.emplace_back();
    v.cause = cause;
    for (int i = 0; i < 5; ++i) v.evidence.push_back(std::string(cause) + " is seen in place " + std::to_string(i));
    v.next_step = std::string("look at ") + cause;
  }
  EXPECT_LE(std::ranges::count(first_part(), '\n'), 25);
  EXPECT_THAT(first_part(), StartsWith("Outcome: inconclusive; steps 100/s -> 50/s"));
  EXPECT_THAT(first_part(), AllOf(HasSubstr("first is seen in place 1\n"), HasSubstr("Next: look at first\n"),
                                  HasSubstr("fourth"), HasSubstr("Beside it stress-ng-cpu"),
                                  HasSubstr("Outcome (prefill)"), HasSubstr("Outcome (mixed)")));
  EXPECT_THAT(first_part(), Not(HasSubstr("Changes within 3 %"))) << "the last goes first";
  EXPECT_THAT(first_part(), testing::ContainsRegex("[0-9]+ more sentences: --format md, --json or -o report.html"));
  EXPECT_THAT(comparison_markdown(c),
              AllOf(HasSubstr("Outcome (other)"), HasSubstr("Changes within 3 %"), HasSubstr("look at fourth")));
  for (int i = 0; i < 30; ++i) c.verdicts.emplace_back().cause = "cause" + std::to_string(i);
  EXPECT_LE(std::ranges::count(first_part(), '\n'), 25);
  EXPECT_THAT(first_part(), HasSubstr("first is seen in place 1\n"));
}

TEST(RunComparison, RunsThatWereNotRecordedAlikeSaySoFirst) {
  RunComparison c = regression();
  c.comparability.differences.push_back({"preset", "deep", "watch", false, true});
  EXPECT_THAT(comparison_terminal(c, 10),
              StartsWith("Not recorded alike: preset deep against watch\nOutcome (decode)"));
}

TEST(RunComparison, AFaultThatWasAtWorkIsANote) {
  RunComparison c = regression();
  c.environment = {{"inject.cpu", {"", "running"}}};
  EXPECT_THAT(comparison_terminal(c, 10),
              HasSubstr("The candidate was recorded while 'culprit inject cpu' was at work\n"));
}

TEST(RunComparison, StepsPerSecondStandBesideTheOutcome) {
  RunComparison c = regression();
  model::HostChanges host;
  host.beside = {{"stress-ng-cpu", "count", {0.0, 1.9}}};
  host.states = {{"period", "ns per step", {10e6, 20e6}}};
  c.host = host;
  EXPECT_THAT(
      comparison_terminal(c, 10),
      testing::StartsWith("Outcome: regression; steps 100/s -> 50/s, -50.0 % (10.000ms -> 20.000ms)\n"
                          "Beside it stress-ng-cpu took 1.90 CPUs (baseline 0.00)\nOutcome (decode): regression"));
  model::Verdict& verdict = c.verdicts.emplace_back();
  verdict.cause = "cpu_contention";
  verdict.detail = "other_processes";
  verdict.confidence = 0.9;
  verdict.evidence = {"stress-ng"};
  EXPECT_THAT(comparison_terminal(c, 10),
              testing::StartsWith("Outcome: regression; steps 100/s -> 50/s, -50.0 % (10.000ms -> 20.000ms)\n"
                                  "Cause: cpu_contention (other_processes), confidence 90 %\n  stress-ng\nBeside it"));
  EXPECT_THAT(comparison_markdown(c), HasSubstr("\n- Cause: cpu"));
  EXPECT_THAT(comparison_markdown(c), HasSubstr("confidence 90 %\n  - stress-ng\n- Beside it"));
  verdict.state = model::VerdictState::latent;
  EXPECT_THAT(comparison_markdown(c), HasSubstr("latent: the steps are not longer by it"));
  c.outcome = Outcome::inconclusive;
  EXPECT_THAT(comparison_markdown(c), HasSubstr("latent: it is not decided whether steps are longer by it"));
  c.outcome = Outcome::regression;
  c.verdicts.clear();
  c.host->steps_per_second = {90, 60};
  EXPECT_THAT(comparison_terminal(c, 10), testing::StartsWith("Outcome: regression; steps 90/s -> 60/s, -33.3 % (like "
                                                              "ones 10.000ms ->"));
  EXPECT_EQ(json::parse(comparison_json(c))["host"]["steps_per_second"], json::array({90, 60}));
  c.host->steps_per_second = {};
  c.why = "events were lost";
  EXPECT_THAT(comparison_terminal(c, 10),
              testing::StartsWith("Outcome: inconclusive: events were lost\nSteps: 100/s -> 50/s, -50.0 %"));
}

TEST(RunComparison, WhatAStepWaitedForAndWhoTookTheCpusStandBeforeTheThreads) {
  RunComparison c = regression();
  model::HostChanges host;
  host.step_thread = "python";
  host.step = {{"on CPU", "ns per step", {1e6, 1e6}}, {"runnable, in the run queue", "ns per step", {0.0, 2e6}}};
  host.beside = {{"stress-ng-cpu", "count", {0.0, 1.9}}};
  host.states = {{"running", "ns per step", {1e6, 2e6}}};
  c.host = host;
  const std::string text = comparison_terminal(c, 10);
  EXPECT_LT(text.find("What a step waited for (thread 'python')"), text.find("What the threads did per step"));
  EXPECT_THAT(text, HasSubstr("cycles\nBeside it stress-ng-cpu took 1.90 CPUs (baseline 0.00)\nChanges within"))
      << "the outcome comes first";
  const json document = json::parse(comparison_json(c));
  EXPECT_EQ(document["host"]["beside"][0]["what"], "stress-ng-cpu");
  EXPECT_EQ(document["host"]["step_thread"][1]["candidate"], 2e6);
}

TEST(RunComparison, DisksAndFunctionsOfSamplesAreInEveryFormat) {
  RunComparison c = regression();
  c.disks = {{"vda write", {100, 200}, {409600, 819200}, {141e3, 222e3}, {0, 0}}};
  c.on_cpu = {{"tinygemm_kernel", {0.10, 0.45}}};
  const std::string text = comparison_terminal(c, 10);
  EXPECT_THAT(text,
              AllOf(HasSubstr("vda write"), HasSubstr("222.000us"), HasSubstr("tinygemm_kernel"), HasSubstr("45.0")));
  EXPECT_THAT(text, Not(HasSubstr("p99"))) << "which is not known";
  EXPECT_THAT(comparison_markdown(c), AllOf(HasSubstr("vda write"), HasSubstr("tinygemm")));
  const json document = json::parse(comparison_json(c));
  EXPECT_EQ(document["disks"][0]["per_second"][1], 200);
  EXPECT_EQ(document["on_cpu"][0]["candidate"], 0.45);
}

TEST(RunComparison, WaitsInTheWorkAreInEveryFormat) {
  RunComparison c = regression();
  c.off_cpu.per = "step";
  c.off_cpu.functions = {{"get (queue.py)", "futex", {4e6, 12e6}, {2, 2}, model::OffCpuChanged::longer}};
  c.off_cpu.wakers = {{"loader", "futex", {4e6, 12e6}, {2, 5.5}, model::OffCpuChanged::more_often}};
  c.off_cpu.rivals = {{"stress-ng-cpu", "", {0, 7e6}, {0, 3}, model::OffCpuChanged::added}};
  const std::string text = comparison_terminal(c, 10);
  EXPECT_THAT(text, AllOf(HasSubstr("Where threads were blocked in their work, time per step"),
                          HasSubstr("get (queue.py)"), HasSubstr("12.000ms"), HasSubstr("longer")));
  EXPECT_THAT(text, AllOf(HasSubstr("Who ended waits in the work, number per step"), HasSubstr("loader"),
                          HasSubstr("5.500"), HasSubstr("more often")));
  EXPECT_THAT(text, AllOf(HasSubstr("Who had the CPUs that threads waited for, time per step"),
                          HasSubstr("stress-ng-cpu"), HasSubstr("7.000ms"), HasSubstr("new")));
  EXPECT_THAT(comparison_markdown(c), AllOf(HasSubstr("get (queue.py)"), HasSubstr("loader"), HasSubstr("stress-ng")));
  const json document = json::parse(comparison_json(c));
  EXPECT_EQ(document["off_cpu"]["per"], "step");
  EXPECT_EQ(document["off_cpu"]["functions"][0]["ns_per_unit"], json::array({4e6, 12e6}));
  EXPECT_EQ(document["off_cpu"]["wakers"][0]["per_unit"], json::array({2, 5.5}));
  EXPECT_EQ(document["off_cpu"]["wakers"][0]["call"], "futex");
  EXPECT_EQ(document["off_cpu"]["rivals"][0]["changed"], "new");
  for (const auto& [name, csv] : comparison_csv_files(c))
    if (name == "off_cpu") {
      EXPECT_THAT(csv, AllOf(HasSubstr("\nfunction,get (queue.py),futex,step,4000000,12000000,2,2,longer\n"),
                             EndsWith("\nrival,stress-ng-cpu,,step,0,7000000,0,3,new\n")));
    }
  c.off_cpu = {};
  EXPECT_THAT(comparison_terminal(c, 10), Not(HasSubstr("threads were blocked")));
}

TEST(RunComparison, UnitsOfWorkAreInCsvToo) {
  RunComparison c;
  c.outcome = Outcome::regression;
  model::WorkComparison& work = c.work.emplace();
  work.unit.kind = model::UnitKind::request;
  work.throughput = {"throughput", "1/s", {1000, 500}, -0.5, -0.6, -0.4};
  work.worked = {"worked per unit", "ns", {100, 200}, 1.0, 0.8, 1.2};
  work.parts = {{"on CPU", "ns", {100, 200}}};
  work.calls = {{"read", false, {1, 1}, {50, 60}, {500, 0}}};
  c.disks = {{"vda write", {100, 200}, {409600, 819200}, {141e3, 222e3}, {0, 0}}};
  const std::string csv = comparison_csv(c);
  EXPECT_THAT(csv, StartsWith("outcome,what,unit,baseline,candidate,change,ci_low,ci_high\n"
                              "regression,throughput,1/s,1000,500,-0.5,-0.6,-0.4\n"));
  EXPECT_THAT(csv, AllOf(HasSubstr("\non CPU,100,200,"), HasSubstr("\nread,1,1,50,60,1.2,,500,\n"),
                         HasSubstr("\nvda write,100,200,141000,222000,,,409600,819200\n")));
}

TEST(RunComparison, WhatElseTheReportHoldsIsInFilesOfItsOwn) {
  RunComparison c = regression();
  model::Waterfall& waterfall = c.waterfalls.emplace_back();
  waterfall.phase = model::Phase::decode;
  waterfall.lines.push_back(
      {model::LedgerState::function, c.texts.intern("gemm, tiled"), {100, 250}, {2, 4}, 150, 100});
  c.resources.push_back({"gpu.clock.sm", "GPU", 1, model::Unit::hertz, {1.5e9, std::nullopt}});
  c.environment.push_back({"driver", {"1", "2"}});
  c.comparability.differences.push_back({"world size", "2", "4", true});
  c.sides[1].losses.push_back({"clock_jump", "warning", "", "", "", 3});
  std::map<std::string, std::string> files;
  for (auto& [name, text] : comparison_csv_files(c)) files[name] = text;
  EXPECT_THAT(files["waterfall"], HasSubstr("decode,,function,\"gemm, tiled\",100,250,150,100,2,4\n"));
  EXPECT_THAT(files["resources"], HasSubstr("gpu.clock.sm,GPU,1,Hz,1500000000,\n"));
  EXPECT_THAT(files["environment"], EndsWith("\ndriver,1,2\n"));
  EXPECT_THAT(files["comparability"], EndsWith("\nworld size,2,4,yes\n"));
  EXPECT_THAT(files["data_quality"], EndsWith("\ncandidate,clock_jump,warning,3\n"));
  EXPECT_THAT(files["cycle_time"],
              StartsWith("phase,rank,outcome,baseline_ns,candidate_ns,baseline_median_ns,candidate_median_ns,"
                         "ratio,ci_low,ci_high,"));
  c.disks.push_back({"vda write", {12, 34}});
  c.host.emplace().counters.push_back({"host.cpu.used", "CPUs", {0.5, 1.5}});
  for (auto& [name, text] : comparison_csv_files(c)) files[name] = text;
  EXPECT_THAT(files["disks"], HasSubstr("\nvda write,12,34,"));
  EXPECT_THAT(files["host_counters"], HasSubstr("\nhost.cpu.used,0.5,1.5,CPUs,"));
  EXPECT_EQ(files.size(), 16U);
  for (const auto& [name, text] : comparison_csv_files(RunComparison()))
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << name << ": a heading alone";
}

TEST(RunComparison, CycleTimesOfTheCsvFileAreThoseOfJson) {
  RunComparison c = regression();
  c.cycle_times[0].low = model::kNoNumber;
  const json time = json::parse(comparison_json(c))["cycle_time"][0];
  std::istringstream lines(comparison_csv_files(c).front().text);
  std::array<std::string, 2> rows;
  for (std::string& row : rows) std::getline(lines, row);
  std::array<std::istringstream, 2> cells = {std::istringstream(rows[0]), std::istringstream(rows[1])};
  std::map<std::string, std::string> row;
  for (std::string name, value; std::getline(cells[0], name, ',');) {
    value.clear();
    std::getline(cells[1], value, ',');
    row[name] = value;
  }
  for (const char* name : {"ratio", "ci_high", "detectable", "tolerance", "between", "baseline_ns", "candidate_ns"})
    EXPECT_NEAR(std::stod(row.at(name)), time.at(name), 1e-9) << name;
  EXPECT_EQ(row.at("ci_low"), "");
  EXPECT_TRUE(time.at("ci_low").is_null());
  EXPECT_EQ(row.at("baseline_n"), "23");
  EXPECT_EQ(row.at("candidate_n_eff"), "19");
}

TEST(RunComparison, WideTablesCutNoNames) {
  RunComparison c = regression();
  const std::string name = "void gemm_" + std::string(80, 'x');
  c.functions = {finding(c, name, FunctionStatus::changed, 1e3, 9e6)};
  EXPECT_THAT(comparison_terminal(c, 10), Not(HasSubstr(name)));
  EXPECT_THAT(comparison_terminal(c, 10, false, true), HasSubstr(name));
}

TEST(RunComparison, TheSameRecordingIsSaid) {
  RunComparison c;
  c.same_recording = true;
  c.outcome = Outcome::no_change;
  EXPECT_EQ(comparison_terminal(c, 10),
            "Baseline and candidate are the same recording: there is nothing to compare.\n");
  const json document = json::parse(comparison_json(c));
  EXPECT_EQ(document["same_recording"], true);
  EXPECT_EQ(document["outcome"], "no_change");
}

TEST(RunComparison, NewAndGoneAreSaid) {
  RunComparison c = regression();
  c.functions = {finding(c, "fresh", FunctionStatus::added, 0, 100), finding(c, "old", FunctionStatus::gone, 100, 0)};
  EXPECT_THAT(comparison_terminal(c, 10),
              AllOf(testing::ContainsRegex("fresh .* new"), testing::ContainsRegex("old .* gone")));
}

TEST(RunComparison, WhoWaitsIsNoFindingButCounted) {
  RunComparison c = regression();
  c.functions = {finding(c, "cudaStreamSynchronize", FunctionStatus::changed, 1e3, 9e6, "sync")};
  const std::string text = comparison_terminal(c, 10);
  EXPECT_THAT(text, AllOf(HasSubstr("No function is shown to have changed"), HasSubstr("wait and changed: 1"),
                          Not(HasSubstr("cudaStreamSynchronize"))));
  EXPECT_THAT(comparison_json(c), HasSubstr("cudaStreamSynchronize"));
}

TEST(RunComparison, ACallOfTheHostIsNotTakenForWorkOfADevice) {
  RunComparison c = regression();
  c.functions[0].status = FunctionStatus::unknown;
  EXPECT_THAT(comparison_terminal(c, 10), Not(HasSubstr("of the host")));
  c.functions.push_back(finding(c, "cudaMemcpyAsync", FunctionStatus::changed, 1e3, 9e6, "cuda_api"));
  c.functions.back().device = c.texts.intern("Host");
  EXPECT_THAT(comparison_terminal(c, 10), AllOf(HasSubstr("Functions of the host that changed, per cycle (decode)"),
                                                HasSubstr("\ncudaMemcpyAsync "), Not(HasSubstr("Device"))));
  c.functions[0].status = FunctionStatus::changed;
  EXPECT_THAT(comparison_terminal(c, 10), AllOf(HasSubstr("\nFunctions that changed, per cycle (decode)"),
                                                testing::ContainsRegex("cudaMemcpyAsync +Host ")));
}

TEST(RunComparison, WithoutDevicesFunctionsAreOfTheHost) {
  RunComparison c = regression();
  for (model::FunctionFinding& f : c.functions) f.device = c.texts.intern("Host");
  EXPECT_THAT(comparison_terminal(c, 10), AllOf(HasSubstr("\nFunctions that changed"), Not(HasSubstr("Device"))));
}

TEST(RunComparison, OnlyTheFirstFunctionsAreShownAndTheRestIsCounted) {
  RunComparison c = regression();
  c.functions.clear();
  for (int i = 0; i < 30; ++i)
    c.functions.push_back(finding(c, "f" + std::to_string(i), FunctionStatus::changed, 1e3, 2e3));
  EXPECT_THAT(comparison_terminal(c, 10), AllOf(HasSubstr("f9"), Not(HasSubstr("f10")), HasSubstr("20 more changed")));
  EXPECT_THAT(comparison_markdown(c), HasSubstr("f29"));
}

TEST(RunComparison, LongNamesKeepBothEnds) {
  const std::string name = "void kernel<" + std::string(300, 'x') + ">::stages_64x5_tn";
  EXPECT_THAT(comparison_terminal(regression(name), 10), AllOf(HasSubstr("void kernel<"), HasSubstr("64x5_tn")));
}

TEST(RunComparison, EverythingFitsATerminal) {
  RunComparison c = regression(std::string(300, 'x'));
  c.functions[0].time_ns = {123.456e9, 987.654e9};
  c.sides[0].reason = "a long reason " + std::string(60, 'r') + " with more words than fit into one line of a terminal";
  std::istringstream lines(comparison_terminal(c, 10));
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(RunComparison, NamesFromTracesAreEscapedEverywhere) {
  const RunComparison c = regression("=a|b\x1b[31m<script>");
  EXPECT_THAT(comparison_terminal(c, 10), Not(HasSubstr("\x1b")));
  EXPECT_THAT(comparison_markdown(c), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("<script>")), Not(HasSubstr("a|b"))));
  EXPECT_THAT(comparison_csv(c), HasSubstr("'=a|b"));
  EXPECT_TRUE(json::accept(comparison_json(c)));
}

TEST(RunComparison, JsonHoldsEverything) {
  RunComparison c = regression();
  c.resources.push_back({"gpu_frequency", "GPU", 0, model::Unit::hertz, {1.4e9, 2.1e8}});
  c.environment.push_back({"env.cpu.governor", {"performance", "powersave"}});
  c.sides[0].losses.push_back({"packets_lost", "data_loss", "", "", "", 3});
  const json d = json::parse(comparison_json(c));
  EXPECT_EQ(d["outcome"], "regression");
  EXPECT_EQ(d["comparability"]["level"], "comparable");
  EXPECT_DOUBLE_EQ(d["cycle_time"][0]["ratio"], 1.3);
  EXPECT_DOUBLE_EQ(d["cycle_time"][0]["ci_low"], 1.25);
  EXPECT_EQ(d["cycle_time"][0]["n"], json({23, 22}));
  EXPECT_EQ(d["findings"].size(), 2U);
  EXPECT_EQ(d["findings"][0]["status"], "changed");
  EXPECT_EQ(d["findings"][0]["impact_ns_per_cycle"], 3e5);
  EXPECT_TRUE(d["findings"][0]["ci"][0].is_null());
  EXPECT_EQ(d["resources"][0]["unit"], "Hz");
  EXPECT_EQ(d["environment_diff"][0]["candidate"], "powersave");
  EXPECT_EQ(d["data_quality"]["baseline"]["losses"][0]["count"], 3);
  EXPECT_EQ(d["processes"][0]["pid"], json({7, 9}));
}

TEST(RunComparison, RanksOfDevicesAreNamedWhereThereAreSeveral) {
  RunComparison c = regression();
  c.processes = {{3, {7, 9}}};
  c.resources.push_back({"gpu_frequency", "GPU", 3, model::Unit::hertz, {1.4e9, 2.1e8}});
  EXPECT_THAT(comparison_terminal(c, 10), Not(HasSubstr("GPU of rank 3")));
  c.processes.push_back({0, {8, 10}});
  EXPECT_THAT(comparison_terminal(c, 10), HasSubstr("GPU of rank 3"));
}

TEST(RunComparison, ResourcesAndEnvironmentAreShown) {
  RunComparison c = regression();
  c.resources.push_back({"gpu_frequency", "GPU", 0, model::Unit::hertz, {1.4e9, 2.1e8}});
  for (int i = 10; i < 40; ++i) c.environment.push_back({"env.x" + std::to_string(i), {"1", "2"}});
  EXPECT_THAT(comparison_terminal(c, 10), AllOf(HasSubstr("1400 MHz"), HasSubstr("210 MHz"), HasSubstr("env.x10"),
                                                Not(HasSubstr("env.x39")), HasSubstr("20 more facts differ")));
  EXPECT_THAT(comparison_markdown(c), HasSubstr("env.x39"));
}

}  // namespace
}  // namespace culprit::report
