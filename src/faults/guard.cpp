#include "faults/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/text.h"
#include "faults/files.h"
#include "faults/state_file.h"

namespace culprit::faults {

namespace {

// One datagram each; the first byte says what it is.
constexpr char kAdd = 'A';   // + encoded step; answered kKnown, or kFailed + text
constexpr char kBeat = 'B';  // not answered
constexpr char kUndo = 'U';  // answered kDone, or kFailed + text
constexpr char kKnown = 'k';
constexpr char kDone = 'd';
constexpr char kFailed = 'f';
constexpr std::size_t kLongestMessage = 64U << 10U;

bool send_message(int socket, char what, std::string_view text) {
  std::string message(1, what);
  message += text;
  return send(socket, message.data(), message.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

/// The next message; empty when the other end is closed.
std::string receive_message(int socket) {
  std::string message(kLongestMessage, '\0');
  ssize_t got = 0;
  do got = recv(socket, message.data(), message.size(), 0);
  while (got < 0 && errno == EINTR);
  message.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return message;
}

/// Takes everything back; the state file goes when that worked.
std::string finish(const Leftover& state) {
  const auto failures = execute_all(state.steps);
  if (failures.empty()) unlink(state.file.c_str());
  return fmt::format("{}", fmt::join(failures, "\n"));
}

void detach(int socket) {
  setsid();
  prctl(PR_SET_NAME, "culprit-guard");
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE, SIGUSR1, SIGUSR2})
    static_cast<void>(std::signal(number, SIG_IGN));
  // Whoever reads this program's output must not wait for the guard.
  const int null = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  const auto kept = static_cast<unsigned>(socket);
  if (kept > 3) syscall(SYS_close_range, 3U, kept - 1, 0U);
  syscall(SYS_close_range, kept + 1, ~0U, 0U);
  static_cast<void>(chdir("/"));
  static_cast<void>(write_small_file("/proc/self/oom_score_adj", "-900"));
}

/// The life of the guard; gives its exit code.
int watch_over(int socket, const ProcessHandle& injector, Leftover state, Ns patience) {
  while (true) {
    pollfd entry{socket, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(patience / 1'000'000));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      // It is stopped or hangs: it must not change anything once the machine is brought back.
      static_cast<void>(injector.signal(SIGKILL));
      pollfd end{injector.descriptor(), POLLIN, 0};
      poll(&end, 1, 2000);
      return finish(state).empty() ? 0 : 1;
    }
    const std::string message = receive_message(socket);
    if (message.empty()) return finish(state).empty() ? 0 : 1;
    if (message[0] == kAdd) {
      auto step = decode(std::string_view(message).substr(1));
      if (!step) {
        send_message(socket, kFailed, "the guard does not understand the step");
        continue;
      }
      state.steps.push_back(std::move(*step));
      if (const Status status = write_state(state.file, state); status) {
        send_message(socket, kKnown, {});
      } else {
        state.steps.pop_back();
        send_message(socket, kFailed, to_string(status.error()));
      }
    } else if (message[0] == kUndo) {
      const std::string failures = finish(state);
      send_message(socket, failures.empty() ? kDone : kFailed, failures);
      return failures.empty() ? 0 : 1;
    }
  }
}

}  // namespace

Result<Guard> Guard::start(const std::string& state_file, Ns patience) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return environment_error(fmt::format("no socket for the guard: {}", errno_text(errno)), "");
  const auto self = process_facts(getpid());
  if (!self) return environment_error("cannot be read", "/proc/self/stat", "mount /proc");
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return environment_error(fmt::format("the guard process cannot be started: {}", errno_text(errno)), "");
  }
  if (child == 0) {
    close(ends[0]);
    detach(ends[1]);
    const auto injector = ProcessHandle::open(self->id);
    const auto own = process_facts(getpid());
    if (!injector || !own) _exit(1);
    Leftover state{state_file, boot_id(), self->id, own->id, {}};
    if (const Status status = write_state(state_file, state); !status) {
      send_message(ends[1], kFailed, to_string(status.error()));
      _exit(1);
    }
    send_message(ends[1], kKnown, {});
    _exit(watch_over(ends[1], *injector, std::move(state), patience));
  }
  close(ends[1]);
  Guard guard(ends[0], child, state_file);
  const std::string answer = receive_message(guard.socket_);
  if (!answer.empty() && answer[0] == kKnown) return guard;
  return environment_error(answer.empty() ? std::string("the guard process ended at once") : answer.substr(1), "");
}

Guard::Guard(Guard&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      pid_(std::exchange(other.pid_, -1)),
      state_file_(std::move(other.state_file_)),
      steps_(std::move(other.steps_)) {}

Guard::~Guard() {
  if (socket_ >= 0) undo();
}

Status Guard::add(const Undo& undo) {
  if (std::string bytes = encode(undo); bytes.size() + 1 < kLongestMessage && send_message(socket_, kAdd, bytes)) {
    const std::string answer = receive_message(socket_);
    if (!answer.empty() && answer[0] == kKnown) {
      steps_.push_back(undo);
      return {};
    }
    if (!answer.empty()) return environment_error(answer.substr(1), "guard process");
  }
  return environment_error("has ended, so nothing is changed any more", fmt::format("guard process {}", pid_));
}

void Guard::beat() { static_cast<void>(send_message(socket_, kBeat, {})); }

bool Guard::alive() const {
  pollfd entry{socket_, POLLIN, 0};
  return socket_ >= 0 && poll(&entry, 1, 0) == 0;
}

std::vector<std::string> Guard::undo() {
  if (socket_ < 0) return {};
  std::vector<std::string> failures;
  const std::string answer = send_message(socket_, kUndo, {}) ? receive_message(socket_) : std::string();
  if (answer.empty()) {
    failures = execute_all(steps_);
    if (failures.empty()) unlink(state_file_.c_str());
  } else if (answer[0] == kFailed) {
    for (const std::string_view line : split_lines(std::string_view(answer).substr(1))) failures.emplace_back(line);
  }
  close(std::exchange(socket_, -1));
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  return failures;
}

}  // namespace culprit::faults
