// Whether anybody was started since the last look, asked in one read: reading /proc of every process of the machine
// once a second is a good part of what a recorder of a few functions costs.
#pragma once

#include <string>

namespace culprit::record {

/// Knows the number that the kernel gave last to a process or thread of this PID namespace (proc(5), the last field of
/// /proc/loadavg).
class Spawned {
 public:
  Spawned() : Spawned("/proc/loadavg") {}
  explicit Spawned(const char* file);
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
  ~Spawned();

  /// True when somebody came since the last call, for the first call, and where the kernel does not tell. Once more
  /// after that: whoever has a number may not be in /proc yet.
  [[nodiscard]] bool any();

 private:
  int fd_;
  std::string last_;
  bool again_ = false;
};

}  // namespace culprit::record
