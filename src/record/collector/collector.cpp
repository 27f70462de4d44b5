#include "record/collector/collector.h"

#include <ctime>

namespace culprit::record {

Ns monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Ns{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace culprit::record
