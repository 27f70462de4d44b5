#include "core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace culprit {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Text, TrimTakesWhiteSpaceOffBothEndsOnly) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim("\f\v"), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("\xc2\xa0"), "\xc2\xa0");
}

TEST(Text, WordsAndLines) {
  EXPECT_THAT(split_words("  one\ttwo \n three"), ElementsAre("one", "two", "three"));
  EXPECT_THAT(split_words(" \n"), IsEmpty());
  EXPECT_THAT(split_lines("\none two\n\nthree"), ElementsAre("one two", "three"));
}

TEST(Text, TakingWordsAndLinesLeavesTheRest) {
  std::string_view text = " one two\n\nthree";
  EXPECT_EQ(take_word(text), "one");
  EXPECT_EQ(take_line(text), " two");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_word(text), "three");
  EXPECT_EQ(take_word(text), "");
  EXPECT_EQ(take_line(text), "");
  EXPECT_TRUE(text.empty());
}

TEST(Text, EachLineIsCountedFromOneAndLosesItsEnd) {
  std::vector<std::pair<std::string, std::uint64_t>> lines;
  each_line(
      "\xEF\xBB\xBF"
      "a\r\n\nb",
      [&](std::string_view line, std::uint64_t n) { lines.emplace_back(line, n); });
  EXPECT_THAT(lines, ElementsAre(Pair("a", 1), Pair("", 2), Pair("b", 3)));
}

TEST(Text, NumbersAreWholeTexts) {
  EXPECT_EQ(parse_number<std::int64_t>("-12"), -12);
  EXPECT_EQ(parse_number<std::int64_t>("12 "), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>("+12"), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>(""), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("9223372036854775808"), 9223372036854775808ULL);
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<int>("0x10"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1.5e3"), 1500);
  EXPECT_EQ(parse_number<double>("1,5"), std::nullopt);
}

TEST(Text, CaseIsThatOfAscii) {
  EXPECT_EQ(to_lower("GeMM \xc3\x84"), "gemm \xc3\x84");
  EXPECT_TRUE(equals_ignoring_case("MMap", "mmAP"));
  EXPECT_FALSE(equals_ignoring_case("mmap", "mmap2"));
  EXPECT_TRUE(contains_ignoring_case("ncclDevKernel_AllReduce", "allreduce"));
  EXPECT_FALSE(contains_ignoring_case("all", "allreduce"));
  EXPECT_TRUE(contains_ignoring_case("", ""));
}

}  // namespace
}  // namespace culprit
