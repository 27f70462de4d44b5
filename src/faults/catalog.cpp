#include "faults/catalog.h"

#include <algorithm>
#include <array>

namespace culprit::faults {

namespace {

/// Names a fault that no machine can be given yet; available() says why before this is ever called.
Result<std::unique_ptr<Injector>> make_nothing(const Request& request, const ProcessHandle*) {
  return usage_error(std::string(request.fault) + " cannot be injected yet");
}

constexpr std::array kTable = {
    FaultInfo{"cpu", "threads spin vector code on the CPUs of the target, or on all", "share of these CPUs",
              "cpu_contention", "other_processes", "", false, make_cpu, cpu_available},
    FaultInfo{"cgroup-throttle", "a CPU quota on the target and its descendants",
              "share of the CPUs allowed to it that is taken away", "cpu_contention", "throttled",
              "cgroup CPU controller, root", true, make_cgroup_throttle, cgroup_throttle_available},
    FaultInfo{"cpu-frequency", "a lower limit for the clock of all CPUs",
              "share of the way from the highest clock to the lowest", "cpu_frequency_drop", "", "cpufreq, root", false,
              make_cpu_frequency, cpu_frequency_available},
    FaultInfo{"memory-bandwidth", "threads stream through memory on the CPUs of the target, or on all",
              "share of these CPUs", "host_memory_pressure", "bandwidth", "free memory", false, make_memory_bandwidth,
              memory_bandwidth_available},
    FaultInfo{"memory", "takes all available memory and a part of the swap", "share of half of the free swap",
              "host_memory_pressure", "swap", "swap", false, make_memory, memory_available},
    FaultInfo{"disk", "four threads write and fsync beside the target's files",
              "share of the time that each of them works", "disk_io", "", "a folder on a disk", false, make_disk,
              disk_available},
    FaultInfo{"network", "packets of an interface are delayed and lost", "share of 100 ms delay and of 5 % loss",
              "interconnect_contention", "network", "tc, netem in the kernel, root", false, make_network,
              network_available},
    FaultInfo{"pause", "the target and its descendants are stopped and continued, ten times a second",
              "share of the time stopped, at most 0.95", "process_stopped", "", "", true, make_pause, pause_available},
    FaultInfo{"gil", "a thread of a cooperating Python program holds the interpreter's lock", "share of the time",
              "host_bound", "gil", "gil_fault.py in the target", true, make_gil, gil_available},
    FaultInfo{"gpu-clock", "the clock of all GPUs is locked low",
              "share of the highest clock that is taken away, at most 0.9", "gpu_clock_drop", "locked",
              "nvidia-smi, root", false, make_gpu_setting, gpu_setting_available},
    FaultInfo{"gpu-power", "a lower power limit for all GPUs", "share of the way from the present limit to the lowest",
              "gpu_clock_drop", "throttle_power", "nvidia-smi, root", false, make_gpu_setting, gpu_setting_available},
    FaultInfo{"gpu-contention", "another process computes on the GPU", "share of the time", "gpu_contention",
              "other_process", "a GPU; not built yet", false, make_nothing, gpu_load_available},
    FaultInfo{"gpu-memory", "another process takes memory of the GPU", "share of the free memory", "gpu_contention",
              "memory_pressure", "a GPU; not built yet", false, make_nothing, gpu_load_available},
    FaultInfo{"pcie", "another process copies between host and GPU", "share of the time", "interconnect_contention",
              "pcie", "a GPU; not built yet", false, make_nothing, gpu_load_available},
};

}  // namespace

std::span<const FaultInfo> fault_table() { return kTable; }

const FaultInfo* find_fault(std::string_view name) {
  const auto found = std::ranges::find(kTable, name, &FaultInfo::name);
  return found == kTable.end() ? nullptr : &*found;
}

}  // namespace culprit::faults
