// Begins and ends: which belong together, and what is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "trace/build.h"

namespace culprit {
namespace {

using test::Building;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

struct Half {
  char phase;
  Ns at;
  std::string name = {};
  std::uint64_t id = 0;
};

std::vector<std::string> slices_of(const Trace& t) {
  std::vector<std::string> out;
  for (SliceIndex i = 0; i < t.slices.size(); ++i) out.push_back(test::text_of(t, i));
  std::ranges::sort(out);
  return out;
}

Trace paired(const std::vector<Half>& halves) {
  Building b;
  const TrackId track = b.thread(1, 1);
  for (const Half& half : halves) b.open(half.phase, track, half.at, half.name, half.id);
  return b.finish();
}

TEST(Pairing, EndsWithoutNamesCloseTheLatestBegin) {
  const Trace t = paired({{'B', 1, "outer"}, {'B', 2, "inner"}, {'E', 3}, {'E', 5}, {'E', 6}});
  EXPECT_THAT(slices_of(t), ElementsAre("inner@2+1", "outer@1+4"));
  EXPECT_EQ(t.losses[LossReason::end_without_begin], 1U);
}

TEST(Pairing, AmongEventsOfOneMomentTheFileTellsTheOrderWhenEndsHaveNoNames) {
  EXPECT_THAT(slices_of(paired({{'B', 1, "b"}, {'B', 1, "a"}, {'E', 3}, {'E', 5}})), ElementsAre("a@1+2", "b@1+4"));
  EXPECT_THAT(slices_of(paired({{'B', 1, "a"}, {'E', 3}, {'B', 3, "b"}, {'E', 5}})), ElementsAre("a@1+2", "b@3+2"));
}

TEST(Pairing, EndsWithNamesCloseTheirOwnBeginEvenWhenTheyOverlap) {
  EXPECT_THAT(slices_of(paired({{'B', 1, "a"}, {'B', 2, "b"}, {'E', 3, "a"}, {'E', 5, "b"}})),
              ElementsAre("a@1+2", "b@2+3"));
}

TEST(Pairing, EndsWithNamesThatNobodyBeganCloseTheLatestBegin) {
  EXPECT_THAT(slices_of(paired({{'B', 1, "a"}, {'E', 3, "end of a"}})), ElementsAre("a@1+2"));
}

TEST(Pairing, WithNamesTheOrderInTheFileDoesNotMatter) {
  // Back to back, nested in itself, of no duration, begun together, ended together.
  std::vector<Half> halves = {{'B', 1, "step"}, {'B', 1, "load"},  {'E', 4, "load"}, {'B', 4, "load"},
                              {'B', 5, "load"}, {'E', 6, "load"},  {'E', 9, "load"}, {'E', 9, "step"},
                              {'B', 9, "step"}, {'E', 12, "step"}, {'B', 20, "nil"}, {'E', 20, "nil"}};
  const std::vector<std::string> wanted = {"load@1+3", "load@4+5", "load@5+1", "nil@20+0", "step@1+8", "step@9+3"};
  EXPECT_EQ(slices_of(paired(halves)), wanted);
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    std::ranges::shuffle(halves, random);
    const Trace t = paired(halves);
    ASSERT_EQ(slices_of(t), wanted);
    ASSERT_EQ(t.losses.total(), 0U);
  }
}

TEST(Pairing, WhatNeverEndsIsClosedAtTheEndOfTheTraceAndCounted) {
  for (const char begin : {'B', 'b'}) {
    const Trace t = paired({{begin, 1, "open", 3}, {'B', 2, "closed"}, {'E', 9, "closed"}});
    EXPECT_THAT(slices_of(t), UnorderedElementsAre("open@1+8", "closed@2+7"));
    EXPECT_EQ(t.losses[LossReason::begin_without_end], 1U);
  }
}

TEST(Pairing, AsynchronousSlicesPairByIdInAnyOrderAndLieOnATrackOfTheirOwn) {
  std::vector<Half> halves = {{'b', 1, "request", 1}, {'b', 2, "request", 2}, {'e', 4, "request", 2},
                              {'b', 4, "request", 2}, {'e', 8, "request", 1}, {'e', 9, "request", 2},
                              {'b', 3, "nil", 7},     {'e', 3, "nil", 7}};
  std::mt19937 random(2);
  for (int i = 0; i < 50; ++i) {
    std::ranges::shuffle(halves, random);
    const Trace t = paired(halves);
    ASSERT_THAT(slices_of(t), ElementsAre("nil@3+0", "request@1+7", "request@2+2", "request@4+5"));
    ASSERT_EQ(t.losses.total(), 0U);
    for (SliceIndex s = 0; s < t.slices.size(); ++s) ASSERT_EQ(t.tracks[t.slices[s].track].kind, TrackKind::async);
  }
}

TEST(Pairing, AnAsynchronousEndWithoutBeginIsCounted) {
  EXPECT_EQ(paired({{'e', 3, "request", 1}}).losses[LossReason::end_without_begin], 1U);
  EXPECT_EQ(paired({{'b', 1, "request", 1}, {'e', 3, "other", 1}}).losses[LossReason::end_without_begin], 1U);
}

TEST(Pairing, ThreadsDoNotEndEachOthersSlices) {
  Building b;
  b.open('B', b.thread(1, 1), 1, "a");
  b.open('E', b.thread(1, 2), 2);
  const Trace t = b.finish();
  EXPECT_EQ(t.losses[LossReason::end_without_begin], 1U);
  EXPECT_EQ(t.losses[LossReason::begin_without_end], 1U);
}

}  // namespace
}  // namespace culprit
