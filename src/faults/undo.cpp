#include "faults/undo.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ranges>

#include "core/text.h"
#include "faults/cgroup.h"
#include "faults/command.h"
#include "faults/files.h"
#include "faults/process.h"

namespace culprit::faults {

namespace {

struct Shape {
  std::string_view name;
  std::size_t least;
  std::size_t most;
};
constexpr std::array<Shape, 7> kShapes = {{{"continue_process", 2, 2},
                                           {"leave_cgroup", 2, 2},
                                           {"remove_file", 1, 1},
                                           {"remove_directory", 1, 1},
                                           {"write_file", 2, 2},
                                           {"command", 1, 64},
                                           {"remove_queue", 3, 3}}};

const Shape& shape_of(Undo::Kind kind) { return kShapes.at(static_cast<std::size_t>(kind)); }

std::optional<std::string> continue_process(const Undo& undo) {
  const auto pid = parse_number<std::int64_t>(undo.args[0]);
  const auto start = parse_number<std::int64_t>(undo.args[1]);
  if (!pid || !start) return fmt::format("not a process: {} {}", undo.args[0], undo.args[1]);
  const ProcessId id{static_cast<pid_t>(*pid), static_cast<std::uint64_t>(*start)};
  const auto handle = ProcessHandle::open(id);
  if (!handle) return std::nullopt;  // it ended: nothing is stopped
  if (!handle->signal(SIGCONT) && errno != ESRCH)
    return fmt::format("process {} was not continued: {}", *pid, errno_text(errno));
  return std::nullopt;
}

std::optional<std::string> remove_queue(const std::string& tc, const std::string& interface,
                                        const std::string& handle) {
  const auto shown = run_command({tc, "qdisc", "show", "dev", interface});
  if (!shown) return to_string(shown.error());
  const auto words = split_words(shown->text);
  if (std::ranges::find(words, handle) == words.end()) return std::nullopt;
  const auto outcome = run_command({tc, "qdisc", "del", "dev", interface, "root", "handle", handle});
  if (!outcome) return to_string(outcome.error());
  if (outcome->exit_code != 0)
    return fmt::format("the queue {} of {} was not removed: {}", handle, interface, outcome->text);
  return std::nullopt;
}

std::optional<std::string> unlinked(int result, const std::string& path) {
  if (result == 0 || errno == ENOENT) return std::nullopt;
  return fmt::format("{} was not removed: {}", path, errno_text(errno));
}

/// The folder of a file, as that of a control group, is gone with all that was set in it.
bool folder_is_gone(const std::string& path) {
  const std::size_t end = path.rfind('/');
  if (end == std::string::npos || end == 0) return false;
  return access(path.substr(0, end).c_str(), F_OK) != 0 && errno == ENOENT;
}

}  // namespace

std::optional<std::string> execute(const Undo& undo) {
  const Shape& shape = shape_of(undo.kind);
  if (undo.args.size() < shape.least || undo.args.size() > shape.most)
    return fmt::format("damaged step: {}", shape.name);
  switch (undo.kind) {
    case Undo::Kind::continue_process:
      return continue_process(undo);
    case Undo::Kind::leave_cgroup:
      return leave_cgroup(undo.args[0], undo.args[1]);
    case Undo::Kind::remove_file:
      return unlinked(unlink(undo.args[0].c_str()), undo.args[0]);
    case Undo::Kind::remove_directory:
      return unlinked(rmdir(undo.args[0].c_str()), undo.args[0]);
    case Undo::Kind::write_file:
      if (const Status status = write_small_file(undo.args[0], undo.args[1]); !status && !folder_is_gone(undo.args[0]))
        return to_string(status.error());
      return std::nullopt;
    case Undo::Kind::command: {
      const auto outcome = run_command(undo.args);
      if (!outcome) return to_string(outcome.error());
      if (outcome->exit_code != 0) return fmt::format("{} failed: {}", undo.args[0], outcome->text);
      return std::nullopt;
    }
    case Undo::Kind::remove_queue:
      return remove_queue(undo.args[0], undo.args[1], undo.args[2]);
  }
  return "damaged step";
}

std::vector<std::string> execute_all(const std::vector<Undo>& undos) {
  std::vector<std::string> failures;
  for (const Undo& undo : undos | std::views::reverse)
    if (auto failure = execute(undo)) failures.push_back(std::move(*failure));
  return failures;
}

std::string encode(const Undo& undo) {
  std::string bytes(shape_of(undo.kind).name);
  for (const std::string& argument : undo.args) {
    bytes += '\0';
    bytes += argument;
  }
  return bytes;
}

std::optional<Undo> decode(std::string_view bytes) {
  std::vector<std::string> fields;
  while (true) {
    const std::size_t end = bytes.find('\0');
    fields.emplace_back(bytes.substr(0, end));
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
  }
  const auto shape = std::ranges::find(kShapes, std::string_view(fields[0]), &Shape::name);
  if (shape == kShapes.end()) return std::nullopt;
  Undo undo{static_cast<Undo::Kind>(shape - kShapes.begin()), {fields.begin() + 1, fields.end()}};
  if (undo.args.size() < shape->least || undo.args.size() > shape->most) return std::nullopt;
  return undo;
}

std::string describe(const Undo& undo) {
  switch (undo.kind) {
    case Undo::Kind::continue_process:
      return fmt::format("continue process {}", undo.args.at(0));
    case Undo::Kind::leave_cgroup:
      return fmt::format("move everything in {} back to {} and remove it", undo.args.at(0), undo.args.at(1));
    case Undo::Kind::remove_file:
    case Undo::Kind::remove_directory:
      return fmt::format("remove {}", undo.args.at(0));
    case Undo::Kind::write_file:
      return fmt::format("write '{}' to {}", undo.args.at(1), undo.args.at(0));
    case Undo::Kind::remove_queue:
      return fmt::format("remove the queue {} of {}", undo.args.at(2), undo.args.at(1));
    case Undo::Kind::command:
      return fmt::format("run {}", fmt::join(undo.args, " "));
  }
  return {};
}

}  // namespace culprit::faults
