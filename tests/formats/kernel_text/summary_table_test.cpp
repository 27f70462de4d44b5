#include "formats/kernel_text/summary_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "formats/kernel_text/summary_value.h"
#include "support/shared_data.h"

namespace culprit::formats::kernel_text {
namespace {

using model::SummaryColumnKind;

constexpr std::string_view kTable =
    "-------------  ------------  ------------  ------------  ------------  ------------  \n"
    "         Name    Self CPU %      Self CPU     Self CUDA   Self CUDA %    # of Calls  \n"
    "-------------  ------------  ------------  ------------  ------------  ------------  \n"
    "    aten::mul        25.00%       1.000ms       3.000ms        75.00%             2  \n"
    "    aten::add        75.00%       3.000ms       1.000ms        25.00%             7  \n"
    "-------------  ------------  ------------  ------------  ------------  ------------  \n"
    "Self CPU time total: 4.000ms\n"
    "Self CUDA time total: 4.000ms\n";

std::string lines_without_trailing_space(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (!line.empty()) out += line + "\n";
  }
  return out;
}

TEST(SummaryCell, ReadsUnitsAndTheirRounding) {
  const auto time = parse_summary_cell("325.435ms");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->kind, SummaryColumnKind::time);
  EXPECT_DOUBLE_EQ(time->value.value, 325435000);
  EXPECT_DOUBLE_EQ(time->value.low, 325434500);
  EXPECT_DOUBLE_EQ(time->value.high, 325435500);
  EXPECT_DOUBLE_EQ(parse_summary_cell("1.132s")->value.value, 1132e6);
  EXPECT_DOUBLE_EQ(parse_summary_cell("0.883us")->value.value, 883);
  EXPECT_DOUBLE_EQ(parse_summary_cell("29.86%")->value.value, 0.2986);
  EXPECT_DOUBLE_EQ(parse_summary_cell("-1.50 Kb")->value.value, -1536);
  EXPECT_DOUBLE_EQ(parse_summary_cell("194")->value.high, 194);
  EXPECT_FALSE(parse_summary_cell("[[2, 2]]"));
  EXPECT_FALSE(parse_summary_cell("12 apples"));
  EXPECT_FALSE(parse_summary_cell(""));
  EXPECT_FALSE(parse_summary_cell("nan"));
}

TEST(SummaryTable, ReadsColumnsOfBothSides) {
  const auto read = parse_summary_tables(kTable, "x");
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->tables.size(), 1U);
  const auto& table = read->tables[0];
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].name, "aten::mul");
  EXPECT_DOUBLE_EQ(table.rows[0].self_device_ns, 3e6);
  EXPECT_DOUBLE_EQ(table.rows[0].self_cpu_ns, 1e6);
  EXPECT_DOUBLE_EQ(table.rows[1].calls, 7);
  EXPECT_EQ(table.footers.size(), 2U);
  EXPECT_TRUE(table.device_total.known);
  EXPECT_TRUE(table.device_total.printed);
  EXPECT_LE(table.device_total.low, 4e6);
  EXPECT_GE(table.device_total.high, 4e6);
  EXPECT_FALSE(table.cut);
  EXPECT_EQ(read->input.bad_rows + read->input.bad_cells, 0U);
}

TEST(SummaryTable, IsWrittenAsItWasRead) {
  const auto read = parse_summary_tables(kTable, "x");
  ASSERT_TRUE(read);
  EXPECT_EQ(lines_without_trailing_space(write_summary_tables(*read)),
            lines_without_trailing_space(std::string(kTable)));
}

TEST(SummaryTable, AWiderValuePushesTheRestAside) {
  const auto read = parse_summary_tables(
      "------  ----  ----  \n  Name  Self CUDA  # of Calls  \n------  ----  ----  \n     a  123456.789ms     1  \n"
      "------  ----  ----  \n",
      "x");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_DOUBLE_EQ(read->tables[0].rows[0].self_device_ns, 123456789000.0);
}

