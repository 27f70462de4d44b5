#include "report/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/display_width.h"
#include "core/json_writer.h"
#include "core/utf8.h"

namespace culprit::report {
namespace {

using model::Cell;
using model::ColumnType;
using model::Table;
using testing::HasSubstr;
using testing::Not;

Table table_of(std::string name, std::int64_t ns, double share) {
  Table table;
  table.title = "forward only:";
  table.key = "forward";
  table.columns = {{"Name", "name", ColumnType::name, 0},
                   {"Self CUDA", "self_ns", ColumnType::time, 3},
                   {"Self CUDA %", "share", ColumnType::percent, 2},
                   {"# of Calls", "calls", ColumnType::count, 0}};
  table.rows.push_back({std::move(name), ns, share, std::int64_t{194}});
  return table;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Terminal, ProfilerLookEqualsTheProfilersOwnLines) {
  const std::filesystem::path seed =
      std::filesystem::path(CULPRIT_SOURCE_DIR) / "../shared/seeds/000_d8ca8012ba2f719f.txt";
  if (!std::filesystem::exists(seed)) GTEST_SKIP() << "shared data missing: " << seed;
  std::ifstream in(seed);
  std::vector<std::string> expected;
  for (std::string line; expected.size() < 7 && std::getline(in, line);) expected.push_back(line);

  Table table = table_of("_forward_kernel_c90_0_kernel_1_range_for", 325435000, 0.2986);
  table.columns.insert(table.columns.begin() + 3, {{"CUDA total", "total_ns", ColumnType::time, 3},
                                                   {"CUDA time avg", "average_ns", ColumnType::time, 3}});
  const auto row = [](std::string name, std::int64_t total, double share, double average, std::int64_t calls) {
    return std::vector<Cell>{std::move(name), total, share, total, average, calls};
  };
  table.rows = {
      row("_forward_kernel_c90_0_kernel_1_range_for", 325435000, 0.2986, 1677000, 194),
      row("generate_sort_keys_kernel_c88_0_kernel_1_range_for", 239045000, 0.2193, 1232000, 194),
      row("void "
          "cub::CUB_200200_890_NS::DeviceRadixSortOnesweepKernel<cub::CUB_200200_890_NS::DeviceRadixSortPolicy<int>>",
          172199000, 0.158, 147937, 1164)};
  const auto lines = lines_of(render_terminal({&table, 1}, {Look::profiler, false, 100}));
  ASSERT_GE(lines.size(), 7u);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(lines[i], expected[i]) << "line " << i + 1;
}

TEST(Terminal, HostileNamesCannotMoveTheCursor) {
  const Table table = table_of("evil\x1b[2J\nname\xff", 1, 1);
  for (const Look look : {Look::plain, Look::profiler}) {
    const std::string text = render_terminal({&table, 1}, {look, false, 100});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, HasSubstr("evil\\x1b[2J\\x0aname\\xff"));
    EXPECT_EQ(lines_of(text).size(), look == Look::plain ? 4u : 6u);
  }
}

TEST(Terminal, ColorOnlyWhenAsked) {
  const Table table = table_of("f", 1, 1);
  EXPECT_THAT(render_terminal({&table, 1}, {Look::plain, true, 100}), HasSubstr("\x1b[1m"));
  EXPECT_THAT(render_terminal({&table, 1}, {Look::plain, false, 100}), Not(HasSubstr("\x1b")));
}

TEST(Terminal, EmptyTableKeepsItsHeading) {
  Table table = table_of("f", 1, 1);
  table.rows.clear();
  table.notes = {"nothing here"};
  EXPECT_THAT(render_terminal({&table, 1}, {}), HasSubstr("Name"));
  EXPECT_THAT(render_terminal({&table, 1}, {}), HasSubstr("nothing here"));
  EXPECT_EQ(render_terminal({}, {}), "");
}

Table wide_table() {
  Table table{"A title of a table that takes more words than there is room for in one line",
              "wide",
              {{"Name", "name", ColumnType::name},
               {"Time", "time_ns", ColumnType::time},
               {"What to do", "remedy"},
               {"Min", "min_ns", ColumnType::time, 3, true},
               {"Max", "max_ns", ColumnType::time, 3, true}},
              {},
              {"A note of many words, which has to be broken between two of them when the terminal is narrow"}};
  table.rows = {{std::string(200, 'x'), 1000, "record the operators of the host as well, with their shapes", 1, 2},
                {"\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57"
                 "\u6f22\u5b57\u6f22\u5b57",
                 1000, "", 1, 2}};
  return table;
}

TEST(Terminal, FitsIntoTheWidthWithoutBreakingWords) {
  const Table table = wide_table();
  TerminalOptions options;
  for (const std::size_t width : std::vector<std::size_t>{60, 72, 80, 100, 120}) {
    options.width = width;
    const std::string text = render_terminal({&table, 1}, options);
    for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), width) << line;
    for (const char* word : {"operators", "shapes", "between", "terminal", "words"})
      EXPECT_THAT(text, HasSubstr(word)) << width;
    EXPECT_EQ(repair_utf8(text), text);
  }
}

