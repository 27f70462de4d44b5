// Which GPU work belongs to the forward pass of a training step, which to the backward pass and which to the optimizer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace culprit::summary {

enum class Pass : std::uint8_t { other, forward, backward, optimizer };
std::string_view to_string(Pass pass);

struct Passes {
  std::vector<Pass> of_gpu;  ///< by row of Trace::gpu
  /// False when the trace holds nothing that tells the passes apart: no backward operators, no forward/backward links,
  /// and no range named after a pass.
  bool known = false;
};

/// The pass of every GPU slice, from what surrounds its launching host call on the launching thread:
/// - backward inside an operator of the autograd engine (`autograd::engine::evaluate_function…`), an operator, range or
/// Python
///   function named after the backward pass, or the target of a forward/backward link;
/// - optimizer inside `Optimizer.…`;
/// - forward inside the source of such a link, a range or module named after the forward pass, or an operator with an
/// autograd
///   sequence number.
/// An outer backward or optimizer wins over anything inside it (recomputed activations are part of the backward pass).
/// Work without a known launcher is `other`. Linear in slices; 5 bytes per slice while it runs.
Passes find_passes(const Trace& trace);

}  // namespace culprit::summary
