#include "report/whole_run_report.h"

#include <gtest/gtest.h>

namespace culprit::report {
namespace {

model::RunComparison with_whole() {
  model::RunComparison c;
  c.whole = {model::WholeRun{.wall_ns = 2e6, .operators = 10}, model::WholeRun{.wall_ns = 3e6, .operators = 10}};
  return c;
}

TEST(WholeRunReport, StandsWhereStepsAreNotJudged) {
  model::RunComparison c = with_whole();
  c.outcome = model::Outcome::not_comparable;
  const auto tables = whole_run_tables(c);
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].rows.size(), 2U) << "what neither side has is no row";
  EXPECT_EQ(std::get<double>(tables[0].rows[0][2]), 2);
  EXPECT_EQ(std::get<double>(tables[0].rows[0][3]), 3);
}

TEST(WholeRunReport, DoesNotStandBesideAnAnswer) {
  model::RunComparison c = with_whole();
  model::CycleTimeOutcome& outcome = c.cycle_times.emplace_back();
  outcome.cycles = {20, 20};
  c.outcome = model::Outcome::no_change;
  EXPECT_TRUE(whole_run_tables(c).empty());
  c.why = "a cycle may be no step";
  c.outcome = model::Outcome::inconclusive;
  EXPECT_EQ(whole_run_tables(c).size(), 1U);
  c.whole.reset();
  EXPECT_TRUE(whole_run_tables(c).empty());
}

}  // namespace
}  // namespace culprit::report
