// Numbers of system calls to their names, of the architecture this was built for.
#pragma once

#include <string>

namespace culprit::record::bpf {

/// "read", "futex"; "syscall_NNN" for a number newer than the headers of the build.
std::string syscall_name(int number);

}  // namespace culprit::record::bpf
