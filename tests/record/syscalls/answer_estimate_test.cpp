#include "record/syscalls/answer_estimate.h"

#include <gtest/gtest.h>

namespace culprit::record::syscalls {
namespace {

TEST(AnswerEstimate, WhatIsLookedAtAlwaysIsCounted) {
  AnswerEstimate answers;
  EXPECT_EQ(answers.add({10, 35, 35, true}), 10);
  EXPECT_EQ(answers.add({2, 1, 1, true}), 2);
}

TEST(AnswerEstimate, WhatIsSentOutsideOfWindowsIsAsManyAnswersAsInThem) {
  AnswerEstimate answers;
  EXPECT_DOUBLE_EQ(answers.add({100, 1'500, 300}), 500);
  EXPECT_DOUBLE_EQ(answers.add({100, 600, 300}), 200);
}

TEST(AnswerEstimate, APeriodWithoutAWindowIsLikeThoseBefore) {
  AnswerEstimate answers;
  answers.add({100, 1'000, 200});
  EXPECT_DOUBLE_EQ(answers.add({0, 500, 0}), 250);
}

TEST(AnswerEstimate, BeforeTheFirstWindowNothingIsGuessed) {
  AnswerEstimate answers;
  EXPECT_EQ(answers.add({0, 400, 0}), 0);
  EXPECT_EQ(answers.expected({0, 400, 100}), 0);
}

TEST(AnswerEstimate, AServerThatAnswersInMorePartsFromNowOnIsFollowed) {
  AnswerEstimate answers;
  answers.add({1'000, 5'000, 1'000});
  EXPECT_DOUBLE_EQ(answers.expected({500, 5'000, 1'000}), 1'000);
  double last = 0;
  for (int i = 0; i < 20; ++i) last = answers.add({500, 5'000, 1'000});
  EXPECT_NEAR(last, 2'500, 20);
}

}  // namespace
}  // namespace culprit::record::syscalls
