// The profile of a run: how long every function took in every cycle, and how the resources behaved meanwhile.
//
// All quantities are SI (ns, fractions, Hz, bytes, bytes/s).
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "core/string_table.h"
#include "core/units.h"
#include "model/cycles.h"
#include "model/ledger.h"

namespace culprit::model {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// What a resource value is measured in.
enum class Unit : std::uint8_t { plain, fraction, hertz, bytes, bytes_per_second, celsius, watt };

/// As written in output: "bytes/s"; empty for plain.
std::string_view unit_name(Unit unit);

/// Where the values of a resource come from.
enum class Provenance : std::uint8_t {
  none,          ///< nothing was measured
  measured,      ///< samples inside the executions
  interpolated,  ///< only from samples around the executions
  pooled,        ///< samples inside the executions, too few in each but put together
};

/// One cycle as seen by one anchor.
struct ProfileCycle {
  std::int64_t number = 0;
  StringId anchor = 0;
  Ns begin = 0;  ///< since the epoch; 0 when unknown
  Ns duration = 0;
  Phase phase = Phase::other;
  bool phase_guessed = false;  ///< see Cycle::phase_guessed
  std::int32_t rank = -1;      ///< its number (trace/rank_numbers.h), -1 when not known
  std::int64_t pid = -1;       ///< whose cycle it is, -1 when not known
  Workload workload;
  bool other_work = false;      ///< the run it is compared with has no cycle of such work
  std::uint32_t recording = 0;  ///< of several of the same
};

struct ProfileProcess {
  std::int64_t pid = 0;
  StringId host = 0;
  std::int32_t rank = -1;  ///< its number, -1 when not known
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
  Ns duration = 0;          ///< sum over all executions
  double beta = kNoNumber;  ///< duration over the cycle's duration; above 1 when executions overlap
  Ns exposed = -1;          ///< of `duration`, while nothing more important ran on the device; -1: not known
  Ns own = -1;  ///< of `duration` on a thread, outside of what was called; -1: not measured, or not of a thread
  /// The function or range (without its numbers), of another name, in which more than half of `duration` lay or was
  /// launched, if there is one; else any of those; 0: none is known.
  StringId parent = 0;
  Ns inside = 0;    ///< of `duration`, in that parent
  double size = 0;  ///< threads launched, or bytes copied or set, by all executions; 0: not known
};

/// One resource while a function ran. A function without any resource has one entry whose metric is 0.
struct ResourceUse {
  std::uint32_t use = 0;  ///< index into Profile::functions
  StringId metric = 0;
  Unit unit = Unit::plain;
  Provenance provenance = Provenance::none;
  double mu = kNoNumber;      ///< mean
  double sigma = kNoNumber;   ///< spread inside executions
  std::uint64_t samples = 0;  ///< that mu and sigma are made of; 0 when interpolated or not known
};

/// All samples of one resource of one device, process or host, at their own times.
struct ResourceSeries {
  StringId metric = 0;
  StringId host = 0;
  StringId device = 0;     ///< "GPU 3", "Host", or the text of the track it was sampled on
  std::int64_t pid = -1;   ///< of a process's own resource
  std::int32_t rank = -1;  ///< number of the one that recorded it; -1 when not known
  Unit unit = Unit::plain;
  bool only_while_busy = false;    ///< a device clock: `busy_*` are what it may be judged by
  std::vector<Ns> times;           ///< on the clock of ProfileCycle::begin, ascending
  std::vector<double> values;      ///< SI
  std::uint64_t busy_samples = 0;  ///< taken while the device worked
  double busy_mean = kNoNumber;
};

struct Profile {
  StringTable texts;
  std::vector<ProfileCycle> cycles;
  std::vector<ProfileProcess> processes;
  std::vector<FunctionUse> functions;
  std::vector<ResourceUse> resources;  ///< by use, then metric
  std::vector<ResourceSeries> series;  ///< by (metric, host, rank, device, pid)
  Ledger ledger;                       ///< of cycles whose period is known
};

/// By row of the processes: which have cycles; all, where nobody tells whose cycles they are.
std::vector<bool> have_cycles(const Profile& profile);

}  // namespace culprit::model
