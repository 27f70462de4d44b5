#include "trace/code_name.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

TEST(CodeName, CodeWithoutANameIsSummedUpByFile) {
  EXPECT_EQ(file_of_unnamed("libgomp.so.1+0x1de62"), "libgomp.so.1");
  EXPECT_EQ(file_of_unnamed("a+0x1+0x2"), "a+0x1");
}

TEST(CodeName, NamesAreLeftAlone) {
  for (const char* name : {"main", "", "operator+", "f+0x", "f+0xyz", "+0x12", "[unknown]"})
    EXPECT_FALSE(file_of_unnamed(name)) << name;
}

}  // namespace
}  // namespace culprit
