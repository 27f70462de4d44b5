#include "deepdive/trace_rows.h"

#include <algorithm>
#include <cmath>

#include "deepdive/suspicion.h"

namespace culprit::deepdive {

namespace {

constexpr double kCycleMoved = 0.03;
constexpr double kSameTime = 0.05;  // relative change of a function's time per cycle that is none

bool one_sided(const SuspicionRow& row) { return row.mark == RowMark::added || row.mark == RowMark::gone; }

RowMark mark_of(const SuspicionRow& row, double cycle_ratio) {
  const bool here = row.beta[0] > 0 || row.mu[0] != 0;
  const bool there = row.beta[1] > 0 || row.mu[1] != 0;
  if (!here && there) return RowMark::added;
  if (here && !there) return RowMark::gone;
  if (row.beta[0] <= 0 || row.beta[1] <= 0 || std::fabs(std::log(cycle_ratio)) < kCycleMoved) return RowMark::none;
  const double time = std::log(row.beta[1] / row.beta[0] * cycle_ratio);
  const double allowed = std::max(kSameTime, std::fabs(std::log(cycle_ratio)) / 4);
  const bool same_time = std::fabs(time) <= allowed;
  const bool same_resource = row.mu[0] > 0 && row.mu[1] > 0 && std::fabs(std::log(row.mu[1] / row.mu[0])) <= allowed;
  const bool against_cycle = (row.delta_beta < 0) == (cycle_ratio > 1);
  if (!same_time || !same_resource || !against_cycle) return RowMark::none;
  return cycle_ratio > 1 ? RowMark::cycle_grew : RowMark::cycle_shrank;
}

}  // namespace

void judge_on_traces(Comparison& comparison) {
  const double base = comparison.sides[0].mean_cycle_us;
  const double candidate = comparison.sides[1].mean_cycle_us;
  const double ratio = base > 0 && candidate > 0 ? candidate / base : 1;
  for (SuspicionRow& row : comparison.rows) row.mark = mark_of(row, ratio);
  std::erase_if(comparison.rows, [](const SuspicionRow& row) { return row.score == 0 && !one_sided(row); });
  std::ranges::stable_sort(comparison.rows, [](const SuspicionRow& a, const SuspicionRow& b) {
    if (one_sided(a) != one_sided(b)) return one_sided(b);
    return one_sided(a) && std::fabs(a.delta_beta) > std::fabs(b.delta_beta);
  });
  choose_findings(comparison);
}

}  // namespace culprit::deepdive
