// What the builder makes of tracks, names, categories and counters, whatever the order in which they come.
#include "trace/builder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/cpu_time.h"
#include "trace/build.h"

namespace culprit {
namespace {

using test::Building;
using testing::ElementsAre;

TEST(Builder, TheSameKeyIsTheSameTrack) {
  Building b;
  EXPECT_EQ(b.thread(1, 2), b.thread(1, 2));
  EXPECT_NE(b.thread(1, 2), b.thread(2, 1));
  EXPECT_NE(b.thread(1, 2), b.builder.track({.pid = 1, .tid = 2, .kind = TrackKind::async}));
}

TEST(Builder, TracksAndProcessesAreNumberedByTheirNumbers) {
  Building b;
  b.slice(b.thread(7, 9), "", "a", 0, 1);
  b.slice(b.thread(7, 3), "", "b", 0, 1);
  b.slice(b.thread(2, 50), "", "c", 0, 1);
  const Trace t = b.finish();
  std::vector<std::string> threads;
  for (const Track& track : t.tracks)
    threads.push_back(fmt::format("{}/{}", t.processes[track.process].pid, track.tid));
  EXPECT_THAT(threads, ElementsAre("2/50", "7/3", "7/9"));
  EXPECT_EQ(t.tracks[t.slices[0].track].tid, 9);
  EXPECT_EQ(t.tracks[t.slices[2].track].tid, 50);
  EXPECT_EQ(t.tracks[0].slices, 1U);
}

TEST(Builder, ThreadsKnownByTextFollowTheAlphabet) {
  Building b;
  for (const char* name : {"worker", "main", "loader"})
    b.slice(b.builder.track({.pid = 1, .tid_text = b.builder.intern(name)}), "", name, 0, 1);
  const Trace t = b.finish();
  EXPECT_EQ(t.strings[t.tracks[0].name], "loader");
  EXPECT_EQ(t.strings[t.tracks[2].name], "worker");
  EXPECT_EQ(t.name(t.slices[0]), "worker");
  EXPECT_EQ(t.slices[0].track, 2U);
}

TEST(Builder, AHostInFrontOfThePidIsKept) {
  Building b;
  b.slice(b.builder.track({.pid = 42, .tid = 1, .pid_text = b.builder.intern("node-7(42)")}), "", "a", 0, 1);
  const Trace t = b.finish();
  EXPECT_EQ(t.strings[t.processes[0].host], "node-7");
  EXPECT_EQ(t.processes[0].pid, 42);
}

TEST(Builder, OfSeveralNamesTheLongestCountsWhateverTheOrder) {
  std::vector<std::string> names = {"thread 5 (python3)", "thread 5 (pt_autograd_0)", "x", ""};
  std::ranges::sort(names);
  do {
    Building b;
    const TrackId track = b.thread(1, 5);
    for (const auto& name : names) {
      b.builder.name_thread(track, b.builder.intern(name));
      b.builder.name_process(0, b.builder.intern(name));
      b.builder.label_process(0, b.builder.intern(name));
    }
    const Trace t = b.finish();
    EXPECT_EQ(t.strings[t.tracks[0].name], "thread 5 (pt_autograd_0)");
    EXPECT_EQ(t.strings[t.processes[0].name], "thread 5 (pt_autograd_0)");
    EXPECT_EQ(t.strings[t.processes[0].labels], "thread 5 (pt_autograd_0)");
  } while (std::ranges::next_permutation(names).found);
}

TEST(Builder, AThreadKnownByTextTakesTheNameOfItsMetadata) {
  Building b;
  const TrackId track = b.builder.track({.pid = 1, .tid_text = b.builder.intern("a long text for an id")});
  b.builder.name_thread(track, b.builder.intern("main"));
  EXPECT_EQ(b.finish().tracks[0].name, 2U);
}

TEST(Builder, GpuWorkNamesItsTrackByTheLowestStream) {
  for (const bool low_first : {false, true}) {
    Building b;
    const TrackId track = b.thread(0, 7);
    b.kernel(track, "a", 0, 1, 0, low_first ? 0 : 1, 9);
    b.kernel(track, "b", 1, 1, 0, low_first ? 1 : 0, 9);
    const Trace t = b.finish();
    EXPECT_EQ(t.tracks[0].kind, TrackKind::gpu_stream);
    EXPECT_EQ(t.tracks[0].device, 0);
  }
}

TEST(Builder, CategoriesKeepTheirTextAndAreInTheAlphabet) {
  Building b;
  const TrackId track = b.thread(1, 1);
  for (const char* category : {"Operator", "cpu_op", "Kernel"}) b.slice(track, category, category, 0, 1);
  const Trace t = b.finish();
  ASSERT_EQ(t.categories.size(), 4U);
  EXPECT_EQ(t.categories[0].name, "");
  EXPECT_EQ(t.categories[1].name, "Kernel");
  EXPECT_EQ(t.categories[2].name, "Operator");
  EXPECT_EQ(t.slice_class(t.slices[0]), SliceClass::cpu_op);
  EXPECT_EQ(t.categories[t.slices[0].category].name, "Operator") << "PyTorch 1.8: as it stands in the file";
}

TEST(Builder, CategoriesBeyondTheLimitShareOneOfTheirClassAndAreCounted) {
  Building b;
  const TrackId track = b.thread(1, 1);
  for (std::size_t i = 1; i < CategoryTable::kMost; ++i) b.builder.category(fmt::format("c{}", i));
  b.slice(track, "c5", "known", 0, 1);
  b.slice(track, "beyond", "late", 1, 1);
  b.slice(track, "beyond", "late", 2, 1);
  b.kernel(track, "late kernel", 3, 1);
  const Trace t = b.finish();
  EXPECT_EQ(t.losses[LossReason::categories_collapsed], 2U) << "'beyond' and 'kernel'";
  EXPECT_EQ(t.categories[t.slices[0].category].name, "c5");
  EXPECT_EQ(t.slice_class(t.slices[1]), SliceClass::other);
  EXPECT_EQ(t.slice_class(t.slices[3]), SliceClass::kernel);
  EXPECT_EQ(t.categories[t.slices[3].category].name, "(more categories: kernel)");
}

TEST(Builder, CountersAreInOrderOfNameAndTimeAndValue) {
  Building b;
  const TrackId track = b.thread(1, 1);
  b.builder.add_counter(b.builder.intern("z"), 0, track, {1, 1});
  for (const CounterSample& sample : {CounterSample{9, 1}, {3, 7}, {3, 5}})
    b.builder.add_counter(b.builder.intern("a"), 0, track, sample);
  const Trace t = b.finish();
  ASSERT_EQ(t.counters.size(), 2U);
  EXPECT_EQ(t.strings[t.counters[0].name], "a");
  std::vector<double> values;
  for (const CounterSample& sample : t.counters[0].samples) values.push_back(sample.value);
  EXPECT_THAT(values, ElementsAre(5, 7, 1));
}

TEST(Builder, TimesSince2005AreTakenForUnixTimeWhereverTheyStand) {
  for (const bool first : {false, true}) {
    Building b;
    const TrackId track = b.thread(1, 1);
    if (!first) b.slice(track, "", "zero", 0, 1);
    b.slice(track, "", "now", 1'700'000'000'000'000'000, 1);
    if (first) b.slice(track, "", "zero", 0, 1);
    EXPECT_EQ(b.finish().clock, "realtime");
  }
  Building b;
  b.slice(b.thread(1, 1), "", "uptime", 4'000'000'000'000, 1);
  EXPECT_EQ(b.finish().clock, "unknown");
}

/// Ids that tables of powers of two put into one place when they are not hashed cost 50 to 90 times as much.
TEST(Flooding, PatternsOfIdsCostNoMoreThanOthers) {
  const auto build = [](int shift) {
    Building b;
    std::vector<TrackId> tracks;
    for (std::int64_t i = 0; i < 10'000; ++i) tracks.push_back(b.thread(i << shift, i << shift));
    for (std::uint32_t i = 1; i < 10'000; ++i) {
      const std::uint32_t id = shift == 0 ? i * 17 : i << 16 | i >> 16;
      b.slice(tracks[i], "cuda_runtime", "cudaLaunchKernel", i, 1, id);
      b.kernel(tracks[0], "k", i, 1, id);
      b.open('s', tracks[i], i, "", std::uint64_t{i} << shift, "ac2g", id);
    }
    const Trace t = b.finish();
    EXPECT_EQ(t.losses[LossReason::gpu_without_launcher], 0U);
  };
  for (const int shift : {16, 32})
    EXPECT_LT(test::times_as_long([&] { build(shift); }, [&] { build(0); }, 5), 5) << shift;
}

}  // namespace
}  // namespace culprit
