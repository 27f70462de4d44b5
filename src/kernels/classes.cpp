#include "kernels/classes.h"

#include <algorithm>
#include <cmath>

#include "core/saturating.h"
#include "stats/quantile.h"

namespace culprit::kernels {

namespace {

constexpr std::size_t kHistogramBins = 20;

void add(model::TimeAndCount& to, Ns time) {
  to.time = add_saturating(to.time, time);
  ++to.launches;
}

std::size_t bin_of(double use, const UseLimits& limits) { return use < limits.low ? 0 : use < limits.high ? 1 : 2; }

void add_histogram(const model::KernelLog& log, std::string axis, float model::KernelLaunch::*use,
                   std::vector<model::UseHistogram>& to) {
  model::UseHistogram histogram{std::move(axis), std::vector<Ns>(kHistogramBins), 0};
  bool any = false;
  for (const model::KernelLaunch& launch : log.launches) {
    const float value = launch.*use;
    if (std::isnan(value)) {
      histogram.unknown = add_saturating(histogram.unknown, launch.latency);
      continue;
    }
    any = true;
    // Two decimals are what logs print; without the half step 0.15f would fall below its own bin.
    const double scaled = (static_cast<double>(value) + 1e-6) * static_cast<double>(kHistogramBins);
    const auto bin = static_cast<std::size_t>(std::clamp(scaled, 0.0, static_cast<double>(kHistogramBins - 1)));
    histogram.bins[bin] = add_saturating(histogram.bins[bin], launch.latency);
  }
  if (any) to.push_back(std::move(histogram));
}

}  // namespace

double compute_use(const model::KernelLaunch& launch) {
  return static_cast<double>(std::isnan(launch.sm) ? launch.tensor : launch.sm);
}

model::UseClass use_class(double compute, double dram, double low) {
  using model::UseClass;
  if (std::isnan(compute) || std::isnan(dram)) return UseClass::unknown;
  if (compute < low) return dram < low ? UseClass::both_low : UseClass::low_compute;
  return dram < low ? UseClass::low_dram : UseClass::neither_low;
}

model::UseClass use_class(const model::KernelLaunch& launch, double low) {
  return use_class(compute_use(launch), static_cast<double>(launch.dram), low);
}

std::string_view to_string(model::UseClass use, model::ComputeAxis axis) {
  switch (use) {
    case model::UseClass::both_low:
      return "both low";
    case model::UseClass::low_compute:
      return axis == model::ComputeAxis::tensor ? "low tensor" : "low SM";
    case model::UseClass::low_dram:
      return "low DRAM";
    case model::UseClass::neither_low:
      return "neither low";
    default:
      return "unknown";
  }
}

model::UseReport use_report(const model::KernelLog& log, const UseLimits& limits) {
  model::UseReport report;
  report.low = limits.low;
  report.high = limits.high;
  report.launches = log.launches.size();
  Ns by_sm = 0;
  Ns by_tensor = 0;
  for (const model::KernelLaunch& launch : log.launches) {
    report.total = add_saturating(report.total, launch.latency);
    add(report.classes[static_cast<std::size_t>(use_class(launch, limits.low))], launch.latency);
    if (!std::isnan(launch.sm))
      by_sm = add_saturating(by_sm, launch.latency);
    else if (!std::isnan(launch.tensor))
      by_tensor = add_saturating(by_tensor, launch.latency);
    const double compute = compute_use(launch);
    const auto dram = static_cast<double>(launch.dram);
    if (!std::isnan(compute) && !std::isnan(dram))
      add(report.bins[bin_of(compute, limits)][bin_of(dram, limits)], launch.latency);
  }
  if (by_sm > 0 || by_tensor > 0)
    report.axis = by_sm >= by_tensor ? model::ComputeAxis::sm : model::ComputeAxis::tensor;
  add_histogram(log, "SM", &model::KernelLaunch::sm, report.histograms);
  add_histogram(log, "tensor", &model::KernelLaunch::tensor, report.histograms);
  add_histogram(log, "DRAM", &model::KernelLaunch::dram, report.histograms);
  return report;
}

Roofline roofline(const model::KernelLog& log) {
  constexpr double kLeastUse = 0.2;
  Roofline roof;
  std::vector<double> bandwidths;
  for (const model::KernelLaunch& launch : log.launches) {
    if (launch.latency <= 0) continue;
    const double seconds = static_cast<double>(launch.latency) * 1e-9;
    const double compute = compute_use(launch);
    const auto dram = static_cast<double>(launch.dram);
    if (compute >= kLeastUse && launch.flops > 0) {
      const double estimate = launch.flops / seconds / compute;
      if (!(estimate <= roof.flops_per_second)) roof.flops_per_second = estimate;
    }
    if (dram >= kLeastUse && launch.dram_bytes > 0) bandwidths.push_back(launch.dram_bytes / seconds / dram);
  }
  roof.bytes_per_second = stats::median(std::move(bandwidths));
  return roof;
}

std::string_view roofline_side(double flops, double bytes, const Roofline& roof) {
  const double ridge = roof.ridge();
  if (std::isnan(flops) || std::isnan(bytes) || std::isnan(ridge) || bytes <= 0) return "";
  return flops / bytes >= ridge ? "compute" : "memory";
}

}  // namespace culprit::kernels
