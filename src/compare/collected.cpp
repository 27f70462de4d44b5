#include "compare/collected.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "compare/off_cpu.h"
#include "compare/series.h"
#include "stats/log_buckets.h"

namespace culprit::compare {

namespace {

using model::Collected;
using model::CountedDurations;
using model::Recording;

constexpr double kLeastShare = 0.01;

/// Of all recordings of a side.
std::map<std::string, CountedDurations> pooled(std::span<const Recording> recordings,
                                               std::map<std::string, CountedDurations> Collected::*kinds) {
  std::map<std::string, CountedDurations> all;
  for (const Recording& recording : recordings)
    for (const auto& [name, one] : recording.collected.*kinds) {
      CountedDurations& sum = all[name];
      sum.count += one.count;
      sum.bytes += one.bytes;
      sum.waits = one.waits;
      sum.total_ns += one.total_ns;
      sum.buckets.resize(std::max(sum.buckets.size(), one.buckets.size()));
      for (std::size_t i = 0; i < one.buckets.size(); ++i) sum.buckets[i] += one.buckets[i];
    }
  return all;
}

double p99(const CountedDurations& durations) {
  return stats::log_bucket_quantile(durations.buckets, 0.99).value_or(0);
}

double seconds_of(std::span<const Recording> recordings) {
  double sum = 0;
  for (const Recording& recording : recordings) sum += recording.collected.seconds;
  return sum;
}

double steps_of(std::span<const Recording> recordings) {
  std::size_t sum = 0;
  for (const Recording& recording : recordings) sum += recording.cycles.cycles.size();
  return static_cast<double>(sum);
}

/// Steps of a side, or units of its work; 0: a recording has none.
double units_of(std::span<const Recording> recordings, const model::WorkUnit* unit) {
  if (unit == nullptr) return steps_of(recordings);
  double sum = 0;
  for (const Recording& recording : recordings) {
    if (!recording.work) return 0;
    const auto same = [&](const model::WorkUnit& one) { return same_unit(one, *unit); };
    const auto found = std::ranges::find_if(recording.work->units, same);
    if (found == recording.work->units.end()) return 0;
    sum += static_cast<double>(found->count);
  }
  return sum;
}

/// Whoever counts no calls counts no requests either: that there are none says nothing then.
bool looked_at_requests(const Recording& recording) {
  return !recording.collected.calls.empty() || !recording.collected.disks.empty();
}

/// Share of one function in each window of a side; it did not run where it is not listed.
PooledWindows shares_of(std::span<const Recording> recordings, Functions functions, const std::string& function) {
  PooledWindows windows;
  for (const Recording& recording : recordings) {
    const Collected& collected = recording.collected;
    const auto shares = (collected.*functions).find(function);
    windows.add(shares == (collected.*functions).end() ? std::vector<double>(collected.windows) : shares->second);
  }
  return windows;
}

/// Of the samples of a function of a side.
model::SampledIn sampled_in(std::span<const Recording> recordings, bool python, const std::string& function) {
  model::SampledIn sum;
  sum.in_steps = 0;
  for (const Recording& recording : recordings) {
    const auto& in = python ? recording.collected.python_in : recording.collected.functions_in;
    const auto found = in.find(function);
    if (found == in.end()) continue;
    sum.all += found->second.all;
    sum.waiting += python ? found->second.beside : found->second.waiting;
    sum.in_steps += found->second.in_steps;
  }
  return sum;
}

/// Of all samples of a side the share on threads that run steps; 1: nobody tells.
double share_in_steps(std::span<const Recording> recordings) {
  double all = 0;
  double in_steps = 0;
  for (const Recording& recording : recordings) {
    const model::SampledIn& sampled = recording.collected.sampled_in;
    if (!(sampled.all > 0)) continue;
    all += sampled.all;
    in_steps += sampled.in_steps;
  }
  return in_steps > 0 ? in_steps / all : 1;
}

model::ShareChange share_change(std::string name, const std::array<double, 2>& share,
                                const std::array<model::SampledIn, 2>& in, const std::array<double, 2>& all_in_steps) {
  model::ShareChange change{std::move(name), share};
  for (std::size_t s = 0; s < in.size(); ++s) {
    const model::SampledIn& samples = in.at(s);
    if (!(samples.all > 0)) continue;  // it has none, or nobody tells
    change.in_waiting.at(s) = samples.waiting / samples.all;
    change.in_steps.at(s) = samples.in_steps / samples.all / all_in_steps.at(s);
  }
  return change;
}

}  // namespace

void add_quantiles(std::span<const Recording> base, std::span<const Recording> candidate,
                   std::vector<model::CallChange>& calls) {
  const std::array sides = {pooled(base, &Collected::calls), pooled(candidate, &Collected::calls)};
  for (model::CallChange& call : calls)
    for (std::size_t s = 0; s < sides.size(); ++s)
      if (const auto durations = sides[s].find(call.name); durations != sides[s].end())
        call.p99_ns[s] = p99(durations->second);
}

void sort_calls(std::vector<model::CallChange>& calls) {
  const auto impact = [](const model::CallChange& c) {
    return std::abs(c.per_unit[1] * c.per_call_ns[1] - c.per_unit[0] * c.per_call_ns[0]);
  };
  std::ranges::stable_sort(calls, [&](const auto& a, const auto& b) {
    return std::pair(a.waits, -impact(a)) < std::pair(b.waits, -impact(b));
  });
}

std::vector<model::CallChange> call_changes(std::span<const Recording> base, std::span<const Recording> candidate) {
  std::map<std::string, model::CallChange> by_name;
  const std::array sides = {base, candidate};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const double steps = steps_of(sides[s]);
    if (steps == 0) return {};
    for (const auto& [name, durations] : pooled(sides[s], &Collected::calls)) {
      if (durations.count == 0) continue;
      model::CallChange& change = by_name[name];
      change.name = name;
      change.waits = durations.waits;
      change.per_unit[s] = static_cast<double>(durations.count) / steps;
      change.per_call_ns[s] = durations.total_ns / static_cast<double>(durations.count);
      change.p99_ns[s] = p99(durations);
    }
  }
  std::vector<model::CallChange> changes;
  changes.reserve(by_name.size());
  for (auto& [name, change] : by_name) changes.push_back(std::move(change));
  sort_calls(changes);
  return changes;
}

