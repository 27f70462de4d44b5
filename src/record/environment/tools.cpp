#include "record/environment/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "record/collector/kernel_text.h"

namespace culprit::record {

bool is_tool(std::string_view name) {
  constexpr std::array<std::string_view, 22> kTools = {
      "perf",      "strace",  "ltrace",    "gdb",    "lldb",        "rr",        "bpftrace", "stapio",
      "trace-cmd", "sysdig",  "py-spy",    "austin", "rbspy",       "heaptrack", "memray",   "nsys",
      "ncu",       "rocprof", "rocprofv3", "vtune",  "amplxe-perf", "uftrace"};
  return std::ranges::find(kTools, name) != kTools.end();
}

std::optional<std::set<std::string>> running_tools(const std::string& root) {
  std::set<std::string> tools;
  const std::vector<std::string> processes = list_folder(root + "/proc");
  if (processes.empty()) return std::nullopt;
  for (const std::string& pid : processes) {
    if (pid.empty() || pid.front() < '0' || pid.front() > '9') continue;
    if (std::string name = read_word(fmt::format("{}/proc/{}/comm", root, pid)); is_tool(name))
      tools.insert(std::move(name));
  }
  return tools;
}

}  // namespace culprit::record
