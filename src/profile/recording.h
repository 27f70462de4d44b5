// From a trace to what a comparison needs to know of it: cycles, profile, facts, evidence, losses.
#pragma once

#include <culprit/task.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/intervals.h"
#include "cycles/find.h"
#include "model/recording.h"
#include "trace/trace.h"

namespace culprit::profile {

struct RecordingOptions {
  std::string anchor;  ///< name of what begins a cycle; empty: found
  /// On the trace's clock, by time, not overlapping: cycles that lie wholly in one of them count, others are partial.
  /// Empty: all.
  std::vector<Interval> within{};
  Task task{};
};

/// Everything but the profile: enough to tell whether two recordings may be compared, which most often is a fraction of
/// the work.
struct Outline {
  model::Recording recording;
  cycles::Found found;
  SliceOrder order;  ///< of the trace's slices
};

/// `files` is where the trace came from. Errors: as find_cycles().
Result<Outline> outline_of(const Trace& trace, std::vector<std::string> files, const RecordingOptions& options = {});

/// The recording with its profile over whole cycles; `trace` is the one that the outline was made of. Error: cancelled.
Result<model::Recording> complete(const Trace& trace, Outline outline, const Task& task = {});

/// Both at once.
Result<model::Recording> recording_of(const Trace& trace, std::vector<std::string> files,
                                      const RecordingOptions& options = {});

}  // namespace culprit::profile
