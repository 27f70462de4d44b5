#include "deepdive/decimal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/profile.h"

namespace culprit::deepdive {
namespace {

TEST(ReferenceDecimal, EqualsCorrectRoundingWhereBothAreExact) {
  for (const char* text :
       {"0", "0.1", "85.7049", "-3.25", "119602.3125", "1522541300.0000", "1e5", "2.5E-3", "+7", " 4 ", ".5", "5."})
    EXPECT_EQ(parse_reference_decimal(text), parse_decimal(text, DecimalRule::nearest)) << text;
}

TEST(ReferenceDecimal, AccumulatesSeventeenDigitsAndDividesOnce) {
  // 17 digits do not fit 53 bits: x = 10 x + digit rounds at the last step, the division rounds again.
  double accumulated = 0;
  for (const char c : {'2', '4', '4', '1', '7', '2', '5', '3', '7', '1', '8', '9', '9', '7', '7', '9', '9'})
    accumulated = accumulated * 10 + (c - '0');
  EXPECT_EQ(parse_reference_decimal("2441725371899.7799"), accumulated / 1e4);
}

TEST(ReferenceDecimal, DiffersFromCorrectRoundingSomewhere) {
  int differing = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = std::to_string(22750000000000 + i * 7919) + "." + std::to_string(1000 + i * 3 % 9000);
    const double a = *parse_reference_decimal(text);
    const double b = *parse_decimal(text, DecimalRule::nearest);
    EXPECT_LE(std::fabs(a - b), 2 * (std::nextafter(b, 1e300) - b)) << text;
    differing += a != b;
  }
  EXPECT_GT(differing, 0);
}

TEST(ReferenceDecimal, FurtherDigitsAreIgnoredOrRaiseTheExponent) {
  EXPECT_EQ(parse_reference_decimal("0.123456789012345678901"), parse_reference_decimal("0.12345678901234567"));
  EXPECT_EQ(parse_reference_decimal("123456789012345678901"), 12345678901234567.0 * 1e4);
  EXPECT_EQ(parse_reference_decimal("0000000000000000000000001.5"), 1.5);
  EXPECT_EQ(parse_reference_decimal("0.00000000000000000000000015"), 15 / 1e26);
}

TEST(ReferenceDecimal, RefusesWhatIsNoFiniteNumber) {
  for (const char* text :
       {"", " ", "-", ".", "e5", "1e", "1e+", "nan", "inf", "1e400", "12x", "1,5", "1.2.3", "0x10", "--1"})
    EXPECT_EQ(parse_reference_decimal(text), std::nullopt) << text;
  EXPECT_EQ(parse_reference_decimal("1e-400"), 0);
  EXPECT_EQ(parse_reference_decimal("0e99999999999"), 0);
}

TEST(Whole, AcceptsIntegersAndNothingElse) {
  EXPECT_EQ(parse_whole("944615"), 944615);
  EXPECT_EQ(parse_whole("944615.0"), 944615);
  EXPECT_EQ(parse_whole("-3"), -3);
  for (const char* text : {"", "1.5", ".0", "1e3", "9223372036854775808", "x"})
    EXPECT_EQ(parse_whole(text), std::nullopt) << text;
}

}  // namespace
}  // namespace culprit::deepdive
