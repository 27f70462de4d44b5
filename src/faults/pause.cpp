// Pulses of stop and continue: the target and its descendants stand still for a share of the time, as under a debugger
// or a snapshot.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <map>

#include "faults/catalog.h"
#include "faults/injector.h"

namespace culprit::faults {

namespace {

constexpr Ns kPeriod = 100'000'000;

class Pause final : public Injector {
 public:
  Pause(ProcessId target, double severity, bool any_user)
      : target_(target),
        any_user_(any_user),
        stop_ns_(static_cast<Ns>(std::llround(std::min(severity, 0.95) * static_cast<double>(kPeriod)))) {}
  ~Pause() override { end(); }

  [[nodiscard]] std::string what() const override {
    return fmt::format("process {} and its descendants are stopped for {} of every 100 ms", target_.pid,
                       format_duration(stop_ns_));
  }
  Status prepare(const std::function<bool()>&) override { return {}; }
  Status begin(Guard& guard) override {
    next_ = monotonic_now();
    return stop_all(guard);
  }
  Result<Ns> tick(Guard& guard, Ns now) override {
    if (now < next_) return next_;
    if (stopped_since_ != 0) {
      continue_all();
      next_ = std::max(now, pulse_begin_ + kPeriod);
    } else if (Status status = stop_all(guard); !status) {
      return status.error();
    }
    return next_;
  }
  void end() override { continue_all(); }
  [[nodiscard]] std::vector<Figure> figures() const override {
    return {{"processes", static_cast<std::int64_t>(known_.size())},
            {"left_out_processes", static_cast<std::int64_t>(others_.size())},
            {"pulses", pulses_},
            {"stopped_ns", stopped_ns_}};
  }

 private:
  Status stop_all(Guard& guard) {
    // Known to the guard first, all of them, so that the pulse begins for all at once.
    for (const ProcessId& process : process_tree(target_)) {
      if (known_.contains(process.pid) && known_.at(process.pid).id() == process) continue;
      if (!may_be_stopped(process)) continue;
      auto handle = ProcessHandle::open(process);
      if (!handle) continue;
      if (Status status = guard.add(
              {Undo::Kind::continue_process, {fmt::format("{}", process.pid), fmt::format("{}", process.start)}});
          !status)
        return status;
      known_.insert_or_assign(process.pid, std::move(*handle));
    }
    for (auto& [pid, handle] : known_)
      if (!handle.signal(SIGSTOP) && errno != ESRCH)
        return environment_error("cannot be stopped: operation not permitted", fmt::format("process {}", pid));
    stopped_since_ = monotonic_now();
    pulse_begin_ = std::max(next_, stopped_since_ - kPeriod);
    next_ = stopped_since_ + stop_ns_;
    ++pulses_;
    return {};
  }

  /// A descendant that became another user's (a service that gives up its privileges, sudo) is not the caller's to
  /// stop.
  bool may_be_stopped(const ProcessId& process) {
    if (any_user_) return true;
    if (const auto known = others_.find(process.pid); known != others_.end() && known->second == process.start)
      return false;
    const auto facts = process_facts(process.pid);
    if (!facts || facts->id != process) return false;
    if (facts->user == geteuid()) return true;
    others_.insert_or_assign(process.pid, process.start);
    return false;
  }

  void continue_all() {
    for (auto& [pid, handle] : known_) static_cast<void>(handle.signal(SIGCONT));
    if (stopped_since_ != 0) stopped_ns_ += monotonic_now() - stopped_since_;
    stopped_since_ = 0;
  }

  ProcessId target_;
  bool any_user_;
  Ns stop_ns_;
  Ns next_ = 0;
  Ns pulse_begin_ = 0;    ///< as planned, so that delays do not add up
  Ns stopped_since_ = 0;  ///< 0: running
  std::map<pid_t, ProcessHandle> known_;
  std::map<pid_t, std::uint64_t> others_;  ///< of other users, with their start times
  std::int64_t pulses_ = 0;
  Ns stopped_ns_ = 0;
};

}  // namespace

Result<std::unique_ptr<Injector>> make_pause(const Request& request, const ProcessHandle* target) {
  if (target == nullptr) return usage_error("pause needs a process", "name it by --target");
  for (const ProcessId& process : process_tree(target->id())) {
    const auto facts = process_facts(process.pid);
    if (facts && (facts->state == 'T' || facts->state == 't'))
      return environment_error("is stopped already, so it could not be left as it was",
                               fmt::format("process {}", process.pid), "continue it first, or end its debugger");
  }
  return std::unique_ptr<Injector>(std::make_unique<Pause>(target->id(), request.severity, request.any_user));
}

Status pause_available() { return {}; }

}  // namespace culprit::faults
