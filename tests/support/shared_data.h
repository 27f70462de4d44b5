// Real traces and expected results lie beside the checkout; without them a test says so and is counted as skipped.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace culprit::test {
inline std::string shared(const std::string& inside) {
  return std::string(CULPRIT_SOURCE_DIR) + "/../shared/" + inside;
}
}  // namespace culprit::test

#define CULPRIT_NEEDS_SHARED(inside)                           \
  if (!std::filesystem::exists(culprit::test::shared(inside))) \
  GTEST_SKIP() << "shared data missing: ../shared/" << (inside) << " is not beside the checkout"
