// Public tables look as the program's own, and come back from columns as the rows they were.
#include <culprit/kernels.h>
#include <culprit/table.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "library/columns.h"
#include "library/write_steps.h"
#include "report/render.h"

namespace culprit {
namespace {

using testing::HasSubstr;
using testing::Not;

model::Table sample() {
  model::Table table;
  table.title = "Functions";
  table.key = "functions";
  table.columns = {{"Name", "name", ColumnType::name},         {"Time", "time_ns", ColumnType::time},
                   {"Share", "share", ColumnType::percent, 2}, {"Use", "use", ColumnType::number, 1},
                   {"Size", "bytes", ColumnType::bytes},       {"Nothing", "nothing", ColumnType::count}};
  table.rows = {{std::string("=gemm|\x1b"), std::int64_t{1'500'000}, 0.25, 1.5, std::int64_t{2048}, model::Cell()},
                {std::string("softmax"), model::Cell(), 0.75, model::Cell(), std::int64_t{1}, model::Cell()}};
  table.notes = {"one note"};
  return table;
}

TEST(TableForms, AreThoseOfTheProgram) {
  const model::Table rows = sample();
  const Table columns = library::columns_of(rows);
  EXPECT_EQ(library::rows_of(columns).rows, rows.rows);
  report::TerminalOptions look;
  look.width = 80;
  EXPECT_EQ(to_text(columns), report::render_terminal({&rows, 1}, look));
  EXPECT_EQ(to_markdown(columns), report::render_markdown({&rows, 1}));
  EXPECT_EQ(to_csv(columns), report::render_csv({&rows, 1}));
}

TEST(TableForms, TimesAreForPeopleInTextAndNumbersInCsvAndJson) {
  const Table table = library::columns_of(sample());
  EXPECT_THAT(to_text(table),
              testing::AllOf(HasSubstr("1.500ms"), HasSubstr("25.00%"), HasSubstr("one note"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(to_csv(table), HasSubstr("name,time_ns,share,use,bytes,nothing\n"));
  EXPECT_THAT(to_csv(table), HasSubstr("softmax,,0.75,,1,\n"));
  EXPECT_THAT(to_json(table), testing::AllOf(HasSubstr("\"time_ns\": 1500000"), HasSubstr("\"time_ns\": null")));
}

TEST(TableForms, SeveralTablesOfTheSameColumnsShareOneHeadingInCsv) {
  const Table table = library::columns_of(sample());
  const std::vector<Table> twice = {table, table};
  const std::string csv = to_csv(twice);
  EXPECT_THAT(csv, testing::StartsWith("table,name,"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 5);
}

TEST(TableForms, ANumberAmongTextsIsText) {
  model::Table rows;
  rows.columns = {{"What", "what", ColumnType::text, 1}};
  rows.rows = {{std::string("unknown")}, {2.5}};
  const Table table = library::columns_of(rows);
  EXPECT_EQ(std::get<std::vector<std::string>>(table.columns[0].values), (std::vector<std::string>{"unknown", "2.5"}));
}

TEST(TableForms, WhatAColumnHoldsDoesNotDependOnItsCells) {
  const auto kinds = [](std::vector<std::vector<model::Cell>> cells) {
    model::Table rows;
    rows.columns = {{"A", "name", ColumnType::name},          {"B", "calls", ColumnType::count},
                    {"C", "total_ns", ColumnType::time},      {"D", "average_ns", ColumnType::time},
                    {"E", "share", ColumnType::percent},      {"F", "value", ColumnType::number},
                    {"G", "memory_bytes", ColumnType::bytes}, {"H", "bound_ns", ColumnType::time}};
    rows.rows = std::move(cells);
    std::vector<std::size_t> found;
    for (const Column& column : library::columns_of(rows).columns) found.push_back(column.values.index());
    return found;
  };
  const std::vector<std::size_t> expected = {0, 1, 1, 2, 2, 2, 1, 2};
  using Row = std::vector<model::Cell>;
  const std::int64_t one = 1;
  EXPECT_EQ(kinds({}), expected);
  EXPECT_EQ(kinds({Row(8)}), expected);
  EXPECT_EQ(kinds({Row{std::string("a"), one, one, one, one, one, one, one}}), expected);
  EXPECT_EQ(kinds({Row{std::string("a"), one, one, 1.5, 0.5, 0.5, one, 2.5}}), expected);
}

TEST(TableForms, ANumberAmongWholeNumbersIsTheNextOne) {
  model::Table rows;
  rows.columns = {{"Time", "time_ns", ColumnType::time}};
  rows.rows = {{std::int64_t{3}}, {2.6}, {model::Cell()}};
  const Table table = library::columns_of(rows);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(table.columns[0].values), (std::vector<std::int64_t>{3, 3, 0}));
  EXPECT_EQ(table.columns[0].known, (std::vector<bool>{true, true, false}));
}

TEST(TableForms, KernelsOfALaunchLogNeedNoTrace) {
  const test::StepsFile file(5, 100);
  {
    std::ofstream log(file.path());
    log << "Kernel  Latency Tensor DRAM\n";
    for (int i = 0; i < 4; ++i) log << "gemm | 1200" << i << " 0.5 0.25\n";
  }
  const auto kernels = kernels_of({file.path()});
  ASSERT_TRUE(kernels) << to_string(kernels.error());
  EXPECT_EQ(kernels->launches.rows, 4U);
  EXPECT_EQ(kernels->names.rows, 1U);
}

}  // namespace
}  // namespace culprit
