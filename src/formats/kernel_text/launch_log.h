// The launch log as text: one line per kernel launch, "Kernel | Latency Tensor DRAM" and, when known, "SM".
//
//   Kernel                                                 Latency Tensor   DRAM
//   vectorized_elementwise_kernel                     |       4544   0.00   0.00
//
// Latency is in nanoseconds, the others are fractions of the peak.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "model/kernel_log.h"

namespace culprit::formats::kernel_text {

/// True when one of the first lines is the header of a launch log.
bool looks_like_launch_log(std::string_view start);

/// Reads a launch log. Lines that are no row are counted in `inputs`; "-", "N/A" and the like are unknown values.
/// Errors: no header, or no usable row. `file` names the text.
Result<model::KernelLog> parse_launch_log(std::string_view text, std::string_view file);

/// The log in that look; names are made safe for terminals and cut at 50 columns, the SM column appears when one
/// launch knows it, unknown values are "-". Reading it again gives the same values.
std::string write_launch_log(const model::KernelLog& log);

}  // namespace culprit::formats::kernel_text
