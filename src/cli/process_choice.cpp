#include "cli/process_choice.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>

#include "cli/suggestion.h"
#include "core/text.h"
#include "record/find_process.h"

namespace culprit::cli {

namespace {

constexpr std::int64_t kMostPid = 1 << 22;
constexpr std::size_t kMostListed = 20;

std::string user_name(std::uint32_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text{};
  if (getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || found == nullptr) return std::to_string(user);
  return found->pw_name;
}

std::string start_text(std::int64_t ticks) {
  const long per_second = sysconf(_SC_CLK_TCK);
  timespec now{};
  timespec up{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &up);
  const std::time_t start = now.tv_sec - up.tv_sec + (per_second > 0 ? ticks / per_second : 0);
  std::tm local{};
  localtime_r(&start, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::string describe(const record::FoundProcess& process) {
  return fmt::format("{} ({}, user {}, since {})", process.pid, record::shown_name(process.names),
                     user_name(process.user), start_text(process.start_ticks));
}

Error nobody(const std::string& name, const std::vector<record::FoundProcess>& all) {
  std::vector<std::string> known;
  for (const record::FoundProcess& process : all) {
    known.push_back(record::shown_name(process.names));
    known.push_back(process.names.program);
  }
  return input_error(
      fmt::format("no process is called '{}'", name), {},
      suggestion(name, known, "arguments are not searched: for a script give the numbers that 'pgrep -f' prints"));
}

Error several(const std::string& name, const std::vector<record::FoundProcess>& roots) {
  std::vector<std::string> listed;
  for (const record::FoundProcess& process : roots)
    if (listed.size() < kMostListed) listed.push_back(describe(process));
  return usage_error(fmt::format("'{}' is the name of {} processes: {}{}", name, roots.size(), fmt::join(listed, "; "),
                                 listed.size() < roots.size() ? "; ..." : ""),
                     "give the ids of those you mean");
}

/// The id that a word is; no name begins with a digit and goes on so to its end.
Result<std::optional<std::int64_t>> id_of(const std::string& word) {
  const auto pid = parse_number<std::int64_t>(word);
  const bool digits = !word.empty() && std::ranges::all_of(word, is_digit);
  if (!pid && !digits) return std::optional<std::int64_t>();
  if (!pid || *pid < 1 || *pid > kMostPid)
    return usage_error(fmt::format("'{}' is no process id", word), fmt::format("give 1 to {}, or a name", kMostPid));
  return pid;
}

}  // namespace

Result<std::vector<Choice>> choose_processes(const std::vector<std::string>& words) {
  std::vector<record::FoundProcess> all;
  std::vector<Choice> choices;
  for (const std::string& word : words) {
    const auto pid = id_of(word);
    if (!pid) return pid.error();
    if (*pid) {
      choices.push_back({{}, {**pid}});
      continue;
    }
    if (trim(word).empty()) return usage_error("an empty name of a process", "give an id or a name");
    if (all.empty()) all = record::list_processes("/proc", getpid());
    const auto matched = record::match_processes(all, word);
    if (matched.empty()) return nobody(word, all);
    const auto roots = record::eldest(matched, all);
    if (!record::is_family(roots)) return several(word, roots);
    Choice choice{word, {}};
    for (const record::FoundProcess& process : roots) choice.pids.push_back(process.pid);
    choices.push_back(std::move(choice));
  }
  return choices;
}

Result<std::int64_t> choose_process(const std::string& word) {
  const auto choices = choose_processes({word});
  if (!choices) return choices.error();
  const std::vector<std::int64_t>& pids = choices->front().pids;
  if (pids.size() > 1)
    return usage_error(fmt::format("'{}' is the name of processes {}", word, fmt::join(pids, ", ")),
                       "give the id of one");
  return pids.front();
}

}  // namespace culprit::cli
