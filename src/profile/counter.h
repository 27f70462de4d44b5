// What a counter of a trace measures: unit, factor to SI, and which device, process or host it belongs to.
#pragma once

#include <cstdint>
#include <string>

#include "model/profile.h"
#include "trace/trace.h"

namespace culprit::profile {

struct CounterMeaning {
  std::string metric;  ///< name without the device's or process's number
  model::Unit unit = model::Unit::plain;
  double to_si = 1;          ///< raw value times this is SI
  std::int64_t device = -1;  ///< number on its host, -1: not a device's
  std::int64_t pid = -1;     ///< process it was measured of, -1: not a process's
  std::string place;         ///< the disk, network or other part it was measured of; empty: the whole host
  bool clock = false;        ///< a device clock, which says nothing while the device is idle
};

/// From the series' name ("gpu_frequency", "GPU 0 clock.MHz", "process_cpu_usage_17") and the track it lies on
/// ("CAT_XPU_0"). Units that no name tells are plain.
CounterMeaning meaning_of(const Trace& trace, const CounterSeries& series);

/// True when `metric` can have to do with functions of `kind`.
bool concerns(const CounterMeaning& meaning, std::string_view kind);

}  // namespace culprit::profile
