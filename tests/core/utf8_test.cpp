#include "core/utf8.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

TEST(DecodeUtf8, TakesValidSequencesWhole) {
  EXPECT_EQ(decode_utf8("a", 0).value, U'a');
  EXPECT_EQ(decode_utf8("xé", 1).value, U'é');
  EXPECT_EQ(decode_utf8("漢", 0).value, U'漢');
  EXPECT_EQ(decode_utf8("\xf4\x8f\xbf\xbf", 0).value, 0x10ffffU);
  EXPECT_EQ(decode_utf8("\xf4\x8f\xbf\xbf", 0).length, 4U);
}

TEST(DecodeUtf8, RefusesOverlongFormsSurrogatesAndWhatLiesBeyond) {
  for (const char* text : {"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"})
    EXPECT_FALSE(decode_utf8(text, 0).valid) << text;
}

TEST(DecodeUtf8, AnInvalidSequenceIsAsLongAsItsValidBeginning) {
  EXPECT_EQ(decode_utf8("\xe6\xbc", 0).length, 2U);
  EXPECT_EQ(decode_utf8("\xe6\xbc\x41", 0).length, 2U);
  EXPECT_EQ(decode_utf8("\xe6\x41", 0).length, 1U);
}

TEST(RepairUtf8, EveryDamagedSequenceBecomesOneMark) {
  EXPECT_EQ(repair_utf8("ok é"), "ok é");
  EXPECT_EQ(repair_utf8("\xe6\xbc"
                        "a"),
            "\xef\xbf\xbd"
            "a");
  EXPECT_EQ(repair_utf8("\xff\xfe"), "\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace culprit
