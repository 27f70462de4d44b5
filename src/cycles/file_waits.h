// Waits for files apart from those for connections and pipes, which the same calls make.
#pragma once

#include <string>
#include <string_view>

namespace culprit::cycles {

/// How a call is told in which a thread sleeps so that no signal ends it: "read, uninterruptible". That is a file; of
/// calls that only files make wait the name says it already: "fsync".
std::string call_without_signals(std::string_view call);

}  // namespace culprit::cycles
