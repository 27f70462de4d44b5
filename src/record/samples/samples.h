// What the targets' threads do while they run: their call stacks, asked by the clock of each CPU.
//
// Stacks are followed by the tables of exceptions (unwind.h), where that gives fewer callers by frame pointers. Needs
// eBPF; no counter of the CPU is used.
#pragma once

#include <cstdint>
#include <memory>

#include "record/bpf/probes.h"
#include "record/collector/collector.h"
#include "record/interpreter/python_stacks.h"

namespace culprit::record::samples {

/// How callers are found.
enum class CallGraph : std::uint8_t {
  frame_pointer,  ///< what code keeps that was built for it
  dwarf,          ///< by the tables of exceptions; 16 KiB of the stack are copied for each sample
};

struct SamplesOptions {
  CallGraph call_graph = CallGraph::dwarf;
  unsigned hz = 99;  ///< not a round number: programs that do something a hundred times a second are not met in step
};

/// `probes` and `python` are shared with other collectors; without `python` its functions have no names.
std::unique_ptr<Collector> make_samples(std::shared_ptr<bpf::Probes> probes, const SamplesOptions& options = {},
                                        std::shared_ptr<interpreter::PythonStacks> python = {});

}  // namespace culprit::record::samples
