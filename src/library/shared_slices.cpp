#include "library/shared_slices.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <set>

#include "core/hash.h"
#include "core/saturating.h"

namespace culprit::library {

namespace {

constexpr std::size_t kChosen = 2048;  ///< at most: 50 of them tell of a copy that has a fortieth
constexpr std::size_t kFewest = 50;
constexpr double kShare = 0.9;
constexpr Ns kSinceStart = 60'000'000'000;  ///< a machine is up when something is recorded on it

bool clock_tells_moment(const Trace& trace) {
  Ns first = std::numeric_limits<Ns>::max();
  for (std::size_t i = 0; i < trace.slices.size(); ++i) first = std::min(first, trace.slices[i].begin);
  return !trace.slices.empty() && (trace.base_ns != 0 || first >= kSinceStart);
}

}  // namespace

std::vector<ChosenSlice> choose_slices(const Trace& trace) {
  if (!clock_tells_moment(trace)) return {};
  std::set<ChosenSlice> chosen;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const Track& track = trace.tracks[slice.track];
    const std::uint64_t when = hash_parts(add_saturating(trace.base_ns, slice.begin), slice.duration,
                                          trace.processes[track.process].pid, track.tid, track.device, track.stream);
    if (chosen.size() == kChosen && when > std::prev(chosen.end())->when) continue;
    chosen.insert({when, hash_of(trace.name(slice))});
    if (chosen.size() > kChosen) chosen.erase(std::prev(chosen.end()));
  }
  return {chosen.begin(), chosen.end()};
}

bool are_of_one_recording(const std::vector<ChosenSlice>& a, const std::vector<ChosenSlice>& b) {
  if (a.empty() || b.empty()) return false;
  // Beyond the last one of a full choice its trace may have more.
  const auto upto = [](const std::vector<ChosenSlice>& all, const std::vector<ChosenSlice>& other) {
    return other.size() < kChosen ? all.end() : std::ranges::upper_bound(all, other.back());
  };
  const auto a_end = upto(a, b);
  const auto b_end = upto(b, a);
  std::vector<ChosenSlice> shared;
  std::set_intersection(a.begin(), a_end, b.begin(), b_end, std::back_inserter(shared));
  const auto fewer = static_cast<double>(std::min(a_end - a.begin(), b_end - b.begin()));
  return shared.size() >= kFewest && static_cast<double>(shared.size()) >= kShare * fewer;
}

}  // namespace culprit::library
