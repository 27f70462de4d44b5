// Finding cycles and measuring them, for the public calls and for the verbs of the program, which show more of it.
#pragma once

#include <culprit/cycles.h>
#include <culprit/load.h>

#include "cycles/find.h"
#include "model/profile.h"

namespace culprit::library {

/// Errors: as find_cycles() of <culprit/cycles.h>.
Result<cycles::Found> find(const Run& run, const CycleOptions& options);

struct Measured {
  cycles::Found found;
  model::Profile profile;
};
/// Errors: as profile_run().
Result<Measured> measure(const Run& run, const CycleOptions& options, bool ledger = false);

}  // namespace culprit::library
