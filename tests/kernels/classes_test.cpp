#include "kernels/classes.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/launch_gaps.h"
#include "kernels/launch_tables.h"
#include "support/launch_log.h"
#include "support/shared_data.h"

namespace culprit::kernels {
namespace {

using model::UseClass;
using test::add_launch;

TEST(Classes, TheThresholdItselfIsNotLow) {
  EXPECT_EQ(use_class(0.32, 0.32, 0.33), UseClass::both_low);
  EXPECT_EQ(use_class(0.32, 0.33, 0.33), UseClass::low_compute);
  EXPECT_EQ(use_class(0.33, 0.32, 0.33), UseClass::low_dram);
  EXPECT_EQ(use_class(0.33, 0.33, 0.33), UseClass::neither_low);
  EXPECT_EQ(use_class(model::kNoNumber, 0.5, 0.33), UseClass::unknown);
  EXPECT_EQ(use_class(0.5, model::kNoNumber, 0.33), UseClass::unknown);
}

TEST(Classes, TheAxisThatStandsInIsNamed) {
  model::KernelLog log;
  add_launch(log, "k", 1000, 0.1f, 0.5f);
  auto report = use_report(log, {});
  EXPECT_EQ(report.axis, model::ComputeAxis::tensor);
  EXPECT_EQ(to_string(UseClass::low_compute, report.axis), "low tensor");
  EXPECT_FALSE(class_table(report).notes.empty());
  log.launches[0].sm = 0.2f;
  report = use_report(log, {});
  EXPECT_EQ(report.axis, model::ComputeAxis::sm);
  EXPECT_EQ(to_string(UseClass::low_compute, report.axis), "low SM");
}

TEST(Classes, UnknownUseIsAClassOfItsOwn) {
  model::KernelLog log;
  add_launch(log, "k", 1000);
  add_launch(log, "k", 3000, 0.5f, 0.5f);
  const auto report = use_report(log, {});
  EXPECT_EQ(report.classes[static_cast<std::size_t>(UseClass::unknown)].time, 1000);
  EXPECT_EQ(report.classes[static_cast<std::size_t>(UseClass::neither_low)].time, 3000);
  EXPECT_EQ(report.bins[1][1].time, 3000);
}

TEST(Classes, HistogramPutsPrintedValuesInTheirOwnBin) {
  model::KernelLog log;
  for (int percent = 0; percent <= 100; percent += 5)
    add_launch(log, "k", 1, static_cast<float>(percent) / 100.0f, 0.0f);
  const auto report = use_report(log, {});
  ASSERT_EQ(report.histograms.size(), 2u);
  const auto& bins = report.histograms[0].bins;
  for (std::size_t b = 0; b < bins.size(); ++b) EXPECT_EQ(bins[b], b + 1 == bins.size() ? 2 : 1) << b;
}

TEST(Classes, SharesOfTheSeedsSumToOne) {
  for (const char* seed : {"001_abc90e299168b04d", "002_2e6eb07346960d83", "003_a62fcc25c90d6fd4"}) {
    const std::string path = std::string("seeds/") + seed + ".txt";
    CULPRIT_NEEDS_SHARED(path);
    const auto log = test::parse_launch_log(test::shared(path));
    const auto report = use_report(log, {});
    Ns classes = 0;
    for (const auto& sum : report.classes) classes += sum.time;
    EXPECT_EQ(classes, report.total);
    Ns total = 0;
    for (const auto& launch : log.launches) total += launch.latency;
    EXPECT_EQ(report.total, total);
    double shares = 0;
    for (const auto& row : class_table(report).rows) shares += std::get<double>(row[3]);
    EXPECT_NEAR(shares, 1, 1e-12) << seed;
  }
}

TEST(Roofline, FromWorkTimeAndUse) {
  model::KernelLog log;
  auto& launch = add_launch(log, "k", 1'000'000, model::kUnknown, 0.5f);
  launch.sm = 0.5f;
  launch.flops = 5e9;       // 5e12 per second at half use: 1e13
  launch.dram_bytes = 5e8;  // 5e11 per second at half use: 1e12
  const Roofline roof = roofline(log);
  EXPECT_NEAR(roof.flops_per_second, 1e13, 1);
  EXPECT_NEAR(roof.bytes_per_second, 1e12, 1);
  EXPECT_EQ(roofline_side(100, 1, roof), "compute");
  EXPECT_EQ(roofline_side(1, 1, roof), "memory");
  EXPECT_EQ(roofline_side(model::kNoNumber, 1, roof), "");
  EXPECT_EQ(roofline_side(1, 1, Roofline()), "");
}

TEST(Gaps, WithoutBeginsThereAreNone) {
  model::KernelLog log;
  add_launch(log, "k", 1000);
  const auto report = launch_report(log, {});
  EXPECT_FALSE(report.begins_known);
  EXPECT_TRUE(report.gaps.empty());
  EXPECT_EQ(report.short_kernels.launches, 1u);
}

TEST(Gaps, OnlyWhenNoStreamOfTheDeviceIsBusy) {
  model::KernelLog log;
  const auto add = [&](Ns begin, Ns latency, std::int32_t stream) {
    auto& launch = add_launch(log, "k", latency);
    launch.begin = begin;
    launch.device = 0;
    launch.stream = stream;
  };
  add(0, 10'000, 1);
  add(11'000, 10'000, 1);  // 1 us gap
  add(12'000, 20'000, 2);  // overlaps
  add(28'000, 1'000, 1);   // inside the other stream's kernel: no gap
  add(72'000, 1'000, 1);   // 40 us gap
  const auto report = launch_report(log, {});
  ASSERT_TRUE(report.begins_known);
  Ns gaps = 0;
  std::uint64_t count = 0;
  for (const auto& bin : report.gaps) {
    gaps += bin.time;
    count += bin.count;
  }
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(gaps, 41'000);
  EXPECT_EQ(report.busy, 32'000);
  EXPECT_EQ(report.window, 73'000);
  EXPECT_EQ(report.busy + gaps, report.window);
}

TEST(Gaps, AStretchOfTinyKernelsBehindLongGaps) {
  model::KernelLog log;
  for (int i = 0; i < 20; ++i) {
    auto& launch = add_launch(log, "k", 2'000);
    launch.begin = i * 10'000;
    launch.device = 0;
  }
  const auto report = launch_report(log, {});
  ASSERT_EQ(report.stretches.size(), 1u);
  EXPECT_EQ(report.stretches[0].launches, 19u);
  EXPECT_EQ(report.stretches[0].busy, 38'000);
}

TEST(NameTable, SumsAndWeightedUse) {
  model::KernelLog log;
  add_launch(log, "a", 1000, 0.0f, 0.2f);
  add_launch(log, "a", 3000, 0.4f, 0.6f);
  add_launch(log, "b", 1000, 0.0f, 0.0f);
  const auto table = name_table(log, {});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(std::get<std::string>(table.rows[0][0]), "a");
  EXPECT_EQ(std::get<std::int64_t>(table.rows[0][2]), 4000);
  EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0][3]), 0.8);
  EXPECT_NEAR(std::get<double>(table.rows[0][8]), 0.3, 1e-6);
  EXPECT_NEAR(std::get<double>(table.rows[0][9]), 0.5, 1e-6);
}

}  // namespace
}  // namespace culprit::kernels
