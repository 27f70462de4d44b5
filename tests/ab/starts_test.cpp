#include "ab/starts.h"

#include <gtest/gtest.h>

#include "core/units.h"

namespace culprit::ab {
namespace {

TEST(LengthOfStart, IsHalfOfWhatStartingTookWhereAFurtherOneFits) {
  EXPECT_EQ(length_of_start(100 * kSecond, 600 * kSecond), 50 * kSecond);
  EXPECT_EQ(length_of_start(2 * kSecond, 600 * kSecond), 20 * kSecond);
}

TEST(LengthOfStart, IsAllThatIsLeftOtherwise) {
  EXPECT_EQ(length_of_start(100 * kSecond, 190 * kSecond), 190 * kSecond);
  EXPECT_EQ(length_of_start(2 * kSecond, 40 * kSecond), 40 * kSecond);
  EXPECT_EQ(length_of_start(2 * kSecond, 0), 0);
}

}  // namespace
}  // namespace culprit::ab
