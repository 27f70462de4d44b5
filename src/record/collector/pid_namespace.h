// Whether numbers of processes mean the same to the kernel's programs as to this one: in a pid namespace of its own, as
// in most containers, they do not.
#pragma once

#include "core/error.h"

namespace culprit::record {

/// Whether this process is in the first pid namespace; also where that cannot be seen (there is no /proc).
bool in_first_pid_namespace();

/// The error of what eBPF cannot do elsewhere; none in the first pid namespace.
Status needs_first_pid_namespace();

}  // namespace culprit::record
