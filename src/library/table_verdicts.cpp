#include "library/table_verdicts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
#include <vector>

#include "compare/compare_runs.h"
#include "compare/cycle_time.h"
#include "compare/functions.h"
#include "compare/host_changes.h"
#include "compare/series.h"
#include "core/units.h"
#include "diagnose/diagnose.h"
#include "profile/function_kind.h"
#include "stats/quantile.h"

namespace culprit::library {

namespace {

constexpr double kNsPerUs = 1e3;
constexpr double kHertzPerMHz = 1e6;
constexpr double kAlike = 0.02;                             // means of a resource
constexpr double kLeastMove = 0.25;                         // of a counter of the host, as of recordings
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
  std::map<std::string, std::set<std::uint32_t>> seen_in;             // cycles with a row of the device
  std::set<std::uint32_t> timed_cycles;                               // with a duration

  /// A recorder that sees a device late, or loses it, tells nothing of it in the other cycles.
  [[nodiscard]] std::size_t cycles_of(const std::string& device) const {
    const auto found = seen_in.find(device);
    return device == kHost || found == seen_in.end() ? cycles_ns.size() : found->second.size();
  }
  /// Those of cycles_of(), ascending.
  [[nodiscard]] std::vector<std::uint32_t> places_of(const std::string& device) const {
    const auto found = seen_in.find(device);
    const std::set<std::uint32_t>& of = device == kHost || found == seen_in.end() ? timed_cycles : found->second;
    return {of.begin(), of.end()};
  }
  [[nodiscard]] double per_cycle(double sum, const std::string& device) const {
    const std::size_t cycles = cycles_of(device);
    return cycles == 0 ? 0 : sum / static_cast<double>(cycles);
  }
};

Side side_of(const deepdive::Profile& profile, std::int64_t pid) {
  Side side;
  const auto& texts = profile.texts;
  std::set<std::uint32_t> seen;
  for (const deepdive::FunctionUse& use : profile.functions) {
    if (profile.processes[use.process].pid != pid) continue;
    const deepdive::ProfileCycle& cycle = profile.cycles[use.cycle];
    if (seen.insert(use.cycle).second && cycle.duration_us > 0) {
      side.cycles_ns.push_back(cycle.duration_us * kNsPerUs);
      side.timed_cycles.insert(use.cycle);
    }
    if (!(use.duration_us >= 0)) continue;
    const std::string device(texts[use.device]);
    side.seen_in[device].insert(use.cycle);
    Side::Function& function = side.functions[{std::string(texts[use.function]), device}];
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

model::ComparedSide compared_side(const deepdive::Profile& profile, std::int64_t pid, std::vector<double> cycles_ns) {
  model::ComparedSide side;
  side.files = {profile.input.file};
  side.recordings = 1;
  side.method = model::CycleMethod::host_function;
  std::set<std::string_view> anchors;
  for (const deepdive::FunctionUse& use : profile.functions) {
    if (profile.processes[use.process].pid != pid) continue;
    anchors.insert(profile.texts[profile.cycles[use.cycle].anchor]);
    ++side.events;
  }
  side.anchor = fmt::format("{}", fmt::join(anchors, ", "));
  side.reason = "the table gives its cycles";
  side.period_confidence = 1;
  side.cycles = cycles_ns.size();
  if (!cycles_ns.empty()) side.median_period = static_cast<Ns>(std::llround(stats::median(std::move(cycles_ns))));
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
    auto seen = sides[s].seen_in.extract(*devices[s].begin());
    seen.key() = "GPU";
    sides[s].seen_in.insert(std::move(seen));
  }
}

/// The mean of a metric of the host, as a fraction.
std::optional<double> host_share(const Side& side, const std::string& metric) {
  const auto found = side.resources.find({metric, "Host"});
  if (found == side.resources.end()) return std::nullopt;
  return found->second.value() / kPercent;
}

/// Of cycles, and how many there are with those that have no value.
struct Values {
  std::vector<compare::CycleValue> present;
  std::size_t all = 0;
};

/// A function's time per cycle, absent cycles as 0.
Values times_of(const Side& side, const Side::Function* function, const std::string& device) {
  Values values;
  values.all = side.cycles_of(device);
  if (function == nullptr) return values;
  const std::vector<std::uint32_t> places = side.places_of(device);
  for (const auto& [cycle, ns] : function->by_cycle)
    if (const auto place = std::ranges::lower_bound(places, cycle); place != places.end() && *place == cycle)
      values.present.push_back({static_cast<std::uint32_t>(place - places.begin()), ns});
  return values;
}

/// Of a call of it in each cycle that has some.
Values call_times_of(const Side::Function& function) {
  Values values;
  for (const auto& [cycle, ns] : function.by_cycle)
    if (const double calls = function.calls_by_cycle.at(cycle); calls > 0)
      values.present.push_back({static_cast<std::uint32_t>(values.present.size()), ns / calls});
  values.all = values.present.size();
  return values;
}

/// Every value of one side lies beyond all of the other, by a gap that is wide and twice as wide as what the values of
/// a side range over: so far no drift inside of a side goes.
bool lie_apart(const Values& a, const Values& b) {
  constexpr std::size_t kFewest = 4;
  constexpr double kMuch = 0.3;  // of logarithms: 35 %
  const auto tells = [](const Values& v) {
    return v.all >= kFewest && v.present.size() == v.all &&
           std::ranges::all_of(v.present, [](const compare::CycleValue& c) { return c.value > 0; });
  };
  if (!tells(a) || !tells(b)) return false;
  const auto [a_least, a_most] = std::ranges::minmax(a.present, {}, &compare::CycleValue::value);
  const auto [b_least, b_most] = std::ranges::minmax(b.present, {}, &compare::CycleValue::value);
  const double range = std::log(std::max(a_most.value / a_least.value, b_most.value / b_least.value));
  const double gap = std::log(std::max(b_least.value / a_most.value, a_least.value / b_most.value));
  return gap > kMuch && gap > 2 * range;
}

/// Tables hold few cycles, of hundreds of functions each: only what lies far beyond chance is another time.
/// `between`: relative standard deviation by which two recordings of the same differ.
bool surely_differ(const Values& base, const Values& candidate, double between = 0) {
  constexpr double kFarBeyond = 2;  // of half of a 95 % interval
  constexpr std::size_t kFewest = 6;
  if (std::min(base.all, candidate.all) < kFewest) return lie_apart(base, candidate);
  const compare::Series a = compare::summarise(base.present, base.all);
  const compare::Series b = compare::summarise(candidate.present, candidate.all);
  if (a.effective < compare::kFewCycles || b.effective < compare::kFewCycles) return lie_apart(base, candidate);
  const compare::MeanDifference d =
      compare::difference_of(a, b, between * between * (a.mean * a.mean + b.mean * b.mean));
  return std::abs(d.difference) > kFarBeyond * d.half;
}

model::FunctionStatus status_of(const std::array<Side, 2>& sides, const std::array<const Side::Function*, 2>& both,
                                const std::string& device) {
  if (!surely_differ(times_of(sides[0], both[0], device), times_of(sides[1], both[1], device)))
    return model::FunctionStatus::unknown;
  if (both[0] == nullptr) return model::FunctionStatus::added;
  return both[1] == nullptr ? model::FunctionStatus::gone : model::FunctionStatus::changed;
}

/// Of the program: neither what its threads did nor a call, in which it may wait.
bool is_function(std::string_view kind) {
  using enum FunctionKind;
  const auto known = parse_function_kind(kind);
  return known == python || known == cpu_op || known == annotation;
}

/// Whether a call lasts another time. Where a cycle is another thing a copy is of other bytes, which no table tells.
bool calls_differ(const std::array<const Side::Function*, 2>& both, bool anchors_differ) {
  if (anchors_differ && both[0]->kind.starts_with("gpu_mem")) return false;
  return surely_differ(call_times_of(*both[0]), call_times_of(*both[1]), compare::FunctionOptions().between);
}

/// What takes another time in a cycle by no more than counts has not changed; what surely takes another time per call,
/// and as far as is seen in a cycle, has.
void settle_status(model::FunctionFinding& finding) {
  using enum model::FunctionStatus;
  const double tolerance = compare::FunctionOptions().tolerance;
  const auto [before, after] = finding.time_ns;
  if (finding.status == changed && std::abs(after - before) <= tolerance * std::min(before, after))
    finding.status = unknown;
  if (finding.status != unknown || finding.q_of_calls != 0 || !compare::lasts_otherwise(finding, tolerance)) return;
  finding.status = changed;
  finding.rests_on = model::RestsOn::per_call;
}

/// Neither a function of the program nor an operation of a device; each side has some.
bool nothing_in_common(const std::array<Side, 2>& sides) {
  std::array<std::set<std::string>, 2> names;
  for (std::size_t s = 0; s < 2; ++s)
    for (const auto& [key, function] : sides[s].functions)
      if (key.second != kHost || is_function(function.kind)) names[s].insert(key.first);
  return !names[0].empty() && !names[1].empty() &&
         std::ranges::none_of(names[0], [&](const std::string& name) { return names[1].contains(name); });
}

void add_functions(const std::array<Side, 2>& sides, bool anchors_differ, bool unlike, model::RunComparison& result) {
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
      finding.time_ns[s] = sides[s].per_cycle(found->second.ns, key.second);
      finding.calls[s] = sides[s].per_cycle(found->second.calls, key.second);
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
    if (!unlike && (key.second != kHost || is_function(any.kind))) finding.status = status_of(sides, both, key.second);
    // Another time in another cycle is no change.
    if (anchors_differ && finding.status == model::FunctionStatus::changed)
      finding.status = model::FunctionStatus::unknown;
    if (key.second != kHost && both[0] != nullptr && both[1] != nullptr)
      finding.q_of_calls = calls_differ(both, anchors_differ) ? 0 : 1;
    finding.impact_ns = finding.time_ns[1] - finding.time_ns[0];
    if (finding.per_call_ns[0] > 0 && finding.per_call_ns[1] > 0)
      finding.work_ratio = finding.per_call_ns[1] / finding.per_call_ns[0];
    settle_status(finding);
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
    model::ResourceChange change{key.first, key.second, -1, model::Unit::plain, {mean.value(), other->second.value()}};
    // In the tables bytes, and MHz of clocks, are a hundred times as many, as shares in percent are.
    if (key.first.starts_with("gpu_link_") || key.first.starts_with("gpu_pcie_")) {
      change.unit = model::Unit::bytes_per_second;
      for (std::optional<double>& value : change.value) *value /= kPercent;
    } else if (key.first == "gpu_sm_frequency" || key.first == "gpu_frequency" || key.first == "gpu_mem_frequency") {
      change.unit = model::Unit::hertz;
      for (std::optional<double>& value : change.value) *value *= kHertzPerMHz / kPercent;
    }
    const auto [least, most] = std::minmax(*change.value[0], *change.value[1]);
    const bool moved = most - least > kAlike * std::max(std::abs(least), std::abs(most));
    (moved ? result.resources : result.steady).push_back(std::move(change));
  }
}

/// Threads on CPUs and in run queues, and the CPUs that others took.
void add_host(const std::array<Side, 2>& sides, model::RunComparison& result) {
  model::HostChanges& host = *result.host;
  for (const auto& [name, what] : {std::pair("oncpu", "on CPU"), std::pair("runq", "runnable, in the run queue")}) {
    model::HostChange change{what, "ns per step", {}};
    for (std::size_t s = 0; s < 2; ++s) {
      const auto found = sides[s].functions.find({name, "Host"});
      change.value[s] =
          found == sides[s].functions.end() ? 0 : sides[s].per_cycle(found->second.ns, std::string(kHost));
    }
    if (*change.value[0] > 0 && *change.value[1] > 0) host.step.push_back(std::move(change));
  }
  model::HostChange others{"other processes", "fraction", {}};
  model::HostChange clock{"host.cpu.frequency", "", {}};
  for (std::size_t s = 0; s < 2; ++s) {
    const auto all = host_share(sides[s], "host_cpu_usage");
    const auto own = host_share(sides[s], "process_cpu_usage");
    if (all && own) others.value[s] = std::max(0.0, *all - *own);
    if (const auto mean = sides[s].resources.find({"cpu_frequency", "Host"}); mean != sides[s].resources.end())
      clock.value[s] = mean->second.value();
  }
  if (others.value[0] && others.value[1]) host.beside.push_back(std::move(others));
  if (!clock.value[0] || !clock.value[1]) return;
  const auto [slower, faster] = std::minmax(*clock.value[0], *clock.value[1]);
  (faster - slower >= kLeastMove * faster ? host.counters : host.unshown).push_back(std::move(clock));
}

/// What devices did per step, all operations of all of them together: as much as before, or how much more. Empty:
/// not both sides have some.
std::string device_time_text(const std::array<Side, 2>& sides, double tolerance) {
  std::array<double, 2> ns{};
  for (std::size_t s = 0; s < 2; ++s)
    for (const auto& [key, function] : sides[s].functions)
      if (key.second != kHost) ns[s] += sides[s].per_cycle(function.ns, key.second);
  if (!(ns[0] > 0) || !(ns[1] > 0)) return {};
  const double change = ns[1] / ns[0] - 1;
  return fmt::format("GPU time per step{}: {} -> {} ({:+.1f} %)", std::abs(change) <= tolerance ? " unchanged" : "",
                     format_duration(ns[0]), format_duration(ns[1]), change * kPercent);
}

/// As recordings have them: those that differ by enough of a cycle, the largest difference behind the period.
void keep_states_that_differ(model::RunComparison& result) {
  const double period = result.cycle_times.empty() ? static_cast<double>(result.sides[0].median_period.value_or(0))
                                                   : result.cycle_times.front().time_ns[0];
  const auto is_period = [](const model::HostChange& state) { return state.what == "period"; };
  const auto difference = [](const model::HostChange& state) {
    return std::abs(state.value[1].value_or(0) - state.value[0].value_or(0));
  };
  std::vector<model::HostChange>& states = result.host->states;
  std::erase_if(states, [&](const model::HostChange& state) {
    return !is_period(state) && difference(state) < compare::kLeastStateShare * period;
  });
  std::ranges::stable_sort(
      states, {}, [&](const model::HostChange& state) { return std::pair(!is_period(state), -difference(state)); });
}

}  // namespace

