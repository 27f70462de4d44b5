#include "summary/stack_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trace/builder.h"

namespace culprit::summary {
namespace {

using Kind = StackSample::Kind;

struct Taken {
  std::vector<std::string> stack;  ///< outermost first
  int times = 1;
  Ns time = 10;
  Kind kind = Kind::on_cpu;
  std::int64_t tid = 8;
};

Trace trace_of(const std::vector<Taken>& samples) {
  TraceBuilder builder(Rank{});
  for (const Taken& taken : samples) {
    std::uint32_t frame = kNone;
    for (const std::string& name : taken.stack)
      frame =
          builder.frame({frame, builder.intern(name), builder.intern("/usr/lib/libwork.so"), name.starts_with("k_")});
    const TrackId track = builder.track({.pid = 7, .tid = taken.tid});
    builder.name_thread(track, builder.intern(taken.tid == 8 ? "main" : "helper"));
    builder.name_process(builder.process(7, 0), builder.intern("prog"));
    for (int i = 0; i < taken.times; ++i) builder.add(StackSample{i, taken.time, track, frame, taken.kind});
  }
  return std::move(builder).finish();
}

std::string folded(const Trace& trace, Kind kind = Kind::on_cpu, const std::string& filter = "") {
  return folded_stacks(stack_tree(trace, {kind, filter}), kind == Kind::off_cpu);
}

TEST(FoldedStacks, OneLineForEachStackInTheOrderOfTheTexts) {
  const Trace trace = trace_of({{{"start", "work", "spin"}, 3}, {{"start", "work"}, 2}, {{"start", "idle"}, 1}});
  EXPECT_EQ(folded(trace),
            "prog;main;start;idle 1\n"
            "prog;main;start;work 2\n"
            "prog;main;start;work;spin 3\n");
}

TEST(FoldedStacks, FunctionsOfTheKernelAreMarked) {
  EXPECT_EQ(folded(trace_of({{{"read", "k_vfs_read"}}})), "prog;main;read;k_vfs_read_[k] 1\n");
}

TEST(FoldedStacks, NamesCannotBreakTheLines) {
  const Trace trace = trace_of({{{"a;b", "c\nd"}}});
  EXPECT_EQ(folded(trace), "prog;main;a:b;c d 1\n");
}

TEST(FoldedStacks, CodeWithoutANameIsSummedUpByFile) {
  const Trace trace = trace_of({{{"run", "libgomp.so.1+0x1de62"}, 2}, {{"run", "libgomp.so.1+0x1de66"}, 3}});
  EXPECT_EQ(folded(trace), "prog;main;run;[libgomp.so.1] 5\n");
}

TEST(FoldedStacks, BlockedTimeIsInMicroseconds) {
  const Trace trace = trace_of({{{"main", "poll"}, 1, 2'500'000, Kind::off_cpu}, {{"main", "run"}}});
  EXPECT_EQ(folded(trace, Kind::off_cpu), "prog;main;main;poll 2500\n");
  EXPECT_EQ(folded(trace), "prog;main;main;run 1\n");
}

TEST(FoldedStacks, SamplesThatStandForMoreCountAsMore) {
  const Trace trace = trace_of({{{"a"}, 4, 10'101'010}, {{"b"}, 1, 40'404'040}, {{"c"}, 1, 30'303'030}});
  EXPECT_EQ(folded(trace), "prog;main;a 4\nprog;main;b 4\nprog;main;c 3\n");
  EXPECT_EQ(folded(trace, Kind::on_cpu, "b"), "prog;main;b 4\n") << "whatever is left out";
}

TEST(FoldedStacks, WhereSomeTimeIsUnknownSamplesCount) {
  EXPECT_EQ(folded(trace_of({{{"a"}, 2, 40}, {{"b"}, 1, 0}, {{"c"}, 1, 10}})),
            "prog;main;a 2\nprog;main;b 1\nprog;main;c 1\n");
}

TEST(FoldedStacks, ThreadsOfOtherNamesStandApart) {
  const Trace trace = trace_of({{{"f"}}, {{"f"}, 2, 10, Kind::on_cpu, 9}});
  EXPECT_EQ(folded(trace), "prog;helper;f 2\nprog;main;f 1\n");
}

TEST(FoldedStacks, AFilterKeepsWholeStacksByAnyNameInThem) {
  const Trace trace = trace_of({{{"a", "b"}}, {{"a", "c"}}, {{"x"}, 1, 10, Kind::on_cpu, 9}});
  EXPECT_EQ(folded(trace, Kind::on_cpu, "b"), "prog;main;a;b 1\n");
  EXPECT_EQ(folded(trace, Kind::on_cpu, "help*"), "prog;helper;x 1\n");
  EXPECT_EQ(folded(trace, Kind::on_cpu, "prog").size(), folded(trace).size());
}

TEST(FoldedStacks, ASampleWithoutAStackIsKept) {
  const Trace trace = trace_of({{{}, 4}});
  EXPECT_EQ(folded(trace), "prog;main;[no stack] 4\n");
  EXPECT_EQ(stack_tree(trace, {}).without_stack, 4U);
}

std::vector<std::string> column_texts(const model::Table& table, std::string_view key) {
  std::vector<std::string> texts;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].key == key)
      for (const auto& row : table.rows) {
        if (const auto* text = std::get_if<std::string>(&row[c])) texts.push_back(*text);
        if (const auto* number = std::get_if<std::int64_t>(&row[c])) texts.push_back(std::to_string(*number));
      }
  return texts;
}

