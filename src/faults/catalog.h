// The table of faults: what each one does and what it must be diagnosed as. `culprit inject --list`, docs/faults.md and
// experiments with known truth all read this one table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "faults/injector.h"

namespace culprit::faults {

struct FaultInfo {
  std::string_view name;
  std::string_view does;      ///< one phrase
  std::string_view severity;  ///< what 0 to 1 means
  std::string_view cause;     ///< of the verdict
  std::string_view detail;    ///< of the verdict; empty: none
  std::string_view needs;     ///< empty: nothing
  bool needs_target = false;
  Result<std::unique_ptr<Injector>> (*make)(const Request&, const ProcessHandle*) = nullptr;
  Status (*available)() = nullptr;  ///< whether this machine has what it needs, apart from a target
};

/// All faults, in the order in which they are listed.
std::span<const FaultInfo> fault_table();
/// Nothing when there is no fault of that name.
const FaultInfo* find_fault(std::string_view name);

Status cpu_available();
Status cgroup_throttle_available();
Status memory_bandwidth_available();
Status disk_available();
Status pause_available();
Status gil_available();
Status network_available();
Status cpu_frequency_available();
Status memory_available();
Status gpu_setting_available();
Status gpu_load_available();

}  // namespace culprit::faults
