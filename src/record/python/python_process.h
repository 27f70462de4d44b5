// What is known of a process before an agent is put into it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace culprit::record::python {

/// Whether it executes Python: the interpreter's program or library is mapped.
bool runs_python(std::int64_t pid);

/// Whether a program or library is mapped whose name begins with one of these.
bool has_loaded(std::int64_t pid, std::initializer_list<std::string_view> beginnings);

/// Its command line or title, whatever it calls itself; lower case, blanks between the words. Without the folders of
/// the program, and of a script in a "bin": an environment that has the name of a server runs other programs.
std::string title_of(std::int64_t pid);

/// The threads that it has now: their ids in the process's own pid namespace, and those that the kernel has for us.
std::unordered_map<std::int32_t, std::int32_t> threads_in(std::int64_t pid);
bool has_own_namespace(std::int64_t pid);

}  // namespace culprit::record::python
