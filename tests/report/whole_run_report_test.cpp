#include "report/whole_run_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

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

TEST(WholeRunReport, WhatADeviceWasNotBusyItWasIdle) {
  model::RunComparison c;
  c.whole = {model::WholeRun{.wall_ns = 9e6, .busy_ns = 4e6}, model::WholeRun{.wall_ns = 9e6}};
  c.outcome = model::Outcome::not_comparable;
  const auto tables = whole_run_tables(c);
  ASSERT_EQ(tables.size(), 1U);
  ASSERT_EQ(tables[0].rows.size(), 3U);
  EXPECT_EQ(std::get<std::string>(tables[0].rows[2][0]), "a device was idle");
  EXPECT_EQ(std::get<double>(tables[0].rows[2][2]), 5);
  EXPECT_EQ(std::get<double>(tables[0].rows[2][3]), 0) << "no device worked";
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  write_whole_run(json, c);
  json.end_object();
  json.finish();
  const auto written = nlohmann::json::parse(out);
  EXPECT_EQ(written["whole_run"]["idle_ns"], (nlohmann::json{5e6, 0.0}));
}

}  // namespace
}  // namespace culprit::report
