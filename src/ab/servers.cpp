#include "ab/servers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "ab/alternate.h"
#include "ab/family.h"
#include "ab/printed.h"
#include "record/collector/collector.h"

namespace culprit::ab {

namespace {

constexpr Ns kRetry = 200'000'000;
constexpr Ns kQuiet = 15'000'000'000;  // before it is said what is waited for
constexpr int kHttpOk = 200;
constexpr int kHttpMultiple = 300;

/// A port of the loopback that nobody uses now.
Result<int> free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int code = errno;
  if (fd >= 0) close(fd);
  if (!bound) return environment_error(errno_text(code), "a free port of 127.0.0.1");
  return ntohs(address.sin_port);
}

bool connects(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return connected;
}

/// "http://host:port" and "/path".
std::pair<std::string, std::string> split_url(const std::string& url) {
  const std::size_t host = url.find("://");
  const std::size_t path = url.find('/', host == std::string::npos ? 0 : host + 3);
  if (path == std::string::npos) return {url, "/"};
  return {url.substr(0, path), url.substr(path)};
}

/// Empty: as it does when the server may be used; else what came instead.
std::string missing_answer(const std::string& url) {
  const auto [host, path] = split_url(url);
  httplib::Client client(host);
  if (!client.is_valid()) return "no URL of a server";
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  client.enable_server_certificate_verification(false);  // a server under test has a certificate of its own
#endif
  client.set_connection_timeout(std::chrono::seconds(1));
  client.set_read_timeout(std::chrono::seconds(5));
  const auto answer = client.Get(path);
  if (!answer) return httplib::to_string(answer.error());
  return answer->status >= kHttpOk && answer->status < kHttpMultiple ? "" : fmt::format("status {}", answer->status);
}

std::optional<int> ended(pid_t pid) {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return 0;
  if (info.si_pid != pid) return std::nullopt;
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

/// "baseline-server.txt" and "the baseline", or those of its clients.
std::string text_of(const Servers& servers, std::size_t side, std::size_t program) {
  return fmt::format("{}/{}-{}.txt", servers.folder, kSideNames[side], program == 0 ? "server" : "load");
}
std::string name_of(std::size_t side, std::size_t program) {
  return fmt::format("{}the {}", program == 0 ? "" : "the clients of ", kSideNames[side]);
}

Error failed(const Servers& servers, std::size_t side, std::size_t program, int code, std::string_view when) {
  if (servers.printed) servers.printed(last_lines(text_of(servers, side, program)));
  return environment_error(fmt::format("{} ended with exit code {} {}", name_of(side, program), code, when),
                           program == 0 ? servers.commands[side].front() : servers.load.front(), "see what it printed");
}

/// Each leads a process group, which a worker stays in when its parent has ended.
void end_all(const std::vector<pid_t>& pids, Ns grace) {
  std::vector<faults::ProcessId> roots;
  for (const pid_t pid : pids)
    if (const auto facts = faults::process_facts(pid)) roots.push_back(facts->id);
  end_family(std::move(roots), pids, grace);
  for (const pid_t pid : pids) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (word) words.push_back(std::move(*std::exchange(word, std::nullopt)));
      continue;
    }
    if (!word) word.emplace();
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      *word += text[++i];
    } else {
      *word += c;
    }
  }
  if (quote != 0) return usage_error(fmt::format("a quote is not closed in '{}'", text), "close it");
  if (word) words.push_back(std::move(*word));
  if (words.empty()) return usage_error("the command is empty", "name a program");
  return words;
}

std::vector<std::string> with_port(std::vector<std::string> words, int port) {
  constexpr std::string_view kPort = "{port}";
  const std::string number = std::to_string(port);
  for (std::string& word : words)
    for (std::size_t at = word.find(kPort); at != std::string::npos; at = word.find(kPort, at + number.size()))
      word.replace(at, kPort.size(), number);
  return words;
}

