// What both ways of alternating share: what is asked, what is told meanwhile, what comes out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ab/paired.h"
#include "core/error.h"
#include "core/units.h"
#include "model/alternation.h"
#include "model/comparison.h"
#include "record/collector/collector.h"
#include "record/python/function_spec.h"

namespace culprit::ab {

using model::kSideNames;

/// Which number is compared.
struct Quantity {
  enum class Kind : std::uint8_t {
    automatic,   ///< the time of a step, where both sides have such, else of the run
    step,        ///< the time of a step
    run,         ///< of commands: the time of the run
    cpu,         ///< CPU time: of a command's run, else of all threads of the side per step
    throughput,  ///< of what stays up: time of a turn by the steps that ended in it, waits included
    function,    ///< per step, time in functions, kernels and ranges of a name
    calls,       ///< per step, how many of them
    bytes,       ///< per step, what copies and fills of a name moved
    counter,     ///< mean of a recorded counter over a turn, or the run of a command
  };
  Kind kind = Kind::automatic;
  std::string pattern{};  ///< of the name, as a shell's
};
/// "step time", "CPU time".
std::string name_of(const Quantity& quantity);
/// "ns", or "" for what is no time.
std::string unit_of(const Quantity& quantity);

struct Question {
  Quantity quantity{};
  double detect = 0.05;  ///< relative change that is asked for
  Allowed allowed;
  Ns budget = 600'000'000'000;
  std::size_t pairs = 0;   ///< end after so many; 0: when it is decided, or the budget is spent
  std::uint64_t seed = 0;  ///< of the lots that are drawn
  record::Preset preset = record::Preset::watch;
  bool recorded = true;
  bool prompt = true;  ///< recorders and turns come before ordinary threads (record/collector/prompt.h)
  std::vector<record::python::FunctionSpec> functions{};  ///< of Python that are watched
  std::string folder;                                     ///< gets recordings and what the sides print
  bool kept = false;                 ///< all of it stays; else what no longer matters is removed early
  std::string version;               ///< of the program, for recordings
  std::array<std::string, 2> sides;  ///< their names, for people
  /// Gets the last lines that a side printed before it failed.
  std::function<void(const std::string& lines)> printed{};
};

/// After each pair.
struct Progress {
  std::size_t pairs = 0;
  Ns elapsed = 0;
  double share = 0;                              ///< of the budget
  std::optional<model::PairedChange> last = {};  ///< of the last look
};
using ProgressSink = std::function<void(const Progress&)>;

/// When a side ran alone.
struct Span {
  Ns begin = 0;  ///< Unix time
  Ns end = 0;
};

/// What of a side's turns does not count, as shares of them; of several starts the most.
struct LeftOut {
  std::array<double, 2> cut{};      ///< taken by steps that a switch cut
  std::array<double, 2> stalled{};  ///< in which no step, or no unit of work, came to its end where those are counted
};

struct Alternated {
  model::Alternation found;
  std::array<std::vector<std::string>, 2> recordings;
  std::array<std::vector<Span>, 2> turns;  ///< in which the steps count; empty: everywhere
  LeftOut left_out;
  std::optional<Error> failed;  ///< why a later start came to nothing; what was found is of those before it
};

}  // namespace culprit::ab
