// What made a run slower than another. `diagnose` names it, `report` shows it. Where there is one value per side, [0]
// is the baseline's and [1] the candidate's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/json_writer.h"
#include "core/units.h"
#include "model/profile.h"

namespace culprit::model {

/// Whether a cause made the steps longer, or work became slower while something else hides it.
enum class VerdictState : std::uint8_t { active, latent };

/// Where a cause sits.
enum class VerdictScope : std::uint8_t { host, device, process, function, rank };

struct Verdict {
  std::string cause;   ///< "cpu_contention", as docs/verdicts.md lists them
  std::string detail;  ///< "throttled"; empty: none, or not known
  VerdictScope scope = VerdictScope::host;
  std::string where;       ///< "GPU 7", the function; empty: all of the scope
  std::string process{};   ///< of a function, its number on that side, where there are several; empty: not known
  std::string device{};    ///< of a function that runs on one; empty: on the host
  std::int32_t rank = -1;  ///< where it sits on one of several
  std::size_t side = 1;    ///< that has the cause
  VerdictState state = VerdictState::active;
  double impact_ns = kNoNumber;       ///< that a step, or unit of work, of that side takes longer by it
  double share = kNoNumber;           ///< of all that it takes longer
  double work_ratio = kNoNumber;      ///< time of the same work, with the cause over without it
  double confidence = 0;              ///< 0 to 1
  std::vector<std::string> evidence;  ///< sentences
  std::vector<std::string> against;
  std::string next_step;
};

/// As the array member "verdicts".
void write_verdicts(JsonWriter& json, const std::vector<Verdict>& verdicts);

inline const char* to_string(VerdictState state) { return state == VerdictState::active ? "active" : "latent"; }
inline const char* to_string(VerdictScope scope) {
  switch (scope) {
    case VerdictScope::host:
      return "host";
    case VerdictScope::device:
      return "device";
    case VerdictScope::process:
      return "process";
    case VerdictScope::function:
      return "function";
    case VerdictScope::rank:
      return "rank";
  }
  return "host";
}

}  // namespace culprit::model
