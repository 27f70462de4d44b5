#include "formats/load_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "formats/convert_report.h"
#include "formats/io/input.h"
#include "formats/kernel_text/launch_log.h"
#include "formats/kernel_text/summary_table.h"
#include "formats/ncu_csv/metrics.h"
#include "formats/ncu_csv/ncu_csv.h"
#include "formats/registry.h"

namespace culprit::formats {

namespace {

using namespace model;

constexpr std::string_view kMissingRange = "__missing__";

/// The kernels of a trace by begin, then device, stream, row.
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
    return x.stream < y.stream;
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

double as_fraction(std::string_view name, double value) {
  const bool percent = name.find("pct_of_peak") != std::string_view::npos || name.ends_with('%');
  return percent ? value / 100 : value;
}

void append(KernelLog& log, KernelLog&& part) {
  std::vector<StringId> names(part.names.size());
  for (StringId i = 0; i < names.size(); ++i) names[i] = log.names.intern(part.names[i]);
  const auto process_base = static_cast<std::int32_t>(log.processes.size());
  const auto launch_base = static_cast<std::uint32_t>(log.launches.size());
  for (KernelLaunch launch : part.launches) {
    launch.name = names[launch.name];
    launch.short_name = names[launch.short_name];
    if (launch.process >= 0) launch.process += process_base;
    log.launches.push_back(launch);
  }
  for (KernelMetric metric : part.metrics)
    log.metrics.push_back({metric.launch + launch_base, names[metric.name], names[metric.unit], metric.value});
  std::ranges::move(part.processes, std::back_inserter(log.processes));
  std::ranges::move(part.notes, std::back_inserter(log.notes));
  std::ranges::move(part.inputs, std::back_inserter(log.inputs));
  log.names_cut = log.names_cut || part.names_cut;
  if (log.source == KernelSource::unknown) log.source = part.source;
}

Result<Format> format_of(const std::string& path) {
  auto input = Input::open(path);
  if (!input) return input.error();
  return detect(input->peek(kDetectBytes), path);
}

Result<std::string> text_of(const std::string& path, InputReport& report) {
  auto input = Input::open(path);
  if (!input) return input.error();
  auto text = read_all(*input);
  if (text && !input->damage().empty()) {
    ++report.bad_rows;
    report.first.push_back({0, std::string(input->damage()), "copy the file again"});
  }
  return text;
}

void add_damage(InputReport& report, const InputReport& damage) {
  report.bad_rows += damage.bad_rows;
  report.first.insert(report.first.begin(), damage.first.begin(), damage.first.end());
}

Result<KernelData> load_text(const std::string& path, const std::string& shown, Format format) {
  InputReport damage;
  const auto text = text_of(path, damage);
  if (!text) return text.error();
  if (format == Format::summary_table) {
    auto summaries = kernel_text::parse_summary_tables(*text, shown);
    if (!summaries) return summaries.error();
    add_damage(summaries->input, damage);
    return KernelData(std::move(*summaries));
  }
  if (format == Format::launch_log) {
    auto log = kernel_text::parse_launch_log(*text, shown);
    if (!log) return log.error();
    add_damage(log->inputs.front(), damage);
    return KernelData(std::move(*log));
  }
  auto data = ncu_csv::parse(*text, shown);
  if (!data) return data.error();
  if (data->is_summary) {
    add_damage(data->summaries.input, damage);
    return KernelData(std::move(data->summaries));
  }
  add_damage(data->log.inputs.front(), damage);
  return KernelData(std::move(data->log));
}

/// nullopt when the file is a trace.
Result<std::optional<KernelData>> load_tables(const std::string& path) {
  if (path == "-") return input_error("standard input can only be read as a trace", path, "name a file");
  const auto format = format_of(path);
  if (!format) return format.error();
  switch (*format) {
    case Format::ncu_csv:
    case Format::launch_log:
    case Format::summary_table: {
      auto data = load_text(path, path, *format);
      if (!data) return data.error();
      return std::optional(std::move(*data));
    }
    case Format::ncu_report: {
      const auto report = convert_report(path, *format);
      if (!report) return report.error();
      auto data = load_text(report->file(), path, Format::ncu_csv);
      if (!data) return data.error();
      return std::optional(std::move(*data));
    }
    case Format::kineto:
    case Format::nsys_sqlite:
    case Format::perfetto:
    case Format::nsys_report:
    case Format::unknown:
      break;
  }
  return std::optional<KernelData>();
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
  ncu_csv::LaunchFiller filler;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const GpuSlice& gpu = trace.gpu[order[i]];
    const Slice& slice = trace.slices[gpu.slice];
    KernelLaunch launch;
    const auto take = [&](SliceIndex source) {
      const auto [begin, end] = metrics_of(trace, source);
      for (std::size_t m = begin; m < end; ++m) {
        const SliceMetric& metric = trace.metrics[m];
        const std::string_view name = trace.strings[metric.name];
        const double value = as_fraction(name, metric.value);
        auto role = ncu_csv::metric_role(name);
        if (role.role != ncu_csv::Role::duration) filler.add(role, value);
        log.metrics.push_back({static_cast<std::uint32_t>(i), name_of(metric.name),
                               value != metric.value ? log.names.intern("fraction") : StringId{0}, value});
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

Result<KernelLog> load_kernel_log(const std::vector<std::string>& paths, const LoadOptions& options) {
  auto data = load_kernel_data(paths, options);
  if (!data) return data.error();
  if (auto* log = std::get_if<KernelLog>(&*data)) return std::move(*log);
  return input_error("is a table with one row per name: it has no single launches", paths.front(),
                     "give a launch log, Nsight Compute CSV without summary, or a trace");
}

Result<KernelSummaries> load_kernel_summaries(const std::string& path) {
  auto data = load_tables(path);
  if (!data) return data.error();
  if (*data)
    if (auto* summaries = std::get_if<KernelSummaries>(&**data)) return std::move(*summaries);
  return input_error("is no table with one row per name", path, "give the text of key_averages().table()");
}

Result<KernelData> load_kernel_data(const std::vector<std::string>& paths, const LoadOptions& options) {
  if (paths.empty()) return usage_error("no file given", "name one or more files");
  KernelLog all;
  KernelSummaries summaries;
  std::vector<std::string> traces;
  for (const std::string& path : paths) {
    if (path == "-") {
      traces.push_back(path);
      continue;
    }
    auto data = load_tables(path);
    if (!data) return data.error();
    if (!*data) {
      traces.push_back(path);
    } else if (auto* log = std::get_if<KernelLog>(&**data)) {
      append(all, std::move(*log));
    } else {
      auto& part = std::get<KernelSummaries>(**data);
      std::ranges::move(part.tables, std::back_inserter(summaries.tables));
      if (summaries.input.file.empty()) {
        summaries.input = std::move(part.input);
      } else {
        summaries.input.file += ", " + part.input.file;
        summaries.input.rows += part.input.rows;
        summaries.input.bad_rows += part.input.bad_rows;
        summaries.input.bad_cells += part.input.bad_cells;
        std::ranges::move(part.input.first, std::back_inserter(summaries.input.first));
      }
    }
  }
  const int kinds = (traces.empty() ? 0 : 1) + (all.launches.empty() ? 0 : 1) + (summaries.tables.empty() ? 0 : 1);
  if (kinds > 1)
    return input_error("files of different kinds cannot be one capture", paths.front(),
                       "give traces, launch logs or summary tables, not a mixture");
  if (!summaries.tables.empty()) return KernelData(std::move(summaries));
  if (traces.empty()) return KernelData(std::move(all));
  const auto trace = load_run(traces, options);
  if (!trace) return trace.error();
  KernelLog log = kernel_log_of(*trace);
  if (log.launches.empty()) return input_error("holds no kernel", paths.front(), "record GPU activities (kernels) too");
  return KernelData(std::move(log));
}

}  // namespace culprit::formats
