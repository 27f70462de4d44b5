#include "kernels/launch_gaps.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "core/saturating.h"

namespace culprit::kernels {

namespace {

constexpr std::array<Ns, 10> kGapEdges = {1,      2'000,   5'000,     10'000,     20'000,
                                          50'000, 100'000, 1'000'000, 10'000'000, std::numeric_limits<Ns>::max()};
/// Launches that a stretch has at least.
constexpr std::uint32_t kStretchLaunches = 8;
constexpr std::size_t kStretchesKept = 20;

void add_gap(std::vector<model::GapBin>& bins, Ns gap) {
  for (model::GapBin& bin : bins)
    if (gap >= bin.from && gap < bin.to) {
      ++bin.count;
      bin.time = add_saturating(bin.time, gap);
      return;
    }
}

/// One device: its launches by begin.
void device_gaps(const model::KernelLog& log, const std::vector<std::uint32_t>& rows, model::LaunchReport& report) {
  model::LaunchBoundStretch stretch;
  const auto keep = [&] {
    if (stretch.launches >= kStretchLaunches) report.stretches.push_back(stretch);
    stretch = {};
  };
  Ns end = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const model::KernelLaunch& launch = log.launches[rows[i]];
    const Ns launch_end = add_saturating(launch.begin, launch.latency);
    if (i == 0) {
      end = launch_end;
      report.busy = add_saturating(report.busy, launch.latency);
      continue;
    }
    const Ns gap = launch.begin - end;
    if (gap > 0) add_gap(report.gaps, gap);
    if (launch_end > end) report.busy = add_saturating(report.busy, launch_end - std::max(end, launch.begin));
    // A kernel behind a gap longer than itself: the device was waiting to be told what to do.
    if (gap > launch.latency) {
      if (stretch.launches == 0) {
        stretch.process = launch.process;
        stretch.device = launch.device;
        stretch.first = rows[i];
        stretch.begin = end;
      }
      ++stretch.launches;
      stretch.busy = add_saturating(stretch.busy, launch.latency);
      stretch.duration = launch_end - stretch.begin;
    } else {
      keep();
    }
    end = std::max(end, launch_end);
  }
  keep();
  if (!rows.empty()) report.window = add_saturating(report.window, end - log.launches[rows.front()].begin);
}

}  // namespace

model::LaunchReport launch_report(const model::KernelLog& log, const LaunchOptions& options) {
  model::LaunchReport report;
  report.launch_cost = options.launch_cost;
  report.begins_known = !log.launches.empty();
  std::map<std::pair<std::int32_t, std::int16_t>, std::vector<std::uint32_t>> devices;
  for (std::size_t i = 0; i < log.launches.size(); ++i) {
    const model::KernelLaunch& launch = log.launches[i];
    report.begins_known = report.begins_known && launch.begin >= 0;
    devices[{launch.process, launch.device}].push_back(static_cast<std::uint32_t>(i));
    if (launch.latency >= options.launch_cost) continue;
    ++report.short_kernels.launches;
    report.short_kernels.time = add_saturating(report.short_kernels.time, launch.latency);
  }
  if (!report.begins_known) return report;
  for (std::size_t i = 0; i + 1 < kGapEdges.size(); ++i) report.gaps.push_back({kGapEdges[i], kGapEdges[i + 1], 0, 0});
  for (auto& [key, rows] : devices) {
    std::ranges::stable_sort(rows, {}, [&](std::uint32_t row) { return log.launches[row].begin; });
    device_gaps(log, rows, report);
  }
  std::ranges::stable_sort(report.stretches,
                           [](const auto& a, const auto& b) { return a.duration - a.busy > b.duration - b.busy; });
  if (report.stretches.size() > kStretchesKept) report.stretches.resize(kStretchesKept);
  return report;
}

}  // namespace culprit::kernels
