#include "formats/perfetto/clocks.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "formats/perfetto/trace.pb.h"
#include "trace/builder.h"

namespace culprit::perfetto {

namespace {

constexpr std::uint32_t kMostOwnClock = 128;  ///< above the clocks that belong to one sequence

/// Nanoseconds, or nullopt when they are out of range.
std::optional<Ns> nanoseconds(std::uint64_t at, std::uint64_t unit_ns) {
  if (unit_ns == 0) unit_ns = 1;
  if (at > static_cast<std::uint64_t>(kMaxTime) / unit_ns) return std::nullopt;
  return static_cast<Ns>(at * unit_ns);
}

}  // namespace

Clocks::Clocks() : primary_(proto::BUILTIN_CLOCK_BOOTTIME) {}

Clocks::Key Clocks::key(std::uint32_t sequence, std::uint32_t clock) {
  const bool own = clock > proto::BUILTIN_CLOCK_MAX_ID && clock < kMostOwnClock;
  return (own ? static_cast<Key>(sequence) << 32 : 0) | clock;
}

std::optional<Ns> Clocks::at_point(Clock& clock, Ns at) {
  if (clock.points.empty()) return std::nullopt;
  Stretch& stretch = clock.last_used;
  if (at < stretch.begin || at >= stretch.end) {
    constexpr Ns kEver = std::numeric_limits<Ns>::max();
    const auto next = clock.points.upper_bound(at);
    const auto known = next == clock.points.begin() ? next : std::prev(next);
    stretch.begin = next == clock.points.begin() ? -kEver : known->first;
    stretch.end = next == clock.points.end() ? kEver : next->first;
    stretch.shift = known->second - known->first;  // both at most kMaxTime: no overflow, here and below
  }
  const Ns moved = at + stretch.shift;
  if (moved > kMaxTime || moved < -kMaxTime) return std::nullopt;
  return moved;
}

void Clocks::snapshot(std::uint32_t sequence, const std::vector<ClockReading>& readings,
                      std::optional<std::uint32_t> primary) {
  if (!primary_known_) {
    primary_ = primary.value_or(proto::BUILTIN_CLOCK_BOOTTIME);
    primary_known_ = true;
  }
  // The moment on the trace's clock: read directly, or through a clock that is related to it already.
  std::optional<Ns> moment;
  for (const ClockReading& reading : readings)
    if (reading.clock == primary_) moment = nanoseconds(reading.at, reading.unit_ns);
  for (const ClockReading& reading : readings) {
    if (moment) break;
    const auto known = clocks_.find(key(sequence, reading.clock));
    const auto at = nanoseconds(reading.at, reading.unit_ns);
    if (known != clocks_.end() && at) moment = at_point(known->second, *at);
  }
  if (!moment) return;
  for (const ClockReading& reading : readings) {
    const auto at = nanoseconds(reading.at, reading.unit_ns);
    const Key id = key(sequence, reading.clock);
    if (!at) continue;
    Clock& clock = clocks_[id];
    clock.unit_ns = std::max<std::uint64_t>(1, reading.unit_ns);
    clock.incremental = reading.incremental;
    clock.last = reading.at;
    clock.points[*at] = *moment;
    clock.last_used = {};
    if (reading.clock == proto::BUILTIN_CLOCK_REALTIME && !realtime_of_zero_) realtime_of_zero_ = *at - *moment;
  }
}

std::optional<Ns> Clocks::convert(std::uint32_t sequence, std::uint32_t clock, std::uint64_t at) {
  if (clock == 0) return nanoseconds(at, 1);
  const auto it = clocks_.find(key(sequence, clock));
  if (it == clocks_.end()) {
    // Without any snapshot all builtin clocks are taken for the trace's.
    if (clocks_.empty() && clock <= proto::BUILTIN_CLOCK_MAX_ID) return nanoseconds(at, 1);
    return clock == primary_ ? nanoseconds(at, 1) : std::nullopt;
  }
  Clock& known = it->second;
  if (known.incremental) at = known.last += at;
  const auto ns = nanoseconds(at, known.unit_ns);
  if (!ns || clock == primary_) return ns;
  return at_point(known, *ns);
}

}  // namespace culprit::perfetto
