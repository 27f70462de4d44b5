#include "stats/mann_whitney.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace culprit::stats {
namespace {

/// P(U >= u) by enumerating every arrangement of the two groups.
double tail_by_enumeration(unsigned n1, unsigned n2, double u) {
  const unsigned n = n1 + n2;
  std::uint64_t all = 0;
  std::uint64_t reached = 0;
  for (std::uint32_t mask = 0; mask < (1u << n); ++mask) {
    if (static_cast<unsigned>(__builtin_popcount(mask)) != n1) continue;
    unsigned rank_sum = 0;
    for (unsigned i = 0; i < n; ++i)
      if (mask & (1u << i)) rank_sum += i + 1;
    ++all;
    if (rank_sum - n1 * (n1 + 1) / 2 >= u) ++reached;
  }
  return static_cast<double>(reached) / static_cast<double>(all);
}

TEST(MannWhitneyExactTail, EqualsEnumeration) {
  for (unsigned n1 = 1; n1 <= 6; ++n1)
    for (unsigned n2 = 1; n2 <= 7; ++n2)
      for (unsigned u = 0; u <= n1 * n2 + 1; ++u)
        EXPECT_NEAR(mann_whitney_exact_tail(n1, n2, u), tail_by_enumeration(n1, n2, u), 1e-13)
            << n1 << ' ' << n2 << ' ' << u;
}

TEST(MannWhitneyExactTail, OfLargeGroupsIsSymmetricAndExactAtTheEnd) {
  const double one_of = mann_whitney_exact_tail(8, 400, 8 * 400);
  double arrangements = 1;
  for (int i = 1; i <= 8; ++i) arrangements *= (400.0 + i) / i;
  EXPECT_NEAR(one_of * arrangements, 1, 1e-12);
  // P(U >= u) + P(U >= n1 n2 + 1 - u) = 1 by symmetry.
  EXPECT_NEAR(mann_whitney_exact_tail(8, 400, 1500) + mann_whitney_exact_tail(8, 400, 1701), 1, 1e-9);
}

TEST(MannWhitneyP, SmallGroupsWithoutTiesAreExact) {
  // Full separation of 3 and 3: 2 / C(6, 3).
  EXPECT_NEAR(mann_whitney_p(std::vector<double>{1, 2, 3}, std::vector<double>{4, 5, 6}), 0.1, 1e-15);
  EXPECT_NEAR(mann_whitney_p(std::vector<double>{4, 5, 6}, std::vector<double>{1, 2, 3}), 0.1, 1e-15);
  // 7 against 9: 2 / C(16, 7).
  EXPECT_NEAR(
      mann_whitney_p(std::vector<double>{1, 2, 3, 4, 5, 6, 7}, std::vector<double>{8, 9, 10, 11, 12, 13, 14, 15, 16}),
      2.0 / 11440, 1e-15);
}

TEST(MannWhitneyP, IsNeverAboveOne) {
  EXPECT_EQ(mann_whitney_p(std::vector<double>{1, 4}, std::vector<double>{2, 3}), 1);
}

TEST(MannWhitneyP, TiesUseTheCorrectedNormalApproximation) {
  // Ranks 1.5 1.5 3.5 | 3.5 5 6: U = 8.5, ties 2 (2^3 - 2) = 12, s^2 = 9/12 (7 - 12/30), z = (8.5 - 4.5 - 0.5) / s.
  const double z = 3.5 / std::sqrt(0.75 * (7 - 0.4));
  EXPECT_NEAR(mann_whitney_p(std::vector<double>{1, 1, 2}, std::vector<double>{2, 3, 4}), std::erfc(z / std::sqrt(2.0)),
              1e-15);
}

TEST(MannWhitneyP, LargeGroupsUseTheNormalApproximation) {
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 9; ++i) {
    a.push_back(i);
    b.push_back(100 + i);
  }
  const double z = (81 - 40.5 - 0.5) / std::sqrt(81.0 / 12 * 19);
  EXPECT_NEAR(mann_whitney_p(a, b), std::erfc(z / std::sqrt(2.0)), 1e-15);
}

TEST(MannWhitneyP, NothingToTellApartIsOne) {
  EXPECT_EQ(mann_whitney_p(std::vector<double>{5, 5, 5}, std::vector<double>{5, 5}), 1);
  EXPECT_EQ(mann_whitney_p({}, std::vector<double>{5, 5}), 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(mann_whitney_p(std::vector<double>{nan}, std::vector<double>{5, 5}), 1);
}

}  // namespace
}  // namespace culprit::stats
