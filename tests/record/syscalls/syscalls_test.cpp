#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "record/syscalls/lanes.h"
#include "record/syscalls/page_faults.h"

namespace culprit::record::syscalls {
namespace {

TEST(Lanes, OneAfterTheOtherShareALane) {
  Lanes lanes;
  EXPECT_EQ(lanes.place(0, 10), 0u);
  EXPECT_EQ(lanes.place(10, 20), 0u);
}

TEST(Lanes, OverlapGetsALaneOfItsOwn) {
  Lanes lanes;
  EXPECT_EQ(lanes.place(0, 10), 0u);
  EXPECT_EQ(lanes.place(5, 12), 1u);
  EXPECT_EQ(lanes.place(6, 13), 2u);
  EXPECT_EQ(lanes.place(11, 14), 0u);
  EXPECT_EQ(lanes.place(12, 15), 1u);
}

TEST(Lanes, AreBounded) {
  Lanes lanes;
  for (std::size_t i = 0; i < Lanes::kMost; ++i) EXPECT_TRUE(lanes.place(0, 1000));
  EXPECT_FALSE(lanes.place(0, 1000));
  EXPECT_TRUE(lanes.place(1000, 1001));
}

TEST(PageFaults, FieldsTenAndTwelve) {
  const auto faults = parse_page_faults("12 (a b) S 1 12 12 0 -1 4194560 111 222 33 444 0 0 0 0 20 0 1 0 5 6 7");
  ASSERT_TRUE(faults);
  EXPECT_EQ(faults->minor, 111);
  EXPECT_EQ(faults->major, 33);
}

TEST(PageFaults, ANameMayLookLikeFields) {
  const auto faults = parse_page_faults("12 (x) S 9 9 9) S 1 12 12 0 -1 4194560 1 2 3 4 0 0 0 0 20 0 1 0 5 6 7");
  ASSERT_TRUE(faults);
  EXPECT_EQ(faults->minor, 1);
}

TEST(PageFaults, RefusesNonsense) {
  EXPECT_FALSE(parse_page_faults(""));
  EXPECT_FALSE(parse_page_faults("12 (x) S 1 2"));
  EXPECT_FALSE(parse_page_faults("12 (x) S 1 12 12 0 -1 4194560 -5 2 3 4"));
  EXPECT_FALSE(read_page_faults(0x7ffffff0));
}

TEST(PageFaults, OfThisProcessGrow) {
  const auto before = read_page_faults(getpid());
  ASSERT_TRUE(before);
  constexpr std::size_t kPages = 512;
  std::vector<char> fresh(kPages * 4096);
  for (std::size_t at = 0; at < fresh.size(); at += 4096) fresh[at] = 1;
  const auto after = read_page_faults(getpid());
  ASSERT_TRUE(after);
  EXPECT_GT(after->minor, before->minor);
}

}  // namespace
}  // namespace culprit::record::syscalls
