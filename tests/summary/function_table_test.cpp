#include "summary/function_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "summary/self_time.h"
#include "support/trace_maker.h"

namespace culprit::summary {
namespace {

using model::Cell;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::TraceMaker;

std::vector<std::string> names_of(const model::Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table.rows) names.push_back(std::get<std::string>(row[0]));
  return names;
}

std::vector<std::string> labels_of(const FunctionSums& sums) {
  std::vector<std::string> labels;
  for (const auto& f : sums.functions) labels.push_back(f.label);
  return labels;
}

TraceMaker two_functions() {
  TraceMaker make;
  const TrackId stream = make.stream(0, 7);
  make.gpu(stream, "kernel", "a", 0, 10);
  make.gpu(stream, "kernel", "b", 10, 60);
  make.gpu(stream, "kernel", "a", 70, 20);
  make.gpu(stream, "gpu_memcpy", "Memcpy HtoD (Host -> Device)", 90, 10);
  make.slice(make.thread(1, 1), "cpu_op", "aten::add", 0, 1000);
  return make;
}

TEST(FunctionStats, ExactStatisticsPerName) {
  TraceMaker make;
  const TrackId stream = make.stream(0, 7);
  for (const Ns duration : {5, 1, 4, 2}) make.gpu(stream, "kernel", "a", 0, duration);
  for (const Ns duration : {9, 7, 8}) make.gpu(stream, "kernel", "b", 0, duration);
  const auto sums = function_stats(make.trace(), {});
  ASSERT_EQ(sums.functions.size(), 2u);
  const FunctionStats& a = sums.functions[0];
  EXPECT_EQ(a.calls, 4u);
  EXPECT_EQ(a.total, 12);
  EXPECT_EQ(a.self, 12);
  EXPECT_EQ(a.min, 1);
  EXPECT_EQ(a.max, 5);
  EXPECT_DOUBLE_EQ(a.mean, 3);
  EXPECT_DOUBLE_EQ(a.median, 3);
  EXPECT_DOUBLE_EQ(a.deviation, std::sqrt(10.0 / 3));
  EXPECT_DOUBLE_EQ(sums.functions[1].median, 8);
  EXPECT_EQ(sums.self, 36);
  EXPECT_EQ(sums.calls, 7u);
}

TEST(FunctionStats, DefaultIsGpuWorkOnly) {
  auto make = two_functions();
  EXPECT_THAT(labels_of(function_stats(make.trace(), {})), ElementsAre("a", "b", "Memcpy HtoD (Host -> Device)"));
  FunctionQuery query;
  query.classes = class_bit(SliceClass::cpu_op);
  EXPECT_THAT(labels_of(function_stats(make.trace(), query)), ElementsAre("aten::add"));
}

TEST(FunctionStats, GroupsByEveryKey) {
  TraceMaker make;
  const auto second = make.rank(3);
  make.trace().devices.push_back({0, 0, "H100", 0, 0, 0, ""});
  make.gpu(make.stream(0, 7), "kernel", "void f<1>(int)", 0, 1);
  make.gpu(make.stream(0, 8), "kernel", "void f<2>(int)", 0, 1);
  make.gpu(make.stream(0, 7, second), "gpu_memset", "Memset (Device)", 0, 1);
  make.slice(make.thread(1, 1), "cpu_op", "aten::add", 0, 1);
  FunctionQuery query;
  query.classes = kAllClasses;
  const auto by = [&](GroupBy group) {
    query.by = group;
    return labels_of(function_stats(make.trace(), query));
  };
  EXPECT_THAT(by(GroupBy::short_name), ElementsAre("f", "Memset (Device)", "aten::add"));
  EXPECT_THAT(by(GroupBy::kind), ElementsAre("gpu_compute", "gpu_memset", "cpu_op"));
  EXPECT_THAT(by(GroupBy::device), ElementsAre("rank 0 device 0 H100", "rank 3 device 0", "rank 0 host"));
  EXPECT_THAT(by(GroupBy::stream), ElementsAre("rank 0 device 0 stream 7", "rank 0 device 0 stream 8",
                                               "rank 3 device 0 stream 7", "rank 0 host"));
  EXPECT_THAT(by(GroupBy::rank), ElementsAre("rank 0", "rank 3"));
  EXPECT_THAT(by(GroupBy::category), ElementsAre("kernel", "gpu_memset", "cpu_op"));
}

TEST(FunctionStats, FilterKeepsTheWholeAsTheBaseOfShares) {
  auto make = two_functions();
  FunctionQuery query;
  query.filter = "b";
  const auto sums = function_stats(make.trace(), query);
  EXPECT_THAT(labels_of(sums), ElementsAre("b"));
  EXPECT_EQ(sums.self, 100);
  const auto table = function_table(sums, {});
  EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0][2]), 0.6);
}

TEST(FunctionStats, SelfTimesAreUsed) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "outer", 0, 100);
  make.slice(thread, "cpu_op", "inner", 10, 30);
  const auto self = self_times(make.trace());
  FunctionQuery query;
  query.classes = class_bit(SliceClass::cpu_op);
  query.self = &self;
  const auto sums = function_stats(make.trace(), query);
  EXPECT_EQ(sums.functions[0].self, 70);
  EXPECT_EQ(sums.functions[0].total, 100);
  EXPECT_EQ(sums.self, 100);
}

