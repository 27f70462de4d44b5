// Two commands that end by themselves, run and recorded in turns.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ab/alternate.h"
#include "core/error.h"

namespace culprit::ab {

struct Commands {
  std::array<std::vector<std::string>, 2> commands;
  std::size_t warm_up = 1;       ///< pairs before those that count
  bool own_directories = false;  ///< each run begins in an empty directory of its own, and has such a TMPDIR
  Ns patience = 10'000'000'000;  ///< that each run has at least, however little of the budget is left
};

/// The arguments that name what is there now, and is not where a run begins in a directory of its own.
std::vector<std::string> relative_files(const Commands& commands);

/// Runs both alternately, in each pair in an order drawn by lot, until the effect that is asked for is found, excluded,
/// or the budget is spent; a readable `stop_fd` ends it with what is known. Of run N of a side `baseline-N.txt` in the
/// folder has what it printed, and `baseline-N.pftrace` is its recording. A run that takes longer than the rest of the
/// budget and twice the longest before it is ended, and so is the comparison. Call while this process has one thread.
/// Errors: a side cannot be started, or fails (with the end of what it printed); the folder cannot be written.
Result<Alternated> alternate(const Commands& commands, const Question& question, int stop_fd,
                             const ProgressSink& progress = {});

}  // namespace culprit::ab
