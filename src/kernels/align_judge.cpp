#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/align_logs.h"
#include "stats/quantile.h"

namespace culprit::kernels {

namespace {

constexpr std::size_t kSpreadKnown = 4;
constexpr double kLimitWithoutSpread = 0.20;
constexpr double kStandardErrors = 3;
/// Standard deviation of a normal sample from its median absolute deviation.
constexpr double kMadToDeviation = 1.4826;
/// Standard error of the median over that of the mean, for a normal sample.
constexpr double kMedianError = 1.2533;
/// Device timestamps are no finer than this.
constexpr double kResolution = 500;

double median_error(std::vector<double> values, double middle) {
  const auto n = static_cast<double>(values.size());
  for (double& value : values) value = std::abs(value - middle);
  return kMedianError * kMadToDeviation * stats::median(std::move(values)) / std::sqrt(n);
}

model::Change change_of(double ratio, double limit, double absolute, std::size_t calls) {
  if (std::abs(absolute) < kResolution || std::abs(ratio - 1) <= limit) return model::Change::same;
  // So few calls show no spread: that they differ may be chance.
  if (calls < kSpreadKnown) return model::Change::not_judged;
  return ratio > 1 ? model::Change::slower : model::Change::faster;
}

}  // namespace

Judgement judge(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  Judgement result;
  if (a.empty() || b.empty()) return result;
  const double middle_a = std::max(1.0, stats::median(a));
  const double middle_b = std::max(1.0, stats::median(b));
  result.ratio = middle_b / middle_a;
  const double error = std::hypot(median_error(a, middle_a) / middle_a, median_error(b, middle_b) / middle_b);
  result.limit = std::max(tolerance, kStandardErrors * error);
  if (std::min(a.size(), b.size()) < kSpreadKnown) result.limit = std::max(result.limit, kLimitWithoutSpread);
  result.change = change_of(result.ratio, result.limit, middle_b - middle_a, std::min(a.size(), b.size()));
  return result;
}

Judgement judge_pairs(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  Judgement result;
  if (a.empty() || a.size() != b.size()) return result;
  std::vector<double> ratios;
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ratios.push_back(std::log(std::max(1.0, b[i]) / std::max(1.0, a[i])));
    differences.push_back(b[i] - a[i]);
  }
  const double middle = stats::median(ratios);
  result.ratio = std::exp(middle);
  result.limit = std::max(tolerance, kStandardErrors * median_error(ratios, middle));
  if (ratios.size() < kSpreadKnown) result.limit = std::max(result.limit, kLimitWithoutSpread);
  result.change = change_of(result.ratio, result.limit, stats::median(differences), a.size());
  return result;
}

}  // namespace culprit::kernels
