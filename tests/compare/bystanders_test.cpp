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

}  // namespace
}  // namespace culprit::compare
