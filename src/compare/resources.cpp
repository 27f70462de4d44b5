#include "compare/resources.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "compare/host_changes.h"
#include "core/intervals.h"
#include "core/saturating.h"

namespace culprit::compare {

namespace {

constexpr std::string_view kDevice = "GPU ";

std::vector<Interval> cycles_of(const model::Profile& profile, std::int32_t rank) {
  std::vector<Interval> cycles;
  for (const model::ProfileCycle& cycle : profile.cycles)
    if (cycle.rank == rank) cycles.push_back({cycle.begin, add_saturating(cycle.begin, cycle.duration)});
  unite(cycles);
  return cycles;
}

bool moved(const std::array<std::optional<double>, 2>& value) {
  if (!value[0] || !value[1]) return true;
  return std::abs(*value[1] - *value[0]) > kLeastCounterShare * std::max(std::abs(*value[0]), std::abs(*value[1]));
}

}  // namespace

void add_resources(const model::Profile& profile, ResourceMeans& means) {
  std::map<std::int32_t, std::set<std::string_view>> devices;
  for (const model::ResourceSeries& series : profile.series)
    if (profile.texts[series.device].starts_with(kDevice)) devices[series.rank].insert(profile.texts[series.device]);
  std::map<std::int32_t, std::vector<Interval>> cycles;
  for (const auto& [rank, names] : devices) cycles[rank] = cycles_of(profile, rank);
  for (const model::ResourceSeries& series : profile.series) {
    const std::string_view device = profile.texts[series.device];
    if (!device.starts_with(kDevice)) continue;
    double sum = 0;
    double samples = 0;
    if (series.only_while_busy) {
      samples = static_cast<double>(series.busy_samples);
      if (series.busy_samples > 0) sum = series.busy_mean * samples;
    } else {
      const std::vector<Interval>& inside = cycles[series.rank];
      for (std::size_t i = 0; i < series.times.size(); ++i) {
        const auto after = std::ranges::upper_bound(inside, series.times[i], {}, &Interval::begin);
        if (after == inside.begin() || (after - 1)->end <= series.times[i]) continue;
        sum += series.values[i];
        ++samples;
      }
    }
    if (samples == 0) continue;
    const bool only = devices[series.rank].size() == 1;
    ResourceMean& mean = means[{std::string(profile.texts[series.metric]), series.rank,
                                only ? std::string("GPU") : std::string(device)}];
    mean.sum += sum;
    mean.samples += samples;
    mean.unit = series.unit;
  }
}

std::vector<model::ResourceChange> resource_changes(const ResourceMeans& base, const ResourceMeans& candidate,
                                                    std::vector<model::ResourceChange>& steady) {
  std::map<ResourceMeans::key_type, model::ResourceChange> changes;
  const std::array sides = {&base, &candidate};
  for (std::size_t s = 0; s < sides.size(); ++s)
    for (const auto& [key, mean] : *sides[s]) {
      model::ResourceChange& change = changes[key];
      std::tie(change.metric, change.rank, change.device) = key;
      change.unit = mean.unit;
      change.value[s] = mean.sum / mean.samples;
    }
  std::vector<model::ResourceChange> result;
  for (auto& [key, change] : changes) {
    (moved(change.value) ? result : steady).push_back(std::move(change));
  }
  return result;
}

}  // namespace culprit::compare
