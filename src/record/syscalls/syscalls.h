// System calls, page faults and block I/O of the targets: totals of everything, single events only of what took long.
//
// No argument of a system call is looked at: number, time and error only.
#pragma once

#include <memory>
#include <optional>

#include "record/bpf/probes.h"
#include "record/collector/collector.h"

namespace culprit::record::syscalls {

struct SyscallsOptions {
  bool calls = true;    ///< every system call of the targets is timed; else only page faults and block I/O
  bool answers = true;  ///< how long connections (TCP, Unix) wait for answers
  bool block = true;
  Ns totals_every = 250'000'000;  ///< units of work are counted in windows of this length
  /// Calls of the targets a second up to which all are looked at; while they are more, and with 0 always, only those in
  /// windows are (call_windows.h), and counts are estimates. Unset: all, however many.
  std::optional<double> few;
  /// The same of answers that targets give on their connections (answer_windows.h).
  std::optional<double> few_answers;
};

/// `probes` is shared with other collectors.
std::unique_ptr<Collector> make_syscalls(std::shared_ptr<bpf::Probes> probes, const SyscallsOptions& options = {});

}  // namespace culprit::record::syscalls