Result<pid_t> RunningServers::spawn(const std::vector<std::string>& words, const std::string& text) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, text.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW,
                                   0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  // A Ctrl-C is for this program, which lets them go on before it ends them.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t none;
  sigset_t usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGXFSZ}) sigaddset(&usual, number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  std::vector<std::string> copy = words;
  std::vector<char*> argv;
  argv.reserve(copy.size() + 1);
  for (std::string& word : copy) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int code = posix_spawnp(&pid, argv.front(), &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (code != 0)
    return usage_error(fmt::format("cannot execute '{}': {}", words.front(), errno_text(code)),
                       "give a program that exists and may be executed");
  return pid;
}

Status RunningServers::start_side(const Servers& servers, std::size_t side) {
  auto port = free_port();
  while (port && side == 1 && *port == ports_[0]) port = free_port();
  if (!port) return port.error();
  ports_[side] = *port;
  const auto pid = spawn(with_port(servers.commands[side], *port), text_of(servers, side, 0));
  if (!pid) return pid.error();
  programs_[side].push_back(*pid);
  return {};
}

Status RunningServers::wait_until_ready(const Servers& servers, std::size_t side, int stop_fd) {
  const Ns begin = record::monotonic_now();
  const std::string url = with_port({servers.ready}, ports_[side]).front();
  const std::string asked = url.empty() ? fmt::format("port {}", ports_[side]) : url;
  bool told = false;
  while (true) {
    const std::string missing =
        url.empty() ? (connects(ports_[side]) ? "" : "connection refused") : missing_answer(url);
    if (missing.empty()) return {};
    if (const auto code = ended(server(side))) return failed(servers, side, 0, *code, "before it was ready");
    const Ns waited = record::monotonic_now() - begin;
    if (waited > servers.patience) {
      if (servers.printed) servers.printed(last_lines(text_of(servers, side, 0)));
      return environment_error(fmt::format("the {} is not ready after {:.0f} s: {}", kSideNames[side],
                                           static_cast<double>(servers.patience) / 1e9, missing),
                               asked, "see --ready");
    }
    if (waited > kQuiet && servers.told && !std::exchange(told, true))
      servers.told(fmt::format("waiting for the {}: {}: {}", kSideNames[side], asked, missing));
    pollfd stop{stop_fd, POLLIN, 0};
    if (poll(&stop, 1, static_cast<int>(kRetry / 1'000'000)) > 0) return cancelled_error();
  }
}

Result<RunningServers> RunningServers::start(const Servers& servers, int stop_fd) {
  RunningServers running;
  for (std::size_t side = 0; side < 2; ++side)
    if (Status status = running.start_side(servers, side); !status) return status.error();
  for (std::size_t side = 0; side < 2 && servers.serve; ++side)
    if (Status status = running.wait_until_ready(servers, side, stop_fd); !status) return status.error();
  for (std::size_t side = 0; side < 2 && !servers.load.empty(); ++side) {
    const auto pid = running.spawn(with_port(servers.load, running.ports_[side]), text_of(servers, side, 1));
    if (!pid) return pid.error();
    running.programs_[side].push_back(*pid);
  }
  if (servers.load.empty() && servers.serve) {
    if (servers.told)
      servers.told(fmt::format("no --load: yours goes to port {} of the baseline and to port {} of the candidate",
                               running.ports_[0], running.ports_[1]));
    return running;
  }
  if (Status status = running.warm_up(servers, stop_fd); !status) return status.error();
  return running;
}

/// First requests load and compile what later ones find: nothing to attach to, nor to measure.
Status RunningServers::warm_up(const Servers& servers, int stop_fd) const {
  const Ns limit = record::monotonic_now() + servers.warm_up;
  for (Ns now = record::monotonic_now(); now < limit; now = record::monotonic_now()) {
    pollfd stop{stop_fd, POLLIN, 0};
    if (poll(&stop, 1, static_cast<int>(std::min(limit - now, kRetry) / 1'000'000) + 1) > 0) return cancelled_error();
    for (std::size_t side = 0; side < 2; ++side)
      for (std::size_t program = 0; program < programs_[side].size(); ++program)
        if (const auto code = ended(programs_[side][program]))
          return failed(servers, side, program, *code, "before anything was measured");
  }
  return {};
}

Status RunningServers::failure(const Servers& servers) const {
  const Ns limit = record::monotonic_now() + kRetry;
  do {
    for (std::size_t side = 0; side < 2; ++side)
      for (std::size_t program = 0; program < programs_[side].size(); ++program)
        if (const auto code = ended(programs_[side][program]); code && *code != 0)
          return failed(servers, side, program, *code, "while it was compared");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } while (record::monotonic_now() < limit);
  return {};
}

RunningServers::RunningServers(RunningServers&& other) noexcept
    : ports_(other.ports_), programs_(std::exchange(other.programs_, {})) {}

RunningServers::~RunningServers() {
  std::vector<pid_t> loads;
  std::vector<pid_t> servers;
  for (const auto& side : programs_)
    for (std::size_t i = 0; i < side.size(); ++i) (i == 0 ? servers : loads).push_back(side[i]);
  end_all(loads, kGrace / 10);
  end_all(servers, kGrace);
}

}  // namespace culprit::ab