TEST(StackTable, SelfIsWhereSamplesEndTotalWhatTheyPass) {
  const Trace trace = trace_of({{{"start", "work", "spin"}, 3}, {{"start", "work"}, 2}, {{"start", "idle"}, 1}});
  const model::Table table = stack_table(stack_tree(trace, {}), {});
  EXPECT_THAT(column_texts(table, "function"), testing::ElementsAre("spin", "work", "idle", "start"));
  EXPECT_THAT(column_texts(table, "self_ns"), testing::ElementsAre("30", "20", "10", "0"));
  EXPECT_THAT(column_texts(table, "total_ns"), testing::ElementsAre("30", "50", "10", "60"));
  EXPECT_THAT(column_texts(table, "module"), testing::Each("libwork.so"));
}

TEST(StackTable, SharesAreOfTheTimeThatSamplesStandFor) {
  const Trace trace = trace_of({{{"often"}, 3, 10}, {{"seldom"}, 1, 90}});
  const model::Table table = stack_table(stack_tree(trace, {}), {});
  EXPECT_THAT(column_texts(table, "function"), testing::ElementsAre("seldom", "often"));
  EXPECT_THAT(column_texts(table, "self_ns"), testing::ElementsAre("90", "30"));
  EXPECT_THAT(column_texts(table, "self_samples"), testing::ElementsAre("1", "3"));
}

TEST(StackTable, AFunctionThatCallsItselfCountsOnceInTotal) {
  const Trace trace = trace_of({{{"f", "g", "f", "f"}, 5}});
  const model::Table table = stack_table(stack_tree(trace, {}), {});
  EXPECT_THAT(column_texts(table, "function"), testing::ElementsAre("f", "g"));
  EXPECT_THAT(column_texts(table, "total_samples"), testing::ElementsAre("5", "5"));
}

TEST(StackTable, OrderedByTotal) {
  const Trace trace = trace_of({{{"start", "work", "spin"}, 3}, {{"start", "work"}, 2}, {{"start", "idle"}}});
  const model::Table table = stack_table(stack_tree(trace, {}), {.by_total = true, .limit = 2});
  EXPECT_THAT(column_texts(table, "function"), testing::ElementsAre("start", "work"));
  ASSERT_EQ(table.notes.size(), 1U);
}

TEST(StackTable, SamplesOfNoClockHaveNoTime) {
  const Trace trace = trace_of({{{"f"}, 2, 0, Kind::other}});
  const model::StackTree tree = stack_tree(trace, {});
  EXPECT_FALSE(tree.timed);
  EXPECT_TRUE(column_texts(stack_table(tree, {}), "self_ns").empty());
  EXPECT_THAT(column_texts(stack_table(tree, {}), "self_samples"), testing::ElementsAre("2"));
}

TEST(StackTree, EveryNodeHoldsWhatIsBelowIt) {
  const Trace trace = trace_of({{{"a", "b"}, 3}, {{"a"}, 2}, {{"c"}, 1, 10, Kind::on_cpu, 9}});
  const model::StackTree tree = stack_tree(trace, {});
  EXPECT_EQ(tree.nodes.front().total_samples, 6U);
  EXPECT_EQ(tree.nodes.front().total_time, 60);
  for (const auto& node : tree.nodes) {
    std::uint64_t below = node.samples;
    for (const std::uint32_t child : node.children) below += tree.nodes[child].total_samples;
    EXPECT_EQ(below, node.total_samples) << node.name;
  }
}

}  // namespace
}  // namespace culprit::summary
