#include "record/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "record/collector/collector.h"
#include "record/signals.h"

namespace culprit::record {

namespace {

std::vector<std::string> merged_environment(const std::vector<std::string>& added) {
  std::vector<std::string> merged;
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool replaced =
        std::ranges::any_of(added, [&](const std::string& other) { return name_of(other) == name_of(*entry); });
    if (!replaced) merged.emplace_back(*entry);
  }
  merged.insert(merged.end(), added.begin(), added.end());
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// In the child: what a program started from a shell expects.
void restore_signals() {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGQUIT, SIGXFSZ})
    if (number != SIGHUP || !is_ignored(SIGHUP)) static_cast<void>(std::signal(number, SIG_DFL));
}

}  // namespace

Result<Command> Command::prepare(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                                 int error_output) {
  if (arguments.empty()) return usage_error("no command is given");
  std::array<int, 2> go{-1, -1};
  std::array<int, 2> failed{-1, -1};
  const auto close_all = [&] {
    for (const int fd : {go[0], go[1], failed[0], failed[1]})
      if (fd >= 0) close(fd);
  };
  const auto trouble = [&](std::string_view what) {
    const int code = errno;
    close_all();
    return environment_error(fmt::format("{}: {}", what, std::generic_category().message(code)), arguments.front());
  };
  if (pipe2(go.data(), O_CLOEXEC) != 0 || pipe2(failed.data(), O_CLOEXEC) != 0) return trouble("cannot make a pipe");

  // Who ignores it, as some that start programs do, is not told how they end.
  if (is_ignored(SIGCHLD)) static_cast<void>(std::signal(SIGCHLD, SIG_DFL));

  // Everything that allocates happens before the fork.
  std::vector<std::string> texts = arguments;
  std::vector<std::string> variables = merged_environment(environment);
  const std::vector<char*> argv = pointers(texts);
  const std::vector<char*> envp = pointers(variables);
  const pid_t pid = fork();
  if (pid < 0) return trouble("cannot start a process");
  if (pid == 0) {
    restore_signals();
    close(go[1]);
    close(failed[0]);
    char word = 0;
    ssize_t got = 0;
    do got = read(go[0], &word, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1) _exit(127);
    if (error_output >= 0 && error_output != STDERR_FILENO) {
      dup2(error_output, STDERR_FILENO);
      if (error_output > STDERR_FILENO) close(error_output);  // its standard output is its own
    }
    execvpe(argv.front(), argv.data(), envp.data());
    const int code = errno;
    [[maybe_unused]] const auto written = write(failed[1], &code, sizeof code);
    _exit(127);
  }
  close(go[0]);
  close(failed[1]);
  Command command;
  command.name_ = arguments.front();
  command.pid_ = pid;
  command.go_fd_ = go[1];
  command.error_fd_ = failed[0];
  command.end_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0U));
  return command;
}

Command::Command(Command&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      go_fd_(std::exchange(other.go_fd_, -1)),
      error_fd_(std::exchange(other.error_fd_, -1)),
      end_fd_(std::exchange(other.end_fd_, -1)),
      begin_(other.begin_),
      end_(other.end_),
      use_(other.use_),
      status_(other.status_) {}

Command::~Command() {
  if (end_fd_ >= 0) close(end_fd_);
  if (error_fd_ >= 0) close(error_fd_);
  if (go_fd_ < 0) return;
  close(go_fd_);
  if (pid_ > 0) waitpid(static_cast<pid_t>(pid_), nullptr, 0);  // it gives up at once
}

Status Command::go() {
  if (go_fd_ < 0) return {};
  const char word = 'g';
  begin_ = monotonic_now();
  const bool told = write(go_fd_, &word, 1) == 1;
  close(std::exchange(go_fd_, -1));
  int code = told ? 0 : EPIPE;
  ssize_t got = 0;
  do got = read(error_fd_, &code, sizeof code);
  while (got < 0 && errno == EINTR);
  close(std::exchange(error_fd_, -1));
  if (told && got != static_cast<ssize_t>(sizeof code)) return {};
  if (!status_) waitpid(static_cast<pid_t>(pid_), nullptr, 0);
  status_ = 127 << 8;
  return usage_error(fmt::format("cannot execute '{}': {}", name_, std::generic_category().message(code)),
                     "give a program that exists and may be executed");
}

std::optional<int> Command::ended() {
  if (status_ || pid_ <= 0 || go_fd_ >= 0) return status_;
  // Stops of it belong to the thread that puts an agent into it, and would be told here, too.
  siginfo_t seen{};
  const bool is_there = waitid(P_PID, static_cast<id_t>(pid_), &seen, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (!is_there && errno == ECHILD) status_ = 0;  // somebody else took its status
  if (!is_there || seen.si_pid == 0 ||
      (seen.si_code != CLD_EXITED && seen.si_code != CLD_KILLED && seen.si_code != CLD_DUMPED))
    return status_;
  int status = 0;
  rusage usage{};
  if (wait4(static_cast<pid_t>(pid_), &status, WNOHANG, &usage) != static_cast<pid_t>(pid_)) return status_;
  status_ = status;
  const auto ns = [](const timeval& t) { return Ns{t.tv_sec} * 1'000'000'000 + Ns{t.tv_usec} * 1000; };
  note_end(monotonic_now());
  use_ = {end_ - begin_, ns(usage.ru_utime) + ns(usage.ru_stime)};
  return status_;
}

void Command::signal(int number) const {
  if (pid_ > 0 && !status_) kill(static_cast<pid_t>(pid_), number);
}

int exit_code_of(int wait_status) {
  constexpr int kKilled = 128;
  return WIFSIGNALED(wait_status) ? kKilled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace culprit::record
