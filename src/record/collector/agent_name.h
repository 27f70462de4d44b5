// What the agent inside recorded programs is called: its thread, by which the recorder leaves it out of what the
// program did, and the file in memory that it is loaded from.
#pragma once

#include <string>

namespace culprit::record {

inline const std::string kAgentName = "culprit-agent";

}  // namespace culprit::record
