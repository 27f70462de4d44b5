// The one list of collectors.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "record/bpf/probes.h"
#include "record/collector/collector.h"
#include "record/python/function_spec.h"
#include "record/samples/samples.h"

namespace culprit::record {

/// Collectors of one recording and the programs in the kernel that some of them share.
struct CollectorSet {
  std::vector<std::unique_ptr<Collector>> collectors;
  std::shared_ptr<bpf::Probes> probes;
};

/// What is asked of collectors beside their names.
struct CollectorOptions {
  unsigned sample_hz = 99;  ///< of `samples`
  samples::CallGraph call_graph = samples::CallGraph::dwarf;
  bool every_call = false;                      ///< of `syscalls`, however many they are
  std::vector<python::FunctionSpec> functions;  ///< of `python`
};

/// Names for --collect, in the order in which they run.
std::vector<std::string> collector_names();

/// All collectors of the preset (stacks are taken in Preset::deep, else when `only` names them); `only` (when not
/// empty) and `without` choose among them by name. Error: an unknown name, or nothing is left.
Result<CollectorSet> make_collectors(Preset preset, const std::vector<std::string>& only,
                                     const std::vector<std::string>& without, const CollectorOptions& options = {});

}  // namespace culprit::record
