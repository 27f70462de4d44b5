#include "trace/loss.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace culprit {
namespace {

TEST(Losses, CountByReasonAndRememberTheFirstPlace) {
  Losses losses;
  EXPECT_EQ(losses.total(), 0U);
  losses.add(LossReason::time_missing, 2, "a: byte 5");
  losses.add(LossReason::time_missing, 3, "a: byte 9");
  losses.add(LossReason::utf8_repaired);
  EXPECT_EQ(losses[LossReason::time_missing], 5U);
  EXPECT_EQ(losses.first_seen(LossReason::time_missing), "a: byte 5");
  EXPECT_EQ(losses.first_seen(LossReason::utf8_repaired), "");
  EXPECT_EQ(losses.total(), 6U);
  EXPECT_EQ(losses.total(Severity::data_loss), 5U);
  EXPECT_EQ(losses.total(Severity::info), 1U);
}

TEST(Losses, NothingLostLeavesNoPlace) {
  Losses losses;
  losses.add(LossReason::time_missing, 0, "nowhere");
  losses.add(LossReason::time_missing, 1, "here");
  EXPECT_EQ(losses.first_seen(LossReason::time_missing), "here");
}

TEST(Losses, MergingKeepsTheFirstPlaceAndAddsUp) {
  Losses a;
  Losses b;
  b.add(LossReason::time_missing, 2, "b");
  a.merge(b);
  b.add(LossReason::time_missing, 1, "again");
  a.merge(b);
  EXPECT_EQ(a[LossReason::time_missing], 5U);
  EXPECT_EQ(a.first_seen(LossReason::time_missing), "b");
}

TEST(Losses, EveryReasonSaysWhatItMeansAndWhatToDo) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < Losses::kReasons; ++i) {
    const LossInfo& about = info(static_cast<LossReason>(i));
    EXPECT_TRUE(names.emplace(about.name).second) << about.name;
    EXPECT_FALSE(about.meaning.empty()) << about.name;
    EXPECT_FALSE(about.remedy.empty()) << about.name;
    EXPECT_NE(to_string(about.severity), "unknown");
  }
}

}  // namespace
}  // namespace culprit
