#include "trace/request_times.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace culprit {

namespace {

/// As the recorder calls them, and as people do.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kKinds = {
    {{"request", "request"},
     {"queue", "queue wait"},
     {"first_token", "time to first token"},
     {"output_token", "time per output token"},
     {"prefill", "prefill"},
     {"decode", "decode"}}};

std::size_t place_of(std::string_view name) {
  const auto* found = std::ranges::find(kKinds, name, &std::pair<std::string_view, std::string_view>::first);
  return static_cast<std::size_t>(found - kKinds.begin());
}

}  // namespace

std::vector<RequestTimes> request_times(const Trace& trace) {
  std::vector<bool> wanted;
  wanted.reserve(trace.categories.size());
  for (const Category& category : trace.categories) wanted.push_back(category.name == kRequestCategory);
  std::vector<RequestTimes> rows;
  if (std::ranges::find(wanted, true) == wanted.end()) return rows;
  std::map<std::tuple<std::size_t, StringId, ProcessId>, std::vector<double>> times;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (!wanted[slice.category]) continue;
    const ProcessId process = trace.tracks[slice.track].process;
    times[{place_of(trace.name(slice)), slice.name, process}].push_back(static_cast<double>(slice.duration));
  }
  for (auto& [key, values] : times) {
    const auto& [place, name, process] = key;
    RequestTimes& row = rows.emplace_back();
    row.what = place < kKinds.size() ? kKinds[place].second : trace.strings[name];
    row.process = trace.strings[trace.processes[process].name];
    row.pid = trace.processes[process].pid;
    row.times = std::move(values);
    std::ranges::sort(row.times);
  }
  return rows;
}

}  // namespace culprit
