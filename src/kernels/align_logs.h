// Two launch logs: what became slower, faster, new, gone or another class, per name and per position.
//
// Sums say nothing when one log holds more steps than the other, so calls are matched with calls: the lanes by device,
// the repeated blocks of both logs by their launches, copies of a block one by one, launches inside a copy and between
// blocks by name and order (align.h). What only one log has more of is work, not a change.
//
// Judged are medians (of the ratios of matched calls for names; per side for positions): one outlier moves a mean as
// far as it likes. Different means beyond the tolerance and beyond three standard errors of the median (from the median
// absolute deviation). With fewer than four calls on a side the spread is unknown and the limit is 20 %.
//
// Communication kernels last as long as the slowest partner lets them. With several devices, the k-th calls are matched
// and split into waiting (until the last has begun) and transfer; they are reported, never accused.
#pragma once

#include <string_view>

#include "model/kernel_log.h"
#include "model/kernel_report.h"

namespace culprit::kernels {

struct CompareOptions {
  double tolerance = 0.05;  ///< ratio of medians - 1 below which nothing is a change
  double low = 0.33;        ///< threshold of the classes
};

model::LogComparison compare_logs(const model::KernelLog& a, const model::KernelLog& b, const CompareOptions& options);

std::string_view to_string(model::Change change);

/// Difference of two samples of durations as a ratio of medians, and from where on it counts.
struct Judgement {
  double ratio = 1;
  double limit = 0;
  model::Change change = model::Change::same;
};
Judgement judge(const std::vector<double>& a, const std::vector<double>& b, double tolerance);
/// The same for calls matched one by one.
Judgement judge_pairs(const std::vector<double>& a, const std::vector<double>& b, double tolerance);

}  // namespace culprit::kernels
