#include "deepdive/reference_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "deepdive/measure.h"
#include "deepdive/reference_types.h"

namespace culprit::deepdive {

namespace {

using model::Phase;

/// A counter of one host that belongs to one instance (device or process, -1: none).
struct SeriesKey {
  std::string_view base;
  StringId host = 0;
  std::int64_t instance = -1;
  auto operator<=>(const SeriesKey&) const = default;
};
using SeriesMap = std::map<SeriesKey, std::vector<CounterSample>>;

/// "hostA(100)" and "hostA" are both on hostA; files of profilers name their host once.
StringId host_of(const Trace& trace, ProcessId row) {
  const Process& process = trace.processes[row];
  if (process.host != 0) return process.host;
  if (process.text != 0) return process.text;
  if (process.rank >= trace.ranks.size() || trace.ranks[process.rank].host.empty()) return 0;
  return trace.strings.find(trace.ranks[process.rank].host, 0);
}

/// All series of known counters; those of one key are put together in time order.
SeriesMap collect_series(const Trace& trace) {
  SeriesMap map;
  for (const CounterSeries& series : trace.counters) {
    const std::string_view name = trace.strings[series.name];
    const std::string_view base = base_counter(name);
    if (base.empty()) continue;
    const std::string_view track =
        series.track == kNone ? std::string_view{} : trace.strings[trace.tracks[series.track].name];
    auto& samples = map[{base, host_of(trace, series.process), counter_instance(name, track)}];
    samples.insert(samples.end(), series.samples.begin(), series.samples.end());
  }
  for (auto& [key, samples] : map) std::ranges::stable_sort(samples, {}, &CounterSample::at);
  return map;
}

/// A function of a process on a device.
struct UseKey {
  StringId name = 0;
  ProcessId process = 0;
  std::int64_t device = -1;
  auto operator<=>(const UseKey&) const = default;
};

struct Use {
  ReferenceType type = ReferenceType::unknown;
  std::vector<Execution> executions;
};

using Sample = std::tuple<std::string_view, Ns, double, std::string_view>;  // counter, time, value, host

class Profiler {
 public:
  Profiler(const Trace& trace, const ReferenceCycles& cycles, const Hardware& hardware, std::int64_t cores)
      : trace_(trace), cycles_(cycles), hardware_(hardware), cores_(cores), series_(collect_series(trace)) {
    for (const auto& [key, samples] : series_) hosts_.insert(key.host);
    for (std::size_t p = 0; p < trace.processes.size(); ++p)
      if (const StringId host = host_of(trace, static_cast<ProcessId>(p)); host != 0) hosts_.insert(host);
  }

  ReferenceTable table(std::string suffix, const std::set<Phase>& phases) {
    ReferenceTable table;
    table.suffix = std::move(suffix);
    std::vector<Sample> samples;
    for (const ReferenceCycle& cycle : cycles_.cycles) {
      if (!phases.contains(cycle.phase)) continue;
      add_cycle(cycle, table.profile);
      add_samples(cycle, samples);
    }
    write_samples(std::move(samples), table.counters);
    return table;
  }

 private:
  [[nodiscard]] ReferenceType type_of(const Slice& slice) const {
    return reference_type(trace_.slice_class(slice), trace_.categories[slice.category].name, trace_.name(slice),
                          trace_.strings[trace_.tracks[slice.track].name]);
  }

  std::map<UseKey, Use> uses_of(const ReferenceCycle& cycle, StringId oncpu_name) {
    std::map<UseKey, Use> uses;
    for (const ReferenceMember& member : cycle.members) {
      const Slice& slice = trace_.slices[member.slice];
      const ReferenceType type = type_of(slice);
      if (type == ReferenceType::unknown) continue;
      UseKey key{slice.name, trace_.tracks[slice.track].process, -1};
      if (type == ReferenceType::oncpu) key.name = oncpu_name;
      if (slice.gpu != kNone) {
        key.device = trace_.gpu[slice.gpu].device;
        if (const SliceIndex launcher = cycles_.launcher[slice.gpu]; launcher != kNone)
          key.process = trace_.tracks[trace_.slices[launcher].track].process;
      }
      Use& use = uses[key];
      use.type = type;
      use.executions.push_back({member.begin, member.begin + member.duration, member.duration, 1});
    }
    for (auto& [key, use] : uses) {
      if (use.type == ReferenceType::oncpu)
        use.executions = merge_overlapping(std::move(use.executions));
      else
        std::ranges::stable_sort(use.executions, {}, &Execution::begin);
    }
    return uses;
  }