std::vector<model::DiskChange> disk_changes(std::span<const Recording> base, std::span<const Recording> candidate) {
  std::map<std::string, model::DiskChange> by_name;
  const std::array sides = {base, candidate};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const double seconds = seconds_of(sides[s]);
    if (seconds <= 0) continue;
    for (const auto& [name, durations] : pooled(sides[s], &Collected::disks)) {
      if (durations.count == 0) continue;
      model::DiskChange& change = by_name[name];
      change.name = name;
      change.per_second[s] = static_cast<double>(durations.count) / seconds;
      change.bytes_per_second[s] = static_cast<double>(durations.bytes) / seconds;
      change.mean_ns[s] = durations.total_ns / static_cast<double>(durations.count);
      change.p99_ns[s] = p99(durations);
    }
  }
  std::vector<model::DiskChange> changes;
  changes.reserve(by_name.size());
  for (auto& [name, change] : by_name) changes.push_back(std::move(change));
  std::ranges::stable_sort(changes, std::greater(), [](const model::DiskChange& c) {
    return std::abs(c.per_second[1] * c.mean_ns[1] - c.per_second[0] * c.mean_ns[0]);
  });
  return changes;
}

model::OwnDiskChanges own_disk_changes(std::span<const Recording> base, std::span<const Recording> candidate,
                                       const model::WorkUnit* unit) {
  if (unit != nullptr && unit->kind == model::UnitKind::window) return {};
  std::map<std::string, model::OwnDiskChange> by_name;
  const std::array sides = {base, candidate};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const double units = units_of(sides[s], unit);
    if (units <= 0 || !std::ranges::all_of(sides[s], looked_at_requests)) return {};
    for (const auto& [name, requests] : pooled(sides[s], &Collected::own_disks)) {
      if (requests.count == 0) continue;
      const auto count = static_cast<double>(requests.count);
      model::OwnDiskChange& change = by_name[name];
      change.name = name;
      change.count[s] = requests.count;
      change.per_unit[s] = count / units;
      change.bytes_per_unit[s] = static_cast<double>(requests.bytes) / units;
      if (requests.count >= kFewestRequests) change.mean_ns[s] = requests.total_ns / count;
    }
  }
  model::OwnDiskChanges changes;
  changes.per = unit == nullptr ? "step" : std::string(to_string(unit->kind));
  for (auto& [name, change] : by_name)
    if (std::max(change.count[0], change.count[1]) >= kFewestRequests) changes.requests.push_back(std::move(change));
  std::ranges::stable_sort(changes.requests, std::greater(), [](const model::OwnDiskChange& c) {
    return std::abs(c.per_unit[1] * c.mean_ns[1] - c.per_unit[0] * c.mean_ns[0]);
  });
  return changes;
}

std::vector<model::ShareChange> share_changes(std::span<const Recording> base, std::span<const Recording> candidate,
                                              Functions functions, std::size_t most) {
  std::set<std::string> names;
  for (const auto& side : {base, candidate})
    for (const Recording& recording : side)
      for (const auto& [name, shares] : recording.collected.*functions) names.insert(name);
  std::vector<model::ShareChange> changes;
  const std::array all_in_steps = {share_in_steps(base), share_in_steps(candidate)};
  for (const std::string& name : names) {
    const std::array windows = {shares_of(base, functions, name), shares_of(candidate, functions, name)};
    const std::array mean = {mean_of(windows[0]), mean_of(windows[1])};
    if (std::abs(mean[1] - mean[0]) < kLeastShare || !surely_apart(windows[0], windows[1])) continue;
    const bool python = functions == &Collected::python;
    changes.push_back(
        share_change(name, mean, {sampled_in(base, python, name), sampled_in(candidate, python, name)}, all_in_steps));
  }
  std::ranges::stable_sort(changes, std::greater(),
                           [](const model::ShareChange& c) { return std::abs(c.share[1] - c.share[0]); });
  if (changes.size() > most) changes.resize(most);
  return changes;
}

void compare_collected(std::span<const Recording> base, std::span<const Recording> candidate,
                       const model::WorkUnit* unit, model::RunComparison& result) {
  if (unit == nullptr) result.system_calls = call_changes(base, candidate);
  result.disks = disk_changes(base, candidate);
  result.own_disks = own_disk_changes(base, candidate, unit);
  result.on_cpu = share_changes(base, candidate, &Collected::functions);
  result.python = share_changes(base, candidate, &Collected::python);
  result.off_cpu = off_cpu_changes(base, candidate, unit);
}

}  // namespace culprit::compare
