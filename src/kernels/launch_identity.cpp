#include "kernels/launch_identity.h"

#include <tsl/hopscotch_map.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>

#include "core/hash.h"
#include "core/saturating.h"
#include "profile/function_kind.h"
#include "profile/function_name.h"

namespace culprit::kernels {

namespace {

/// A latency this much longer than the next shorter one begins a new group.
constexpr double kLatencyRatio = 1.25;
/// A utilisation this much higher than the next lower one begins a new group.
constexpr float kUseStep = 0.10f;

/// Cuts `rows` (ordered by `value`) where `apart(previous, next)`; calls `group` per piece.
template <class Value, class Apart, class Group>
void cut_groups(std::span<std::uint32_t> rows, Value value, Apart apart, Group group) {
  std::ranges::sort(rows, [&](std::uint32_t a, std::uint32_t b) {
    const auto va = value(a);
    const auto vb = value(b);
    return va != vb ? va < vb : a < b;
  });
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= rows.size(); ++i) {
    if (i < rows.size() && !apart(value(rows[i - 1]), value(rows[i]))) continue;
    group(rows.subspan(begin, i - begin));
    begin = i;
  }
}

float known(float use) { return std::isnan(use) ? -1.0f : use; }

std::uint64_t shape_hash(const model::KernelLaunch& launch) {
  const std::uint64_t key[4] = {launch.name, (std::uint64_t{launch.grid[0]} << 32) | launch.grid[1],
                                (std::uint64_t{launch.grid[2]} << 32) | launch.block[0],
                                (std::uint64_t{launch.block[1]} << 32) | launch.block[2]};
  return hash_of(std::span<const std::uint64_t>(key));
}

/// Numbers in order of first appearance.
class Dense {
 public:
  std::uint32_t operator()(std::uint64_t key) {
    return ids_.try_emplace(key, static_cast<std::uint32_t>(ids_.size())).first->second;
  }

 private:
  tsl::hopscotch_map<std::uint64_t, std::uint32_t> ids_;
};

std::vector<std::uint32_t> kernel_groups(const model::KernelLog& log) {
  const auto& launches = log.launches;
  std::vector<std::uint32_t> shape(launches.size());
  Dense dense;
  for (std::size_t i = 0; i < launches.size(); ++i) shape[i] = dense(shape_hash(launches[i]));

  std::vector<std::uint32_t> rows(launches.size());
  std::iota(rows.begin(), rows.end(), 0u);
  std::ranges::stable_sort(rows, {}, [&](std::uint32_t row) { return shape[row]; });
  std::vector<std::uint32_t> group_of(launches.size());
  std::uint32_t groups = 0;
  const auto latency = [&](std::uint32_t row) { return std::max<Ns>(1, launches[row].latency); };
  const auto longer = [](Ns a, Ns b) { return static_cast<double>(b) > static_cast<double>(a) * kLatencyRatio; };
  const auto tensor = [&](std::uint32_t row) { return known(launches[row].tensor); };
  const auto dram = [&](std::uint32_t row) { return known(launches[row].dram); };
  const auto higher = [](float a, float b) { return b > a + kUseStep; };
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    while (end < rows.size() && shape[rows[end]] == shape[rows[begin]]) ++end;
    cut_groups(std::span(rows).subspan(begin, end - begin), latency, longer, [&](std::span<std::uint32_t> by_latency) {
      cut_groups(by_latency, tensor, higher, [&](std::span<std::uint32_t> by_tensor) {
        cut_groups(by_tensor, dram, higher, [&](std::span<std::uint32_t> alike) {
          for (const std::uint32_t row : alike) group_of[row] = groups;
          ++groups;
        });
      });
    });
    begin = end;
  }
  return group_of;
}

}  // namespace

std::string shown_name(const model::KernelLog& log, const model::KernelLaunch& launch) {
  if (launch.short_name != 0) return std::string(log.names[launch.short_name]);
  return short_name(demangle(log.names[launch.name]));
}

LaunchIds launch_ids(const model::KernelLog& log) {
  LaunchIds ids;
  ids.kernel = kernel_groups(log);
  ids.name.reserve(log.launches.size());
  ids.family.reserve(log.launches.size());
  std::vector<std::optional<std::uint32_t>> family_of_name(log.names.size());
  for (const model::KernelLaunch& launch : log.launches) {
    ids.name.push_back(launch.name);
    auto& family = family_of_name[launch.name];
    if (!family) {
      const KernelFamily found = family_of(log.names[launch.name]);
      family = found == KernelFamily::other ? launch.name + static_cast<std::uint32_t>(kKernelFamilies)
                                            : static_cast<std::uint32_t>(found);
    }
    ids.family.push_back(*family);
  }
  return ids;
}

std::vector<model::Lane> lanes_of(const model::KernelLog& log) {
  std::map<std::tuple<std::int32_t, std::int16_t, std::int32_t>, model::Lane> by_key;
  for (std::size_t i = 0; i < log.launches.size(); ++i) {
    const model::KernelLaunch& launch = log.launches[i];
    model::Lane& lane = by_key[{launch.process, launch.device, launch.stream}];
    lane.process = launch.process;
    lane.device = launch.device;
    lane.stream = launch.stream;
    lane.time = add_saturating(lane.time, launch.latency);
    lane.launches.push_back(static_cast<std::uint32_t>(i));
  }
  std::vector<model::Lane> lanes;
  for (auto& [key, lane] : by_key) {
    const bool timed = std::ranges::all_of(lane.launches, [&](std::uint32_t i) { return log.launches[i].begin >= 0; });
    if (timed) std::ranges::stable_sort(lane.launches, {}, [&](std::uint32_t i) { return log.launches[i].begin; });
    lanes.push_back(std::move(lane));
  }
  std::ranges::stable_sort(lanes, std::greater<>(), &model::Lane::time);
  return lanes;
}

}  // namespace culprit::kernels
