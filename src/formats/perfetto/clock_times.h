// What the clocks that a recording relates show at one moment.
#pragma once

#include "core/units.h"

namespace culprit::perfetto {

struct ClockTimes {
  Ns monotonic = 0;
  Ns boottime = 0;
  Ns realtime = 0;
  Ns error = 0;  ///< half the time the reading took
};

/// Reads the clocks between two readings of MONOTONIC, and keeps the quickest of a few tries.
ClockTimes read_clocks();

}  // namespace culprit::perfetto
