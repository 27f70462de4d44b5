#include "summary/function_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

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

/// By label.
std::map<std::string, FunctionStats> host_stats(const Trace& trace, FunctionQuery query = {}) {
  query.classes = kAllClasses;
  const profile::Nesting nesting = profile::find_nesting(trace);
  query.nesting = &nesting;
  std::map<std::string, FunctionStats> result;
  for (const FunctionStats& stats : function_stats(trace, query).functions) result[stats.label] = stats;
  return result;
}

TEST(FunctionStats, OfAFunctionThatCallsItselfOnlyTheOutermostCallIsInTheTotal) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "python_function", "f", 0, 100);
  make.slice(thread, "python_function", "g", 10, 80);
  make.slice(thread, "python_function", "f", 20, 50);  // through g
  make.slice(thread, "python_function", "f", 30, 10);
  make.slice(thread, "python_function", "f", 200, 5);
  make.slice(make.thread(1, 2), "python_function", "f", 0, 40);  // at the same time, on another thread
  const auto stats = host_stats(make.trace());
  EXPECT_EQ(stats.at("f").total, 100 + 5 + 40);
  EXPECT_EQ(stats.at("f").self, 20 + 40 + 10 + 5 + 40);
  EXPECT_EQ(stats.at("f").calls, 5u);
  EXPECT_EQ(stats.at("f").max, 100);
  EXPECT_EQ(stats.at("g").total, 80);
}

TEST(FunctionStats, AnOperatorThatOnlyDispatchesToItselfIsOneCall) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "aten::div_", 0, 100);
  make.slice(thread, "cpu_op", "aten::div_", 10, 60);
  make.slice(thread, "cpu_op", "aten::to", 20, 30);
  make.slice(thread, "cpu_op", "aten::add", 200, 100);  // calls itself and something else
  make.slice(thread, "cpu_op", "aten::add", 210, 10);
  make.slice(thread, "cpu_op", "aten::to", 230, 10);
  make.slice(thread, "python_function", "f", 400, 100);  // functions are not dispatched
  make.slice(thread, "python_function", "f", 410, 10);
  const auto stats = host_stats(make.trace());
  EXPECT_EQ(stats.at("aten::div_").calls, 1u);
  EXPECT_EQ(stats.at("aten::div_").total, 100);
  EXPECT_EQ(stats.at("aten::div_").self, 70);
  EXPECT_EQ(stats.at("aten::div_").min, 100);
  EXPECT_EQ(stats.at("aten::add").calls, 2u);
  EXPECT_EQ(stats.at("aten::add").total, 100);
  EXPECT_EQ(stats.at("f").calls, 2u);
  EXPECT_EQ(stats.at("f").total, 100);
}

TEST(FunctionStats, TotalsOfGroupsCountTimeOncePerThread) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "aten::linear", 0, 100);
  make.slice(thread, "cpu_op", "aten::addmm", 10, 80);
  FunctionQuery query;
  query.by = GroupBy::kind;
  const auto stats = host_stats(make.trace(), query);
  EXPECT_EQ(stats.at("cpu_op").total, 100);
  EXPECT_EQ(stats.at("cpu_op").self, 100);
  EXPECT_EQ(stats.at("cpu_op").calls, 2u);
}

TEST(FunctionStats, OverlappingKernelsOfOneNameKeepTheirWholeTime) {
  TraceMaker make;
  const TrackId stream = make.stream(0, 7);
  make.gpu(stream, "kernel", "k", 0, 100);
  make.gpu(stream, "kernel", "k", 10, 20);
  EXPECT_EQ(host_stats(make.trace()).at("k").total, 120);
}

