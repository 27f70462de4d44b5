// What is known of a process before an agent is put into it.
#pragma once

#include <cstdint>
#include <string>

namespace culprit::record::python {

/// Whether it executes Python: the interpreter's program or library is mapped.
bool runs_python(std::int64_t pid);

/// Its command line or title, whatever it calls itself; lower case, blanks between the words.
std::string title_of(std::int64_t pid);

/// The id that the kernel gives to thread `tid` of the process's own pid namespace; `tid` where it lives in ours, 0
/// when there is no such thread.
std::int32_t host_thread(std::int64_t pid, std::int32_t tid);
bool has_own_namespace(std::int64_t pid);

}  // namespace culprit::record::python
