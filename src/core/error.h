// How every stage reports trouble that input can cause.
//
// Bugs are asserted; anything a file, an option or the machine can cause comes back as a Result<T> of
// include/culprit/error.h, which the users of the library see too.
#pragma once

#include <culprit/error.h>

#include <string>
#include <utility>

namespace culprit {

inline Error input_error(std::string what, std::string where, std::string remedy = {}) {
  return {ErrorKind::input, std::move(what), std::move(where), std::move(remedy)};
}
inline Error usage_error(std::string what, std::string remedy = {}) {
  return {ErrorKind::usage, std::move(what), {}, std::move(remedy)};
}
inline Error environment_error(std::string what, std::string where, std::string remedy = {}) {
  return {ErrorKind::environment, std::move(what), std::move(where), std::move(remedy)};
}

/// The caller asked for the end (Task::stop).
inline Error cancelled_error() { return {ErrorKind::cancelled, "cancelled", {}, {}}; }

/// There is not enough memory for what `where` names.
Error out_of_memory(std::string where);

/// What an errno value says, "No such file or directory"; unlike strerror(3) from any thread.
std::string errno_text(int code);

}  // namespace culprit
