// The cycles (steps, iterations) of a run, and how sure they are.
#pragma once

#include <culprit/api.h>
#include <culprit/error.h>
#include <culprit/load.h>
#include <culprit/task.h>

#include <cstdint>
#include <string>
#include <vector>

namespace culprit {

struct CycleOptions {
  std::string anchor{};  ///< name of the marker or function that begins a cycle; empty: found
  std::string phase{};   ///< only cycles of it: prefill, decode, mixed, train_step, other; empty: all
  unsigned skip = 0;     ///< leave out so many first cycles of every rank
  Task task{};
};

/// One cycle of one rank. Times are nanoseconds on the clock of the trace.
struct Cycle {
  std::uint32_t number = 0;  ///< 1-based; the same number is the same step on every rank
  std::int32_t rank = 0;     ///< its number, as all tables of a run give it; of files that tell none their order
  std::string phase;
  std::int64_t batch = -1;   ///< requests, as the step's marker tells; -1: it does not
  std::int64_t tokens = -1;  ///< computed in this cycle; -1: not known
  std::int64_t begin = 0;
  std::int64_t period = 0;  ///< to the begin of the next cycle; of the last one: to the end of its work
  std::int64_t no_work = 0;
  bool partial = false;  ///< cut by the begin or the end of the recording
  bool warm_up = false;
  bool whole = false;  ///< its period is that of an ordinary step
};

struct Cycles {
  std::string anchor;            ///< what delimits them
  double period_confidence = 0;  ///< probability that a cycle is one step, not a part or a multiple of one
  double phase_confidence = 0;   ///< probability that a step begins where the cycle begins
  std::string reason;            ///< one sentence
  std::vector<std::string> notes;
  std::vector<Cycle> cycles;  ///< by number and rank; empty: nothing repeats, `reason` says why
};

/// Errors: usage, when the anchor does not occur, the phase is unknown, or no cycle is left.
CULPRIT_API Result<Cycles> find_cycles(const Run& run, const CycleOptions& options = {});

}  // namespace culprit