model::RunComparison comparison_of_tables(const deepdive::Profile& base, const deepdive::Profile& candidate,
                                          const deepdive::ProcessPair& processes, bool anchors_differ,
                                          double tolerance) {
  std::array sides = {side_of(base, processes.base_pid), side_of(candidate, processes.candidate_pid)};
  name_only_devices(sides);
  model::RunComparison result;
  result.sides = {compared_side(base, processes.base_pid, sides[0].cycles_ns),
                  compared_side(candidate, processes.candidate_pid, sides[1].cycles_ns)};
  result.notes = {
      "Profile tables hold sums of each cycle: there is no waterfall, no timeline, and functions are judged by what "
      "lies far beyond chance alone"};
  result.processes.push_back({-1, {processes.base_pid, processes.candidate_pid}});
  if (anchors_differ) {
    result.why = "the cycles of the two tables begin at different functions";
    result.comparability.level = model::Comparable::partly;
    result.comparability.reasons = {
        "A cycle is another thing on each side: their durations are not held against each other"};
  }
  if (!anchors_differ) {
    compare::CycleTimeOptions options;
    options.tolerance = tolerance;
    const bool on_gpu = std::ranges::any_of(sides[0].functions, [](const auto& f) { return f.first.second != kHost; });
    if (!on_gpu) options.between = compare::CompareOptions().between_on_host;
    model::CycleTimeOutcome outcome = compare::judge_cycle_time(sides[0].cycles_ns, sides[1].cycles_ns, options);
    result.outcome = outcome.outcome;
    model::HostChange period{"period", "ns per step", {outcome.time_ns[0], outcome.time_ns[1]}};
    result.host.emplace();
    result.host->states.push_back(std::move(period));
    result.cycle_times.push_back(std::move(outcome));
    if (std::string text = device_time_text(sides, tolerance); !text.empty()) result.notes.push_back(std::move(text));
  }
  if (!result.host) result.host.emplace();
  const bool unlike = nothing_in_common(sides);
  if (unlike) result.notes.emplace_back("The two tables have no function in common: none is held against another");
  add_functions(sides, anchors_differ, unlike, result);
  std::ranges::stable_sort(result.functions, std::ranges::greater(),
                           [](const model::FunctionFinding& f) { return std::abs(f.impact_ns); });
  add_resources(sides, result);
  // Where a cycle is another thing on each side, what threads did in one says nothing; devices do.
  if (!anchors_differ) add_host(sides, result);
  result.verdicts = diagnose::diagnose(result);
  keep_states_that_differ(result);  // the causes have seen them all
  return result;
}

}  // namespace culprit::library
