// What frames of call stacks count as when samples are added up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace culprit::profile {

/// Code without a name is one function for each file, "[libfoo.so]": its addresses differ from run to run. Functions of
/// Python have no lines.
std::string code_name(std::string_view function);

/// The innermost function of a stack that has a name, as code_name() gives it; the file of the innermost code where
/// none has. `frame` is a row of the trace's frames.
std::string innermost_named(const Trace& trace, std::uint32_t frame);

/// Who asked for a sleep: the innermost function that has a name and is none of those of the C library for it. `frame`
/// is that of the wait.
std::string sleeper_named(const Trace& trace, std::uint32_t frame);

/// Of each frame the innermost function of Python, by its row among the frames; kNone: it is in none.
std::vector<std::uint32_t> frames_of_python(const Trace& trace);

}  // namespace culprit::profile
