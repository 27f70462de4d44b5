#include "record/sched/schedstat.h"

#include <gtest/gtest.h>

namespace culprit::record::sched {
namespace {

constexpr std::string_view kStatus =
    "Name:\tvoluntary_ctxt_switches: 9\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t150\n"
    "nonvoluntary_ctxt_switches:\t545\n";

TEST(Totals, ReadsBothFiles) {
  const auto totals = parse_totals("1234567 89 42\n", kStatus);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->oncpu_ns, 1234567);
  EXPECT_EQ(totals->runq_ns, 89);
  EXPECT_EQ(totals->voluntary, 150);  // not the 9 that a hostile name puts before
  EXPECT_EQ(totals->involuntary, 545);
}

TEST(Totals, RefusesWhatTheKernelDoesNotWrite) {
  EXPECT_FALSE(parse_totals("", kStatus));
  EXPECT_FALSE(parse_totals("1", kStatus));
  EXPECT_FALSE(parse_totals("one two", kStatus));
  EXPECT_FALSE(parse_totals("-1 2 3", kStatus));
  EXPECT_FALSE(parse_totals("99999999999999999999 2 3", kStatus));
  EXPECT_FALSE(parse_totals("1 2 3", ""));
  EXPECT_FALSE(parse_totals("1 2 3", "\nvoluntary_ctxt_switches:\t1\n"));
}

TEST(Totals, TheAgentIsKnownByItsName) {
  EXPECT_TRUE(is_agent("Name:\tculprit-agent\nUmask:\t0022\n"));
  EXPECT_FALSE(is_agent("Name:\tculprit-agents\nUmask:\t0022\n"));
  EXPECT_FALSE(is_agent("Name:\tworker\nUmask:\t0022\nName:\tculprit-agent\n"));
  EXPECT_FALSE(is_agent(""));
}

}  // namespace
}  // namespace culprit::record::sched
