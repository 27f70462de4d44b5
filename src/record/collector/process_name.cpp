#include "record/collector/process_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "core/file.h"
#include "core/text.h"

namespace culprit::record {

namespace {

constexpr std::size_t kMostTitle = 4096;
constexpr std::size_t kMostShown = 100;
constexpr std::size_t kCommLength = 15;  // of the kernel's TASK_COMM_LEN, without the end

std::string_view file_part(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// What a link of /proc names. A program that was replaced on disk keeps its name.
std::string link_name(const std::string& link) {
  std::array<char, 4096> text{};
  const ssize_t length = readlink(link.c_str(), text.data(), text.size());
  if (length <= 0) return {};
  std::string_view path(text.data(), static_cast<std::size_t>(length));
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return std::string(file_part(path));
}

}  // namespace

void parse_title(std::string_view cmdline, ProcessNames& names) {
  const std::string_view first = cmdline.substr(0, cmdline.find('\0'));
  const bool alone = cmdline.find_first_not_of('\0', first.size()) == std::string_view::npos;
  names.title = trim(first);
  names.wrote_title = alone && !names.title.starts_with('/') && names.title.find_first_of(" :") != std::string::npos;
}

ProcessNames read_process_names(const std::string& proc, std::int64_t pid) {
  ProcessNames names;
  const std::string folder = fmt::format("{}/{}/", proc, pid);
  names.comm = read_beginning(folder + "comm", kMostTitle).value_or("");
  if (names.comm.ends_with('\n')) names.comm.pop_back();
  parse_title(read_beginning(folder + "cmdline", kMostTitle).value_or(""), names);
  names.program = link_name(folder + "exe");
  return names;
}

std::string_view short_title(const ProcessNames& names) {
  if (!names.wrote_title) return file_part(names.title);
  std::string_view rest = names.title;
  return file_part(take_word(rest));
}

std::string whole_comm(const ProcessNames& names) {
  const std::string_view first = short_title(names);
  return std::string(names.comm.size() == kCommLength && first.starts_with(names.comm) ? first : names.comm);
}

std::string shown_name(const ProcessNames& names) {
  if (!names.wrote_title) return whole_comm(names);
  std::string shown;
  std::string_view rest = names.title;
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (!shown.empty() && (word.starts_with('/') || word.starts_with('-'))) break;
    if (!shown.empty()) shown += ' ';
    shown += word;
  }
  return shown.substr(0, kMostShown);
}

}  // namespace culprit::record
