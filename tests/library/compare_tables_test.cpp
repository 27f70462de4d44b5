// Comparing profile tables by the public call.
#include <culprit/compare_tables.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_file.h"

namespace culprit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Ten cycles of about `us` of each process, half of each in one kernel.
std::string table(double us, const std::vector<int>& pids = {7}, const char* anchor = "step") {
  std::string text =
      "cycle,pid,beta_pct,function_name,metric_name,device,func_type,mu_pct,duration,anchor_name,anchor_dur_us,"
      "instances_count,simple_name\n";
  for (const int pid : pids)
    for (int i = 0; i < 10; ++i)
      text += fmt::format("{},{},50,f,gpu_usage,GPU 0,gpu_compute,50,{},{},{},4,f\n", i + 1, pid, us / 2, anchor,
                          us * (1 + 0.001 * (i % 3)));
  return text;
}

class LibraryCompareTables : public testing::Test {
 protected:
  [[nodiscard]] Result<std::vector<ProcessComparison>> compared(const std::string& good, const std::string& bad,
                                                                const TableOptions& options = {}) const {
    return compare_tables(folder_.file("good.csv", good), folder_.file("bad.csv", bad), options);
  }

  test::TempDir folder_;
};

std::vector<std::string> names_of(const Result<std::vector<ProcessComparison>>& compared) {
  std::vector<std::string> names;
  if (compared)
    for (const ProcessComparison& one : *compared) names.push_back(one.name);
  return names;
}

TEST_F(LibraryCompareTables, LongerCyclesAreARegressionAndSayWhatTheyRestOn) {
  const auto all = compared(table(1000), table(1500));
  ASSERT_TRUE(all) << to_string(all.error());
  ASSERT_THAT(names_of(all), ElementsAre("good.csv_vs_bad.csv_pid7_strict_comparison"));
  const Comparison& comparison = all->front().comparison;
  EXPECT_EQ(comparison.outcome, Outcome::regression) << comparison.why;
  EXPECT_FALSE(comparison.same_recording);
  ASSERT_EQ(comparison.cycle_times.size(), 1U);
  EXPECT_NEAR(comparison.cycle_times[0].time_ns[0], 1e6, 2e3);
  EXPECT_NEAR(comparison.cycle_times[0].change, 0.5, 1e-3);
  ASSERT_EQ(comparison.findings.size(), 1U);
  EXPECT_EQ(comparison.findings[0].function, "f");
  EXPECT_NEAR(comparison.findings[0].impact_ns, 250e3, 1);
  EXPECT_THAT(comparison.notes, testing::Contains(HasSubstr("Profile tables hold sums of each cycle")));
  EXPECT_THAT(comparison.sides[0].files, ElementsAre(folder_.path("good.csv")));
  EXPECT_EQ(comparison.sides[0].cycles, 10U);
}

TEST_F(LibraryCompareTables, ReportsAreThoseOfDiff) {
  const auto all = compared(table(1000), table(1500));
  ASSERT_TRUE(all);
  const Comparison& comparison = all->front().comparison;
  EXPECT_THAT(to_text(comparison), testing::StartsWith("Outcome: "));
  EXPECT_THAT(to_markdown(comparison), HasSubstr("| "));
  EXPECT_THAT(to_csv(comparison), HasSubstr(",f,"));
  EXPECT_THAT(to_json(comparison), testing::AllOf(testing::StartsWith("{"), HasSubstr("\"regression\"")));
}

TEST_F(LibraryCompareTables, AChangeWithinTheToleranceIsNoRegression) {
  TableOptions options;
  options.tolerance = 0.7;
  const auto all = compared(table(1000), table(1500), options);
  ASSERT_TRUE(all);
  EXPECT_NE(all->front().comparison.outcome, Outcome::regression);
}

TEST_F(LibraryCompareTables, AProcessIsHeldAgainstThatOfItsNumber) {
  EXPECT_THAT(names_of(compared(table(1000, {7, 9}), table(1500, {9, 7}))),
              ElementsAre("good.csv_vs_bad.csv_pid7_strict_comparison", "good.csv_vs_bad.csv_pid9_strict_comparison"));
  EXPECT_THAT(names_of(compared(table(1000, {7}), table(1500, {8}))),
              ElementsAre("good.csv_vs_bad.csv_n_pid7_vs_a_pid8_cross_comparison"));
}

TEST_F(LibraryCompareTables, WhoHasNoPartnerIsNoted) {
  const auto all = compared(table(1000, {7, 9}), table(1500, {7}));
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 1U);
  EXPECT_THAT(all->front().comparison.notes, testing::Contains(HasSubstr("Not compared: process 9 of")));
}

TEST_F(LibraryCompareTables, OneTableOnBothSidesIsTheSameRecording) {
  const std::string good = folder_.file("good.csv", table(1000));
  const std::string copy = folder_.file("copy.csv", table(1000));
  for (const std::string& other : {good, copy}) {
    const auto all = compare_tables(good, other);
    ASSERT_TRUE(all) << other;
    EXPECT_TRUE(all->front().comparison.same_recording) << other;
    EXPECT_EQ(all->front().comparison.outcome, Outcome::no_change) << other;
    EXPECT_THAT(all->front().comparison.notes, testing::Contains("Baseline and candidate are the same table"));
    EXPECT_TRUE(all->front().comparison.findings.empty());
    EXPECT_THAT(to_markdown(all->front().comparison),
                testing::EndsWith("\n\n- Baseline and candidate are the same recording: there is nothing to compare.\n"
                                  "\n- Note: Baseline and candidate are the same table\n"));
  }
}

