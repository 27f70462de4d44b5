#include "formats/perfetto/clock_times.h"

#include <ctime>

namespace culprit::perfetto {

namespace {

Ns read_clock(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return static_cast<Ns>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

ClockTimes read_clocks() {
  ClockTimes best;
  Ns shortest = -1;
  for (int i = 0; i < 5; ++i) {
    const Ns before = read_clock(CLOCK_MONOTONIC);
    const Ns boot = read_clock(CLOCK_BOOTTIME);
    const Ns real = read_clock(CLOCK_REALTIME);
    const Ns after = read_clock(CLOCK_MONOTONIC);
    if (shortest >= 0 && after - before >= shortest) continue;
    shortest = after - before;
    best = {before + shortest / 2, boot, real, (shortest + 1) / 2};
  }
  return best;
}

}  // namespace culprit::perfetto
