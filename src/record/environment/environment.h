// The collector "environment": what the run ran on, as metadata of the recording. See docs/host_counters.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "record/collector/collector.h"
#include "record/environment/disturbances.h"

namespace culprit::record {

struct EnvironmentOptions {
  std::string root;      ///< before /proc and /sys; empty on the real machine
  bool hostname = true;  ///< write the machine's name
  std::vector<std::string> fault_folders = usual_fault_folders();
};

/// Facts of the machine are `env.KEY`; of the first target `env.target.KEY`; of each further target
/// `env.targetN.KEY`, those only that differ from the first one's. A fault
/// of `culprit inject` at work is `inject.NAME`.
std::unique_ptr<Collector> make_environment_collector(EnvironmentOptions options = {});

}  // namespace culprit::record
