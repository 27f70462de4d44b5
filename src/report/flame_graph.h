// A flame graph of call stacks as one SVG file that needs nothing else: no script, no font, no request. Names are
// those of a trace and are escaped.
#pragma once

#include <string>
#include <string_view>

#include "model/stack_tree.h"

namespace culprit::report {

struct FlameGraphOptions {
  std::string title;
  unsigned width = 1200;  ///< pixels
};

/// The width of a box is the share of its function and of all that it called; callers stand below. A box tells on
/// hovering its whole name, its time and share. What is narrower than a fifth of a pixel is left out.
std::string flame_graph(const model::StackTree& tree, const FlameGraphOptions& options);

}  // namespace culprit::report
