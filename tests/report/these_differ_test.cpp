// What a comparison that decides nothing still says of its two recordings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "report/run_comparison.h"

namespace culprit::report {
namespace {

using model::Outcome;
using model::RunComparison;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSentence = "these recordings differ by +14 % (+12 to +16 %), as two of the same program may";

RunComparison undecided() {
  RunComparison c;
  model::CycleTimeOutcome o;
  o.phase = model::Phase::decode;
  o.time_ns = {1e6, 1.14e6};
  o.change = 0.14;
  o.low = -0.01;
  o.high = 0.3;
  o.smallest_seen = 0.25;
  o.these_differ = {0.14, 0.12, 0.16};
  o.tolerance = 0.03;
  o.between = 0.05;
  o.cycles = {230, 220};
  o.effective = {200, 190};
  c.cycle_times = {o};
  return c;
}

TEST(TheseDiffer, IsSaidWhereNothingIsDecided) {
  const RunComparison c = undecided();
  EXPECT_THAT(comparison_markdown(c), HasSubstr(kSentence));
  const json of = json::parse(comparison_json(c))["cycle_time"][0]["these_differ"];
  EXPECT_NEAR(of["ratio"], 1.14, 1e-9);
  EXPECT_NEAR(of["ci_low"], 1.12, 1e-9);
  EXPECT_NEAR(of["ci_high"], 1.16, 1e-9);
}

TEST(TheseDiffer, IsNotSaidOtherwise) {
  RunComparison same = undecided();
  same.cycle_times[0].these_differ.reset();
  EXPECT_THAT(comparison_markdown(same), Not(HasSubstr("these recordings differ")));
  EXPECT_FALSE(json::parse(comparison_json(same))["cycle_time"][0].contains("these_differ"));
  RunComparison limited = undecided();
  limited.why = "it is not sure that a cycle is one step";
  EXPECT_THAT(comparison_markdown(limited), Not(HasSubstr("these recordings differ")));
  RunComparison decided = undecided();
  decided.outcome = Outcome::regression;  // by what the phases do not tell
  EXPECT_THAT(comparison_markdown(decided), Not(HasSubstr("these recordings differ")));
}

TEST(RestsOn, StandsInTheFindings) {
  RunComparison c = undecided();
  c.processes.push_back({0, {7, 9}});
  for (const auto basis :
       {model::RestsOn::time, model::RestsOn::against_others, model::RestsOn::calls, model::RestsOn::recordings}) {
    model::FunctionFinding f;
    f.function = f.short_name = c.texts.intern("gemm");
    f.device = c.texts.intern("Host");
    f.rests_on = basis;
    c.functions.push_back(f);
  }
  const json document = json::parse(comparison_json(c));
  const auto basis_of = [&](std::size_t row) { return document["findings"][row]["rests_on"].get<std::string>(); };
  EXPECT_EQ(basis_of(0), "time");
  EXPECT_EQ(basis_of(1), "against_others");
  EXPECT_EQ(basis_of(2), "calls");
  EXPECT_EQ(basis_of(3), "recordings");
}

TEST(WorkOfSeveralRecordings, SaysWhatWasMeasured) {
  RunComparison c;
  model::WorkComparison& work = c.work.emplace();
  work.unit.kind = model::UnitKind::request;
  work.unit.process = "server";
  work.throughput = {"throughput", "1/s", {100, 90}, -0.1, -0.15, -0.05};
  work.worked = {"worked per unit", "ns", {1e6, 1.1e6}, 0.1, 0.05, 0.15};
  work.waiting = {"waiting for work, CPUs' worth", "", {0.1, 0.1}, 0, model::kNoNumber, model::kNoNumber};
  work.recordings = {3, 3};
  work.between = 0.02;
  work.smallest_seen = 0.11;
  EXPECT_THAT(comparison_markdown(c), HasSubstr("Measured: recordings of a side differ by 2 % (standard deviation)."));
  const json of = json::parse(comparison_json(c))["work"];
  EXPECT_EQ(of["recordings"], json::parse("[3, 3]"));
  EXPECT_NEAR(of["detectable"], 1.11, 1e-9);
  work.recordings = {0, 0};
  EXPECT_THAT(comparison_markdown(c), Not(HasSubstr("Measured")));
}

}  // namespace
}  // namespace culprit::report
