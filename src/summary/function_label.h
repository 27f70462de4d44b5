// What a function is called in a table, so that one function is one row.
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.h"

namespace culprit::summary {

/// The name without what differs from one call to the next: the number of a step marker ("ProfilerStep#7" ->
/// "ProfilerStep#N"; any host slice whose name says step or iteration and counts it) and the address of an object
/// ("<built-in method unbind of Tensor object at 0x7fa2...>" without " at 0x7fa2..."). Other names come back unchanged.
std::string function_label(SliceClass slice_class, std::string_view name);

/// The span in which a profiler was recording ("PyTorch Profiler (0)" of category `Trace`): no function of the
/// workload.
bool is_profiler_span(std::string_view category, std::string_view name);

}  // namespace culprit::summary