  std::int64_t cores_of(const ReferenceCycle& cycle) const {
    if (cores_ > 0) return cores_;
    for (const StringId host : hosts_)
      if (const auto it = hardware_.hosts.find(trace_.strings[host]);
          it != hardware_.hosts.end() && it->second.cores > 0)
        return it->second.cores;
    std::vector<double> highest;
    for (const auto& [key, samples] : series_) {
      if (key.base != "process_cpu_usage") continue;
      const auto inside = samples_within(samples, cycle.full_begin, cycle.full_end);
      if (!inside.empty()) highest.push_back(std::ranges::max(inside, {}, &CounterSample::value).value);
    }
    return estimate_cores(highest);
  }

  /// Number of the device on its host.
  std::optional<std::int64_t> physical_device(const UseKey& key) const {
    if (key.device < 0) return std::nullopt;
    const std::int64_t pid = trace_.processes[key.process].pid;
    const std::string host(trace_.strings[host_of(trace_, key.process)]);
    if (const auto it = hardware_.device_of_process.find({host, pid}); it != hardware_.device_of_process.end())
      return it->second;
    if (hosts_.size() > 1) return std::nullopt;
    for (const auto& [place, device] : hardware_.device_of_process)
      if (place.second == pid) return device;
    return std::nullopt;
  }

  std::span<const CounterSample> series_for(std::string_view base, const UseKey& key, ReferenceType type,
                                            const ReferenceCycle& cycle) const {
    std::int64_t instance = -1;
    if (base.starts_with("process_"))
      instance = trace_.processes[key.process].pid;
    else if (to_string(type).starts_with("gpu_"))
      instance = physical_device(key).value_or(key.device);
    const StringId host = hosts_.size() > 1 ? host_of(trace_, key.process) : hosts_.empty() ? 0 : *hosts_.begin();
    for (const std::int64_t wanted : {instance, std::int64_t{-1}})
      if (const auto it = series_.find({base, host, wanted}); it != series_.end())
        if (const auto inside = samples_within(it->second, cycle.full_begin, cycle.full_end); !inside.empty())
          return inside;
    return {};
  }

  /// What mu and sigma are divided by besides the normaliser, where a maximum is known.
  double capacity(std::string_view base, const UseKey& key) const {
    const std::string host(trace_.strings[host_of(trace_, key.process)]);
    if (base == "gpu_mem_used") {
      const auto device = physical_device(key);
      if (!device) return 1;
      const auto it = hardware_.device_memory_bytes.find({host, *device});
      return it == hardware_.device_memory_bytes.end() ? 1 : it->second;
    }
    const auto it = hardware_.hosts.find(host);
    if (it == hardware_.hosts.end()) return 1;
    if (base == "cpu_frequency" && it->second.max_cpu_hertz > 0) return it->second.max_cpu_hertz / 1e6;
    if (base == "process_mem_usage" && it->second.memory_bytes > 0) return it->second.memory_bytes;
    return 1;
  }

  void add_cycle(const ReferenceCycle& cycle, Profile& profile) {
    StringTable& texts = profile.texts;
    const auto cycle_row = static_cast<std::uint32_t>(profile.cycles.size());
    ProfileCycle out;
    out.number = cycle.number;
    out.anchor = texts.intern(trace_.name(trace_.slices[cycle.anchor]));
    out.begin_us = static_cast<double>(trace_.base_ns + cycle.begin) / 1e3;
    out.duration_us = static_cast<double>(cycle.end - cycle.begin) / 1e3;
    profile.cycles.push_back(out);

    const StringId oncpu = trace_.strings.find("oncpu", kNone);
    const std::int64_t cores = cores_of(cycle);
    struct Row {
      UseKey key;
      const Use* use;
      std::int64_t pid;
      Ns duration;
      std::string_view name;
    };
    std::vector<Row> rows;
    const std::map<UseKey, Use> uses = uses_of(cycle, oncpu);
    for (const auto& [key, use] : uses) {
      Ns duration = 0;
      for (const Execution& execution : use.executions) duration += execution.duration;
      const std::string_view name = key.name == kNone ? std::string_view("oncpu") : trace_.strings[key.name];
      if (duration > 0) rows.push_back({key, &use, trace_.processes[key.process].pid, duration, name});
    }
    std::ranges::sort(rows, [](const Row& a, const Row& b) {
      return std::tuple(a.pid, -a.duration, a.name, a.key) < std::tuple(b.pid, -b.duration, b.name, b.key);
    });
    for (const Row& row : rows) add_use(cycle, cycle_row, row.key, *row.use, row.name, row.duration, cores, profile);
  }

