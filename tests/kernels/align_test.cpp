#include "kernels/align.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace culprit::kernels {
namespace {

using Ids = std::vector<std::uint32_t>;

/// Longest common subsequence by the quadratic table.
std::size_t longest_common(const Ids& a, const Ids& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j)
      table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
  return table[a.size()][b.size()];
}

void expect_valid(const Ids& a, const Ids& b, const Alignment& found) {
  for (std::size_t i = 0; i < found.pairs.size(); ++i) {
    ASSERT_LT(found.pairs[i].a, a.size());
    ASSERT_LT(found.pairs[i].b, b.size());
    EXPECT_EQ(a[found.pairs[i].a], b[found.pairs[i].b]);
    if (i == 0) continue;
    EXPECT_LT(found.pairs[i - 1].a, found.pairs[i].a);
    EXPECT_LT(found.pairs[i - 1].b, found.pairs[i].b);
  }
}

TEST(Align, EmptyAndEqual) {
  EXPECT_TRUE(align({}, {}, 10).pairs.empty());
  const Ids a = {1, 2, 3};
  EXPECT_TRUE(align(a, {}, 10).pairs.empty());
  EXPECT_EQ(align(a, a, 0).pairs.size(), 3u);
  EXPECT_FALSE(align(a, a, 0).bounded);
}

TEST(Align, ExampleOfThePaper) {
  const Ids a = {'a', 'b', 'c', 'a', 'b', 'b', 'a'};
  const Ids b = {'c', 'b', 'a', 'b', 'a', 'c'};
  const Alignment found = align(a, b, 100);
  expect_valid(a, b, found);
  EXPECT_EQ(found.pairs.size(), 4u);
}

TEST(Align, AsLongAsTheQuadraticTable) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    Ids a(random() % 40);
    Ids b(random() % 40);
    const unsigned letters = 2 + random() % 6;
    for (auto& x : a) x = random() % letters;
    for (auto& x : b) x = random() % letters;
    const Alignment found = align(a, b, 1000);
    expect_valid(a, b, found);
    EXPECT_FALSE(found.bounded);
    EXPECT_EQ(found.pairs.size(), longest_common(a, b));
  }
}

TEST(Align, BeyondTheBoundOnlyTheEnds) {
  Ids a(1000);
  Ids b(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    a[i] = i;
    b[i] = i < 10 || i >= 990 ? i : 5000 + i;
  }
  const Alignment found = align(a, b, 20);
  expect_valid(a, b, found);
  EXPECT_TRUE(found.bounded);
  EXPECT_EQ(found.pairs.size(), 20u);
}

}  // namespace
}  // namespace culprit::kernels
