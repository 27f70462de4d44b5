// Which variables of a target's environment, and which options of its command line, may stand in a recording.
// Everything else is never read into a fact.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::record {

/// True for settings of the frameworks (NCCL_*, CUDA_*, OMP_*, …); false for everything whose name speaks of a key, a
/// token or the like.
bool is_allowed_variable(std::string_view name);

/// What may be shown of the value of an allowed variable: itself; "<hidden: ...>" when it looks like a secret (a long
/// run of letters and digits, a URL with a user, a known prefix); URLs up to their host; the begin and a digest when it
/// is long.
std::string shown_value(std::string_view value);

/// The allowed variables of a text of NAME=value strings with NUL between them, sorted by name.
std::vector<std::pair<std::string, std::string>> allowed_variables(std::string_view environ);

/// The options of a command line (arguments with NUL between them) that hold a number, a truth value, a level of
/// logging or a type of numbers, or nothing ("set"): "--max-num-seqs 16", "--dtype=bfloat16", "--enforce-eager". None
/// whose name speaks of a key, a token or the like, and no other text. Sorted by name, the last one of a name; at most
/// 100.
std::vector<std::pair<std::string, std::string>> allowed_options(std::string_view cmdline);

}  // namespace culprit::record
