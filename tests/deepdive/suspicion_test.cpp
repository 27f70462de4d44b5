#include "deepdive/suspicion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "deepdive/perf_csv.h"

namespace culprit::deepdive {
namespace {

/// One row of a profile table.
std::string row(int cycle, double beta, const std::string& function, const std::string& metric, const std::string& mu,
                const std::string& device = "GPU 0", double cycle_us = 1000, const std::string& anchor = "step",
                int pid = 7) {
  return fmt::format("{},{},{:.4f},{},{},{},{},{:.4f},{}\n", cycle, pid, beta, function, metric, device, mu, cycle_us,
                     anchor);
}

Profile profile(const std::string& rows) {
  auto parsed =
      parse_perf_csv("cycle,pid,beta_pct,function_name,metric_name,device,mu_pct,anchor_dur_us,anchor_name\n" + rows,
                     "t.csv", {DecimalRule::reference, 20});
  EXPECT_TRUE(parsed.ok());
  return std::move(parsed).value();
}

Comparison compared(const std::string& base, const std::string& candidate, ProcessPair pair = {Pairing::strict, 7, 7}) {
  return compare_by_suspicion(profile(base), profile(candidate), pair, "case", "name");
}

TEST(Suspicion, StatisticsOfOneTripletByHand) {
  const Comparison c = compared(row(1, 1, "f", "m", "0") + row(2, 3, "f", "m", "1.7182818284590453"),
                                row(1, 4, "f", "m", "2") + row(2, 8, "f", "m", "2"));
  ASSERT_EQ(c.rows.size(), 1u);
  const auto& r = c.rows[0];
  EXPECT_DOUBLE_EQ(r.beta[0], 2);
  EXPECT_DOUBLE_EQ(r.beta[1], 6);
  EXPECT_DOUBLE_EQ(r.z_beta, 4 / std::sqrt(2.0));
  // Logs of the baseline are 0 and 1.
  const double z_log = (std::log(3.0) - 0.5) / std::sqrt(0.5);
  EXPECT_NEAR(r.z_log_mu, z_log, 1e-12);
  EXPECT_NEAR(r.score, 4 * (4 / std::sqrt(2.0) + z_log), 1e-12);
  // Two against two without overlap: 2 / C(4, 2).
  EXPECT_NEAR(*r.u_beta, 1.0 / 3, 1e-12);
  // v = 1 + 4, degrees 25 / (1 + 16).
  EXPECT_GT(*r.p_beta, 0.2);
  EXPECT_LT(*r.p_beta, 0.4);
}

TEST(Suspicion, AFunctionThatIsNewHasNoZScoreAndNoScore) {
  const Comparison c = compared(row(1, 1, "old", "m", "5") + row(2, 2, "old", "m", "6"),
                                row(1, 9, "new", "m", "5") + row(2, 8, "new", "m", "6"));
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_EQ(c.texts[c.rows[0].function], "old");
  EXPECT_GT(c.rows[0].score, 0);
  EXPECT_EQ(c.rows[1].score, 0);
  EXPECT_EQ(c.rows[1].beta[0], 0);
  EXPECT_DOUBLE_EQ(c.rows[1].beta[1], 8.5);
  EXPECT_EQ(c.rows[1].p_beta, 1.0);
  EXPECT_EQ(c.rows[1].u_beta, 1.0);
}

TEST(Suspicion, ASpreadOfExactlyZeroGivesNoZScore) {
  std::string base;
  for (int i = 0; i < 11; ++i) base += row(i, 0.1, "f", "m", "85.7049");
  const Comparison c = compared(base, row(1, 5, "f", "m", "85.7049") + row(2, 5, "f", "m", "85.7049"));
  EXPECT_EQ(c.rows[0].z_beta, 0);
  EXPECT_EQ(c.rows[0].score, 0);
  EXPECT_EQ(c.rows[0].p_beta, 0.0);
  EXPECT_EQ(c.rows[0].p_mu, std::nullopt);
  EXPECT_EQ(c.rows[0].delta_mu, 0);
}

TEST(Suspicion, TestsOfMeansCountCyclesWhileRanksCountRows) {
  // Two rows of one cycle: spread exists, but one cycle is no sample.
  const Comparison c = compared(row(1, 1, "f", "m", "1") + row(1, 2, "f", "m", "2"),
                                row(1, 5, "f", "m", "1") + row(2, 6, "f", "m", "2"));
  EXPECT_EQ(c.rows[0].p_beta, 1.0);
  EXPECT_NEAR(*c.rows[0].u_beta, 1.0 / 3, 1e-12);
}

TEST(Suspicion, MissingAndDamagedMuCountAsZero) {
  const Comparison c = compared(row(1, 1, "f", "m", "") + row(2, 1, "f", "m", "junk") + row(3, 1, "f", "m", "6"),
                                row(1, 1, "f", "m", "2"));
  EXPECT_DOUBLE_EQ(c.rows[0].mu[0], 2);
}

TEST(Suspicion, RowsWithoutMetricOrNameAreCountedAndTheirFunctionsNamed) {
  const Comparison c =
      compared(row(1, 0.5, "sync", "N/A", "") + row(2, 0.5, "sync", "N/A", "") + row(1, 1, "null", "m", "1") +
                   row(1, 1, "f", "m", "1") + row(2, 1, "f", "null", "1"),
               row(1, 80, "sync", "N/A", "") + row(1, 1, "f", "m", "1"));
  ASSERT_EQ(c.rows.size(), 1u);
  EXPECT_EQ(c.sides[0].rows, 5u);
  EXPECT_EQ(c.sides[0].rows_no_metric, 3u);
  EXPECT_EQ(c.sides[0].rows_no_name, 1u);
  ASSERT_EQ(c.unscored.size(), 1u);
  EXPECT_EQ(c.texts[c.unscored[0].function], "sync");
  EXPECT_DOUBLE_EQ(c.unscored[0].beta[0], 0.5);
  EXPECT_DOUBLE_EQ(c.unscored[0].beta[1], 80);
}

TEST(Suspicion, AMissingDeviceIsADeviceOfItsOwn) {
  const Comparison c =
      compared(row(1, 1, "f", "m", "1", "") + row(1, 1, "f", "m", "1", "NaN"), row(1, 1, "f", "m", "1", "GPU 1"));
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_EQ(c.texts[c.rows[0].device], "GPU 1");
  EXPECT_EQ(c.texts[c.rows[1].device], "N/A");
}

TEST(Suspicion, CyclesAreDistinctPairsOfNumberAndDurationAndIncludeThoseWithoutMetric) {
  const Comparison c = compared(
      row(1, 1, "f", "m", "1", "d", 100) + row(1, 1, "g", "m", "1", "d", 100) + row(2, 1, "f", "N/A", "", "d", 300),
      row(1, 1, "f", "m", "1", "d", 100) + row(1, 1, "f", "m", "1", "d", 150));
  EXPECT_EQ(c.sides[0].cycle_us, (std::vector<double>{300, 100}));
  EXPECT_DOUBLE_EQ(c.sides[0].mean_cycle_us, 200);
  EXPECT_EQ(c.sides[1].cycle_us, (std::vector<double>{150, 100}));
}

TEST(Suspicion, DifferentAnchorsAreFlagged) {
  EXPECT_FALSE(compared(row(1, 1, "f", "m", "1"), row(1, 1, "f", "m", "1")).anchors_differ);
  EXPECT_TRUE(compared(row(1, 1, "f", "m", "1"), row(1, 1, "f", "m", "1", "d", 100, "layer")).anchors_differ);
}

TEST(Suspicion, OnlyTheChosenProcessesAreCompared) {
  const std::string base = row(1, 1, "f", "m", "1", "d", 100, "a", 1) + row(1, 5, "g", "m", "1", "d", 100, "a", 2);
  const Comparison c = compared(base, base, {Pairing::cross, 1, 2});
  EXPECT_EQ(c.sides[0].label, "normal_pid_1");
  EXPECT_EQ(c.sides[1].label, "abnormal_pid_2");
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_EQ(c.sides[0].rows, 1u);
}

TEST(Suspicion, EqualScoresAreOrderedByName) {
  std::string rows;
  for (const char* name : {"b,m,GPU 1", "b,m,GPU 0", "a,z,GPU 0", "a,k,GPU 0"})
    rows += fmt::format("1,7,1,{},1,10,s\n", name);
  const Comparison c = compared(rows, rows);
  std::string order;
  for (const auto& r : c.rows)
    order += fmt::format("{}{}{} ", c.texts[r.function], c.texts[r.metric], c.texts[r.device]);
  EXPECT_EQ(order, "akGPU 0 azGPU 0 bmGPU 0 bmGPU 1 ");
}

TEST(Suspicion, FindingsAreTheFirstThreeFunctionsWithTheirMovedResources) {
  std::string base;
  std::string candidate;
  for (int i = 0; i < 6; ++i)
    for (const char* f : {"f1", "f2", "f3", "f4"})
      for (const char* m : {"m1", "m2", "m3", "m4", "still"}) {
        const int size = f[1] - '0';
        const bool still = m[0] == 's';
        base += row(i, 1 + 0.01 * i, f, m, still ? "5" : std::to_string(10 + i));
        candidate += row(i, 1 + 10 * size + 0.01 * i, f, m, still ? "5" : std::to_string(20 * size + i));
      }
  const Comparison c = compared(base, candidate);
  ASSERT_EQ(c.findings.size(), 3u);
  EXPECT_EQ(c.texts[c.rows[c.findings[0].row].function], "f4");
  EXPECT_EQ(c.texts[c.rows[c.findings[2].row].function], "f2");
  for (const auto& finding : c.findings) {
    ASSERT_EQ(finding.resources.size(), 3u);
    for (const std::size_t i : finding.resources) EXPECT_NE(c.texts[c.rows[i].metric], "still");
  }
}

TEST(Suspicion, NothingChangedMeansNoFinding) {
  std::string rows;
  for (int i = 0; i < 5; ++i) rows += row(i, 1 + i, "f", "m", std::to_string(i));
  const Comparison c = compared(rows, rows);
  EXPECT_TRUE(c.findings.empty());
  EXPECT_EQ(c.rows[0].score, 0);
}

TEST(Suspicion, ProcessesWithoutRowsGiveAnEmptyComparison) {
  const Comparison c = compared("", "");
  EXPECT_TRUE(c.rows.empty());
  EXPECT_EQ(c.sides[0].mean_cycle_us, 0);
}

}  // namespace
}  // namespace culprit::deepdive
