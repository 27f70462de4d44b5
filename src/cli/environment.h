// The environment of two recordings side by side: kernel, governor, limits, versions. A difference there explains more
// than any table of functions, so it is said first.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace culprit::cli {

/// Every value that the files of one side give a key.
using Environment = std::map<std::string, std::set<std::string>>;

/// Adds what the recordings of `trace` say about machine, libraries and limits, and what could not be seen.
void add_environment(const Trace& trace, Environment& environment);

/// One note per key whose values differ; keys that only one side has count when the other side is a recording too.
/// Numbers of a process (its pid, its start) are no environment. At most 40 notes.
std::vector<std::string> environment_notes(const Environment& base, const Environment& candidate);

}  // namespace culprit::cli