TEST(Terminal, DetailsGoBeforeNamesAreCutShort) {
  const Table table = wide_table();
  TerminalOptions options;
  options.width = 70;
  std::string text = render_terminal({&table, 1}, options);
  EXPECT_THAT(text, HasSubstr("Min"));
  EXPECT_THAT(text, HasSubstr("Not shown for want of room: Max; --wide shows all"));
  options.width = 200;
  text = render_terminal({&table, 1}, options);
  EXPECT_THAT(text, HasSubstr("Max"));
  EXPECT_THAT(text, Not(HasSubstr("want of room")));
  options.width = 0;
  EXPECT_THAT(render_terminal({&table, 1}, options), HasSubstr("with their shapes"));
}

TEST(Terminal, TheProfilersLookIsNeverFitted) {
  const Table table = table_of(std::string(100, 'x'), 1, 1);
  EXPECT_EQ(render_terminal({&table, 1}, {Look::profiler, false, 100, 80}),
            render_terminal({&table, 1}, {Look::profiler, false, 100, 0}));
}

TEST(Markdown, NamesCannotBreakTheTable) {
  const Table table = table_of("a|b\n<img src=x>", 1500, 0.5);
  const auto lines = lines_of(render_markdown({&table, 1}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[4], "| a\\|b\\\\x0a&lt;img src=x&gt; | 1.500us | 50.00% | 194 |");
}

TEST(Markdown, LongNamesStandInFootnotesOnce) {
  const std::string name(500, 'x');
  const Table tables[] = {table_of(name, 1, 1), table_of(name, 2, 1)};
  const std::string text = render_markdown(tables, 80);
  EXPECT_THAT(text, HasSubstr("| " + std::string(77, 'x') + "...[^1] |"));
  EXPECT_THAT(text, HasSubstr("[^1]: " + name + "\n"));
  EXPECT_THAT(text, Not(HasSubstr("[^2]")));
}

TEST(Csv, FullNamesNsAndFractions) {
  const Table table = table_of("=cmd(),x", 1500, 0.25);
  EXPECT_EQ(render_csv({&table, 1}), "name,self_ns,share,calls\n\"'=cmd(),x\",1500,0.25,194\n");
}

TEST(Csv, TablesWithTheSameColumnsShareAHeading) {
  Table tables[] = {table_of("f", 1, 1), table_of("g", 2, 1)};
  tables[1].key = "backward";
  EXPECT_EQ(render_csv(tables), "table,name,self_ns,share,calls\nforward,f,1,1,194\nbackward,g,2,1,194\n");
  tables[1].columns[0].key = "kind";
  EXPECT_EQ(render_csv(tables), "name,self_ns,share,calls\nf,1,1,194\n\nkind,self_ns,share,calls\ng,2,1,194\n");
}

nlohmann::json written(std::span<const Table> tables) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  write_tables(json, tables);
  json.end_object();
  EXPECT_THAT(text, Not(HasSubstr("</script>")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  return nlohmann::json::parse(text)["tables"];
}

TEST(Json, IsValidForAnyName) {
  Table table = table_of("</script>\"\\\xff\x1b\n", 123456789012345678, 0.1);
  table.rows.push_back({std::monostate{}, std::numeric_limits<double>::quiet_NaN(), 1.5});
  const auto json = written({&table, 1});
  EXPECT_EQ(json[0]["rows"][0]["name"], "</script>\"\\\xef\xbf\xbd\x1b\n");
  EXPECT_EQ(json[0]["rows"][0]["self_ns"], 123456789012345678);
  EXPECT_TRUE(json[0]["rows"][1]["name"].is_null());
  EXPECT_TRUE(json[0]["rows"][1]["self_ns"].is_null());
  EXPECT_TRUE(json[0]["rows"][1]["calls"].is_null());
}

TEST(Json, NoTablesIsAnEmptyArray) { EXPECT_EQ(written({}), nlohmann::json::array()); }

TEST(CellText, EmptyAndNotFinite) {
  const model::Column time{"t", "t", ColumnType::time, 3};
  EXPECT_EQ(cell_text(time, std::monostate{}), "");
  EXPECT_EQ(cell_text(time, std::numeric_limits<double>::infinity()), "n/a");
  EXPECT_EQ(cell_text({"b", "b", ColumnType::bytes, 0}, std::int64_t{1536}), "1.50 KiB");
  EXPECT_EQ(cell_text({"n", "n", ColumnType::number, 2}, 1.239), "1.24");
}

}  // namespace
}  // namespace culprit::report
