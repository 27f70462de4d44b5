// The first lines of a comparison with a side that did no step.
#include "report/standstill_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/run_comparison.h"
#include "report/run_comparison_tables.h"

namespace culprit::report {
namespace {

using model::RunComparison;
using testing::ElementsAre;
using testing::HasSubstr;

RunComparison still(std::size_t side) {
  RunComparison c;
  c.outcome = side == 1 ? model::Outcome::regression : model::Outcome::improvement;
  c.comparability.level = model::Comparable::partly;
  c.comparability.reasons = {"no step was seen"};
  c.standstill = model::Standstill{.side = side,
                                   .thread = "worker",
                                   .process = "server",
                                   .recorded = 8e9,
                                   .on_cpu = 16e6,
                                   .runnable = 7.5e9,
                                   .stopped = 0.4e9,
                                   .steps_per_second = 145.4,
                                   .at_most = 0.25};
  return c;
}

TEST(StandstillReport, TheRatesStandInTheOrderOfTheSides) {
  EXPECT_EQ(standstill_line(still(1)), "Outcome: regression; steps 145/s -> at most 0.2/s: no step was seen");
  EXPECT_EQ(standstill_line(still(0)), "Outcome: improvement; steps at most 0.2/s -> 145/s: no step was seen");
}

TEST(StandstillReport, OfWorkItsUnitsAreNamed) {
  RunComparison c = still(1);
  EXPECT_FALSE(nlohmann::json::parse(comparison_json(c))["standstill"].contains("units"));
  c.standstill->units = "requests";
  EXPECT_EQ(standstill_line(c), "Outcome: regression; requests 145/s -> at most 0.2/s: no step was seen");
  EXPECT_EQ(nlohmann::json::parse(comparison_json(c))["standstill"]["units"], "requests");
}

TEST(StandstillReport, ItComesBeforeWhatWasNotRecordedAlike) {
  RunComparison c = still(1);
  c.comparability.differences = {
      {.what = "functions of the host", .base = "python", .candidate = "none", .first = true}};
  const OutcomeText text = outcome_text(c);
  EXPECT_THAT(text.answer, ElementsAre(HasSubstr("steps 145/s -> at most")));
  EXPECT_THAT(text.details, ElementsAre("Not recorded alike: functions of the host python against none"));
}

TEST(StandstillReport, TheJsonHasIt) {
  const auto json = nlohmann::json::parse(comparison_json(still(1)));
  EXPECT_EQ(json["outcome"], "regression");
  EXPECT_EQ(json["standstill"]["side"], "candidate");
  EXPECT_EQ(json["standstill"]["runnable_ns"], 7.5e9);
  EXPECT_EQ(json["standstill"]["steps_per_second_at_most"], 0.25);
}

}  // namespace
}  // namespace culprit::report
