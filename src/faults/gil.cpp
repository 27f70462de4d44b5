// Asks a cooperating Python program to let one of its threads hold the interpreter's lock; protocol in docs/faults.md.
// The program gives the lock back when the connection closes, so nothing is left to undo.

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "core/escape.h"
#include "core/text.h"
#include "faults/catalog.h"
#include "faults/injector.h"

namespace culprit::faults {

namespace {

constexpr int kHoldPeriodUs = 20'000;
constexpr int kAnswerMs = 2000;

/// One line without its end; empty when none came in time.
std::string receive_line(int socket) {
  constexpr std::size_t kLongest = 512;
  std::string line;
  while (line.size() < kLongest) {
    pollfd entry{socket, POLLIN, 0};
    char byte = 0;
    if (poll(&entry, 1, kAnswerMs) <= 0 || read(socket, &byte, 1) != 1) return {};
    if (byte == '\n') break;
    line += byte;
  }
  return line;
}

std::int64_t field(std::string_view line, std::string_view key) {
  for (const std::string_view word : split_words(line))
    if (word.starts_with(key) && word.substr(key.size()).starts_with('='))
      return parse_number<std::int64_t>(word.substr(key.size() + 1)).value_or(0);
  return 0;
}

class Gil final : public Injector {
 public:
  Gil(pid_t target, double severity, int socket) : target_(target), severity_(severity), socket_(socket) {}
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;
  ~Gil() override {
    if (socket_ >= 0) close(socket_);
  }

  [[nodiscard]] std::string what() const override {
    return fmt::format("a thread of process {} holds the Python lock {:.0f} % of the time", target_, 100 * severity_);
  }
  Status prepare(const std::function<bool()>&) override { return {}; }
  Status begin(Guard&) override {
    const std::string request = fmt::format("hold {:.6f} {}\n", severity_, kHoldPeriodUs);
    if (send(socket_, request.data(), request.size(), MSG_NOSIGNAL) < 0) return refused("the connection is closed");
    const std::string answer = receive_line(socket_);
    if (answer != "ok") return refused(answer.empty() ? "no answer came" : answer);
    return {};
  }
  Result<Ns> tick(Guard&, Ns now) override { return now + 1'000'000'000; }
  void end() override {
    if (socket_ < 0) return;
    if (send(socket_, "stop\n", 5, MSG_NOSIGNAL) == 5) done_ = receive_line(socket_);
    close(std::exchange(socket_, -1));
  }
  [[nodiscard]] std::vector<Figure> figures() const override {
    if (!done_.starts_with("done")) return {};
    return {{"holds", field(done_, "holds")},
            {"held_cpu_ns", field(done_, "held_ns")},
            {"elapsed_ns", field(done_, "elapsed_ns")}};
  }

 private:
  [[nodiscard]] Status refused(std::string_view why) const {
    return environment_error(fmt::format("the program refused: {}", escape_terminal(why)),
                             fmt::format("process {}", target_));
  }

  pid_t target_;
  double severity_;
  int socket_;
  std::string done_;
};

}  // namespace

Result<std::unique_ptr<Injector>> make_gil(const Request& request, const ProcessHandle* target) {
  if (target == nullptr) return usage_error("gil needs a process", "name it by --target");
  const pid_t pid = target->id().pid;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("culprit-gil-{}", pid);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return environment_error(fmt::format("no socket: {}", errno_text(errno)), "");
  // A stopped target accepts nobody.
  const timeval longest{2, 0};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
  ucred peer{};
  socklen_t peer_size = sizeof peer;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0) {
    close(socket);
    return environment_error("does not offer to hold its lock", fmt::format("process {}", pid),
                             "it must call gil_fault.start(), see docs/faults.md; tinyserve does with --faults");
  }
  if (peer.pid != pid) {
    close(socket);
    return environment_error(fmt::format("process {} answers in its place", peer.pid), fmt::format("process {}", pid));
  }
  return std::unique_ptr<Injector>(std::make_unique<Gil>(pid, request.severity, socket));
}

Status gil_available() { return {}; }

}  // namespace culprit::faults
