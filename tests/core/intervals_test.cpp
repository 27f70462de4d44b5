#include "core/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/saturating.h"

namespace culprit {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Ns kFirst = std::numeric_limits<Ns>::min();
constexpr Ns kLast = std::numeric_limits<Ns>::max();

TEST(Saturating, SumsStopAtTheEndsOfTheRange) {
  EXPECT_EQ(add_saturating(2, 3), 5);
  EXPECT_EQ(add_saturating(kLast, 1), kLast);
  EXPECT_EQ(add_saturating(kFirst, -1), kFirst);
}

TEST(Saturating, DifferencesStopAtTheEndsOfTheRange) {
  EXPECT_EQ(subtract_saturating(2, 3), -1);
  EXPECT_EQ(subtract_saturating(kLast, kFirst), kLast);
  EXPECT_EQ(subtract_saturating(kFirst, 1), kFirst);
  EXPECT_EQ(subtract_saturating(0, kFirst), kLast);
}

TEST(Saturating, ProductsStopAtTheEndsOfTheRange) {
  EXPECT_EQ(multiply_saturating(-2, 3), -6);
  EXPECT_EQ(multiply_saturating(kLast, 2), kLast);
  EXPECT_EQ(multiply_saturating(kLast, -2), kFirst);
  EXPECT_EQ(multiply_saturating(kFirst, -1), kLast);
}

TEST(Intervals, UnionJoinsWhatOverlapsOrTouches) {
  std::vector<Interval> intervals = {{30, 40}, {0, 10}, {5, 12}, {12, 15}, {20, 20}, {26, 22}, {31, 33}};
  unite(intervals);
  EXPECT_THAT(intervals, ElementsAre(Interval{0, 15}, Interval{30, 40}));
}

TEST(Intervals, UnionOfNothingIsNothing) {
  std::vector<Interval> none;
  EXPECT_EQ(union_length(none), 0);
  std::vector<Interval> empty = {{3, 3}, {5, 4}};
  EXPECT_EQ(union_length(empty), 0);
  EXPECT_THAT(empty, IsEmpty());
}

TEST(Intervals, LengthCountsSharedTimeOnce) {
  std::vector<Interval> intervals = {{0, 10}, {2, 4}, {8, 20}, {25, 26}};
  EXPECT_EQ(union_length(intervals), 21);
}

TEST(Intervals, LengthOfTheWholeRangeDoesNotOverflow) {
  std::vector<Interval> intervals = {{kFirst, kLast}};
  EXPECT_EQ(union_length(intervals), kLast);
}

TEST(Intervals, CoveredClipsToTheWindowAndMovesOn) {
  const std::vector<Interval> united = {{0, 10}, {20, 30}, {40, 50}};
  std::size_t from = 0;
  EXPECT_EQ(covered(united, -5, 5, from), 5);
  EXPECT_EQ(covered(united, 5, 25, from), 10);
  EXPECT_EQ(covered(united, 30, 40, from), 0);
  EXPECT_EQ(from, 2U);
  EXPECT_EQ(covered(united, 45, 100, from), 5);
  EXPECT_EQ(covered(united, 100, 200, from), 0);
}

}  // namespace
}  // namespace culprit
