#include "compare/bystanders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace culprit::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Bystanders, TheLargestDifferenceIsFirst) {
  EXPECT_THAT(bystanders_that_moved({{"make", 0.5}}, {{"make", 0.1}, {"stress", 1.9}}),
              ElementsAre(Pair("stress", ElementsAre(0.0, 1.9)), Pair("make", ElementsAre(0.5, 0.1))));
}

TEST(Bystanders, LessThanATenthOfACpuIsNothing) { EXPECT_THAT(bystanders_that_moved({}, {{"cron", 0.09}}), IsEmpty()); }

TEST(Bystanders, ABusyOneThatTookALittleMoreIsNothing) {
  EXPECT_THAT(bystanders_that_moved({{"client", 1.0}}, {{"client", 1.4}}), IsEmpty());
  EXPECT_THAT(bystanders_that_moved({{"client", 1.0}}, {{"client", 1.5}}),
              ElementsAre(Pair("client", ElementsAre(1.0, 1.5))));
}

TEST(Bystanders, OnlyWhatIsBeyondUsualWaitsMakesAStepSurelyLonger) {
  EXPECT_NEAR(surely_longer({35, 19}, {20, 2.5}), (19 - 7.5) / 20 - 0.05, 1e-12);
  EXPECT_EQ(surely_longer({23, 3}, {20, 0.9}), 0) << "three times as long";
  EXPECT_EQ(surely_longer({23, 2.9}, {20, 0}), 0) << "less than a tenth beyond the twentieth";
  EXPECT_GT(surely_longer({23, 3.1}, {20, 0}), 0.1);
  EXPECT_EQ(surely_longer({19, 15}, {20, 1}), 0) << "the step is no longer";
  EXPECT_EQ(surely_longer({1, 1}, {}), 0) << "nothing is known of the other";
  EXPECT_EQ(surely_longer({20.2, 10}, {20, 0}), 0) << "what it waited for instead was ready by then";
  EXPECT_NEAR(surely_longer({23, 10}, {20, 0}), 0.15, 1e-12) << "no more than in all";
}

}  // namespace
}  // namespace culprit::compare
