// Which names of ranges mean a step: collectors that see markers count steps for the recorder by them.
#pragma once

#include <string_view>

namespace culprit::record {

/// Whether the name of a range says that it is a step of the workload ("step[DECODE bs=4]", "iteration 7",
/// "execute_128_context_...", "run_batch").
bool is_step_name(std::string_view name);

}  // namespace culprit::record
