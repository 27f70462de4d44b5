#include "faults/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

namespace culprit::faults {

namespace {

constexpr int kNoStart = 127;

/// Between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* argv, int output, bool own_network) {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  static_cast<void>(std::signal(SIGPIPE, SIG_DFL));
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (own_network && unshare(CLONE_NEWNET) != 0) _exit(kNoStart);
  execv(argv[0], argv);
  _exit(kNoStart);
}

}  // namespace

std::optional<std::string> find_program(std::string_view name) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::string folders = path != nullptr ? path : "/usr/bin:/bin";
  folders += ":/usr/sbin:/sbin";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string candidate = fmt::format("{}/{}", folders.substr(begin, end - begin), name);
    if (candidate.front() == '/' && access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

Result<CommandOutcome> run_command(const std::vector<std::string>& argv, bool own_network) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLongest = std::chrono::seconds(30);
  constexpr std::size_t kMostText = 64U << 10U;
  std::vector<char*> raw;
  raw.reserve(argv.size() + 1);
  for (const std::string& argument : argv) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return environment_error(fmt::format("no pipe: {}", errno_text(errno)), argv[0]);
  const pid_t child = fork();
  if (child == 0) become(raw.data(), ends[1], own_network);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return environment_error(fmt::format("cannot be started: {}", errno_text(errno)), argv[0]);
  }
  CommandOutcome outcome;
  const auto deadline = Clock::now() + kLongest;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{ends[0], POLLIN, 0};
    const int ready = left > 0 ? poll(&entry, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      kill(child, SIGKILL);
      break;
    }
    const ssize_t got = read(ends[0], buffer.data(), buffer.size());
    if (got <= 0) break;
    if (outcome.text.size() < kMostText) outcome.text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  while (!outcome.text.empty() && outcome.text.back() == '\n') outcome.text.pop_back();
  return outcome;
}

}  // namespace culprit::faults