TEST(FunctionStats, SumsDoNotOverflow) {
  TraceMaker make;
  const TrackId stream = make.stream(0, 7);
  for (int i = 0; i < 12; ++i) make.gpu(stream, "kernel", "a", 0, 1'000'000'000'000'000'000);
  const auto sums = function_stats(make.trace(), {});
  EXPECT_EQ(sums.functions[0].total, std::numeric_limits<Ns>::max());
  EXPECT_DOUBLE_EQ(sums.functions[0].median, 1e18);
}

TEST(FunctionStats, ManyNames) {
  TraceMaker make;
  const TrackId stream = make.stream(0, 7);
  for (int i = 0; i < 100000; ++i) make.gpu(stream, "kernel", "kernel_" + std::to_string(i), i, i % 7);
  const auto sums = function_stats(make.trace(), {});
  EXPECT_EQ(sums.functions.size(), 100000u);
  const auto table = function_table(sums, {.limit = 25});
  EXPECT_EQ(table.rows.size(), 25u);
  EXPECT_EQ(names_of(table)[0], "kernel_1000");
  EXPECT_EQ(std::get<std::int64_t>(table.rows[0][1]), 6);
}

TEST(FunctionTable, EmptyTraceGivesAnEmptyTable) {
  const auto table = function_table(function_stats(Trace{}, {}), {.limit = 25});
  EXPECT_TRUE(table.rows.empty());
  EXPECT_TRUE(table.notes.empty());
  EXPECT_EQ(table.columns.size(), 10u);
}

TEST(FunctionTable, NoTimeMeansNoShare) {
  TraceMaker make;
  make.gpu(make.stream(0, 7), "kernel", "z", 0, 0);
  const auto table = function_table(function_stats(make.trace(), {}), {});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[0][2]));
  EXPECT_EQ(std::get<std::int64_t>(table.rows[0][1]), 0);
}

TEST(FunctionTable, OneCallHasNoDeviation) {
  auto make = two_functions();
  const auto table = function_table(function_stats(make.trace(), {}), {});
  EXPECT_EQ(names_of(table)[0], "b");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[0][8]));
  EXPECT_FALSE(std::holds_alternative<std::monostate>(table.rows[1][8]));
}

TEST(FunctionTable, SortsAndBreaksTiesByName) {
  TraceMaker make;
  const TrackId stream = make.stream(0, 7);
  for (const char* name : {"c", "a", "b"}) make.gpu(stream, "kernel", name, 0, 5);
  make.gpu(stream, "kernel", "a", 0, 1);
  const auto sums = function_stats(make.trace(), {});
  EXPECT_THAT(names_of(function_table(sums, {})), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_of(function_table(sums, {.sort = SortBy::average})), ElementsAre("b", "c", "a"));
  EXPECT_THAT(names_of(function_table(sums, {.sort = SortBy::name, .reverse = true})), ElementsAre("c", "b", "a"));
  EXPECT_THAT(names_of(function_table(sums, {.sort = SortBy::calls, .reverse = true})), ElementsAre("b", "c", "a"));
}

TEST(FunctionTable, ACutTableSaysWhatIsNotShown) {
  auto make = two_functions();
  const auto table = function_table(function_stats(make.trace(), {}), {.limit = 1});
  EXPECT_EQ(table.rows.size(), 1u);
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_THAT(table.notes[0], HasSubstr("2 more rows with 0.040us (40.00%)"));
}

TEST(FunctionTable, ProfilerColumnsHaveTheProfilersHeadings) {
  const auto table = function_table({}, {.columns = Columns::profiler});
  std::vector<std::string> titles;
  for (const auto& column : table.columns) titles.push_back(column.title);
  EXPECT_THAT(titles, ElementsAre("Name", "Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg", "# of Calls"));
}

TEST(FunctionTable, NamesStayAsTheyAre) {
  TraceMaker make;
  const std::string hostile("\x1b[2J</script>|=cmd()\n\xff", 21);
  make.gpu(make.stream(0, 7), "kernel", hostile, 0, 5);
  make.gpu(make.stream(0, 7), "kernel", "", 0, 4);
  EXPECT_THAT(names_of(function_table(function_stats(make.trace(), {}), {})), ElementsAre(hostile, "(no name)"));
}

TEST(Filter, SubstringsAndPatterns) {
  EXPECT_TRUE(matches_filter("void gemm<1>", "gemm"));
  EXPECT_FALSE(matches_filter("void gemm<1>", "Gemm"));
  EXPECT_TRUE(matches_filter("void gemm<1>", "void*<?>"));
  EXPECT_FALSE(matches_filter("void gemm<1>", "gemm*"));
  EXPECT_TRUE(matches_filter("", "*"));
  EXPECT_FALSE(matches_filter("", "?"));
  EXPECT_FALSE(matches_filter(std::string(20000, 'a'), std::string("*a*a*a*a*a*a*a*b")));  // no exponential search
}

}  // namespace
}  // namespace culprit::summary
