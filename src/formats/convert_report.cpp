#include "formats/convert_report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/escape.h"
#include "formats/io/csv_rows.h"

namespace culprit::formats {

namespace {

/// The last line of a program's complaints that says something.
std::string last_words(const std::string& file) {
  auto text = read_whole_file(file);
  if (!text) return {};
  std::string_view rest = *text;
  while (!rest.empty() && (rest.back() == '\n' || rest.back() == '\r' || rest.back() == ' ')) rest.remove_suffix(1);
  if (const std::size_t line = rest.rfind('\n'); line != std::string_view::npos) rest.remove_prefix(line + 1);
  return escape_terminal(rest.substr(0, 300));
}

/// Runs `words` with `output` as standard output and `complaints` as standard error. The exit status, or an errno
/// below 0.
int run(const std::vector<std::string>& words, const std::string& output, const std::string& complaints) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr mode_t kPrivate = 0600;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, kPrivate);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, complaints.c_str(), O_WRONLY | O_CREAT | O_TRUNC, kPrivate);
  pid_t child = 0;
  const int code = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return -code;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ConvertedReport::ConvertedReport(ConvertedReport&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), file_(std::move(other.file_)) {}

ConvertedReport::~ConvertedReport() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Result<ConvertedReport> convert_report(const std::string& path, const Conversion& conversion) {
  const std::string_view tool = conversion.command.front();
  std::error_code code;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(code);
  if (code) return environment_error("there is no folder for temporary files", path, "set TMPDIR");
  std::string folder = (temporary / "culprit-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    return environment_error(fmt::format("cannot make a temporary folder: {}", std::generic_category().message(errno)),
                             folder, "set TMPDIR to a folder that can be written");
  ConvertedReport report(folder, fmt::format("{}/{}", folder, conversion.output));
  // A name that begins with a dash must not become an option.
  const std::string input = std::filesystem::absolute(path, code).string();
  std::vector<std::string> words;
  std::string by_hand;
  bool prints = true;
  for (const std::string_view word : conversion.command) {
    const bool is_output = word == "OUTPUT";
    prints = prints && !is_output;
    words.emplace_back(is_output ? report.file() : word == "INPUT" ? input : std::string(word));
    by_hand += fmt::format("{}{}", by_hand.empty() ? "" : " ",
                           is_output         ? conversion.output
                           : word == "INPUT" ? std::string_view(path)
                                             : word);
  }
  if (prints) by_hand += fmt::format(" > {}", conversion.output);
  const std::string printed = prints ? report.file() : folder + "/stdout";
  const std::string complaints = folder + "/stderr";
  const int status = run(words, printed, complaints);
  // posix_spawnp reports a missing program by itself, or by the exit status 127 of the child.
  if (status == -ENOENT || status == -EACCES || status == 127)
    return input_error(fmt::format("is a report that only {} can open, and that is not installed here", tool), path,
                       fmt::format("run where it is installed: {}", by_hand));
  if (status != 0) {
    std::string words_of_tool = last_words(complaints);
    if (words_of_tool.empty() && !prints) words_of_tool = last_words(printed);
    return input_error(
        fmt::format("{} could not convert the report{}{}", tool, words_of_tool.empty() ? "" : ": ", words_of_tool),
        path, fmt::format("run by hand to see why: {}", by_hand));
  }
  return report;
}

}  // namespace culprit::formats
