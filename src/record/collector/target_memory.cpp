#include "record/collector/target_memory.h"

#include <sys/uio.h>

namespace culprit::record {

bool read_target(std::int64_t pid, std::uint64_t address, void* to, std::size_t bytes) {
  iovec here{to, bytes};
  iovec there{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr): of another process
  return process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace culprit::record
