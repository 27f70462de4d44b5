#include "compare/waterfall.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
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

/// How much of the windows of a device is idle.
struct DeviceUse {
  std::size_t windows = 0;
  double idle = 0;
  double all = 0;
  void add(const DeviceUse& other) {
    windows += other.windows;
    idle += other.idle;
    all += other.all;
  }
};
using DeviceUses = std::map<std::int32_t, DeviceUse>;  ///< by number
using Place = std::pair<std::int32_t, std::uint32_t>;  ///< rank and recording
using UsesOfPlaces = std::map<Place, DeviceUses>;      ///< of one side

Place place_of(const Profile& profile, std::size_t window) {
  const model::ProfileCycle& cycle = profile.cycles[profile.ledger.windows[window].cycle];
  return {cycle.rank, cycle.recording};
}

/// Windows of one phase that are held against others: of devices, or of hosts.
Rows windows_of(const Profile& profile, model::Phase phase, bool on_device) {
  Rows rows;
  const auto& windows = profile.ledger.windows;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const model::ProfileCycle& cycle = profile.cycles[windows[w].cycle];
    if (cycle.phase == phase && !cycle.other_work && (windows[w].device >= 0) == on_device) rows.push_back(w);
  }
  return rows;
}

UsesOfPlaces uses_of(const Profile& profile, const Rows& rows) {
  UsesOfPlaces uses;
  for (const std::size_t w : rows) {
    const model::LedgerWindow& window = profile.ledger.windows[w];
    DeviceUse& use = uses[place_of(profile, w)][window.device];
    ++use.windows;
    use.all += static_cast<double>(window.length);
    for (const LedgerLine& line : model::lines_of(profile.ledger, w))
      if (is_idle(line.state)) use.idle += static_cast<double>(line.time);
  }
  return uses;
}

/// Without those that have fewer than half as many windows as any.
DeviceUses often_used(DeviceUses devices) {
  std::size_t most = 0;
  for (const auto& [number, use] : devices) most = std::max(most, use.windows);
  std::erase_if(devices, [&](const auto& device) { return 2 * device.second.windows < most; });
  return devices;
}

/// nullopt: there is none.
std::optional<std::int32_t> least_idle(const DeviceUses& devices) {
  std::optional<std::int32_t> chosen;
  double least = 2;
  for (const auto& [number, use] : devices) {
    const double share = use.all > 0 ? use.idle / use.all : 1;
    if (share >= least) continue;
    least = share;
    chosen = number;
  }
  return chosen;
}

/// The device that a rank is judged by on both sides. nullopt: it did not use the same devices everywhere.
std::optional<std::int32_t> common_device(const std::array<UsesOfPlaces, 2>& uses, std::int32_t rank) {
  std::array<DeviceUses, 2> all;
  std::set<std::int32_t> numbers;
  for (std::size_t s = 0; s < 2; ++s) {
    for (const auto& [place, devices] : uses[s]) {
      if (place.first != rank) continue;
      std::set<std::int32_t> used;
      for (const auto& [number, use] : devices) {
        used.insert(number);
        all[s][number].add(use);
      }
      if (!numbers.empty() && used != numbers) return std::nullopt;
      numbers = std::move(used);
    }
    if (all[s].empty()) return std::nullopt;
    all[s] = often_used(std::move(all[s]));
  }
  DeviceUses both;
  for (const auto& [number, use] : all[0])
    if (const auto other = all[1].find(number); other != all[1].end()) {
      both[number] = use;
      both[number].add(other->second);
    }
  return least_idle(both);
}

/// Of each rank the windows of one device: of the one that idles least on both sides together, or, where they use other
/// devices, of the one that does so in each recording.
std::array<Rows, 2> device_rows(const std::array<const Profile*, 2>& profiles, model::Phase phase) {
  std::array<Rows, 2> rows;
  std::array<UsesOfPlaces, 2> uses;
  for (std::size_t s = 0; s < 2; ++s) {
    rows[s] = windows_of(*profiles[s], phase, true);
    uses[s] = uses_of(*profiles[s], rows[s]);
  }
  std::map<std::int32_t, std::optional<std::int32_t>> common;
  for (std::size_t s = 0; s < 2; ++s) {
    std::map<Place, std::optional<std::int32_t>> chosen;
    for (const auto& [place, devices] : uses[s]) {
      const auto [known, fresh] = common.try_emplace(place.first);
      if (fresh) known->second = common_device(uses, place.first);
      chosen[place] = known->second ? known->second : least_idle(often_used(devices));
    }
    std::erase_if(rows[s], [&](std::size_t w) {
      return chosen.at(place_of(*profiles[s], w)) != profiles[s]->ledger.windows[w].device;
    });
  }
  return rows;
}

std::array<Rows, 2> host_rows(const std::array<const Profile*, 2>& profiles, model::Phase phase) {
  return {windows_of(*profiles[0], phase, false), windows_of(*profiles[1], phase, false)};
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

constexpr std::int64_t kFewestInRange = 20;  ///< of a range, on each side
constexpr std::int64_t kFewestNamed = 5;     ///< of a function, on both sides together

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
    if (line == lines.end() || std::min(all.count[0], all.count[1]) < kFewestInRange) continue;
    std::map<std::string, Sampled> parts;
    for (const auto& [function, sampled] : functions) {
      std::string name =
          sampled.count[0] + sampled.count[1] < kFewestNamed ? "other code" : std::string(texts[function]);
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
  for (std::size_t s = 0; s < 2; ++s)
    for (const std::size_t w : rows[s]) result.devices[s].insert(profiles[s]->ledger.windows[w].device);
  result.device = *result.devices[0].begin();
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
    const std::array hosts = host_rows(profiles, phase);
    const std::array devices = device_rows(profiles, phase);
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
    const std::array profiles = {&base, &candidate};
    const std::array rows = host_rows(profiles, waterfall.phase);
    if (rows[0].empty() || rows[1].empty()) continue;
    hosts.push_back(waterfall_of(profiles, rows, texts));
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
