#include "faults/catalog.h"

#include <algorithm>
#include <array>

namespace culprit::faults {

namespace {

constexpr std::array kTable = {
    FaultInfo{"cpu", "threads spin vector code on the CPUs of the target, or on all", "share of these CPUs",
              "cpu_contention", "other_processes", "", false, make_cpu, cpu_available},
    FaultInfo{"cgroup-throttle", "a CPU quota on the target and its descendants",
              "share of the CPUs allowed to it that is taken away", "cpu_contention", "throttled",
              "cgroup CPU controller, root", true, make_cgroup_throttle, cgroup_throttle_available},
    FaultInfo{"disk", "four threads write and fsync beside the target's files",
              "share of the time that each of them works", "disk_io", "", "a folder on a disk", false, make_disk,
              disk_available},
    FaultInfo{"pause", "the target and its descendants are stopped and continued, ten times a second",
              "share of the time stopped, at most 0.95", "process_stopped", "", "", true, make_pause, pause_available},
};

}  // namespace

std::span<const FaultInfo> fault_table() { return kTable; }

const FaultInfo* find_fault(std::string_view name) {
  const auto found = std::ranges::find(kTable, name, &FaultInfo::name);
  return found == kTable.end() ? nullptr : &*found;
}

}  // namespace culprit::faults