  void add_use(const ReferenceCycle& cycle, std::uint32_t cycle_row, const UseKey& key, const Use& in,
               std::string_view name, Ns duration, std::int64_t cores, Profile& profile) {
    StringTable& texts = profile.texts;
    FunctionUse use;
    use.cycle = cycle_row;
    use.process = process_row(key.process, profile);
    use.function = texts.intern(name);
    const auto physical = physical_device(key);
    use.device = texts.intern(key.device < 0 ? "Host"
                              : physical     ? fmt::format("GPU {}", *physical)
                                             : fmt::format("GPU {} (virtual)", key.device));
    use.kind = texts.intern(to_string(in.type));
    use.short_name = texts.intern(reference_short_name(name));
    for (const Execution& execution : in.executions) use.count += static_cast<std::int64_t>(execution.count);
    use.duration_us = static_cast<double>(duration) / 1e3;
    if (const Ns whole = cycle.end - cycle.begin; whole > 0)
      use.beta_pct = static_cast<double>(duration) / static_cast<double>(whole) * 100;
    const auto use_row = static_cast<std::uint32_t>(profile.functions.size());
    profile.functions.push_back(use);

    std::uint64_t measured = 0;
    std::uint64_t interpolated = 0;
    const std::size_t first = profile.resources.size();
    for (const std::string_view base : counters_of(in.type)) {
      const auto samples = series_for(base, key, in.type, cycle);
      if (samples.empty()) continue;
      Pool pool;
      for (const Execution& execution : in.executions)
        if (const auto m = measure(samples, execution.begin, execution.end))
          // The weight is the block's length, which a sum over parallel CPUs exceeds.
          pool.add(*m, static_cast<double>(execution.end - execution.begin));
      if (pool.empty()) continue;
      measured += pool.measured();
      interpolated += pool.interpolated();
      const double over = normaliser(base, cores) * capacity(base, key);
      ResourceUse resource;
      resource.use = use_row;
      resource.metric = texts.intern(base);
      resource.mu_pct = 100 * (pool.mu() / over);
      resource.sigma_pct = 100 * (pool.sigma() / over);
      profile.resources.push_back(resource);
    }
    if (profile.resources.size() == first) {
      ResourceUse nothing;
      nothing.use = use_row;
      profile.resources.push_back(nothing);
      return;
    }
    for (std::size_t r = first; r < profile.resources.size(); ++r)
      profile.resources[r].provenance = provenance_of(measured, interpolated);
    std::ranges::sort(profile.resources.begin() + static_cast<std::ptrdiff_t>(first), profile.resources.end(), {},
                      [&](const ResourceUse& r) { return texts[r.metric]; });
  }

  std::uint32_t process_row(ProcessId process, Profile& profile) {
    const std::int64_t pid = trace_.processes[process].pid;
    const StringId id = host_of(trace_, process);
    const StringId host =
        profile.texts.intern(id == 0 ? fmt::format("pid_{}_host", pid) : std::string(trace_.strings[id]));
    for (std::size_t p = 0; p < profile.processes.size(); ++p)
      if (profile.processes[p].pid == pid && profile.processes[p].host == host) return static_cast<std::uint32_t>(p);
    profile.processes.push_back({pid, host});
    return static_cast<std::uint32_t>(profile.processes.size() - 1);
  }

  void add_samples(const ReferenceCycle& cycle, std::vector<Sample>& all) const {
    for (const CounterSeries& series : trace_.counters) {
      const std::string_view host = trace_.strings[host_of(trace_, series.process)];
      for (const CounterSample& sample : samples_within(series.samples, cycle.full_begin, cycle.full_end))
        all.push_back({trace_.strings[series.name], trace_.base_ns + sample.at, sample.value, host});
    }
  }

  /// By counter and time, equal ones once.
  static void write_samples(std::vector<Sample> samples, CounterLog& log) {
    std::ranges::sort(samples);
    samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
    for (const auto& [counter, time, value, host] : samples)
      log.samples.push_back(
          {log.texts.intern(counter), log.texts.intern(host), static_cast<double>(time) / 1e3, value});
  }

  const Trace& trace_;
  const ReferenceCycles& cycles_;
  const Hardware& hardware_;
  std::int64_t cores_;
  SeriesMap series_;
  std::set<StringId> hosts_;
};

}  // namespace

std::vector<ReferenceTable> reference_profile(const Trace& trace, const ReferenceCycles& cycles,
                                              const Hardware& hardware, std::int64_t cores) {
  Profiler profiler(trace, cycles, hardware, cores);
  const auto has = [&](Phase phase) {
    return std::ranges::any_of(cycles.cycles, [&](const ReferenceCycle& c) { return c.phase == phase; });
  };
  std::vector<ReferenceTable> tables;
  if (has(Phase::prefill)) {
    tables.push_back(profiler.table("_prefill", {Phase::prefill}));
    if (has(Phase::decode)) tables.push_back(profiler.table("_decode", {Phase::decode}));
  } else {
    tables.push_back(profiler.table("", has(Phase::decode) ? std::set{Phase::decode} : std::set{Phase::other}));
  }
  return tables;
}

}  // namespace culprit::deepdive
