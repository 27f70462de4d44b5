#include "record/sched/stopped.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "core/text.h"

namespace culprit::record::sched {

namespace {

constexpr std::size_t kStateField = 3;

std::optional<StoppedThread> read_stopped(const std::string& folder) {
  const auto stat = read_beginning(folder + "/stat");
  return stat ? parse_stopped(*stat) : std::nullopt;
}

}  // namespace

std::optional<StoppedThread> parse_stopped(std::string_view stat) {
  const std::size_t begin = stat.find('(');
  const std::size_t end = stat.rfind(") ");  // names may have any character
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::nullopt;
  const auto tid = parse_number<std::int32_t>(stat.substr(0, stat.find(' ')));
  const std::vector<std::string_view> words = split_words(stat.substr(end + 2));
  if (words.size() <= kProcessorField - kStateField || (words[0] != "T" && words[0] != "t")) return std::nullopt;
  const auto cpu = parse_number<std::uint32_t>(words[kProcessorField - kStateField]);
  if (!tid || !cpu) return std::nullopt;
  return StoppedThread{.tid = *tid, .cpu = *cpu, .name = std::string(stat.substr(begin + 1, end - begin - 1))};
}

std::vector<StoppedThread> stopped_threads(std::int32_t pid, const std::string& proc) {
  const std::string folder = fmt::format("{}/{}", proc, pid);
  std::vector<StoppedThread> threads;
  if (!read_stopped(folder)) return threads;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder + "/task", error), end; !error && entry != end;
       entry.increment(error))
    if (auto thread = read_stopped(entry->path().string())) {
      thread->tgid = pid;
      threads.push_back(std::move(*thread));
    }
  return threads;
}

}  // namespace culprit::record::sched
