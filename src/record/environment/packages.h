// Python packages of a process by the names of their folders; nothing is imported or opened.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::record {

/// Where packages of this interpreter lie, as the process sees it ("/usr/lib/python3/dist-packages"), from the paths
/// that it has mapped, its program ("/opt/v/bin/python3.11") and its virtual environment (may be empty). Sorted.
std::vector<std::string> package_folders(const std::vector<std::string>& mapped, const std::string& program,
                                         const std::string& virtual_environment);

/// Frameworks among the names of a folder ("torch-2.4.0.dist-info"): name to version. Names are lower case with '-'.
std::map<std::string, std::string> frameworks(const std::vector<std::string>& names);

/// "3.11", or "3.11.7" where the path tells, from the mapped paths and the program; empty when it is no Python.
std::string python_version(const std::vector<std::string>& mapped, const std::string& program);

}  // namespace culprit::record
