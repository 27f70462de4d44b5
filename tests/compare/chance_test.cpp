#include "compare/chance.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace culprit::compare {
namespace {

TEST(ChanceBeyond, CountsFromTheTolerance) {
  const double normal = std::numeric_limits<double>::infinity();
  const MeanDifference difference{0.25, 0.1, normal, 0};
  EXPECT_NEAR(chance_beyond(difference, 0.054), 0.05, 1e-3) << "1.96 errors beyond";
  EXPECT_NEAR(chance_beyond({-0.25, 0.1, normal, 0}, 0.054), 0.05, 1e-3);
  EXPECT_EQ(chance_beyond(difference, 0.25), 1);
  EXPECT_EQ(chance_beyond({0.25, 0, normal, 0}, 0.1), 0);
  EXPECT_GT(chance_beyond({0.25, 0.1, 4, 0}, 0.054), 0.1) << "few degrees of freedom";
}

TEST(DifferenceOfLogs, IsTheirRatioWithWhatRecordingsDifferBy) {
  std::vector<double> base;
  std::vector<double> candidate;
  for (int i = 0; i < 40; ++i) {
    base.push_back(i % 2 == 0 ? 99 : 101);
    candidate.push_back(2 * base.back());
  }
  const auto near = difference_of_logs({base, candidate}, 0.01);
  ASSERT_TRUE(near);
  EXPECT_NEAR(near->difference, 0.6931, 1e-3);
  const auto far = difference_of_logs({base, candidate}, 0.1);
  ASSERT_TRUE(far);
  EXPECT_NEAR(far->error, 0.1414, 2e-3);
  EXPECT_LT(near->error, far->error / 5);
  EXPECT_FALSE(difference_of_logs({base, std::vector<double>{1, 2}}, 0.01)) << "too few";
}

}  // namespace
}  // namespace culprit::compare
