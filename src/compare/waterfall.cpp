#include "compare/waterfall.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "compare/workload.h"

namespace culprit::compare {

namespace {

using model::LedgerLine;
using model::LedgerState;
using model::Profile;
using model::Waterfall;

bool is_idle(LedgerState state) { return state >= LedgerState::idle_host && state <= LedgerState::idle_unknown; }

/// Rows of the windows of one phase.
using Rows = std::vector<std::size_t>;

/// Of each recording and rank those of the device that idles the least part of its windows, among those that have at
/// least half as many windows as any; without devices those of the host.
Rows rows_of(const Profile& profile, model::Phase phase, bool on_device) {
  struct Device {
    std::size_t windows = 0;
    double idle = 0;
    double all = 0;
  };
  const auto& windows = profile.ledger.windows;
  const auto cycle_of = [&](std::size_t w) -> const model::ProfileCycle& { return profile.cycles[windows[w].cycle]; };
  const auto is_of = [&](std::size_t w) {
    return cycle_of(w).phase == phase && !cycle_of(w).other_work && (windows[w].device >= 0) == on_device;
  };
  std::map<std::pair<std::uint32_t, std::int32_t>, std::map<std::int32_t, Device>> all;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (!is_of(w)) continue;
    Device& device = all[{cycle_of(w).recording, cycle_of(w).rank}][windows[w].device];
    ++device.windows;
    device.all += static_cast<double>(windows[w].length);
    for (const LedgerLine& line : model::lines_of(profile.ledger, w))
      if (is_idle(line.state)) device.idle += static_cast<double>(line.time);
  }
  std::map<std::pair<std::uint32_t, std::int32_t>, std::int32_t> chosen;
  for (const auto& [where, devices] : all) {
    std::size_t most = 0;
    for (const auto& [number, device] : devices) most = std::max(most, device.windows);
    double least = 2;
    for (const auto& [number, device] : devices) {
      const double share = device.all > 0 ? device.idle / device.all : 1;
      if (2 * device.windows < most || share >= least) continue;
      least = share;
      chosen[where] = number;
    }
  }
  Rows rows;
  for (std::size_t w = 0; w < windows.size(); ++w)
    if (is_of(w) && chosen.at({cycle_of(w).recording, cycle_of(w).rank}) == windows[w].device) rows.push_back(w);
  return rows;
}

WorkClass class_of(const Profile& profile, std::size_t window) {
  const model::ProfileCycle& cycle = profile.cycles[profile.ledger.windows[window].cycle];
  return work_class(cycle.workload, cycle.phase);
}

/// How much a window of each kind of work counts on each side. All alike where a side knows of no work, or the sides
/// have none in common.
std::array<std::map<WorkClass, double>, 2> weights_of(const std::array<const Profile*, 2>& profiles,
                                                      const std::array<Rows, 2>& rows) {
  std::array<std::map<WorkClass, double>, 2> counts;
  for (std::size_t s = 0; s < 2; ++s)
    for (const std::size_t w : rows[s]) counts[s][class_of(*profiles[s], w)] += 1;
  const auto is_known = [&](const auto& counted) {
    return counted.first != WorkClass() && counts[1].contains(counted.first);
  };
  const bool any_known = std::ranges::any_of(counts[0], is_known);
  const auto is_common = [&](const WorkClass& work) {
    return any_known && counts[0].contains(work) && counts[1].contains(work);
  };
  std::array<double, 2> common{};
  for (std::size_t s = 0; s < 2; ++s)
    for (const auto& [work, count] : counts[s])
      if (is_common(work)) common[s] += count;
  std::array<std::map<WorkClass, double>, 2> weights;
  for (std::size_t s = 0; s < 2; ++s)
    for (const auto& [work, count] : counts[s])
      weights[s][work] = common[0] == 0    ? 1 / static_cast<double>(rows[s].size())
                         : is_common(work) ? (count / common[s] + counts[1 - s][work] / common[1 - s]) / 2 / count
                                           : 0;
  return weights;
}

constexpr std::int64_t kFewestSamples = 20;  ///< of a range, on each side
constexpr std::int64_t kRare = 5;            ///< of a function, on both sides together

/// Samples in one range, on both sides.
struct Sampled {
  std::array<std::int64_t, 2> count{};
  std::array<double, 2> weight{};  ///< as much as their windows count, and the time they stand for
  void add(const Sampled& other) {
    for (std::size_t s = 0; s < 2; ++s) {
      count[s] += other.count[s];
      weight[s] += other.weight[s];
    }
  }
};
using WeightOfCycle = std::array<std::map<std::uint32_t, double>, 2>;  ///< of those that the waterfall is made of

/// By range and function.
std::map<StringId, std::map<StringId, Sampled>> samples_of(const std::array<const Profile*, 2>& profiles,
                                                           const WeightOfCycle& weights, StringTable& texts) {
  std::map<StringId, std::map<StringId, Sampled>> all;
  for (std::size_t s = 0; s < 2; ++s)
    for (const model::LedgerSamples& of : profiles[s]->ledger.samples) {
      const auto weight = weights[s].find(of.cycle);
      if (weight == weights[s].end()) continue;
      Sampled& to = all[texts.intern(profiles[s]->texts[of.range])][texts.intern(profiles[s]->texts[of.function])];
      to.count[s] += of.count;
      to.weight[s] += weight->second * static_cast<double>(of.time > 0 ? of.time : of.count);
    }
  return all;
}

/// Puts the lines `between` functions of which both sides have samples in parts by them: the same time, divided among
/// the functions as the samples are. Functions that are too rare to be told from chance are "other code".
void divide_by_samples(const std::map<StringId, std::map<StringId, Sampled>>& samples,
                       std::vector<model::WaterfallLine>& lines, StringTable& texts) {
  std::vector<model::WaterfallLine> divided;
  for (const auto& [range, functions] : samples) {
    const auto line = std::ranges::find_if(lines, [&, range = range](const model::WaterfallLine& l) {
      return l.state == LedgerState::between && l.function == range;
    });
    Sampled all;
    for (const auto& [function, sampled] : functions) all.add(sampled);
    if (line == lines.end() || std::min(all.count[0], all.count[1]) < kFewestSamples) continue;
    std::map<std::string, Sampled> parts;
    for (const auto& [function, sampled] : functions) {
      std::string name = sampled.count[0] + sampled.count[1] < kRare ? "other code" : std::string(texts[function]);
      if (!texts[range].empty()) name += fmt::format(", in {}", texts[range]);
      parts[name].add(sampled);
    }
    for (const auto& [name, sampled] : parts) {
      model::WaterfallLine part;
      part.state = LedgerState::sampled;
      part.function = texts.intern(name);
      part.calls.fill(std::numeric_limits<double>::quiet_NaN());
      for (std::size_t s = 0; s < 2; ++s) part.time_ns[s] = line->time_ns[s] * sampled.weight[s] / all.weight[s];
      divided.push_back(part);
    }
    lines.erase(line);
  }
  lines.insert(lines.end(), divided.begin(), divided.end());
}

/// Time of the thread of the cycles by function, ns per cycle, and how much of it is `between`.
struct OwnTime {
  std::array<double, 2> all{};
  double between = 0;
};

/// Of the windows of hosts. nullopt: a side has none.
std::optional<std::map<StringId, OwnTime>> own_times(const std::array<const Profile*, 2>& profiles,
                                                     const std::array<Rows, 2>& rows, StringTable& texts) {
  if (rows[0].empty() || rows[1].empty()) return std::nullopt;
  std::map<StringId, OwnTime> times;
  const auto weights = weights_of(profiles, rows);
  for (std::size_t s = 0; s < 2; ++s)
    for (const std::size_t w : rows[s])
      for (const LedgerLine& line : model::lines_of(profiles[s]->ledger, w)) {
        if (line.state != LedgerState::function && line.state != LedgerState::between) continue;
        const double time = weights[s].at(class_of(*profiles[s], w)) * static_cast<double>(line.time);
        OwnTime& own = times[texts.intern(profiles[s]->texts[line.function])];
        own.all[s] += time;
        if (line.state == LedgerState::between) own.between += time;
      }
  return times;
}

/// What the host did while a device waited for it, of the lines that say so.
void add_own_times(const std::map<StringId, OwnTime>& times, std::vector<model::WaterfallLine>& lines) {
  for (model::WaterfallLine& line : lines) {
    const auto own = times.find(line.function);
    if (line.state != LedgerState::idle_host || own == times.end()) continue;
    line.host_ns = own->second.all;
    line.between = 2 * own->second.between > own->second.all[0] + own->second.all[1];
  }
}

/// How much of a line the windows of both sides have.
struct Range {
  std::array<double, 2> least{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  std::array<double, 2> most{};
  std::array<std::size_t, 2> windows{};  ///< that have some
  void add(std::size_t side, double time) {
    least.at(side) = std::min(least.at(side), time);
    most.at(side) = std::max(most.at(side), time);
    ++windows.at(side);
  }
  [[nodiscard]] bool is_apart(const std::array<std::size_t, 2>& all) const {
    const auto from = [&](std::size_t side) { return windows.at(side) == all.at(side) ? least.at(side) : 0; };
    return from(0) > most[1] || from(1) > most[0];
  }
};

Waterfall waterfall_of(const std::array<const Profile*, 2>& profiles, const std::array<Rows, 2>& rows,
                       StringTable& texts) {
  Waterfall result;
  result.device = profiles[0]->ledger.windows[rows[0].front()].device;
  std::map<std::pair<LedgerState, StringId>, model::WaterfallLine> lines;
  std::map<std::pair<LedgerState, StringId>, Range> idle;
  const auto weights = weights_of(profiles, rows);
  WeightOfCycle weight_of_cycle;
  for (std::size_t s = 0; s < 2; ++s)
    for (const std::size_t w : rows[s]) {
      const double weight = weights[s].at(class_of(*profiles[s], w));
      if (weight == 0) continue;
      ++result.windows[s];
      weight_of_cycle[s][profiles[s]->ledger.windows[w].cycle] = weight;
      for (const LedgerLine& from : model::lines_of(profiles[s]->ledger, w)) {
        if (from.state == LedgerState::no_work) continue;
        result.window_ns[s] += weight * static_cast<double>(from.time);
        const StringId function = texts.intern(profiles[s]->texts[from.function]);
        model::WaterfallLine& line = lines[{from.state, function}];
        line.state = from.state;
        line.function = function;
        line.time_ns[s] += weight * static_cast<double>(from.time);
        line.calls[s] += weight * static_cast<double>(from.count);
        if (is_idle(from.state)) idle[{from.state, function}].add(s, static_cast<double>(from.time));
      }
    }
  for (auto& [key, line] : lines) {
    if (is_idle(line.state)) line.apart = idle.at(key).is_apart(result.windows);
    result.lines.push_back(line);
  }
  if (result.device < 0) divide_by_samples(samples_of(profiles, weight_of_cycle, texts), result.lines, texts);
  for (model::WaterfallLine& line : result.lines) {
    line.change_ns = line.time_ns[1] - line.time_ns[0];
    line.by_calls_ns = line.calls[0] > 0           ? (line.calls[1] - line.calls[0]) * line.time_ns[0] / line.calls[0]
                       : std::isnan(line.calls[0]) ? line.calls[0]
                                                   : line.change_ns;
  }
  std::ranges::sort(result.lines, {}, [&](const model::WaterfallLine& line) {
    return std::tuple(-std::abs(line.change_ns), line.state, texts[line.function]);
  });
  return result;
}

}  // namespace

std::vector<Waterfall> waterfalls_of(const Profile& base, const Profile& candidate,
                                     const std::vector<model::Phase>& phases, StringTable& texts) {
  std::vector<Waterfall> all;
  const std::array profiles = {&base, &candidate};
  for (const model::Phase phase : phases) {
    const std::array hosts = {rows_of(base, phase, false), rows_of(candidate, phase, false)};
    const std::array devices = {rows_of(base, phase, true), rows_of(candidate, phase, true)};
    const bool on_device = !devices[0].empty() && !devices[1].empty();
    const auto times = own_times(profiles, hosts, texts);
    if (!on_device && !times) continue;
    all.push_back(waterfall_of(profiles, on_device ? devices : hosts, texts));
    all.back().phase = phase;
    if (on_device && times) add_own_times(*times, all.back().lines);
  }
  return all;
}

std::vector<Waterfall> late_hosts_of(const Profile& base, const Profile& candidate, const std::vector<Waterfall>& all,
                                     StringTable& texts) {
  constexpr double kMost = 0.5;
  std::vector<Waterfall> hosts;
  for (const Waterfall& waterfall : all) {
    if (waterfall.device < 0) continue;
    std::array<double, 2> waits{};
    for (const model::WaterfallLine& line : waterfall.lines)
      if (line.state == LedgerState::idle_host || line.state == LedgerState::idle_launch)
        for (std::size_t s = 0; s < 2; ++s) waits.at(s) += line.time_ns.at(s);
    if (waits[0] < kMost * waterfall.window_ns[0] || waits[1] < kMost * waterfall.window_ns[1]) continue;
    const std::array rows = {rows_of(base, waterfall.phase, false), rows_of(candidate, waterfall.phase, false)};
    if (rows[0].empty() || rows[1].empty()) continue;
    hosts.push_back(waterfall_of({&base, &candidate}, rows, texts));
    hosts.back().phase = waterfall.phase;
  }
  return hosts;
}

void use_new_names(model::Profile& base, const std::vector<model::FunctionFinding>& findings,
                   const StringTable& texts) {
  if (std::ranges::none_of(findings, [](const auto& f) { return f.was != 0; })) return;
  using Name = std::pair<model::Phase, std::string_view>;
  std::map<Name, std::string_view> names;  // by phase and old name; its own where it stays
  for (const model::FunctionFinding& f : findings)
    if (f.calls[0] > 0) {
      const Name old{f.phase, texts[f.was != 0 ? f.was : f.function]};
      const auto [known, fresh] = names.try_emplace(old, texts[f.function]);
      if (!fresh && known->second != texts[f.function]) known->second = old.second;
    }
  for (std::size_t w = 0; w < base.ledger.windows.size(); ++w) {
    const model::LedgerWindow& window = base.ledger.windows[w];
    const std::size_t end =
        w + 1 < base.ledger.windows.size() ? base.ledger.windows[w + 1].first_line : base.ledger.lines.size();
    for (std::size_t i = window.first_line; i < end; ++i) {
      LedgerLine& line = base.ledger.lines[i];
      const auto name = names.find({base.cycles[window.cycle].phase, base.texts[line.function]});
      if (name != names.end() && name->second != name->first.second) line.function = base.texts.intern(name->second);
    }
  }
}

}  // namespace culprit::compare
