#include "ab/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "ab/family.h"
#include "record/collector/collector.h"
#include "record/collectors.h"
#include "record/command.h"
#include "record/signals.h"

namespace culprit::ab {

namespace {

constexpr int kNoCode = -1;

/// What the child tells, each in one write(2) that no pipe splits.
struct Message {
  enum class Kind : std::uint8_t { begun, done, failed } kind = Kind::failed;
  ErrorKind error = ErrorKind::environment;
  bool recorded = false;
  record::Ending ending = record::Ending::none;
  int exit_code = kNoCode;
  record::CommandUse use = {};
  std::array<char, 600> what{};
  std::array<char, 400> where{};
  std::array<char, 600> remedy{};
};
static_assert(sizeof(Message) < 4096);

template <std::size_t N>
void put(std::array<char, N>& to, const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), N - 1), to.begin());
}

void tell(int pipe, const Message& message) {
  [[maybe_unused]] const auto written = write(pipe, &message, sizeof message);
}

void tell(int pipe, const Error& error) {
  Message message;
  message.error = error.kind;
  put(message.what, error.what);
  put(message.where, error.where);
  put(message.remedy, error.remedy);
  tell(pipe, message);
}

Status redirect(const Work& work) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int text =
      work.text.empty() ? null : open(work.text.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (null < 0 || text < 0) return environment_error(errno_text(errno), work.text);
  dup2(null, STDIN_FILENO);
  dup2(text, STDOUT_FILENO);
  dup2(text, STDERR_FILENO);
  if (!work.directory.empty() && chdir(work.directory.c_str()) != 0)
    return environment_error(errno_text(errno), work.directory);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this process has one thread
  if (!work.temporary.empty() && setenv("TMPDIR", work.temporary.c_str(), 1) != 0)
    return environment_error(errno_text(errno), "TMPDIR");
  return {};
}

Status run_alone(const Work& work, int pipe, int stop, Done& done) {
  auto command = record::Command::prepare(work.record.command, {});
  if (!command) return command.error();
  if (Status status = command->go(); !status) return status;
  tell(pipe, {.kind = Message::Kind::begun});
  constexpr Ns kNever = std::numeric_limits<Ns>::max();
  Ns limit = kNever;  // when it is asked no longer
  while (!command->ended()) {
    if (record::monotonic_now() > limit) command->signal(SIGKILL);
    std::array<pollfd, 2> files = {pollfd{command->descriptor(), POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    poll(files.data(), files.size(), 1000);
    if ((files[1].revents & POLLIN) == 0) continue;
    if (const record::StopSignal signal = record::take_signal(stop); !signal.from_terminal) command->signal(SIGTERM);
    done.ending = record::Ending::interrupted;
    limit = std::min(limit, record::monotonic_now() + record::Recorder::kPatience);
  }
  done.exit_code = record::exit_code_of(*command->ended());
  done.use = command->use();
  return {};
}

Status run_recorded(const Work& work, int pipe, int stop, Done& done) {
  auto collectors = record::make_collectors(work.record.preset, {}, {}, {.functions = work.functions});
  if (!collectors) return collectors.error();
  record::Recorder recorder(work.record, std::move(*collectors));
  if (Status status = recorder.start(); !status) return status;
  tell(pipe, {.kind = Message::Kind::begun});
  const record::RecordSummary summary = recorder.run(stop);
  if (summary.error) return *summary.error;
  done.recorded = true;
  done.ending = summary.ending;
  done.use = summary.command_use;
  if (summary.command_status) done.exit_code = record::exit_code_of(*summary.command_status);
  return {};
}

int live(const Work& work, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const auto stop = record::StopSignals::take();
  Done done;
  Status status = stop ? redirect(work) : Status(stop.error());
  if (status)
    status = work.recorded ? run_recorded(work, pipe, stop->fd(), done) : run_alone(work, pipe, stop->fd(), done);
  if (!status) {
    tell(pipe, status.error());
    return 1;
  }
  tell(pipe, {.kind = Message::Kind::done,
              .recorded = done.recorded,
              .ending = done.ending,
              .exit_code = done.exit_code.value_or(kNoCode),
              .use = done.use});
  return 0;
}

/// nullopt: the child has ended without a word.
std::optional<Message> next_message(int pipe) {
  Message message;
  ssize_t got = 0;
  do got = read(pipe, &message, sizeof message);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof message)) return std::nullopt;
  return message;
}

Error error_of(const std::optional<Message>& message) {
  if (!message) return environment_error("ended without a word", "recorder", "see whether memory is short");
  return {message->error, message->what.data(), message->where.data(), message->remedy.data()};
}

}  // namespace

Result<Child> Child::start(const Work& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return environment_error(errno_text(errno), "pipe");
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return environment_error(errno_text(errno), "fork");
  }
  if (pid == 0) {
    close(ends[0]);
    int code = 1;
    try {
      code = live(work, ends[1]);
    } catch (const std::exception& error) {
      tell(ends[1], environment_error(error.what(), "recorder"));
    }
    _exit(code);
  }
  close(ends[1]);
  return Child(pid, ends[0], !work.record.command.empty());
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pipe_(std::exchange(other.pipe_, -1)),
      has_command_(other.has_command_),
      family_(std::exchange(other.family_, {})) {}

Child::~Child() {
  if (pid_ > 0) {
    interrupt();
    static_cast<void>(wait());
  }
  if (pipe_ >= 0) close(pipe_);
}

Status Child::wait_until_begun() {
  const auto message = next_message(pipe_);
  if (message && message->kind == Message::Kind::begun) return {};
  return error_of(message);
}

void Child::interrupt() {
  if (pid_ <= 0) return;
  const auto own = has_command_ ? faults::process_facts(pid_) : std::nullopt;
  if (own) {
    std::vector<faults::ProcessId> known = std::exchange(family_, {});
    known.push_back(own->id);
    family_ = living(known);
    std::erase(family_, own->id);
  }
  kill(pid_, SIGTERM);
}

Result<Done> Child::wait() {
  auto message = next_message(pipe_);
  while (message && message->kind == Message::Kind::begun) message = next_message(pipe_);
  if (pid_ > 0) {
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
  end_family(std::exchange(family_, {}), {}, kGrace);
  if (!message || message->kind != Message::Kind::done) return error_of(message);
  Done done;
  done.recorded = message->recorded;
  done.ending = message->ending;
  done.use = message->use;
  if (message->exit_code != kNoCode) done.exit_code = message->exit_code;
  return done;
}

}  // namespace culprit::ab
