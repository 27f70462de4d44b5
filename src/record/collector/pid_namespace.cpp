#include "record/collector/pid_namespace.h"

#include <sys/stat.h>

namespace culprit::record {

bool in_first_pid_namespace() {
  constexpr ino_t kFirst = 0xEFFFFFFC;  // PROC_PID_INIT_INO in include/linux/proc_ns.h, fixed by the kernel's interface
  struct stat space {};
  return stat("/proc/self/ns/pid", &space) != 0 || space.st_ino == kFirst;
}

Status needs_first_pid_namespace() {
  if (in_first_pid_namespace()) return {};
  return environment_error("this process is in a pid namespace of its own, the kernel's ids mean other processes",
                           "eBPF", "run culprit on the host, or in a container with the host's pid namespace");
}

}  // namespace culprit::record
