#include "record/collector/collector.h"

#include <ctime>

namespace culprit::record {

namespace {

Ns read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return Ns{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Ns monotonic_now() { return read(CLOCK_MONOTONIC); }
Ns thread_cpu() { return read(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace culprit::record
