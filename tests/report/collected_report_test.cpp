// The program's own requests to disks in every form of the answer.
#include "report/collected_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/comparison_files.h"
#include "report/render.h"
#include "report/run_comparison.h"

namespace culprit::report {
namespace {

using model::RunComparison;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

RunComparison reading() {
  RunComparison c;
  c.own_disks.per = "step";
  c.own_disks.requests = {{"vda read", {200, 800}, {2, 8}, {8192, 32768}, {150e3, 450e3}},
                          {"vda flush", {4, 50}, {0.04, 0.5}, {0, 0}, {0, 2e6}}};
  return c;
}

std::string shown(const RunComparison& comparison, std::size_t most_rows = 10) {
  const std::vector<model::Table> tables = collected_tables(comparison, most_rows);
  return render_terminal(tables, TerminalOptions());
}

TEST(OwnDisks, AreShownWithNumbersBytesTimesAndRatios) {
  EXPECT_THAT(shown(reading()),
              AllOf(StartsWith("Disk requests of the program for one step, and how long one takes\n"),
                    HasSubstr("vda read"), HasSubstr("2.000"), HasSubstr("8.000"), HasSubstr("150.000us"),
                    HasSubstr("450.000us"), HasSubstr("3.00"), HasSubstr("writes back later")));
  EXPECT_THAT(shown(reading()), Not(HasSubstr("stand in no total")));
}

TEST(OwnDisks, StandBeforeThoseOfTheMachine) {
  RunComparison c = reading();
  c.disks = {{"vda read", {100, 200}, {409600, 819200}, {141e3, 222e3}, {0, 0}}};
  std::vector<std::string> keys;
  for (const model::Table& table : collected_tables(c, 10)) keys.push_back(table.key);
  EXPECT_THAT(keys, ElementsAre("disk_requests", "disks"));
}

TEST(OwnDisks, ATimeOfASideThatIsNotKnownHasNoRatio) {
  const std::vector<model::Table> tables = collected_tables(reading(), 0);
  ASSERT_EQ(tables.size(), 1U);
  const std::vector<model::Column>& columns = tables[0].columns;
  const auto is_ratio = [](const model::Column& column) { return column.key == "mean_ratio"; };
  const auto at = static_cast<std::size_t>(std::ranges::find_if(columns, is_ratio) - columns.begin());
  ASSERT_LT(at, columns.size());
  EXPECT_EQ(tables[0].rows[0][at], model::Cell(3.0));
  EXPECT_EQ(tables[0].rows[1][at], model::Cell());
}

TEST(OwnDisks, AreOfTheUnitOfWork) {
  RunComparison c = reading();
  c.own_disks.per = "transaction";
  EXPECT_THAT(shown(c), HasSubstr("for one transaction,"));
}

TEST(OwnDisks, WithoutAnyThereIsNoTable) {
  RunComparison c = reading();
  c.own_disks.requests.clear();
  EXPECT_THAT(collected_tables(c, 10), IsEmpty());
}

TEST(OwnDisks, WhatStandsInNoTotalIsSaid) {
  RunComparison c = reading();
  c.sides[1].losses.push_back({"requests_uncounted", "data_loss", "", "", "", 1200});
  c.sides[0].losses.push_back({"calls_uncounted", "data_loss", "", "", "", 7});
  EXPECT_THAT(shown(c), AllOf(HasSubstr("Of the candidate 1,200 requests to disks stand in no total"),
                              Not(HasSubstr("Of the baseline"))));
}

TEST(OwnDisks, AreAFileOfTheirOwn) {
  for (const auto& [name, text] : comparison_csv_files(reading())) {
    if (name != "disk_requests") continue;
    EXPECT_THAT(text, StartsWith("request,per,baseline_per_unit,candidate_per_unit,per_unit_ratio,"
                                 "baseline_bytes_per_unit,candidate_bytes_per_unit,bytes_per_unit_ratio,"
                                 "baseline_mean_ns,candidate_mean_ns,mean_ratio,baseline_count,candidate_count\n"));
    EXPECT_THAT(text, HasSubstr("\nvda read,step,2,8,4,8192,32768,4,150000,450000,3,200,800\n"));
    EXPECT_THAT(text, EndsWith("\nvda flush,step,0.04,0.5,12.5,0,0,,,2000000,,4,50\n"));
    return;
  }
  FAIL() << "no such file";
}

TEST(OwnDisks, AreInMarkdownAndJson) {
  EXPECT_THAT(render_markdown(collected_tables(reading(), 0)),
              AllOf(HasSubstr("Disk requests of the program"), HasSubstr("vda flush")));
  const json found = json::parse(comparison_json(reading()))["disk_requests"];
  EXPECT_EQ(found["per"], "step");
  ASSERT_EQ(found["requests"].size(), 2U);
  EXPECT_EQ(found["requests"][0], json::parse(R"({"name": "vda read", "count": [200, 800], "per_unit": [2, 8],
      "bytes_per_unit": [8192, 32768], "mean_ns": [150000, 450000]})"));
  EXPECT_EQ(json::parse(comparison_json(RunComparison()))["disk_requests"],
            json::parse(R"({"per": "", "requests": []})"));
}

}  // namespace
}  // namespace culprit::report
