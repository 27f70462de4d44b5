#include "faults/run.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>

#include "faults/catalog.h"
#include "faults/text.h"

namespace culprit::faults {

namespace {

Ns read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

/// The signals that mean "stop", taken from a descriptor instead of a handler while this lives.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    // Also ctrl-Z: a stopped injector could leave the target stopped.
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) sigaddset(&set_, number);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    fd_ = signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() {
    came();
    if (fd_ >= 0) close(fd_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  [[nodiscard]] int descriptor() const { return fd_; }
  /// Whether one has come since this was made.
  bool came() {
    signalfd_siginfo info{};
    while (fd_ >= 0 && read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) came_ = true;
    return came_;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
  int fd_ = -1;
  bool came_ = false;
};

/// Waits for the end; gives its reason, or why the fault could not go on.
Result<std::string> wait_for_end(Injector& injector, Guard& guard, StopSignals& signals, const ProcessHandle* target,
                                 Ns begin, Ns duration, const Hooks& hooks) {
  constexpr Ns kBeat = 200'000'000;
  constexpr Ns kShown = 1'000'000'000;
  Ns next_tick = begin;
  Ns next_shown = begin + kShown;
  while (true) {
    const Ns now = monotonic_now();
    if (signals.came()) return std::string("signal");
    if (!guard.alive()) return std::string("guard_lost");
    if (target != nullptr && target->ended()) return std::string("target_ended");
    if (now >= begin + duration) return std::string("duration");
    guard.beat();
    if (now >= next_tick) {
      const auto next = injector.tick(guard, now);
      if (!next) return guard.alive() ? Result<std::string>(next.error()) : Result<std::string>("guard_lost");
      next_tick = *next;
    }
    if (now >= next_shown) {
      if (hooks.progress) hooks.progress(injector, now - begin, duration);
      next_shown += kShown;
    }
    const Ns wake = std::min({next_tick, now + kBeat, begin + duration, next_shown});
    std::array<pollfd, 3> entries = {{{signals.descriptor(), POLLIN, 0},
                                      {guard.descriptor(), POLLIN, 0},
                                      {target != nullptr ? target->descriptor() : -1, POLLIN, 0}}};
    const Ns wait = std::max<Ns>(0, wake - monotonic_now());
    const timespec time{wait / 1'000'000'000, wait % 1'000'000'000};
    ppoll(entries.data(), entries.size(), &time, nullptr);
  }
}

Result<Report> inject_guarded(const Request& request, const FaultInfo& info, const ProcessHandle* target,
                              const Hooks& hooks) {
  auto made = info.make(request, target);
  if (!made) return made.error();
  Injector& injector = **made;
  const auto folder = state_folder();
  if (!folder) return folder.error();
  StopSignals signals;
  auto guard = Guard::start(fmt::format("{}/{}-{}.undo", *folder, info.name, unique_text()));
  if (!guard) return guard.error();
  if (Status status = injector.prepare([&] {
        guard->beat();
        return signals.came();
      });
      !status)
    return status.error();

  Report report;
  report.fault = info.name;
  report.severity = request.severity;
  if (target != nullptr) report.target = target->id();
  report.what = injector.what();
  if (signals.came()) return environment_error("interrupted before anything was changed", "");
  report.begin_monotonic = monotonic_now();
  report.begin_unix = unix_now();
  std::optional<Error> error;
  if (Status status = injector.begin(*guard); !status) error = status.error();
  if (!error) {
    if (hooks.began) hooks.began(report, report.begin_unix + request.duration, guard->pid());
    auto reason = wait_for_end(injector, *guard, signals, target, report.begin_monotonic, request.duration, hooks);
    if (reason)
      report.ended_by = std::move(*reason);
    else
      error = reason.error();
  }
  injector.end();
  report.figures = injector.figures();
  report.not_restored = guard->undo();
  report.end_monotonic = monotonic_now();
  report.end_unix = unix_now();
  if (!error) return report;
  if (!report.not_restored.empty())
    error->what += fmt::format("; NOT RESTORED: {}", fmt::join(report.not_restored, "; "));
  return *error;
}

}  // namespace

Ns monotonic_now() { return read_clock(CLOCK_MONOTONIC); }
Ns unix_now() { return read_clock(CLOCK_REALTIME); }

Result<Report> inject(const Request& request, const Hooks& hooks) {
  const FaultInfo* const info = find_fault(request.fault);
  if (info == nullptr)
    return usage_error(fmt::format("unknown fault '{}'", request.fault), "see 'culprit inject --list'");
  if (!(request.severity > 0 && request.severity <= 1))
    return usage_error("the severity must be above 0 and at most 1");
  if (request.duration <= 0) return usage_error("the duration must be above 0");
  if (info->needs_target && request.target == 0)
    return usage_error(fmt::format("{} needs a process", info->name), "name it by --target");
  if (Status status = info->available(); !status) return status.error();
  std::optional<ProcessHandle> target;
  if (request.target != 0) {
    auto opened = open_target(request.target, request.any_user);
    if (!opened) return opened.error();
    target.emplace(std::move(*opened));
  }
  return inject_guarded(request, *info, target ? &*target : nullptr, hooks);
}

}  // namespace culprit::faults
