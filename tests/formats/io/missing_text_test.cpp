#include "formats/io/missing_text.h"

#include <gtest/gtest.h>

namespace culprit::formats {
namespace {

TEST(MissingText, IsWhatTheReferenceReadsAsNoValue) {
  for (const char* text : {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
                           "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"})
    EXPECT_TRUE(is_missing_text(text)) << text;
  for (const char* text : {" ", "none", "Null", "N/A ", "NAN", "0", "oncpu", "-1.#IND0", "nullptr"})
    EXPECT_FALSE(is_missing_text(text)) << text;
}

}  // namespace
}  // namespace culprit::formats
