// The processes of a control group, of version 1 or 2, and of a container, which is one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"

namespace culprit::record {

/// The folder of a group: `path` itself when it is one, else as /proc/PID/cgroup names it, below a mounted hierarchy
/// (version 2 first). `root` is put in front of /proc and /sys. Error: there is no such group.
Result<std::string> find_group(const std::string& path, const std::string& root = {});

/// The folder of the group of a container: by the begin of its id as docker, containerd, podman, CRI-O and Kubernetes
/// write it into the names of groups, or by the whole name of one of LXC or systemd-nspawn. Errors: none, several.
Result<std::string> find_container(const std::string& name, const std::string& root = {});

/// The processes of the group and of those below it, in the order of their ids; at most 4,096 groups are read.
/// Nothing when the group is gone.
std::vector<std::int64_t> group_processes(const std::string& folder);

}  // namespace culprit::record
