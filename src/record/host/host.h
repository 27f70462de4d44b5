// The collector "host": counters of the machine around the targets, from /proc and /sys. See docs/host_counters.md.
#pragma once

#include <memory>
#include <string>

#include "record/collector/collector.h"

namespace culprit::record {

/// `root` stands before /proc and /sys; empty on the real machine.
std::unique_ptr<Collector> make_host_collector(const std::string& root = {});

}  // namespace culprit::record
