#include "kernels/trace_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model/launch_metrics.h"

namespace culprit::kernels {

namespace {

using namespace model;

constexpr std::string_view kMissingRange = "__missing__";

/// The kernels of a trace by begin, then rank, device, stream, duration, name, row.
std::vector<GpuIndex> kernels_in_order(const Trace& trace) {
  std::vector<GpuIndex> order;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g)
    if (trace.slice_class(trace.slices[trace.gpu[g].slice]) == SliceClass::kernel)
      order.push_back(static_cast<GpuIndex>(g));
  std::ranges::stable_sort(order, [&](GpuIndex a, GpuIndex b) {
    const GpuSlice& x = trace.gpu[a];
    const GpuSlice& y = trace.gpu[b];
    const Slice& s = trace.slices[x.slice];
    const Slice& t = trace.slices[y.slice];
    if (s.begin != t.begin) return s.begin < t.begin;
    if (s.rank != t.rank) return s.rank < t.rank;
    if (x.device != y.device) return x.device < y.device;
    if (x.stream != y.stream) return x.stream < y.stream;
    if (s.duration != t.duration) return s.duration < t.duration;
    return s.name != t.name && trace.name(s) < trace.name(t);
  });
  return order;
}

/// Profiler ranges by begin: the profiler writes one per kernel, in order, with times of its own making.
std::vector<SliceIndex> ranges_in_order(const Trace& trace) {
  std::vector<SliceIndex> order;
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    if (trace.slice_class(trace.slices[i]) == SliceClass::counter_range) order.push_back(static_cast<SliceIndex>(i));
  std::ranges::stable_sort(order, {}, [&](SliceIndex i) { return trace.slices[i].begin; });
  return order;
}

/// Metrics [first, second) of a slice; they are sorted by slice.
std::pair<std::size_t, std::size_t> metrics_of(const Trace& trace, SliceIndex slice) {
  const auto bound = [&](std::uint64_t wanted) {
    std::size_t low = 0;
    std::size_t high = trace.metrics.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (trace.metrics[middle].slice < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  return {bound(slice), bound(std::uint64_t{slice} + 1)};
}

bool is_percent(std::string_view name) {
  return name.find("pct_of_peak") != std::string_view::npos || name.ends_with('%');
}

}  // namespace

KernelLog kernel_log_of(const Trace& trace) {
  KernelLog log;
  log.source = KernelSource::trace;
  const std::vector<GpuIndex> order = kernels_in_order(trace);
  const std::vector<SliceIndex> ranges = ranges_in_order(trace);
  const auto kernel_slice = [&](std::size_t i) -> const Slice& { return trace.slices[trace.gpu[order[i]].slice]; };
  bool paired = ranges.size() == order.size() && !order.empty();
  for (std::size_t i = 0; i < ranges.size() && paired; ++i) {
    const std::string_view name = trace.name(trace.slices[ranges[i]]);
    paired = name == kMissingRange || name == trace.name(kernel_slice(i));
  }
  if (!ranges.empty() && !paired)
    log.notes.push_back(
        fmt::format("{} profiler ranges with counters do not match the {} kernels one by one: their counters are not "
                    "used",
                    ranges.size(), order.size()));
  std::vector<StringId> names(trace.strings.size(), 0);
  const auto name_of = [&](StringId id) {
    if (names[id] == 0) names[id] = log.names.intern(trace.strings[id]);
    return names[id];
  };
  for (const Process& process : trace.processes)
    log.processes.push_back({process.pid, std::string(trace.strings[process.name])});
  const Ns first = order.empty() ? 0 : kernel_slice(0).begin;
  LaunchFiller filler;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const GpuSlice& gpu = trace.gpu[order[i]];
    const Slice& slice = trace.slices[gpu.slice];
    KernelLaunch launch;
    const auto take = [&](SliceIndex source) {
      const auto [begin, end] = metrics_of(trace, source);
      for (std::size_t m = begin; m < end; ++m) {
        const SliceMetric& metric = trace.metrics[m];
        const std::string_view name = trace.strings[metric.name];
        const bool percent = is_percent(name);
        const double value = percent ? metric.value / 100 : metric.value;
        const MetricRole role = metric_role(name);
        if (role.role != LaunchField::duration) filler.add(role, value);
        log.metrics.push_back({static_cast<std::uint32_t>(i), name_of(metric.name),
                               percent ? log.names.intern("fraction") : StringId{0}, value});
      }
    };
    take(gpu.slice);
    if (paired) take(ranges[i]);
    filler.finish(launch);
    launch.name = name_of(slice.name);
    launch.latency = slice.duration;
    launch.begin = slice.begin - first;
    for (std::size_t d = 0; d < 3; ++d) {
      launch.grid[d] = gpu.grid[d];
      launch.block[d] = gpu.block[d];
    }
    launch.device = gpu.device;
    launch.stream = gpu.stream;
    launch.process = static_cast<std::int32_t>(trace.tracks[slice.track].process);
    log.launches.push_back(launch);
  }
  for (const Rank& rank : trace.ranks) {
    InputReport report;
    report.file = rank.path;
    report.rows = rank.events;
    log.inputs.push_back(std::move(report));
  }
  // Losses are counted for the whole trace; they stand with its first file.
  for (std::size_t r = 0; r < Losses::kReasons && !log.inputs.empty(); ++r) {
    const auto reason = static_cast<LossReason>(r);
    const std::uint64_t count = trace.losses[reason];
    if (count == 0 || info(reason).severity != Severity::data_loss) continue;
    log.inputs.front().bad_rows += count;
    log.inputs.front().first.push_back(
        {0, fmt::format("{} ({} times)", info(reason).meaning, count), std::string(info(reason).remedy)});
  }
  return log;
}

}  // namespace culprit::kernels
