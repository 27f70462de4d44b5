#include "core/units.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

TEST(ParseUs, MicrosecondsBecomeNanosecondsExactly) {
  EXPECT_EQ(parse_us("4909913692199.694"), 4909913692199694);
  EXPECT_EQ(parse_us("1683564901540885"), 1683564901540885000);
  EXPECT_EQ(parse_us("0.001"), 1);
  // Absolute times with nanoseconds have 19 digits.
  EXPECT_EQ(parse_us("1700000000123456.789"), 1700000000123456789);
  EXPECT_EQ(parse_us("1700000000123456.78949"), 1700000000123456789);
  EXPECT_EQ(parse_us("9223372036854775.807"), 9223372036854775807);
  EXPECT_EQ(parse_scaled_decimal("9223372036854775807", 0), 9223372036854775807);
  EXPECT_EQ(parse_us("-1.5"), -1500);
  EXPECT_EQ(parse_us("1e3"), 1000000);
  EXPECT_EQ(parse_us("1.25E-1"), 125);
}

TEST(ParseUs, RoundsHalfAwayFromZero) {
  EXPECT_EQ(parse_us("0.0005"), 1);
  EXPECT_EQ(parse_us("0.00049999999999999999999"), 0);
  EXPECT_EQ(parse_us("-0.0005"), -1);
  EXPECT_EQ(parse_us("7000000000000.123456789012345"), 7000000000000123);
}

TEST(ParseUs, RefusesWhatIsNoFiniteNumberOrDoesNotFit) {
  for (const char* text : {"", "-", ".", "NaN", "inf", "1e", "1e400", "12x", "1.2.3", "9300000000000000000", "null",
                           "9223372036854775.808"})
    EXPECT_EQ(parse_us(text), std::nullopt) << text;
  EXPECT_EQ(parse_us("0e400"), 0);
  EXPECT_EQ(parse_us("1e-400"), 0);
}

TEST(Format, DurationsLookLikeAProfilerTable) {
  EXPECT_EQ(format_duration(Ns{325435000}), "325.435ms");
  EXPECT_EQ(format_duration(Ns{1132000000}), "1.132s");
  EXPECT_EQ(format_duration(Ns{883}), "0.883us");
  EXPECT_EQ(format_us_exact(1500), "1.5");
  EXPECT_EQ(format_us_exact(-2000), "-2");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(12), "12");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
}

}  // namespace
}  // namespace culprit
