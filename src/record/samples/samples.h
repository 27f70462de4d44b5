// What the targets' threads do while they run: their call stacks, asked by the clock of each CPU.
//
// Stacks are followed by frame pointers; code without them shows its innermost function, and what the chain of the
// others then says. Needs eBPF; no counter of the CPU is used.
#pragma once

#include <memory>

#include "record/bpf/probes.h"
#include "record/collector/collector.h"

namespace culprit::record::samples {

struct SamplesOptions {
  unsigned hz = 99;  ///< not a round number: programs that do something a hundred times a second are not met in step
};

/// `probes` is shared with other collectors.
std::unique_ptr<Collector> make_samples(std::shared_ptr<bpf::Probes> probes, const SamplesOptions& options = {});

}  // namespace culprit::record::samples
