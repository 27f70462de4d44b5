#include <algorithm>
#include <string_view>

#include "core/text.h"
#include "formats/perfetto/costs.h"
#include "formats/perfetto/track_events.h"
#include "formats/perfetto/writer.h"
#include "stats/log_buckets.h"

namespace culprit::perfetto {

std::pair<ProcessId, StringId> TrackEvents::owner_and_disk(std::uint32_t track) {
  std::int64_t pid = -1;
  std::int64_t tid = -1;
  owner(tracks_[track], pid, tid);
  if (pid >= 0) introduce_process(pid);
  const ProcessId process = builder_.process(pid, pid < 0 ? builder_.intern("host") : 0);
  std::string_view name = builder_.trace().strings[tracks_[track].name];
  if (name.starts_with(kPortTrack))
    return {process, builder_.intern(name.substr(0, name.find(' ', kPortTrack.size())))};
  if (name.starts_with(kUnixTrack)) return {process, builder_.intern(kUnixTrack)};
  if (!name.starts_with(kDiskTrack)) return {process, 0};
  name.remove_prefix(kDiskTrack.size());
  return {process, builder_.intern(name.substr(0, name.find(' ')))};
}

void TrackEvents::add_disk_total(const Event& event, const Arguments& kept) {
  if (kept.count < 0 || kept.total_ns < 0) return;
  const auto [process, disk] = owner_and_disk(event.track);
  builder_.trace().disks.push_back({event.at, disk, event.name, process, static_cast<std::uint64_t>(kept.count),
                                    kept.gpu.bytes, std::min(kept.total_ns, kMaxDuration),
                                    std::clamp<Ns>(kept.longest_ns, 0, kMaxDuration)});
}

void TrackEvents::add_durations(const Event& event, const Arguments& kept) {
  const auto [process, disk] = owner_and_disk(event.track);
  auto& rows = builder_.trace().durations;
  const auto [found, added] = durations_.try_emplace({process, disk, event.name}, rows.size());
  if (added) {
    expansion_.spend(stats::kLogBuckets * sizeof(std::uint64_t));
    rows.push_back({event.name, disk, process, std::vector<std::uint64_t>(stats::kLogBuckets)});
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  DurationCounts& row = rows[found->second];
  row.unended = std::min(row.unended + static_cast<std::uint64_t>(std::max<std::int64_t>(kept.unended, 0)), kMost);
  row.bytes += kept.gpu.bytes;
  auto& buckets = row.buckets;
  std::string_view text = builder_.trace().strings[kept.buckets];
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t colon = word.find(':');
    const auto bucket = parse_number<std::size_t>(word.substr(0, colon));
    const auto count =
        colon == std::string_view::npos ? std::nullopt : parse_number<std::uint64_t>(word.substr(colon + 1));
    if (!bucket || !count || *bucket >= buckets.size() || *count > kMost)
      builder_.losses().add(LossReason::argument_invalid);
    else
      buckets[*bucket] = std::min(buckets[*bucket] + *count, kMost);
  }
}

}  // namespace culprit::perfetto
