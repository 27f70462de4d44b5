// The profile as the reference tool writes it: times in microseconds, everything else in its own scaled "percent" (a
// clock is 100 x MHz, a link 100 x bytes/s). The numbers are those that it printed, because score and order of its
// comparison depend on their scale and on their last bit. Profile, in SI, is what Culprit itself works on.
#pragma once

#include <cstdint>
#include <vector>

#include "core/string_table.h"
#include "model/input_report.h"
#include "model/profile.h"

namespace culprit::deepdive {

using model::InputReport;
using model::kNoNumber;

/// Where the values of a resource come from.
enum class Provenance : std::uint8_t {
  none,          ///< nothing was measured
  measured,      ///< samples inside the executions
  mixed,         ///< partly measured, partly interpolated
  interpolated,  ///< only from samples around the executions
};

/// One cycle as seen by one anchor.
struct ProfileCycle {
  std::int64_t number = 0;
  StringId anchor = 0;
  double begin_us = kNoNumber;  ///< since the epoch
  double duration_us = kNoNumber;
};

struct ProfileProcess {
  std::int64_t pid = 0;
  StringId host = 0;
};

/// One function of one process on one device during one cycle.
struct FunctionUse {
  std::uint32_t cycle = 0;    ///< index into Profile::cycles
  std::uint32_t process = 0;  ///< index into Profile::processes
  StringId function = 0;
  StringId device = 0;
  StringId kind = 0;
  StringId short_name = 0;
  std::int64_t count = 0;
  double duration_us = kNoNumber;  ///< sum over all executions
  double beta_pct = kNoNumber;     ///< of the cycle's duration; above 100 when executions overlap
};

/// One resource while a function ran. A function without any resource has one entry whose metric is 0.
struct ResourceUse {
  std::uint32_t use = 0;  ///< index into Profile::functions
  StringId metric = 0;
  Provenance provenance = Provenance::none;
  double mu_pct = kNoNumber;     ///< mean
  double sigma_pct = kNoNumber;  ///< spread inside executions
};

struct Profile {
  StringTable texts;
  std::vector<ProfileCycle> cycles;
  std::vector<ProfileProcess> processes;
  std::vector<FunctionUse> functions;
  std::vector<ResourceUse> resources;  ///< in the order of the file that was read or has to be written
  InputReport input;
};

/// One sample of a counter, as the tracer gave it.
struct LoggedSample {
  StringId counter = 0;
  StringId host = 0;
  double time_us = 0;  ///< since the epoch
  double value = 0;
};

/// Counter samples of a run, as exported beside a profile.
struct CounterLog {
  StringTable texts;
  std::vector<LoggedSample> samples;
};

}  // namespace culprit::deepdive
