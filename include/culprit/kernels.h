// Kernels: their sums over a run, and the launches one by one.
#pragma once

#include <culprit/error.h>
#include <culprit/load.h>
#include <culprit/table.h>

namespace culprit {

struct Kernels {
  Table launches;  ///< every launch in order, with the use of compute and memory where it is known
  Table names;     ///< one row per name
  Table classes;   ///< time by use: low compute, low memory, both, neither
};

/// Error: input, when the run has no kernels.
Result<Kernels> kernels_of(const Run& run);

/// Time of GPU work per function, longest first: calls, total, share, average, min, median, max.
Table function_times(const Run& run);

}  // namespace culprit
