#include "formats/kernel_text/launch_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "support/shared_data.h"

namespace culprit::formats::kernel_text {
namespace {

constexpr std::string_view kHeader = "Kernel                                                 Latency Tensor   DRAM\n";

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(LaunchLog, ReadsRows) {
  const auto log = parse_launch_log(std::string(kHeader) + "gemm                |  4544   0.58   0.16\n", "x");
  ASSERT_TRUE(log) << to_string(log.error());
  ASSERT_EQ(log->launches.size(), 1U);
  const auto& launch = log->launches[0];
  EXPECT_EQ(log->names[launch.name], "gemm");
  EXPECT_EQ(launch.latency, 4544);
  EXPECT_FLOAT_EQ(launch.tensor, 0.58F);
  EXPECT_FLOAT_EQ(launch.dram, 0.16F);
  EXPECT_TRUE(std::isnan(launch.sm));
  EXPECT_EQ(launch.begin, -1);
}

TEST(LaunchLog, ColumnsMayStandInAnyOrderAndCarrySm) {
  const auto log = parse_launch_log("Kernel  Latency SM DRAM Tensor\na|1 0.1 0.2 0.3\n", "x");
  ASSERT_TRUE(log);
  EXPECT_FLOAT_EQ(log->launches[0].sm, 0.1F);
  EXPECT_FLOAT_EQ(log->launches[0].dram, 0.2F);
  EXPECT_FLOAT_EQ(log->launches[0].tensor, 0.3F);
}

TEST(LaunchLog, UnknownIsNotZero) {
  const auto log = parse_launch_log(std::string(kHeader) + "a | 1 - N/A\n", "x");
  ASSERT_TRUE(log);
  EXPECT_TRUE(std::isnan(log->launches[0].tensor));
  EXPECT_TRUE(std::isnan(log->launches[0].dram));
  EXPECT_EQ(log->inputs[0].bad_cells, 0U);
}

TEST(LaunchLog, BadLinesAreCountedWithTheirNumber) {
  const auto log =
      parse_launch_log(std::string(kHeader) + "a | 1 0 0\nno bar 1 0 0\nb | x 0 0\nc | 1 0\nd | 1 55 0\n", "x");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->launches.size(), 2U);
  const auto& report = log->inputs[0];
  EXPECT_EQ(report.bad_rows, 3U);
  EXPECT_EQ(report.bad_cells, 1U);
  ASSERT_EQ(report.first.size(), 4U);
  EXPECT_EQ(report.first[0].line, 3U);
  EXPECT_EQ(report.first[3].line, 6U);
}

TEST(LaunchLog, NegativeLatencyIsRefused) {
  EXPECT_FALSE(parse_launch_log(std::string(kHeader) + "a | -1 0 0\n", "x"));
}

TEST(LaunchLog, TheLastBarEndsTheName) {
  const auto log = parse_launch_log(std::string(kHeader) + "a|b | 7 0 0\r\n", "x");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->names[log->launches[0].name], "a|b");
}

TEST(LaunchLog, LinesBeforeTheTableAreNoted) {
  const auto log = parse_launch_log("hello\n" + std::string(kHeader) + "a | 1 0 0\n", "x");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->notes.size(), 1U);
}

TEST(LaunchLog, OtherTextsAreNoLog) {
  EXPECT_FALSE(looks_like_launch_log("Kernel of the matter\nLatency\n"));
  EXPECT_FALSE(looks_like_launch_log("Kernel Tensor DRAM\n"));
  EXPECT_FALSE(looks_like_launch_log(""));
  EXPECT_FALSE(parse_launch_log("a | 1 0 0\n", "x"));
  EXPECT_FALSE(parse_launch_log(kHeader, "x"));
  EXPECT_TRUE(looks_like_launch_log(kHeader));
}

TEST(LaunchLog, HostileNamesAreShownEscaped) {
  const auto log = parse_launch_log(std::string(kHeader) + "a\x1b[31m | 1 0 0\n", "x");
  ASSERT_TRUE(log);
  EXPECT_EQ(write_launch_log(*log).find('\x1b'), std::string::npos);
}

TEST(LaunchLog, WritesTheSmColumnAndUnknowns) {
  model::KernelLog log;
  model::KernelLaunch launch;
  launch.name = log.names.intern("k");
  launch.latency = 12;
  launch.sm = 0.5F;
  log.launches.push_back(launch);
  const auto again = parse_launch_log(write_launch_log(log), "again");
  ASSERT_TRUE(again);
  EXPECT_FLOAT_EQ(again->launches[0].sm, 0.5F);
  EXPECT_TRUE(std::isnan(again->launches[0].tensor));
}

class Seed : public testing::TestWithParam<const char*> {};

TEST_P(Seed, IsReproducedByteForByte) {
  CULPRIT_NEEDS_SHARED(std::string("seeds/") + GetParam());
  const std::string text = slurp(test::shared(std::string("seeds/") + GetParam()));
  const auto log = parse_launch_log(text, "seed");
  ASSERT_TRUE(log) << to_string(log.error());
  EXPECT_EQ(log->inputs[0].bad_rows + log->inputs[0].bad_cells, 0U);
  std::string written = write_launch_log(*log);
  while (written.ends_with('\n')) written.pop_back();
  std::string expected = text;
  while (expected.ends_with('\n')) expected.pop_back();
  EXPECT_EQ(written, expected);
}

INSTANTIATE_TEST_SUITE_P(Logs, Seed,
                         testing::Values("001_abc90e299168b04d.txt", "002_2e6eb07346960d83.txt",
                                         "003_a62fcc25c90d6fd4.txt"));

}  // namespace
}  // namespace culprit::formats::kernel_text
