#include "faults/state_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/file.h"
#include "core/output_file.h"
#include "core/text.h"

namespace culprit::faults {

namespace {

constexpr std::string_view kHeader = "culprit undo 1\n";
constexpr std::string_view kEnding = ".undo";

bool lives(ProcessId id) {
  const auto facts = process_facts(id.pid);
  return facts && facts->id == id && facts->state != 'Z' && facts->state != 'X';
}

/// The text up to the next line end, which is taken off; nothing when there is none.
std::optional<std::string_view> take_ended_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<ProcessId> take_process(std::string_view& text) {
  const auto line = take_ended_line(text);
  if (!line) return std::nullopt;
  const auto words = split_words(*line);
  if (words.size() != 2) return std::nullopt;
  const auto pid = parse_number<std::int64_t>(words[0]);
  const auto start = parse_number<std::int64_t>(words[1]);
  if (!pid || !start) return std::nullopt;
  return ProcessId{static_cast<pid_t>(*pid), static_cast<std::uint64_t>(*start)};
}

}  // namespace

std::string boot_id() {
  const auto text = read_beginning("/proc/sys/kernel/random/boot_id");
  return text ? std::string(text->substr(0, text->find('\n'))) : std::string("unknown");
}

std::string format_state(const Leftover& state) {
  std::string text = fmt::format("{}{}\n{} {}\n{} {}\n", kHeader, state.boot, state.injector.pid, state.injector.start,
                                 state.guard.pid, state.guard.start);
  for (const Undo& step : state.steps) {
    const std::string bytes = encode(step);
    text += fmt::format("{}\n{}\n", bytes.size(), bytes);
  }
  return text;
}

std::optional<Leftover> parse_state(std::string_view text) {
  if (!text.starts_with(kHeader)) return std::nullopt;
  text.remove_prefix(kHeader.size());
  Leftover state;
  const auto boot = take_ended_line(text);
  const auto injector = take_process(text);
  const auto guard = take_process(text);
  if (!boot || !injector || !guard) return std::nullopt;
  state.boot = *boot;
  state.injector = *injector;
  state.guard = *guard;
  while (!text.empty()) {
    const auto line = take_ended_line(text);
    const auto size = line ? parse_number<std::int64_t>(*line) : std::nullopt;
    if (!size || *size < 0 || static_cast<std::size_t>(*size) >= text.size()) return std::nullopt;
    const auto length = static_cast<std::size_t>(*size);
    auto step = decode(text.substr(0, length));
    if (!step || text[length] != '\n') return std::nullopt;
    state.steps.push_back(std::move(*step));
    text.remove_prefix(length + 1);
  }
  return state;
}

Status write_state(const std::string& path, const Leftover& state) {
  auto file = OutputFile::create(path, {kPrivateMode, true});
  if (!file) return file.error();
  if (Status status = file->write(format_state(state)); !status) return status;
  return file->commit();
}

bool Leftover::in_use() const { return boot == boot_id() && (lives(injector) || lives(guard)); }

Result<std::string> state_folder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::string folder;
  if (runtime != nullptr && *runtime == '/')
    folder = fmt::format("{}/culprit", runtime);
  else
    folder = geteuid() == 0 ? std::string("/run/culprit") : fmt::format("/var/tmp/culprit-{}", geteuid());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return environment_error(
        fmt::format("the folder for what has to be undone cannot be created: {}", errno_text(errno)), folder,
        "set XDG_RUNTIME_DIR to a folder of yours");
  struct stat facts {};
  if (lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() ||
      (facts.st_mode & 077U) != 0)
    return environment_error("is not a folder of this user alone", folder, "remove it, or set XDG_RUNTIME_DIR");
  return folder;
}

std::vector<Leftover> leftovers(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* const handle = opendir(folder.c_str()); handle != nullptr) {
    while (const dirent* entry = readdir(handle))  // NOLINT(concurrency-mt-unsafe): a handle of its own
      if (std::string_view(entry->d_name).ends_with(kEnding)) names.emplace_back(entry->d_name);
    closedir(handle);
  }
  std::ranges::sort(names);
  std::vector<Leftover> found;
  for (const std::string& name : names) {
    const std::string file = fmt::format("{}/{}", folder, name);
    const auto text = read_beginning(file);
    auto state = text ? parse_state(*text) : std::nullopt;
    if (!state) continue;
    state->file = file;
    found.push_back(std::move(*state));
  }
  return found;
}

std::vector<std::string> undo_leftover(const Leftover& leftover) {
  std::vector<Undo> steps = leftover.steps;
  if (leftover.boot != boot_id())
    std::erase_if(steps, [](const Undo& step) {
      return step.kind != Undo::Kind::remove_file && step.kind != Undo::Kind::remove_directory;
    });
  std::vector<std::string> failures = execute_all(steps);
  if (failures.empty()) unlink(leftover.file.c_str());
  return failures;
}

}  // namespace culprit::faults
