// Several files become one run: everything that names something else still names the same thing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "trace/build.h"
#include "trace/rank_numbers.h"

namespace culprit {
namespace {

using test::Building;
using test::row_of;

Trace rank(const std::string& name, Ns base, Ns begin, std::uint32_t correlation = 5) {
  Building b;
  b.builder.rank().path = name;
  b.builder.rank().has_base = base != 0;
  b.builder.rank().base_ns = base;
  b.slice(b.thread(1, 1), "cuda_runtime", "launch " + name, begin, 3, correlation);
  b.kernel(b.thread(0, 7), "kernel " + name, begin + 10, 5, correlation);
  b.slice(b.thread(1, 1), "category of " + name, "forward " + name, begin + 20, 5);
  b.slice(b.thread(1, 2), "cpu_op", "backward " + name, begin + 40, 5);
  b.open('s', b.thread(1, 1), begin + 20, "", 4, "fwdbwd");
  b.open('f', b.thread(1, 2), begin + 40, "", 4, "fwdbwd");
  b.builder.add(Instant{begin, b.builder.intern("instant " + name), b.thread(1, 1)});
  b.builder.add_counter(b.builder.intern("counter " + name), 0, b.thread(1, 1), {begin, 1});
  b.builder.name_process(0, b.builder.intern("process " + name));
  b.builder.losses().add(LossReason::phase_unknown, 2, name);
  return b.finish();
}

TEST(Merge, NothingAndOneFileAreThemselves) {
  EXPECT_TRUE(merge({}).slices.empty());
  std::vector<Trace> one;
  one.push_back(rank("a", 0, 100));
  EXPECT_EQ(merge(std::move(one)).slices.size(), 4U);
}

TEST(Merge, RanksAreInTheOrderOfTheirNumbers) {
  std::vector<Trace> traces;
  for (const auto& [name, number] : {std::pair("b", 10), std::pair("a", 2), std::pair("c", 0)}) {
    traces.push_back(rank(name, 1000, 100));
    traces.back().ranks[0].rank = number;
  }
  const Trace t = merge(std::move(traces));
  ASSERT_EQ(t.ranks.size(), 3U);
  EXPECT_EQ(t.ranks[0].path, "c");
  EXPECT_EQ(t.ranks[1].path, "a");
  EXPECT_EQ(t.ranks[2].path, "b");
  EXPECT_EQ(t.ranks[t.slices[row_of(t, "kernel b")].rank].path, "b");
  EXPECT_EQ(rank_numbers(t), (std::vector<std::int32_t>{0, 2, 10}));
}

TEST(Merge, NumbersThatSomeLackOrShareSayNothing) {
  for (const int other : {-1, 4}) {
    std::vector<Trace> traces;
    traces.push_back(rank("b", 1000, 100));
    traces.push_back(rank("a", 1000, 100));
    traces[0].ranks[0].rank = 4;
    traces[1].ranks[0].rank = other;
    const Trace t = merge(std::move(traces));
    EXPECT_EQ(t.ranks[0].path, "b") << other;
    EXPECT_EQ(rank_numbers(t), (std::vector<std::int32_t>{0, 1})) << other;
  }
}

std::vector<Trace> two(Ns base_a, Ns base_b) {
  std::vector<Trace> traces;
  traces.push_back(rank("a", base_a, 100));
  traces.push_back(rank("b", base_b, 500));
  return traces;
}

TEST(Merge, WaitsAndRivalsKeepTheirNames) {
  std::vector<Trace> traces = two(1000, 3000);
  for (Trace& trace : traces) {
    const std::string& file = trace.ranks.front().path;
    StackSample wait;
    wait.at = 100;
    wait.kind = StackSample::Kind::off_cpu;
    wait.waker = trace.strings.intern("waker " + file);
    trace.stack_samples.push_back(wait);
    RivalTotal rival;
    rival.at = 100;
    rival.track = static_cast<TrackId>(trace.tracks.size() - 1);
    rival.name = trace.strings.intern("rival " + file);
    trace.rivals.push_back(rival);
  }
  const std::size_t tracks = traces[0].tracks.size();
  const Trace t = merge(std::move(traces));
  ASSERT_EQ(t.stack_samples.size(), 2U);
  EXPECT_EQ(t.strings[t.stack_samples[1].waker], "waker b");
  ASSERT_EQ(t.rivals.size(), 2U);
  EXPECT_EQ(t.strings[t.rivals[1].name], "rival b");
  EXPECT_EQ(t.rivals[1].track, 2 * tracks - 1);
  EXPECT_EQ(t.rivals[1].at - t.rivals[0].at, 2000) << "on one clock";
}

TEST(Merge, ReferencesStayInTheirFile) {
  const Trace t = merge(two(1000, 1000));
  ASSERT_EQ(t.slices.size(), 8U);
  for (const char* name : {"a", "b"}) {
    const std::string file = name;
    const Slice& kernel = t.slices[row_of(t, "kernel " + file)];
    EXPECT_EQ(t.gpu[kernel.gpu].launcher, row_of(t, "launch " + file));
    EXPECT_EQ(t.gpu[kernel.gpu].slice, row_of(t, "kernel " + file));
    EXPECT_EQ(t.categories[t.slices[row_of(t, "forward " + file)].category].name, "category of " + file);
    EXPECT_EQ(t.ranks[kernel.rank].path, file);
    EXPECT_EQ(t.processes[t.tracks[kernel.track].process].rank, kernel.rank);
  }
  ASSERT_EQ(t.flows.size(), 2U);
  EXPECT_EQ(t.flows[1].from, row_of(t, "forward b"));
  EXPECT_EQ(t.flows[1].to, row_of(t, "backward b"));
  ASSERT_EQ(t.instants.size(), 2U);
  EXPECT_EQ(t.strings[t.instants[1].name], "instant b");
  ASSERT_EQ(t.counters.size(), 2U);
  EXPECT_EQ(t.strings[t.counters[1].name], "counter b");
  EXPECT_EQ(t.processes[t.counters[1].process].rank, 1);
  EXPECT_EQ(t.losses[LossReason::phase_unknown], 4U);
  EXPECT_EQ(t.losses.first_seen(LossReason::phase_unknown), "a");
}

TEST(Merge, WaitsStayWithTheirRecords) {
  std::vector<Trace> traces = two(1000, 1000);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "a" : "b";
    traces[i].stream_waits.push_back({row_of(traces[i], "kernel " + name), 5, 0, 7, 1, 20});
  }
  const Trace t = merge(std::move(traces));
  ASSERT_EQ(t.stream_waits.size(), 2U);
  EXPECT_EQ(t.stream_waits[0].slice, row_of(t, "kernel a"));
  EXPECT_EQ(t.stream_waits[1].slice, row_of(t, "kernel b"));
  EXPECT_EQ(t.stream_waits[1].event_stream, 20);
}

TEST(Merge, FilesWithAbsoluteTimesComeOnOneClock) {
  const Trace t = merge(two(5000, 2000));
  EXPECT_EQ(t.clock, "realtime");
  EXPECT_EQ(t.base_ns, 2000);
  EXPECT_EQ(t.slices[row_of(t, "launch a")].begin, 3100);
  EXPECT_EQ(t.slices[row_of(t, "launch b")].begin, 500);
  EXPECT_EQ(t.losses[LossReason::clock_unknown], 0U);
}

TEST(Merge, FilesWithoutACommonClockBeginTogetherAndSaySo) {
  const Trace t = merge(two(5000, 0));
  EXPECT_EQ(t.clock, "unknown");
  EXPECT_EQ(t.slices[row_of(t, "launch a")].begin, t.slices[row_of(t, "launch b")].begin);
  EXPECT_EQ(t.counters[1].samples[0].at, t.counters[0].samples[0].at);
  EXPECT_EQ(t.losses[LossReason::clock_unknown], 1U);
}

TEST(Merge, CategoriesOfManyFilesDoNotWrapAround) {
  std::vector<Trace> traces;
  for (int file = 0; file < 3; ++file) {
    Building b;
    for (int i = 0; i < 30'000; ++i) b.slice(b.thread(1, 1), fmt::format("{}/{}", file, i), "s", i, 1);
    b.kernel(b.thread(0, 7), "k", 0, 1);
    traces.push_back(b.finish());
  }
  const Trace t = merge(std::move(traces));
  for (SliceIndex i = 0; i < t.slices.size(); ++i) {
    const std::string& name = t.categories[t.slices[i].category].name;
    if (t.slices[i].gpu != kNone) {
      ASSERT_EQ(t.slice_class(t.slices[i]), SliceClass::kernel);
    } else if (name != "(more categories: other)") {
      ASSERT_EQ(name, fmt::format("{}/{}", t.slices[i].rank, t.slices[i].begin));
    }
  }
  EXPECT_EQ(t.losses[LossReason::categories_collapsed], 3 * 30'000U + 2 - CategoryTable::kMost);
}

}  // namespace
}  // namespace culprit
