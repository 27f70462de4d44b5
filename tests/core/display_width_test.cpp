#include "core/display_width.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

TEST(DisplayWidth, WideCharactersCountTwo) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("é"), 1u);
  EXPECT_EQ(display_width("漢字"), 4u);
  EXPECT_EQ(display_width("🚀"), 2u);
}

TEST(DisplayWidth, CombiningMarksTakeNoRoom) {
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("\u200b"), 0u);
}

TEST(DisplayWidth, BytesAndCharactersThatNobodyKnowsTakeOneColumn) {
  EXPECT_EQ(display_width("\xff\xfe"), 2u);
  EXPECT_EQ(display_width("\u0378"), 1u);
}

TEST(Shorten, CutsAtWholeCharacters) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdefg", 6), "abc...");
  EXPECT_EQ(shorten("漢字漢字", 6), "漢...");
  EXPECT_EQ(shorten("漢字漢字", 8), "漢字漢字");
  EXPECT_EQ(shorten("abcdef", 2), "..");
  EXPECT_EQ(shorten("abcdef", 0), "");
  EXPECT_EQ(shorten("abe\u0301defg", 6), "abe\u0301...");
  EXPECT_EQ(shorten(std::string(200, 'x'), 100), std::string(97, 'x') + "...");
}

TEST(Wrap, BreaksBetweenWordsOnly) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("one two", 100), (std::vector<std::string>{"one two"}));
  EXPECT_EQ(wrap("a verylongword b", 4), (std::vector<std::string>{"a", "verylongword", "b"}));
  EXPECT_EQ(wrap("漢字 漢字", 8), (std::vector<std::string>{"漢字", "漢字"}));
  EXPECT_EQ(wrap("", 8), (std::vector<std::string>{""}));
}

TEST(ShortenMiddle, KeepsBothEndsAndWholeCharacters) {
  EXPECT_EQ(shorten_middle("short", 10), "short");
  EXPECT_EQ(shorten_middle("abcdefghijklmnopqrstuvwxyz", 11), "abcd...wxyz");
  const std::string cut = shorten_middle("ääääääääääääääääääää", 9);
  EXPECT_EQ(cut, "äää...äää");
}

}  // namespace
}  // namespace culprit