TEST_F(LibraryCompareTables, CyclesThatBeginElsewhereAreNotHeldAgainstEachOther) {
  const auto all = compared(table(1000), table(1500, {7}, "layer"));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->front().comparison.outcome, Outcome::inconclusive);
  EXPECT_EQ(all->front().comparison.why, "the cycles of the two tables begin at different functions");
  EXPECT_EQ(all->front().comparison.comparability.level, Comparable::partly);
}

TEST_F(LibraryCompareTables, WhatOnlyTracesUseIsRefused) {
  std::vector<std::pair<TableOptions, const char*>> given(4);
  given[0].first.anchor = "step";
  given[0].second = "--anchor is for traces";
  given[1].first.threads = 1;
  given[1].second = "--threads is for traces";
  given[2].first.max_expansion = 9;
  given[2].second = "--max-expansion is for traces";
  given[3].first.history = true;
  given[3].second = "--history needs traces";
  for (const auto& [options, says] : given) {
    const auto all = compared(table(1000), table(1500), options);
    ASSERT_FALSE(all) << says;
    EXPECT_EQ(all.error().kind, ErrorKind::usage);
    EXPECT_THAT(all.error().what, HasSubstr(says));
  }
}

TEST_F(LibraryCompareTables, BadArgumentsAreErrorsOfUsage) {
  for (const double tolerance : {0.0, 1.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    TableOptions options;
    options.tolerance = tolerance;
    const auto all = compared(table(1000), table(1500), options);
    ASSERT_FALSE(all) << tolerance;
    EXPECT_EQ(all.error().kind, ErrorKind::usage);
  }
  const auto folder = compare_tables(folder_.path(), folder_.file("good.csv", table(1000)));
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().what, HasSubstr("is a directory"));
}

TEST_F(LibraryCompareTables, WhatIsNoTableIsAnErrorOfInput) {
  for (const char* text : {"", "cycle,pid\n1,2\n", "this is no table"})
    for (const bool first : {true, false}) {
      const auto all = first ? compared(text, table(1000)) : compared(table(1000), text);
      ASSERT_FALSE(all) << text;
      EXPECT_EQ(all.error().kind, ErrorKind::input);
      EXPECT_THAT(all.error().where, HasSubstr(first ? "good.csv" : "bad.csv"));
    }
  const auto missing = compare_tables(folder_.path("nothing.csv"), folder_.file("good.csv", table(1000)));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::input);
}

TEST_F(LibraryCompareTables, TablesWithoutRowsHaveNoProcess) {
  const auto all = compared(table(1000, {}), table(1000));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::input);
  EXPECT_EQ(all.error().what, "the two sides hold no process to compare");
}

TEST_F(LibraryCompareTables, AStopThatIsRequestedEndsIt) {
  std::stop_source stop;
  stop.request_stop();
  TableOptions options;
  options.task.stop = stop.get_token();
  const auto all = compared(table(1000), table(1500), options);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::cancelled);
}

TEST_F(LibraryCompareTables, TablesAreToldFromRecordingsByTheirNames) {
  const auto is = [](const std::vector<std::string>& base, const std::vector<std::string>& candidate) {
    const auto tables = are_profile_tables(base, candidate);
    return tables ? std::string(*tables ? "tables" : "recordings") : tables.error().what;
  };
  EXPECT_EQ(is({"a.csv"}, {"b.csv"}), "tables");
  EXPECT_EQ(is({"a.json"}, {"b.json.gz", "c"}), "recordings");
  EXPECT_EQ(is({}, {}), "recordings");
  const char* mixed = "'a.csv' is a profile table, the other side is a trace";
  EXPECT_EQ(is({"a.csv"}, {"b.json"}), mixed);
  EXPECT_EQ(is({"b.json"}, {"a.csv"}), mixed);
  EXPECT_EQ(is({}, {"a.csv"}), mixed);
  EXPECT_EQ(is({"a.csv", "b.json"}, {"c.csv"}), mixed);
  EXPECT_EQ(is({"a.csv", "b.csv"}, {"c.csv"}), "several profile tables on one side");
  EXPECT_EQ(is({"a.csv"}, {"b.csv", "c.csv"}), "several profile tables on one side");
}

TEST_F(LibraryCompareTables, WhatProfileWroteIsNoTable) {
  const std::string functions = folder_.file("functions.csv", "cycle\n");
  const std::string profile = folder_.file("profile.json", "{}");
  const std::string other = folder_.file("other.csv", table(1000));
  for (const std::string& written : {functions, profile, folder_.path()}) {
    const auto sides = are_profile_tables({other}, {written});
    ASSERT_FALSE(sides) << written;
    EXPECT_THAT(sides.error().what, HasSubstr("was written by `culprit profile`")) << written;
    EXPECT_FALSE(compare_tables(other, written)) << written;
  }
}

}  // namespace
}  // namespace culprit
