// What the machine can do at most, as far as somebody wrote it down: turns counters into shares of a capacity.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace culprit::deepdive {

struct HostHardware {
  double max_cpu_hertz = 0;  ///< 0: unknown
  std::int64_t cores = 0;    ///< 0: unknown
  double memory_bytes = 0;   ///< 0: unknown
  bool operator==(const HostHardware&) const = default;
};

/// Hosts, devices and processes of a hardware description. Empty when there is none.
struct Hardware {
  std::map<std::string, HostHardware, std::less<>> hosts;
  std::map<std::pair<std::string, std::int64_t>, double> device_memory_bytes;      ///< (host, device index)
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> device_of_process;  ///< (host, pid) -> device index
  std::uint64_t bad_rows = 0;  ///< rows whose contents could not be used

  [[nodiscard]] bool empty() const { return hosts.empty() && device_memory_bytes.empty() && device_of_process.empty(); }
};

}  // namespace culprit::deepdive
