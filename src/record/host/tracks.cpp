#include "record/host/tracks.h"

#include <algorithm>
#include <cmath>

namespace culprit::record {

namespace {

constexpr Ns kLongestSilence = 1'000'000'000;

}  // namespace

void Emitter::put(Track& track, Ns at, double value) {
  if (!std::isfinite(value)) return count_odd();
  at = std::max(at, begin_);
  if (!track.id) {
    track.id = out_.track(track.name, track.unit, track.pid);
  } else if (value == track.value && track.written >= begin_ && at - track.written < kLongestSilence) {
    track.skipped = at;
    return;
  } else if (value != track.value && track.skipped && *track.skipped >= begin_) {
    out_.put(*track.id, *track.skipped, track.value);
    ++written_;
  }
  track.skipped.reset();
  out_.put(*track.id, at, value);
  ++written_;
  track.value = value;
  track.written = at;
}

double Growing::Step::per_second() const { return static_cast<double>(delta) * 1e9 / static_cast<double>(span); }

std::optional<Growing::Step> Growing::step(std::uint64_t now_value, Ns now, Emitter& emitter, std::uint64_t wraps_at) {
  const std::optional<std::uint64_t> before = last;
  const Ns since = at;
  last = now_value;
  at = now;
  if (!before || now <= since) return std::nullopt;
  if (now_value >= *before) return Step{now_value - *before, since, now - since};
  if (wraps_at >= *before) return Step{wraps_at - *before + now_value, since, now - since};
  emitter.count_odd();
  return std::nullopt;
}

std::string track_part(std::string_view name) {
  constexpr std::size_t kLongest = 32;
  std::string part(name.substr(0, kLongest));
  for (char& c : part) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  return part;
}

}  // namespace culprit::record
