// `culprit top --stacks`: call stacks as a table of functions, as folded text, as a flame graph.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "core/error.h"
#include "trace/trace.h"

namespace culprit::cli {

struct StackOptions {
  std::string kind;  ///< "on-cpu", "off-cpu"; empty: no stacks are asked for
  bool folded = false;
};

/// Declares --stacks and --folded.
void add_stack_options(Verb& verb, StackOptions& options);

/// What else the verb was asked for.
struct StackTableChoice {
  std::vector<std::string> files;
  std::string filter;
  std::string sort;  ///< "" or "time": self; "total", "name"
  bool reverse = false;
  std::int64_t limit = -1;
  WidthOptions width;
};

/// Writes what is asked for; the result is the exit code.
Result<int> show_stacks(const Trace& trace, const StackOptions& options, const StackTableChoice& choice,
                        const Output& output, bool format_given);

}  // namespace culprit::cli