TEST(SummaryTable, ACutTableSaysWhatIsMissing) {
  const auto read = parse_summary_tables(
      "--------  ------------  ------------  \n    Name     Self CUDA   Self CUDA %  \n--------  ------------  "
      "------------  \n"
      "       a       1.000ms        50.00%  \n--------  ------------  ------------  \n",
      "x");
  ASSERT_TRUE(read);
  const auto& table = read->tables[0];
  EXPECT_TRUE(table.cut);
  EXPECT_LT(table.missing_low_ns, 1e6);
  EXPECT_GT(table.missing_high_ns, 1e6);
  EXPECT_NEAR(table.missing_low_ns, 1e6, 2000);
}

TEST(SummaryTable, ContradictingPercentagesGiveNoTotal) {
  const auto read = parse_summary_tables(
      "--------  ------------  ------------  \n    Name     Self CUDA   Self CUDA %  \n--------  ------------  "
      "------------  \n"
      "       a       1.000ms        50.00%  \n       b       1.000ms        10.00%  \n"
      "--------  ------------  ------------  \n",
      "x");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->tables[0].device_total.known);
  EXPECT_FALSE(read->tables[0].cut);
}

TEST(SummaryTable, ANegativeNumberOfCallsIsABadCell) {
  const auto read = parse_summary_tables(
      "--------  ------------  ------------  \n    Name     Self CUDA    # of Calls  \n--------  ------------  "
      "------------  \n"
      "       a       1.000ms             2  \n       b       1.000ms            -3  \n",
      "x");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->input.bad_cells, 1U);
  ASSERT_EQ(read->tables[0].rows.size(), 2U);
  EXPECT_EQ(read->tables[0].rows[0].calls, 2);
  EXPECT_TRUE(std::isnan(read->tables[0].rows[1].calls));
}

TEST(SummaryTable, BadRowsAndCellsAreCounted) {
  const auto read = parse_summary_tables(
      "--------  ------------  ------------  \n    Name     Self CUDA    # of Calls  \n--------  ------------  "
      "------------  \n"
      "       a       1.000ms             1  \n       b       1.000ms          many  \n       c one two three four\n",
      "x");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->input.bad_cells, 1U);
  EXPECT_EQ(read->input.bad_rows, 1U);
  EXPECT_EQ(read->input.first.back().line, 6U);
}

TEST(SummaryTable, OtherRulesAreNoTables) {
  EXPECT_FALSE(looks_like_summary_table("------  -----\nTitle  Other\n------  -----\n"));
  EXPECT_FALSE(looks_like_summary_table("| a | b |\n|---|---|\n"));
  EXPECT_TRUE(looks_like_summary_table(kTable));
  EXPECT_FALSE(parse_summary_tables("no table here\n", "x"));
  EXPECT_FALSE(parse_summary_tables(kTable.substr(0, 260), "x"));
}

TEST(SummaryTable, SeedsAreReproduced) {
  CULPRIT_NEEDS_SHARED("seeds/000_d8ca8012ba2f719f.txt");
  std::ifstream in(test::shared("seeds/000_d8ca8012ba2f719f.txt"));
  std::stringstream text;
  text << in.rdbuf();
  ASSERT_TRUE(looks_like_summary_table(text.str()));
  const auto read = parse_summary_tables(text.str(), "seed");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->input.bad_rows + read->input.bad_cells, 0U);
  ASSERT_EQ(read->tables.size(), 2U);
  EXPECT_EQ(read->tables[0].caption, "forward only");
  EXPECT_EQ(read->tables[1].caption, "forward + backward");
  EXPECT_EQ(read->tables[0].rows.size(), 25U);
  EXPECT_DOUBLE_EQ(read->tables[1].rows[0].self_device_ns, 1132e6);
  EXPECT_EQ(lines_without_trailing_space(write_summary_tables(*read)), lines_without_trailing_space(text.str()));
  // The total that the percentages are shares of, by hand from the largest row: 325.435 ms / 29.86 %.
  const auto& forward = read->tables[0];
  ASSERT_TRUE(forward.device_total.known);
  EXPECT_LE(forward.device_total.low, 325.435e6 / 0.2986);
  EXPECT_NEAR(forward.device_total.high, 325.435e6 / 0.2986, 0.3e6);
  const auto& both = read->tables[1];
  ASSERT_TRUE(both.device_total.known);
  EXPECT_TRUE(both.cut);
  EXPECT_NEAR(both.device_total.low, 1132e6 / 0.3429, 2e6);
  EXPECT_GT(both.missing_low_ns, 0);
}

}  // namespace
}  // namespace culprit::formats::kernel_text
