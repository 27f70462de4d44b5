#include "deepdive/trace_rows.h"

#include <gtest/gtest.h>

namespace culprit::deepdive {
namespace {

Comparison with(double base_us, double candidate_us) {
  Comparison c;
  c.sides[0].mean_cycle_us = base_us;
  c.sides[1].mean_cycle_us = candidate_us;
  return c;
}

void add(Comparison& c, const char* name, double beta_a, double beta_b, double mu_a, double mu_b, double score) {
  SuspicionRow row;
  row.function = c.texts.intern(name);
  row.metric = c.texts.intern("time_per_call_us");
  row.device = c.texts.intern("GPU");
  row.beta = {beta_a, beta_b};
  row.delta_beta = beta_b - beta_a;
  row.mu = {mu_a, mu_b};
  row.delta_mu = mu_b - mu_a;
  row.score = score;
  c.rows.push_back(row);
}

TEST(TraceRows, AShareThatFellWithTheCycleIsNoFinding) {
  Comparison c = with(1000, 1500);
  add(c, "gemm", 60, 40, 30, 30, 90);   // 600 us on both sides
  add(c, "pause", 5, 36, 50, 540, 40);  // 50 us to 540 us
  judge_on_traces(c);
  EXPECT_EQ(c.rows[0].mark, RowMark::cycle_grew);
  EXPECT_EQ(c.rows[1].mark, RowMark::none);
  ASSERT_EQ(c.findings.size(), 1U);
  EXPECT_EQ(c.texts[c.rows[c.findings[0].row].function], "pause");
}

TEST(TraceRows, WhatGotSlowerByItselfStaysAFinding) {
  Comparison c = with(1000, 1500);
  add(c, "gemm", 60, 73, 30, 55, 90);
  add(c, "same share", 30, 29, 30, 43, 20);  // grew with the cycle
  judge_on_traces(c);
  EXPECT_EQ(c.rows[0].mark, RowMark::none);
  EXPECT_EQ(c.rows[1].mark, RowMark::none);
  EXPECT_EQ(c.findings.size(), 2U);
}

TEST(TraceRows, AResourceThatMovedIsNotExplainedByTheCycle) {
  Comparison c = with(1000, 1500);
  add(c, "gemm", 60, 40, 1410, 210, 90);
  judge_on_traces(c);
  EXPECT_EQ(c.rows[0].mark, RowMark::none);
}

TEST(TraceRows, WithoutAChangeOfTheCycleNothingIsExplainedByIt) {
  Comparison c = with(1000, 1005);
  add(c, "gemm", 60, 58, 30, 30, 90);
  judge_on_traces(c);
  EXPECT_EQ(c.rows[0].mark, RowMark::none);
}

TEST(TraceRows, NewAndGoneFunctionsAreCalledSo) {
  Comparison c = with(1000, 1000);
  add(c, "zero", 3, 3, 1, 1, 0);
  add(c, "gone", 2, 0, 1, 0, 0);
  add(c, "new", 0, 7, 0, 1, 0);
  judge_on_traces(c);
  ASSERT_EQ(c.rows.size(), 2U) << "a row without a score says nothing";
  EXPECT_EQ(c.rows[0].mark, RowMark::added);
  EXPECT_EQ(c.rows[1].mark, RowMark::gone);
  EXPECT_TRUE(c.findings.empty());
}

}  // namespace
}  // namespace culprit::deepdive
