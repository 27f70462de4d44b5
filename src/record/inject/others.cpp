#include "record/inject/others.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>

#include "record/agent/agent_ring.h"
#include "record/collector/collector.h"
#include "record/collector/target_memory.h"
#include "record/inject/status_file.h"

namespace culprit::record::inject {

namespace {

constexpr Ns kGone = 2'000'000'000;       // a recorder that has given no sign for so long does not answer
constexpr Ns kAgentsEnd = 7'000'000'000;  // an agent without one has ended by then

bool has_agents_thread(std::int64_t pid) {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), code)) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    if (std::getline(file, name) && name == kAgentName) return true;
  }
  return false;
}

/// How long ago the recorder of an agent gave a sign.
std::optional<Ns> since_last_sign(std::int64_t pid, const Traces& traces) {
  std::optional<Ns> least;
  for (const std::uint64_t ring : traces.rings) {
    std::uint64_t alive = 0;
    if (!read_target(pid, ring + offsetof(culprit_agent_header, alive), alive)) continue;
    const auto now = static_cast<std::uint64_t>(monotonic_now());
    const Ns since = alive < now ? static_cast<Ns>(now - alive) : 0;
    least = std::min(least.value_or(since), since);
  }
  return least;
}

}  // namespace

Traces traces_in(std::int64_t pid, const std::string& proc) {
  Traces traces;
  std::error_code code;
  // Descriptors first: an agent closes that of its memory when it has mapped it.
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("{}/{}/fd", proc, pid), code)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t fd = 0;
    const std::string file = std::filesystem::read_symlink(entry.path(), code).string();
    if (!code && (file.starts_with("/memfd:" + kRingName) || file.starts_with("/memfd:" + kAgentName)) &&
        std::from_chars(name.data(), name.data() + name.size(), fd).ec == std::errc())
      traces.descriptors.push_back(fd);
  }
  std::ifstream maps(fmt::format("{}/{}/maps", proc, pid));
  for (std::string line; std::getline(maps, line);) {
    const bool is_ring = line.find(" /memfd:" + kRingName) != std::string::npos;
    if (!is_ring && line.find(" /memfd:" + kAgentName) == std::string::npos) continue;
    Range range;
    const char* end = line.data() + line.size();
    const auto begun = std::from_chars(line.data(), end, range.begin, 16);
    if (begun.ec != std::errc() || begun.ptr == end) continue;
    const auto ended = std::from_chars(begun.ptr + 1, end, range.end, 16);
    if (ended.ec != std::errc() || end - ended.ptr <= 4) continue;
    const std::string_view may(ended.ptr + 1, 4);
    if (!is_ring) {
      if (may[2] == 'x') traces.libraries.push_back(range.begin);
    } else if (may[1] == 'w' && may[3] == 'p') {
      traces.stacks.push_back(range);
    } else if (may[3] == 's') {
      traces.rings.push_back(range.begin);
    }
  }
  return traces;
}

bool is_memory_called(std::int64_t pid, std::uint64_t descriptor, std::string_view name) {
  std::error_code code;
  const auto file = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", pid, descriptor), code);
  return !code && file.string().starts_with(fmt::format("/memfd:{}", name));
}

std::int64_t tracer_of(std::int64_t pid, std::int64_t own, const std::string& proc) {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("{}/{}/task", proc, pid), code)) {
    const std::int64_t tracer = number_in(entry.path() / "status", "TracerPid:");
    if (tracer == 0 || tracer == own) continue;
    const std::int64_t process = number_in(fmt::format("{}/{}/status", proc, tracer), "Tgid:");
    return process != 0 ? process : tracer;
  }
  return 0;
}

bool has_ended(std::int64_t pid, std::int64_t tid) {
  const std::string state = value_in(fmt::format("/proc/{}/task/{}/status", pid, tid), "State:");
  return state.empty() || state.starts_with('Z') || state.starts_with('X');
}

Status has_no_agent(std::int64_t pid, const Traces& traces) {
  const auto since = since_last_sign(pid, traces);
  // A thread that has just begun has no name yet.
  const bool begins = !traces.libraries.empty() && since && *since < kAgentsEnd;
  if (!begins && !has_agents_thread(pid)) return {};
  const std::string where = fmt::format("process {}", pid);
  if (!since || *since < kGone) return environment_error("another recorder is attached to it", where);
  return environment_error("the recorder that was attached to it does not answer", where, "try again in 5 s");
}

}  // namespace culprit::record::inject
