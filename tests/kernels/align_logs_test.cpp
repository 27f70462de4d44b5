#include "kernels/align_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/launch_log.h"
#include "support/shared_data.h"

namespace culprit::kernels {
namespace {

using model::Change;
using model::KernelChange;
using model::KernelLog;
using test::add_launch;

const KernelChange* find_name(const model::LogComparison& comparison, std::string_view name) {
  for (const KernelChange& change : comparison.names)
    if (change.name == name) return &change;
  return nullptr;
}

bool accused(Change change) {
  return change == Change::slower || change == Change::faster || change == Change::appeared || change == Change::gone ||
         change == Change::replaced;
}

/// `steps` steps of 30 kernels with 1 % noise; kernel 7 is `factor` times as long.
KernelLog steps(int steps, unsigned seed, double factor = 1, std::string_view eighth = "k8") {
  KernelLog log;
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1.0, 0.01);
  for (int s = 0; s < steps; ++s)
    for (int i = 0; i < 30; ++i) {
      const double time = (20'000 + 1000 * i) * noise(random) * (i == 7 ? factor : 1.0);
      add_launch(log, i == 8 ? std::string(eighth) : "k" + std::to_string(i), static_cast<Ns>(time));
    }
  return log;
}

TEST(CompareLogs, TheSameWorkloadIsSilent) {
  const auto comparison = compare_logs(steps(20, 1), steps(20, 2), {});
  for (const KernelChange& change : comparison.names) EXPECT_EQ(change.change, Change::same) << change.name;
  EXPECT_TRUE(comparison.positions.empty());
  EXPECT_EQ(comparison.aligned, 600u);
}

TEST(CompareLogs, MoreStepsAreWorkNotAChange) {
  const auto comparison = compare_logs(steps(34, 1), steps(30, 2), {});
  for (const KernelChange& change : comparison.names) {
    EXPECT_EQ(change.change, Change::same) << change.name;
    EXPECT_EQ(change.calls_a, 34u);
    EXPECT_EQ(change.calls_b, 30u);
  }
  EXPECT_TRUE(comparison.positions.empty());
}

TEST(CompareLogs, ASlowerKernelIsTheOnlyOne) {
  const auto comparison = compare_logs(steps(20, 1), steps(20, 2, 1.2), {});
  for (const KernelChange& change : comparison.names)
    EXPECT_EQ(change.change, change.name == "k7" ? Change::slower : Change::same) << change.name;
  EXPECT_EQ(comparison.names[0].name, "k7");
  ASSERT_EQ(comparison.positions.size(), 1u);
  EXPECT_EQ(comparison.positions[0].name, "k7");
  EXPECT_THAT(comparison.positions[0].where, testing::StartsWith("20 x [30 launches]"));
  const auto back = compare_logs(steps(20, 2, 1.2), steps(20, 1), {});
  EXPECT_EQ(back.names[0].change, Change::faster);
}

TEST(CompareLogs, AReplacedKernelIsFoundByItsPosition) {
  const auto comparison = compare_logs(steps(20, 1), steps(20, 2, 1, "fused"), {});
  EXPECT_EQ(find_name(comparison, "k8")->change, Change::gone);
  EXPECT_EQ(find_name(comparison, "fused")->change, Change::appeared);
  ASSERT_EQ(comparison.positions.size(), 1u);
  EXPECT_EQ(comparison.positions[0].change, Change::replaced);
  EXPECT_EQ(comparison.positions[0].name, "k8");
  EXPECT_EQ(comparison.positions[0].name_b, "fused");
}

TEST(CompareLogs, OneOutlierAccusesNobody) {
  KernelLog b = steps(20, 2);
  b.launches[7].latency = 50'000'000;  // the mean of k7 is now a hundred times as long
  const auto comparison = compare_logs(steps(20, 1), b, {});
  for (const KernelChange& change : comparison.names) EXPECT_EQ(change.change, Change::same) << change.name;
}

TEST(CompareLogs, CommunicationIsSplitAndNotAccused) {
  const auto make = [](Ns wait) {
    KernelLog log;
    for (int k = 0; k < 20; ++k)
      for (std::int16_t device = 0; device < 2; ++device) {
        const Ns late = device == 1 ? wait : 0;
        auto& launch = add_launch(log, "ncclDevKernel_SendRecv", 100'000 + wait - late);
        launch.device = device;
        launch.begin = k * 10'000'000 + late;
      }
    return log;
  };
  const auto comparison = compare_logs(make(20'000), make(900'000), {});
  ASSERT_EQ(comparison.names.size(), 1u);
  EXPECT_EQ(comparison.names[0].change, Change::not_judged);
  EXPECT_THAT(comparison.names[0].note, testing::HasSubstr("transfer 100.000us, device 0 waits 20.000us"));
  EXPECT_THAT(comparison.names[0].note, testing::HasSubstr("transfer 100.000us, device 0 waits 900.000us"));
  for (const auto& position : comparison.positions) EXPECT_FALSE(accused(position.change));
}

TEST(CompareLogs, AMoveBetweenClasses) {
  KernelLog a;
  KernelLog b;
  for (int i = 0; i < 10; ++i) {
    add_launch(a, "k", 10'000, 0.5f, 0.1f);
    add_launch(b, "k", 10'000, 0.1f, 0.5f);
  }
  const auto comparison = compare_logs(a, b, {});
  EXPECT_EQ(comparison.names[0].class_a, model::UseClass::low_dram);
  EXPECT_EQ(comparison.names[0].class_b, model::UseClass::low_compute);
}

TEST(CompareLogs, EmptyLogs) {
  EXPECT_TRUE(compare_logs(KernelLog(), KernelLog(), {}).names.empty());
  const auto comparison = compare_logs(KernelLog(), steps(3, 1), {});
  for (const KernelChange& change : comparison.names) EXPECT_EQ(change.change, Change::appeared);
}

TEST(CompareLogs, ASeedAgainstItself) {
  CULPRIT_NEEDS_SHARED("seeds/002_2e6eb07346960d83.txt");
  const KernelLog log = test::parse_launch_log(test::shared("seeds/002_2e6eb07346960d83.txt"));
  const auto comparison = compare_logs(log, log, {});
  EXPECT_EQ(comparison.aligned, log.launches.size());
  EXPECT_TRUE(comparison.positions.empty());
  for (const KernelChange& change : comparison.names) EXPECT_EQ(change.change, Change::same);
}

TEST(Judge, WithFewCallsTheLimitIsWide) {
  EXPECT_EQ(judge({10'000, 10'000}, {11'500, 11'500}, 0.05).change, Change::same);
  EXPECT_EQ(judge({10'000, 10'000}, {13'000, 13'000}, 0.05).change, Change::not_judged);
  const std::vector<double> three(3, 13'000);
  const std::vector<double> four(4, 10'000);
  EXPECT_EQ(judge(four, three, 0.05).change, Change::not_judged) << "few on one side are enough";
  EXPECT_EQ(judge_pairs(three, {20'000, 20'000, 20'000}, 0.05).change, Change::not_judged);
  EXPECT_EQ(judge(four, {13'000, 13'000, 13'000, 13'000}, 0.05).change, Change::slower);
  EXPECT_EQ(judge({}, {1}, 0.05).change, Change::same);
}

TEST(Judge, ResolutionOfTheClockIsNoChange) {
  EXPECT_EQ(judge({1000, 1000, 1000, 1000}, {1300, 1300, 1300, 1300}, 0.05).change, Change::same);
}

}  // namespace
}  // namespace culprit::kernels
