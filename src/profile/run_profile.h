// The profile of a run: what every function took in every cycle, and how the resources it is linked to behaved
// meanwhile. SI units; one process's functions are measured over that process's own cycles only.
#pragma once

#include <culprit/task.h>

#include <cstdint>

#include "cycles/find.h"
#include "model/profile.h"
#include "trace/trace.h"

namespace culprit::profile {

struct RunProfileOptions {
  bool whole_cycles_only = false;  ///< leave out cycles that are cut off and warm-up
  bool own_times = false;          ///< fill FunctionUse::own and FunctionUse::parent
  bool resource_uses = true;       ///< fill Profile::resources
  bool ledger = false;             ///< fill Profile::ledger
  bool between = false;            ///< with it: without GPU work what is between functions is one, too
  Task task{};                     ///< is asked every few thousand slices
};

/// One use per (cycle, process, function, device): calls, total and exposed time, beta over the cycle's
/// window on that device, of host functions over its period. Names that are the same but for addresses of objects are
/// one function. GPU work belongs to the process that launched it; host slices that outlast the cycle they begin in are
/// left out. Resources: mean and sample deviation over the samples that lie inside the executions of that cycle;
/// without any the value at each execution's middle, between the samples around it (interpolated), weighted by
/// duration; nothing where the series does not reach. Provenance is measured when every execution held at least three
/// samples, else pooled. All series of the trace come along, with the samples that were taken while their device was
/// busy told apart for clocks. When a stop is requested it ends soon, and what it gives is of no use: ask the token.
/// O((n + m) log n) in slices and samples; about 24 bytes per slice and 100 per use.
/// `order`: order_slices(trace); empty: it is found when it is needed.
model::Profile run_profile(const Trace& trace, const cycles::Found& found, const RunProfileOptions& options = {},
                           SliceOrder order = {});

}  // namespace culprit::profile
