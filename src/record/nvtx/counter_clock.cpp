#include "record/nvtx/counter_clock.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "record/collector/collector.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace culprit::record::nvtx {

namespace {

__extension__ using Wide = __int128;

}  // namespace

std::uint64_t read_counter() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

ClockPoint clock_point(Ns* uncertainty) {
  ClockPoint best;
  std::uint64_t narrowest = std::numeric_limits<std::uint64_t>::max();
  Ns half = 0;
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = read_counter();
    const Ns at = monotonic_now();
    const std::uint64_t after = read_counter();
    const Ns later = monotonic_now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + narrowest / 2, at};
    half = (later - at) / 2;
  }
  if (uncertainty != nullptr) *uncertainty = half;
  return best;
}

void CounterClock::add(const ClockPoint& point) {
  if (!points_.empty() && (point.counter <= points_.back().counter || point.at <= points_.back().at)) return;
  points_.push_back(point);
  if (points_.size() > kMostPoints) points_.pop_front();
}

Ns CounterClock::at(std::uint64_t counter) const {
  assert(ready());
  const auto after =
      std::ranges::lower_bound(points_.begin() + 1, points_.end() - 1, counter, {}, &ClockPoint::counter);
  const ClockPoint& a = *(after - 1);
  const ClockPoint& b = *after;
  const Wide distance = static_cast<Wide>(counter) - static_cast<Wide>(a.counter);
  const Wide ns = a.at + distance * (b.at - a.at) / static_cast<Wide>(b.counter - a.counter);
  return static_cast<Ns>(std::clamp<Wide>(ns, std::numeric_limits<Ns>::min(), std::numeric_limits<Ns>::max()));
}

}  // namespace culprit::record::nvtx
