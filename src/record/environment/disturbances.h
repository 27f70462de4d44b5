// Faults that `culprit inject` is causing on this machine: a recording that was made meanwhile is no baseline.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace culprit::record {

/// Where the injectors of root and of this user keep those files.
std::vector<std::string> usual_fault_folders();

/// Names of the faults at work ("cpu", "disk"), by the files in `folders` that injectors keep to undo them. Files of
/// injectors that do not live any more are left out.
std::set<std::string> running_faults(const std::vector<std::string>& folders);

}  // namespace culprit::record
