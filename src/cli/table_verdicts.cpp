#include "cli/table_verdicts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "compare/compare_runs.h"
#include "compare/cycle_time.h"
#include "compare/series.h"
#include "diagnose/diagnose.h"
#include "profile/function_kind.h"

namespace culprit::cli {

namespace {

constexpr double kNsPerUs = 1e3;
constexpr double kPercent = 100;
constexpr std::string_view kFiles = "disk_read_and_write";  // of functions
constexpr std::string_view kHost = "Host";

struct Mean {
  double sum = 0;
  double weight = 0;
  void add(double value, double by) {
    sum += value * by;
    weight += by;
  }
  [[nodiscard]] double value() const { return sum / weight; }
};

/// Of one process.
struct Side {
  std::vector<double> cycles_ns;
  struct Function {
    double ns = 0;
    double calls = 0;
    std::map<std::uint32_t, double> by_cycle;  // ns
    std::map<std::uint32_t, double> calls_by_cycle;
    std::string kind;
    std::string short_name;
  };
  std::map<std::pair<std::string, std::string>, Function> functions;  // by name and device
  std::map<std::pair<std::string, std::string>, Mean> resources;      // by metric and device

  [[nodiscard]] double per_cycle(double sum) const {
    return cycles_ns.empty() ? 0 : sum / static_cast<double>(cycles_ns.size());
  }
};

Side side_of(const deepdive::Profile& profile, std::int64_t pid) {
  Side side;
  const auto& texts = profile.texts;
  std::set<std::uint32_t> seen;
  for (const deepdive::FunctionUse& use : profile.functions) {
    if (profile.processes[use.process].pid != pid) continue;
    const deepdive::ProfileCycle& cycle = profile.cycles[use.cycle];
    if (seen.insert(use.cycle).second && cycle.duration_us > 0) side.cycles_ns.push_back(cycle.duration_us * kNsPerUs);
    if (!(use.duration_us >= 0)) continue;
    Side::Function& function = side.functions[{std::string(texts[use.function]), std::string(texts[use.device])}];
    function.ns += use.duration_us * kNsPerUs;
    function.by_cycle[use.cycle] += use.duration_us * kNsPerUs;
    function.calls_by_cycle[use.cycle] += static_cast<double>(use.count);
    function.calls += static_cast<double>(use.count);
    function.kind = texts[use.kind];
    function.short_name = texts[use.short_name];
  }
  for (const deepdive::ResourceUse& resource : profile.resources) {
    const deepdive::FunctionUse& use = profile.functions[resource.use];
    if (resource.metric == 0 || profile.processes[use.process].pid != pid) continue;
    if (!std::isfinite(resource.mu_pct) || !(use.duration_us > 0)) continue;
    side.resources[{std::string(texts[resource.metric]), std::string(texts[use.device])}].add(resource.mu_pct,
                                                                                              use.duration_us);
  }
  return side;
}

/// The only device of each side is "its" device, whatever number that has on the machine.
void name_only_devices(std::array<Side, 2>& sides) {
  std::array<std::set<std::string>, 2> devices;
  for (std::size_t s = 0; s < 2; ++s)
    for (const auto& [key, function] : sides[s].functions)
      if (key.second != kHost) devices[s].insert(key.second);
  if (devices[0].size() != 1 || devices[1].size() != 1 || devices[0] == devices[1]) return;
  for (std::size_t s = 0; s < 2; ++s) {
    const auto rename = [&](auto& of) {
      std::remove_reference_t<decltype(of)> renamed;
      for (auto& [key, value] : of)
        renamed.emplace(std::pair(key.first, key.second == *devices[s].begin() ? "GPU" : key.second), std::move(value));
      of = std::move(renamed);
    };
    rename(sides[s].functions);
    rename(sides[s].resources);
  }
}

/// The mean of a metric of the host, as a fraction.
std::optional<double> host_share(const Side& side, const std::string& metric) {
  const auto found = side.resources.find({metric, "Host"});
  if (found == side.resources.end()) return std::nullopt;
  return found->second.value() / kPercent;
}

/// Of a function's time per cycle, absent cycles as 0.
compare::Series series_of(const Side& side, const Side::Function* function) {
  std::vector<compare::CycleValue> values;
  if (function != nullptr)
    for (const auto& [cycle, ns] : function->by_cycle) values.push_back({cycle, ns});
  return compare::summarise(values, side.cycles_ns.size());
}

/// Of a call of it in each cycle that has some.
compare::Series series_of_calls(const Side::Function& function) {
  std::vector<compare::CycleValue> values;
  for (const auto& [cycle, ns] : function.by_cycle)
    if (const double calls = function.calls_by_cycle.at(cycle); calls > 0) values.push_back({cycle, ns / calls});
  return compare::summarise(values, values.size());
}

/// Tables hold few cycles, of hundreds of functions each: only what lies far beyond chance is another time.
bool surely_differ(const compare::Series& a, const compare::Series& b) {
  constexpr double kFarBeyond = 2;  // of half of a 95 % interval
  if (a.effective < compare::kFewCycles || b.effective < compare::kFewCycles) return false;
  const compare::MeanDifference d = compare::difference_of(a, b, 0);
  return std::abs(d.difference) > kFarBeyond * d.half;
}

model::FunctionStatus status_of(const std::array<Side, 2>& sides, const std::array<const Side::Function*, 2>& both) {
  if (!surely_differ(series_of(sides[0], both[0]), series_of(sides[1], both[1]))) return model::FunctionStatus::unknown;
  if (both[0] == nullptr) return model::FunctionStatus::added;
  return both[1] == nullptr ? model::FunctionStatus::gone : model::FunctionStatus::changed;
}

void add_functions(const std::array<Side, 2>& sides, model::RunComparison& result) {
  std::set<std::pair<std::string, std::string>> keys;
  for (const Side& side : sides)
    for (const auto& [key, function] : side.functions) keys.insert(key);
  for (const auto& key : keys) {
    model::FunctionFinding finding;
    std::array<const Side::Function*, 2> both{};
    for (std::size_t s = 0; s < 2; ++s) {
      const auto found = sides[s].functions.find(key);
      if (found == sides[s].functions.end()) continue;
      both[s] = &found->second;
      finding.time_ns[s] = sides[s].per_cycle(found->second.ns);
      finding.calls[s] = sides[s].per_cycle(found->second.calls);
      if (found->second.calls > 0) finding.per_call_ns[s] = found->second.ns / found->second.calls;
    }
    const Side::Function& any = both[0] != nullptr ? *both[0] : *both[1];
    finding.function = result.texts.intern(key.first);
    finding.short_name = result.texts.intern(any.short_name);
    // The reference takes all but NCCL's for kernels that compute.
    const bool communicates = any.kind == to_string(FunctionKind::gpu_compute) &&
                              kind_of(SliceClass::kernel, key.first) == FunctionKind::gpu_comm;
    finding.kind = result.texts.intern(communicates ? to_string(FunctionKind::gpu_comm) : std::string_view(any.kind));
    finding.device = result.texts.intern(key.second);
    // On the host the tables know threads and calls, not functions of the program.
    if (key.second != kHost) {
      finding.status = status_of(sides, both);
      if (both[0] != nullptr && both[1] != nullptr)
        finding.q_of_calls = surely_differ(series_of_calls(*both[0]), series_of_calls(*both[1])) ? 0 : 1;
    }
    finding.impact_ns = finding.time_ns[1] - finding.time_ns[0];
    if (finding.per_call_ns[0] > 0 && finding.per_call_ns[1] > 0)
      finding.work_ratio = finding.per_call_ns[1] / finding.per_call_ns[0];
    if (any.kind == kFiles && both[0] != nullptr && both[1] != nullptr) {
      const std::string name = key.first + "()";
      result.host->states.push_back(
          {"blocked in " + key.first, "ns per step", {finding.time_ns[0], finding.time_ns[1]}});
      result.disks.push_back({name, {}, {}, finding.per_call_ns, {}});
    }
    result.functions.push_back(finding);
  }
}

void add_resources(const std::array<Side, 2>& sides, model::RunComparison& result) {
  for (const auto& [key, mean] : sides[0].resources) {
    const auto other = sides[1].resources.find(key);
    if (other == sides[1].resources.end() || key.second == kHost) continue;
    result.resources.push_back({key.first, key.second, -1, model::Unit::plain, {mean.value(), other->second.value()}});
  }
}

/// Threads on CPUs and in run queues, and the CPUs that others took.
void add_host(const std::array<Side, 2>& sides, model::RunComparison& result) {
  model::HostChanges& host = *result.host;
  for (const auto& [name, what] : {std::pair("oncpu", "on CPU"), std::pair("runq", "runnable, in the run queue")}) {
    model::HostChange change{what, "ns per step", {}};
    for (std::size_t s = 0; s < 2; ++s) {
      const auto found = sides[s].functions.find({name, "Host"});
      change.value[s] = found == sides[s].functions.end() ? 0 : sides[s].per_cycle(found->second.ns);
    }
    if (*change.value[0] > 0 && *change.value[1] > 0) host.step.push_back(std::move(change));
  }
  model::HostChange others{"other processes", "fraction", {}};
  for (std::size_t s = 0; s < 2; ++s) {
    const auto all = host_share(sides[s], "host_cpu_usage");
    const auto own = host_share(sides[s], "process_cpu_usage");
    if (all && own) others.value[s] = std::max(0.0, *all - *own);
    if (const auto clock = sides[s].resources.find({"cpu_frequency", "Host"}); clock != sides[s].resources.end()) {
      if (host.counters.empty()) host.counters.push_back({"host.cpu.frequency", "", {}});
      host.counters.front().value[s] = clock->second.value();
    }
  }
  if (others.value[0] && others.value[1]) host.beside.push_back(std::move(others));
}

}  // namespace

model::RunComparison comparison_of_tables(const deepdive::Profile& base, const deepdive::Profile& candidate,
                                          const deepdive::ProcessPair& processes, bool anchors_differ) {
  std::array sides = {side_of(base, processes.base_pid), side_of(candidate, processes.candidate_pid)};
  name_only_devices(sides);
  model::RunComparison result;
  if (!anchors_differ) {
    compare::CycleTimeOptions options;
    const bool on_gpu = std::ranges::any_of(sides[0].functions, [](const auto& f) { return f.first.second != kHost; });
    if (!on_gpu) options.between = compare::CompareOptions().between_on_host;
    model::CycleTimeOutcome outcome = compare::judge_cycle_time(sides[0].cycles_ns, sides[1].cycles_ns, options);
    result.outcome = outcome.outcome;
    model::HostChange period{"period", "ns per step", {outcome.time_ns[0], outcome.time_ns[1]}};
    result.host.emplace();
    result.host->states.push_back(std::move(period));
    result.cycle_times.push_back(std::move(outcome));
  }
  if (!result.host) result.host.emplace();
  add_functions(sides, result);
  add_resources(sides, result);
  // Where a cycle is another thing on each side, what threads did in one says nothing; devices do.
  if (!anchors_differ) add_host(sides, result);
  result.verdicts = diagnose::diagnose(result);
  return result;
}

}  // namespace culprit::cli
