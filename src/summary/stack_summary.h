// Call stacks of a trace, added up: where threads ran, or where they stood while they were blocked.
#pragma once

#include <string>

#include "model/stack_tree.h"
#include "model/table.h"
#include "trace/trace.h"

namespace culprit::summary {

struct StackQuery {
  StackSample::Kind kind = StackSample::Kind::on_cpu;
  std::string filter;  ///< keeps stacks of which a process, thread or function matches (matches_filter()); empty: all
};

/// The name of the process, of the thread, then the functions from the outermost on. Samples without a stack end at
/// "[no stack]".
model::StackTree stack_tree(const Trace& trace, const StackQuery& query);

/// A line "process;thread;outermost;...;innermost N" for each stack, as flame graph tools take it, in the order of the
/// texts; functions of the kernel end in "_[k]". N counts samples, one that stands for k times as long as the shortest
/// as k; with `microseconds` it is their time.
std::string folded_stacks(const model::StackTree& tree, bool microseconds);

struct StackTableOptions {
  bool by_total = false;  ///< in the order of the total instead of self
  bool by_name = false;
  bool reverse = false;
  std::size_t limit = 0;  ///< rows; 0: all
};

/// Functions by how much of the samples ended in them (self) and passed through them (total; of a function that calls
/// itself once).
model::Table stack_table(const model::StackTree& tree, const StackTableOptions& options);

}  // namespace culprit::summary
