#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/text.h"
#include "record/collector/kernel_text.h"
#include "record/doctor/checks.h"

namespace culprit::record {

namespace {

std::string link_target(const std::string& path) {
  std::array<char, 4096> text{};
  const ssize_t n = readlink(path.c_str(), text.data(), text.size());
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : std::string();
}

/// The value of a line of /proc/PID/status.
std::string status_value(const std::string& text, std::string_view name) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && line.substr(0, colon) == name)
      return std::string(trim(line.substr(colon + 1)));
  }
  return {};
}

std::size_t word_count(std::string_view text) {
  std::size_t count = 0;
  while (!take_word(text).empty()) ++count;
  return count;
}

}  // namespace

std::vector<Check> process_checks(const std::string& root, const Attempts& attempts, std::int64_t pid) {
  std::vector<Check> checks;
  const auto add = [&](const char* key, const char* what, CheckState state, std::string found,
                       std::string remedy = {}) {
    checks.push_back({"process", key, what, state, std::move(found), std::move(remedy)});
  };
  const std::string folder = fmt::format("{}/proc/{}", root, pid);
  const std::string status = read_text(folder + "/status", 64 * 1024).value_or("");
  if (status.empty()) {
    add("process.exists", "process", CheckState::missing, fmt::format("there is no process {}", pid),
        "see ps -e for the numbers; inside a container they differ");
    return checks;
  }
  const std::string name = status_value(status, "Name");
  const std::string state = status_value(status, "State");
  if (state.starts_with('Z') || state.starts_with('X'))
    add("process.exists", "process", CheckState::missing, fmt::format("{} ({}) has ended", pid, name),
        "choose one that runs");
  else if (pid == 1)
    add("process.exists", "process", CheckState::limited,
        fmt::format("1 ({}) is the ancestor of all: everything would be recorded", name), "choose a single program");
  else
    add("process.exists", "process", CheckState::ok,
        fmt::format("{} ({}), {} threads", pid, name, status_value(status, "Threads")));

  std::string uid = status_value(status, "Uid");
  std::string_view uids = uid;
  const auto owner = parse_number<std::uint64_t>(take_word(uids));
  constexpr unsigned kCapSysPtrace = 19;
  const bool all_rights = ((attempts.capabilities >> kCapSysPtrace) & 1U) != 0;
  if (owner && *owner == attempts.uid)
    add("process.owner", "owner", CheckState::ok, fmt::format("the same user ({})", *owner));
  else if (all_rights)
    add("process.owner", "owner", CheckState::ok,
        fmt::format("user {}; we have CAP_SYS_PTRACE", owner ? std::to_string(*owner) : "?"));
  else
    add("process.owner", "owner", CheckState::limited,
        fmt::format("user {}, we are {}: its libraries, variables and packages cannot be read",
                    owner ? std::to_string(*owner) : "?", attempts.uid),
        owner ? fmt::format("sudo -u '#{}' culprit record -p {}, or run as root", *owner, pid) : "run as root");

  const auto environ = read_text(folder + "/environ", 1);
  const auto maps = read_text(folder + "/maps", std::size_t{16} << 20);
  if (environ && maps)
    add("process.readable", "its settings and libraries", CheckState::ok, "environ and maps can be read");
  else
    add("process.readable", "its settings and libraries", CheckState::limited,
        fmt::format("{} cannot be read", !environ && !maps ? "environ and maps"
                                         : !maps           ? "maps"
                                                           : "environ"),
        "run as the same user, or as root");

  const std::size_t depth = word_count(status_value(status, "NSpid"));
  const std::string own_mounts = link_target(root + "/proc/self/ns/mnt");
  const std::string mounts = link_target(folder + "/ns/mnt");
  const bool other_files = !own_mounts.empty() && !mounts.empty() && own_mounts != mounts;
  if (depth > 1 || other_files)
    add("process.container", "container", CheckState::ok,
        fmt::format("in a container{}; its files are read through /proc/{}/root",
                    depth > 1 ? fmt::format(" ({} pid namespaces deep)", depth - 1) : "", pid));
  else
    add("process.container", "container", CheckState::ok, "in none");

  if (!maps) return checks;
  const auto mapped = [&](std::string_view library) { return maps->find(library) != std::string::npos; };
  const std::string program = link_target(folder + "/exe");
  const std::string program_name = program.substr(program.rfind('/') + 1);
  if (program_name.starts_with("python") || mapped("/libpython3"))
    add("process.python", "Python", CheckState::ok, mapped("/libpython3") ? "libpython is loaded" : program_name);
  else
    add("process.python", "Python", CheckState::limited, "not a Python program: no Python functions to record",
        "none needed for a native program");
  if (mapped("/libcuda.so"))
    add("process.cuda", "CUDA", CheckState::ok, "libcuda is loaded");
  else
    add("process.cuda", "CUDA", CheckState::limited, "libcuda is not loaded: it has not used a GPU so far",
        "none needed for a program without a GPU");
  add("process.nvtx", "NVTX ranges", CheckState::limited, "it runs already: NVTX asks for a listener only at its start",
      "culprit record -- COMMAND");
  return checks;
}

}  // namespace culprit::record
