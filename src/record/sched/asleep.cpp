#include "record/sched/asleep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "core/text.h"
#include "record/bpf/syscall_name.h"
#include "record/collector/agent_name.h"

namespace culprit::record::sched {

namespace {

constexpr const char* kUnknown = "unknown";

/// The kernel writes arguments as "0x189".
std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Who can wake a thread from it differs.
std::string futex_name(const std::vector<std::string_view>& words) {
  constexpr std::uint64_t kPrivate = 128;  // FUTEX_PRIVATE_FLAG
  constexpr std::size_t kOperation = 2;    // behind the number of the call and the address
  constexpr std::size_t kTimeOut = 4;
  const auto operation = words.size() > kTimeOut ? hexadecimal(words[kOperation]) : std::nullopt;
  const auto time_out = operation ? hexadecimal(words[kTimeOut]) : std::nullopt;
  if (!time_out || *time_out != 0) return "futex with a time-out";
  return (*operation & kPrivate) != 0 ? "futex" : "futex in shared memory";
}

/// Neither ended nor the agent's.
bool is_of_target(const std::string& folder) {
  const auto stat = read_beginning(folder + "/stat");
  if (!stat) return false;
  const std::size_t begin = stat->find('(');
  const std::size_t end = stat->rfind(") ");  // names may have any character
  if (begin == std::string::npos || end == std::string::npos || end < begin || end + 2 >= stat->size()) return false;
  const char state = (*stat)[end + 2];
  return state != 'Z' && state != 'X' && stat->substr(begin + 1, end - begin - 1) != kAgentName;
}

std::string sleep_of(const std::string& folder) {
  if (const auto call = read_beginning(folder + "/syscall"))
    if (auto name = parse_sleep(*call)) return std::move(*name);
  const auto function = read_beginning(folder + "/wchan");
  return function && !function->empty() && *function != "0" ? *function : kUnknown;
}

}  // namespace

std::optional<std::string> parse_sleep(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  if (words.empty()) return std::nullopt;
  if (words[0] == "running") return "running";
  const auto number = parse_number<int>(words[0]);
  if (!number) return std::nullopt;
  if (*number < 0) return "no system call";
  std::string name = bpf::syscall_name(*number);
  return name == "futex" ? futex_name(words) : name;
}

std::string asleep_in(const std::vector<Target>& targets, const std::string& proc) {
  std::map<std::string, std::size_t> threads;
  std::size_t asked = 0;
  for (const Target& target : targets) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(fmt::format("{}/{}/task", proc, target.pid), error), end;
         !error && entry != end; entry.increment(error)) {
      const std::string folder = entry->path().string();
      if (asked++ >= kMostAsleep)
        ++threads[kUnknown];
      else if (is_of_target(folder))
        ++threads[sleep_of(folder)];
    }
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(threads.begin(), threads.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<std::string, std::size_t>::second);
  std::string text;
  for (const auto& [name, count] : sorted) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, count);
  return text;
}

}  // namespace culprit::record::sched
