// What a recorder does not fetch in time is lost, and a thread that it holds waits as long as it does. Niceness is not
// enough: beside programs that spin through sched_yield(2), as inference servers do, ordinary threads of any niceness
// were seen to wait for seconds (Linux 6.18; docs/record.md).
#pragma once

#include <string_view>

#include "core/units.h"

namespace culprit::record {

/// How soon a thread gets a CPU.
enum class Promptness {
  ordinary,
  niced,     ///< before ordinary ones, as far as the kernel keeps to niceness
  realtime,  ///< always before ordinary ones
};
std::string_view to_string(Promptness promptness);

/// While it lives, the thread that made it comes before ordinary ones: by SCHED_RR at the lowest of its priorities,
/// where CAP_SYS_NICE or RLIMIT_RTPRIO allows, else by niceness, else not at all. No thread or process that it starts
/// inherits it; a thread that was given a policy on purpose (real-time, batch, idle) keeps that.
///
/// Two limits keep it from taking others' CPUs. Who computes for kLongest without waiting for anything is ordinary
/// until again() (the kernel's RLIMIT_RTTIME and SIGXCPU, which are set while one lives; programs that are started
/// meanwhile inherit the limit: start them before). And who took more than half of a CPU in a second is ordinary for
/// the next one.
class Prompt {
 public:
  Prompt();
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;
  ~Prompt();

  /// Takes back what was given up; to be called after each wait.
  void again();
  /// What was reached when it was made.
  [[nodiscard]] Promptness promptness() const { return promptness_; }
  /// Whether the calling thread has one.
  static bool is_held();

  static constexpr Ns kLongest = 300'000'000;

 private:
  void step_aside(Ns now);

  Promptness promptness_ = Promptness::ordinary;
  bool ours_ = false;               ///< policy and limit were set
  int policy_ = 0;                  ///< before
  int niceness_ = 0;                ///< before
  unsigned long limit_before_ = 0;  ///< RLIMIT_RTTIME, soft
  Ns looked_at_ = 0;
  Ns cpu_ = 0;  ///< of the thread, then
  Ns aside_until_ = 0;
};

}  // namespace culprit::record
