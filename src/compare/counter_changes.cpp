#include "compare/counter_changes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "compare/host_changes.h"
#include "compare/series.h"
#include "stats/quantile.h"

namespace culprit::compare {

using model::Recording;

namespace {

/// A limit on a group of processes, or its effect, is there or is not: a quota, throttled periods. Of other counters
/// every value is as good as 0.
bool is_in_force(std::string_view name, std::span<const CycleValue> values) {
  const bool limits = model::is_limit_of_group(name);
  return std::ranges::any_of(values, [&](const CycleValue& v) { return !limits || v.value != 0; });
}

bool is_speed_of_cpu(std::string_view name) {
  return name.starts_with("host.cpu") && name.find(".speed.") != std::string_view::npos;
}

Series log_series(std::span<const CycleValue> values) {
  std::vector<double> plain;
  plain.reserve(values.size());
  for (const CycleValue& v : values) plain.push_back(v.value);
  const std::vector<CycleValue> logs = logs_of(plain);
  return summarise(logs, logs.size());
}

/// The windows of a counter on both sides.
struct Values {
  std::string unit;
  std::array<PooledWindows, 2> of;
  std::array<std::uint64_t, 2> samples{};  ///< that were taken
};

/// What connections are like hardly varies inside of a recording, and is looked at so seldom that the windows of one
/// hold few values.
bool is_of_connections(std::string_view name) {
  return name.starts_with("target.tcp.") && !name.ends_with("connections");
}

/// Three fourths of one side's values lie beyond twice each of the other's.
bool lie_apart(const Values& values) {
  constexpr std::uint64_t kFewest = 4;
  constexpr double kQuarter = 0.25;
  constexpr double kTimes = 2;
  std::array<std::vector<double>, 2> sorted;
  for (std::size_t s = 0; s < 2; ++s) {
    if (values.samples[s] < kFewest || values.of[s].values.size() < kFewest) return false;
    for (const CycleValue& v : values.of[s].values) sorted[s].push_back(v.value);
    std::ranges::sort(sorted[s]);
  }
  const auto beyond = [&](const std::vector<double>& more, const std::vector<double>& less) {
    const double least = stats::quantile_of_sorted(std::span<const double>(more), kQuarter);
    return least > 0 && least >= kTimes * less.back();
  };
  return beyond(sorted[1], sorted[0]) || beyond(sorted[0], sorted[1]);
}

std::map<std::string, Values> windows_of(std::span<const Recording> base, std::span<const Recording> candidate) {
  std::map<std::string, Values> counters;
  const std::array sides = {base, candidate};
  for (std::size_t s = 0; s < 2; ++s)
    for (const Recording& recording : sides[s])
      for (const model::HostCounter& counter : recording.host.counters) {
        Values& values = counters[counter.name];
        values.unit = counter.unit;
        values.samples[s] += counter.samples;
        values.of[s].add(counter.windows);
      }
  return counters;
}

}  // namespace

CounterChanges counter_changes(std::span<const Recording> base, std::span<const Recording> candidate) {
  constexpr double kLeastSpeed = 0.05;
  CounterChanges changes;
  std::vector<std::pair<double, model::HostChange>> moved;
  for (const auto& [name, values] : windows_of(base, candidate)) {
    const std::array mean = {mean_of(values.of[0]), mean_of(values.of[1])};
    if (name.starts_with("host.speed.") || (name.starts_with("host.cpu") && name.ends_with(".frequency"))) {
      // A piece of work that was held up takes many times as long as the others.
      const std::array logs = {log_series(values.of[0].values), log_series(values.of[1].values)};
      if (logs[0].effective >= kFewCycles && logs[1].effective >= kFewCycles)
        if (const MeanDifference d = difference_of(logs[0], logs[1], 0);
            std::abs(d.difference) > d.half && std::abs(d.difference) >= std::log1p(kLeastSpeed))
          changes.unshown.push_back({name, values.unit, {std::exp(logs[0].mean), std::exp(logs[1].mean)}});
    }
    if (is_speed_of_cpu(name)) continue;  // of whichever the recorder was on
    if (is_of_connections(name)) {
      if (values.of[0].values.empty() || values.of[1].values.empty()) continue;
      model::HostChange change{name, values.unit, {mean[0], mean[1]}};
      if (lie_apart(values))
        moved.emplace_back(std::numeric_limits<double>::max(), std::move(change));
      else
        changes.unshown.push_back(std::move(change));
      continue;
    }
    const std::array in_force = {is_in_force(name, values.of[0].values), is_in_force(name, values.of[1].values)};
    if (in_force[0] != in_force[1]) {
      model::HostChange change{name, values.unit, {}};
      if (!values.of[0].values.empty()) change.value[0] = mean[0];
      if (!values.of[1].values.empty()) change.value[1] = mean[1];
      moved.emplace_back(std::numeric_limits<double>::infinity(), std::move(change));
      continue;
    }
    if (const auto apart = surely_apart(values.of[0], values.of[1]))
      moved.push_back({*apart, {name, values.unit, {mean[0], mean[1]}}});
    else if (is_of_group_memory(name))
      changes.unshown.push_back({name, values.unit, {mean[0], mean[1]}});
  }
  std::ranges::stable_sort(moved, [](const auto& x, const auto& y) { return x.first > y.first; });
  changes.moved.reserve(moved.size());
  for (auto& [certainty, change] : moved) changes.moved.push_back(std::move(change));
  return changes;
}

}  // namespace culprit::compare
