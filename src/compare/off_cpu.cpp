#include "compare/off_cpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compare/host_changes.h"
#include "compare/series.h"

namespace culprit::compare {

namespace {

using model::NamedSums;
using model::OffCpu;
using model::OffCpuChange;
using model::Recording;
using model::WindowSums;

using Kind = std::optional<NamedSums> OffCpu::*;

constexpr double kLeastUnits = 1;         // in a stretch, for a time per unit to be one
constexpr double kLeastWakeUps = 0.01;    // per unit
constexpr double kMostOfWaits = 2.0 / 3;  // of the time of waits

/// Windows next to each other that hold units enough.
struct Stretch {
  const OffCpu* of = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;
  double units = 0;
};

struct OffCpuSide {
  std::span<const Recording> recordings;
  std::vector<Stretch> stretches;
  double units = 0;
  double seconds = 0;
};

/// Units in each window; none: the recording has none.
std::vector<double> units_of(const Recording& recording, bool steps, const model::WorkUnit* unit) {
  const OffCpu& off = recording.collected.off_cpu;
  if (steps) return off.steps;
  if (unit == nullptr) return off.seconds;
  if (!recording.work) return {};
  const auto same = [&](const model::WorkUnit& one) { return same_unit(one, *unit); };
  const auto found = std::ranges::find_if(recording.work->units, same);
  if (found == recording.work->units.end()) return {};
  std::vector<double> units(off.seconds.size());
  for (std::size_t w = 0; w < units.size(); ++w)
    for (std::size_t i = off.first[w]; i < std::min(off.first[w + 1], found->per_window.size()); ++i)
      units[w] += found->per_window[i];
  return units;
}

/// What is left over at the end of a recording belongs to its last stretch.
std::optional<OffCpuSide> side_of(std::span<const Recording> recordings, bool steps, const model::WorkUnit* unit) {
  OffCpuSide side;
  side.recordings = recordings;
  for (const Recording& recording : recordings) {
    const OffCpu& off = recording.collected.off_cpu;
    const std::vector<double> units = units_of(recording, steps, unit);
    if (units.size() != off.seconds.size() || units.empty()) return std::nullopt;
    const std::size_t before = side.stretches.size();
    Stretch stretch{&off, 0, 0, 0};
    for (std::size_t w = 0; w < units.size(); ++w) {
      stretch.units += units[w];
      side.units += units[w];
      side.seconds += off.seconds[w];
      stretch.end = w + 1;
      if (stretch.units < kLeastUnits) continue;
      side.stretches.push_back(stretch);
      stretch = {&off, w + 1, w + 1, 0};
    }
    if (stretch.begin < stretch.end && side.stretches.size() > before) {
      side.stretches.back().end = stretch.end;
      side.stretches.back().units += stretch.units;
    }
  }
  return side.stretches.empty() ? std::nullopt : std::optional(std::move(side));
}

const WindowSums* sums_of(const OffCpu& off, Kind kind, const NamedSums::key_type& name) {
  const auto found = (off.*kind)->find(name);
  return found == (off.*kind)->end() ? nullptr : &found->second;
}

double sum(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  double all = 0;
  for (std::size_t w = begin; w < end; ++w) all += values[w];
  return all;
}

/// Of one name in each stretch of a side, by its units. Who waits gets fewer of them done: what a recording has per
/// unit is a ratio of two sums, and each stretch stands with what it adds to that (Cochran, Sampling Techniques, 6.4),
/// so that one with hardly any unit does not outweigh all others.
PooledWindows windows_of(const OffCpuSide& side, Kind kind, const NamedSums::key_type& name,
                         std::vector<double> WindowSums::*what) {
  PooledWindows windows;
  for (auto first = side.stretches.begin(); first != side.stretches.end();) {
    const auto last = std::find_if(first, side.stretches.end(), [&](const Stretch& s) { return s.of != first->of; });
    const WindowSums* sums = sums_of(*first->of, kind, name);
    std::vector<double> values;
    double all = 0;
    double units = 0;
    for (auto stretch = first; stretch != last; ++stretch) {
      values.push_back(sums == nullptr ? 0 : sum(sums->*what, stretch->begin, stretch->end));
      all += values.back();
      units += stretch->units;
    }
    const double ratio = all / units;
    const double mean_units = units / static_cast<double>(values.size());
    for (double& value : values) {
      const double of_stretch = (first++)->units;
      value = ratio + (value - ratio * of_stretch) / mean_units;
    }
    windows.add(values);
  }
  return windows;
}

double per_unit(const OffCpuSide& side, Kind kind, const NamedSums::key_type& name,
                std::vector<double> WindowSums::*what) {
  double all = 0;
  for (const Recording& recording : side.recordings)
    if (const WindowSums* sums = sums_of(recording.collected.off_cpu, kind, name))
      all += sum(sums->*what, 0, (sums->*what).size());
  return all / side.units;
}

model::OffCpuChanged changed_how(const OffCpuChange& c) {
  using model::OffCpuChanged;
  const auto has_none = [&](std::size_t s) { return c.ns_per_unit[s] <= 0 && c.per_unit[s] <= 0; };
  if (has_none(0)) return OffCpuChanged::added;
  if (has_none(1)) return OffCpuChanged::gone;
  const auto ratio = [](double before, double after) { return before > 0 && after > 0 ? std::log(after / before) : 0; };
  const double number = ratio(c.per_unit[0], c.per_unit[1]);
  const double time = ratio(c.ns_per_unit[0], c.ns_per_unit[1]);
  if (std::abs(number) >= std::abs(time - number))
    return number > 0 ? OffCpuChanged::more_often : OffCpuChanged::less_often;
  return time > number ? OffCpuChanged::longer : OffCpuChanged::shorter;
}

/// `tested`: what of each has to differ surely, by `least` or more.
std::vector<OffCpuChange> changes_of(const std::array<OffCpuSide, 2>& sides, Kind kind,
                                     std::vector<double> WindowSums::*tested, double least, std::size_t most) {
  std::set<NamedSums::key_type> names;
  for (const OffCpuSide& side : sides)
    for (const Recording& recording : side.recordings) {
      if (!(recording.collected.off_cpu.*kind)) return {};
      for (const auto& [name, sums] : *(recording.collected.off_cpu.*kind)) names.insert(name);
    }
  std::vector<OffCpuChange> changes;
  for (const NamedSums::key_type& name : names) {
    const PooledWindows a = windows_of(sides[0], kind, name, tested);
    const PooledWindows b = windows_of(sides[1], kind, name, tested);
    if (std::abs(mean_of(b) - mean_of(a)) < least || !surely_apart(a, b)) continue;
    OffCpuChange& change = changes.emplace_back();
    change.name = name.first;
    change.call = name.second;
    for (std::size_t s = 0; s < sides.size(); ++s) {
      change.ns_per_unit.at(s) = per_unit(sides.at(s), kind, name, &WindowSums::ns);
      change.per_unit.at(s) = per_unit(sides.at(s), kind, name, &WindowSums::count);
    }
    change.changed = changed_how(change);
  }
  std::ranges::stable_sort(changes, std::greater(),
                           [](const OffCpuChange& c) { return std::abs(c.ns_per_unit[1] - c.ns_per_unit[0]); });
  if (changes.size() > most) changes.resize(most);
  return changes;
}

/// Of those that had CPUs on this side alone the one that had them for longest.
OffCpuChange newcomer_of(const std::array<OffCpuSide, 2>& sides, std::size_t s) {
  OffCpuChange most;
  for (const Recording& recording : sides.at(s).recordings) {
    if (!recording.collected.off_cpu.rivals) return {};
    for (const auto& [name, sums] : *recording.collected.off_cpu.rivals) {
      const double ns = per_unit(sides.at(s), &OffCpu::rivals, name, &WindowSums::ns);
      if (ns <= most.ns_per_unit.at(s) || per_unit(sides.at(1 - s), &OffCpu::rivals, name, &WindowSums::ns) > 0)
        continue;
      most.name = name.first;
      most.ns_per_unit.at(s) = ns;
      most.changed = changed_how(most);
    }
  }
  return most;
}

/// The thread that ended most of the waits of a name; empty: none did.
std::string ended_by(const OffCpuSide& side, const NamedSums::key_type& name) {
  std::map<std::string, double> by;
  double all = 0;
  for (const Recording& recording : side.recordings) {
    const OffCpu& off = recording.collected.off_cpu;
    const auto found = off.ended_by.find(name);
    if (found == off.ended_by.end()) continue;
    for (const auto& [thread, ns] : found->second) {
      by[thread] += ns;
      all += ns;
    }
  }
  for (const auto& [thread, ns] : by)
    if (!thread.empty() && ns > 0 && ns >= kMostOfWaits * all) return thread;
  return "";
}

/// Waits are told from the same length on.
bool told_alike(std::span<const Recording> base, std::span<const Recording> candidate) {
  const std::string& shortest = base.front().collected.off_cpu.shortest;
  const auto same = [&](const Recording& recording) { return recording.collected.off_cpu.shortest == shortest; };
  return std::ranges::all_of(base, same) && std::ranges::all_of(candidate, same);
}

}  // namespace

model::OffCpuChanges off_cpu_changes(std::span<const Recording> base, std::span<const Recording> candidate,
                                     const model::WorkUnit* unit, std::size_t most) {
  if (base.empty() || candidate.empty()) return {};
  const auto has_steps = [](const Recording& recording) { return !recording.cycles.cycles.empty(); };
  const bool steps = std::ranges::all_of(base, has_steps) && std::ranges::all_of(candidate, has_steps);
  if (!steps && (std::ranges::any_of(base, has_steps) || std::ranges::any_of(candidate, has_steps))) return {};
  if (unit != nullptr && unit->kind == model::UnitKind::window) unit = nullptr;
  auto a = side_of(base, steps, unit);
  auto b = side_of(candidate, steps, unit);
  if (!a || !b) return {};
  const std::array sides = {std::move(*a), std::move(*b)};
  const double least = kLeastStateShare * sides[0].seconds * 1e9 / sides[0].units;
  model::OffCpuChanges changes;
  changes.per = steps ? "step" : unit == nullptr ? "second" : std::string(to_string(unit->kind));
  if (told_alike(base, candidate)) {
    changes.functions = changes_of(sides, &OffCpu::functions, &WindowSums::ns, least, most);
    changes.inputs = changes_of(sides, &OffCpu::inputs, &WindowSums::ns, least, most);
    for (auto* list : {&changes.functions, &changes.inputs})
      for (OffCpuChange& change : *list)
        for (std::size_t s = 0; s < sides.size(); ++s)
          change.ended_by.at(s) = ended_by(sides.at(s), {change.name, change.call});
    changes.handed = changes_of(sides, &OffCpu::handed, &WindowSums::ns, least, most);
    changes.wakers = changes_of(sides, &OffCpu::wakers, &WindowSums::count, kLeastWakeUps, most);
  }
  changes.rivals = changes_of(sides, &OffCpu::rivals, &WindowSums::ns, least, most);
  for (std::size_t s = 0; s < sides.size(); ++s) changes.newcomers.at(s) = newcomer_of(sides, s);
  return changes;
}

}  // namespace culprit::compare
