// Scheduling of the targets' threads: when they ran, was runnable or were blocked, in which system call, who
// woke them and who ran instead.
//
// By eBPF where the machine allows it, else the totals that the kernel keeps anyway (schedstat); both behind Collector.
#pragma once

#include <memory>

#include "record/bpf/probes.h"
#include "record/collector/collector.h"
#include "record/interpreter/python_stacks.h"

namespace culprit::record::sched {

struct SchedOptions {
  bool stacks = false;  ///< user stacks where threads block
  std::shared_ptr<interpreter::PythonStacks>
      python{};                       ///< of the same probes; with stacks: functions of Python in them
  Ns shortest_blocked_deep = 10'000;  ///< from here on a blocked interval gets a slice of its own
  Ns shortest_blocked_watch = 200'000;
};

/// eBPF, or schedstat when that cannot be opened. `probes` is shared with other collectors.
std::unique_ptr<Collector> make_sched(std::shared_ptr<bpf::Probes> probes, const SchedOptions& options = {});

/// Totals per thread only: needs no permission beyond reading /proc.
std::unique_ptr<Collector> make_schedstat();

/// The state a recording keeps (1 S, 2 D, 4 T, 8 t, 0x10 X, 0x20 Z, 0x40 P, 0x80 I) from the kernel's own bits;
/// 0 stays 0.
std::int64_t reported_state(std::uint32_t kernel_state);

}  // namespace culprit::record::sched