TEST(FunctionStats, StepMarkersAreOneRowAndAddressesAreNone) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "user_annotation", "ProfilerStep#7", 0, 100);
  make.slice(thread, "user_annotation", "ProfilerStep#8", 100, 50);
  make.slice(thread, "user_annotation", "step[DECODE bs=4]", 200, 10);
  make.slice(thread, "user_annotation", "step[DECODE bs=8]", 210, 10);
  make.slice(thread, "python_function", "<built-in method unbind of Tensor object at 0x7fa2c8d01f90>", 10, 5);
  make.slice(thread, "python_function", "<built-in method unbind of Tensor object at 0x7fa2c8d02000>", 20, 5);
  make.gpu(make.stream(0, 7), "kernel", "step 1", 0, 1);  // a kernel is what its name says
  const auto stats = host_stats(make.trace());
  EXPECT_EQ(stats.size(), 5u);
  EXPECT_EQ(stats.at("ProfilerStep#N").calls, 2u);
  EXPECT_EQ(stats.at("ProfilerStep#N").total, 150);
  EXPECT_EQ(stats.at("step[DECODE bs=4]").calls, 1u);
  EXPECT_EQ(stats.at("<built-in method unbind of Tensor object>").calls, 2u);
  EXPECT_EQ(stats.at("step 1").calls, 1u);
  FunctionQuery query;
  query.by = GroupBy::raw_name;
  EXPECT_EQ(host_stats(make.trace(), query).size(), 7u);
  query.by = GroupBy::short_name;
  EXPECT_EQ(host_stats(make.trace(), query).at("<built-in method unbind of Tensor object>").calls, 2u);
}

TEST(FunctionStats, AFilterMeansTheLabelOrTheName) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "user_annotation", "ProfilerStep#7", 0, 100);
  make.slice(thread, "user_annotation", "ProfilerStep#8", 100, 50);
  FunctionQuery query;
  query.filter = "ProfilerStep#N";
  EXPECT_EQ(host_stats(make.trace(), query).at("ProfilerStep#N").calls, 2u);
  query.filter = "ProfilerStep#8";
  EXPECT_EQ(host_stats(make.trace(), query).at("ProfilerStep#N").calls, 1u);
}

TEST(FunctionStats, TheSpanOfTheProfilerIsNoFunction) {
  TraceMaker make;
  make.slice(make.thread(1, 1), "cpu_op", "aten::add", 0, 100);
  make.slice(make.thread(1, 2), "Trace", "PyTorch Profiler (0)", 0, 1000);
  make.slice(make.thread(1, 2), "user_annotation", "PyTorch Profiler (0)", 0, 10);  // somebody's range
  FunctionQuery query;
  query.classes = kAllClasses;
  const FunctionSums sums = function_stats(make.trace(), query);
  EXPECT_THAT(labels_of(sums), ElementsAre("aten::add", "PyTorch Profiler (0)"));
  EXPECT_EQ(sums.self, 110);
  EXPECT_EQ(sums.profiler_spans, 1u);
  EXPECT_EQ(sums.profiler_time, 1000);
}

TEST(FunctionStats, TheOrderOfTheInputChangesNoBit) {
  std::vector<std::size_t> order(300);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rows = [&] {
    TraceMaker make;
    const TrackId thread = make.thread(1, 1);
    for (const std::size_t i : order) {
      const auto n = static_cast<Ns>(i);
      make.slice(thread, "cpu_op", "f" + std::to_string(i % 3), 10 * n, 9 + n * 7919 % 1009);
    }
    const profile::Nesting nesting = profile::find_nesting(make.trace());
    FunctionQuery query;
    query.classes = kAllClasses;
    query.nesting = &nesting;
    return function_table(function_stats(make.trace(), query), {}).rows;
  };
  const auto expected = rows();
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::ranges::shuffle(order, random);
    ASSERT_EQ(rows(), expected);
  }
}

TEST(FunctionStats, SelfTimesAreUsed) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, "cpu_op", "outer", 0, 100);
  make.slice(thread, "cpu_op", "inner", 10, 30);
  const profile::Nesting nesting = profile::find_nesting(make.trace());
  FunctionQuery query;
  query.classes = class_bit(SliceClass::cpu_op);
  query.nesting = &nesting;
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
