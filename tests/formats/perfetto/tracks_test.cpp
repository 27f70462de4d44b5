#include "formats/perfetto/tracks.h"

#include <gtest/gtest.h>

namespace culprit::perfetto {
namespace {

constexpr std::uint64_t kCold = Tracks::kCold;

void flush(Tracks& tracks, std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) tracks.flushed();
}

TEST(PerfettoTracks, ThoseOfAProcessThatEndedAreForgottenAndHaveTheSameNumberAgain) {
  Tracks tracks;
  tracks.begins(100, 5);
  const TrackUuid waits = tracks.named("blocked", 100, 101, 0);
  tracks.counter("process.cpu.used", "count", 100);
  const std::size_t all = tracks.size();
  EXPECT_EQ(all, 6u) << "process, thread, waits, two groups, counter";
  flush(tracks, 2 * kCold);
  EXPECT_EQ(tracks.size(), all) << "it lives";
  tracks.ended(100);
  flush(tracks, 2 * kCold);
  EXPECT_EQ(tracks.size(), 0u);
  EXPECT_EQ(tracks.named("blocked", 100, 101, 0), waits);
}

TEST(PerfettoTracks, WhatIsToldAfterTheEndKeepsATrackForAWhile) {
  Tracks tracks;
  Chunk chunk;
  const TrackUuid late = tracks.named("blocked", 100, 101, 0);
  tracks.named("system calls", 100, 101, 0);
  tracks.named("blocked", 200, 201, 0);
  tracks.ended(100);
  flush(tracks, kCold - 1);
  tracks.describe(late, chunk, 1);
  flush(tracks, 1);
  EXPECT_EQ(tracks.size(), 6u) << "system calls are forgotten, of the other process nothing is";
  flush(tracks, kCold);
  EXPECT_EQ(tracks.size(), 3u);
  flush(tracks, 10 * kCold);
  EXPECT_EQ(tracks.size(), 3u);
}

TEST(PerfettoTracks, AnotherProcessOfTheSameNumberHasItsOwn) {
  Tracks tracks;
  tracks.begins(100, 5);
  const TrackUuid before = tracks.thread(100, 100);
  tracks.ended(100);
  tracks.begins(100, 6);
  const TrackUuid after = tracks.thread(100, 100);
  EXPECT_NE(before, after);
  EXPECT_EQ(tracks.size(), 4u);
  tracks.ended(200);  // something is swept for
  flush(tracks, 2 * kCold);
  EXPECT_EQ(tracks.size(), 2u) << "those of the one that lives";
  EXPECT_EQ(tracks.thread(100, 100), after);
}

TEST(PerfettoTracks, NamesOfManyStrangersAreForgottenUnlessSomethingIsOnTheirTrack) {
  Tracks tracks;
  Chunk chunk;
  const TrackUuid used = tracks.named("blocked", 1, 2, 0);
  for (int i = 0; i < static_cast<int>(Tracks::kMostUnused); ++i)
    tracks.change_thread(1000, 1000 + i).second->set_thread_name("x");
  tracks.describe(tracks.change_thread(3000, 3001).first, chunk, 1);
  const std::size_t all = tracks.size();
  EXPECT_GT(all, Tracks::kMostUnused);
  flush(tracks, kCold);
  EXPECT_EQ(tracks.size(), 3u);
  EXPECT_EQ(tracks.named("blocked", 1, 2, 0), used);
  tracks.describe(tracks.change_thread(1000, 1000).first, chunk, 2);
  EXPECT_EQ(tracks.size(), 5u);
}

TEST(PerfettoTracks, FewNamesOfStrangersAreKept) {
  Tracks tracks;
  tracks.change_thread(1000, 1001);
  tracks.ended(5);
  flush(tracks, 10 * kCold);
  EXPECT_EQ(tracks.size(), 2u);
}

}  // namespace
}  // namespace culprit::perfetto
