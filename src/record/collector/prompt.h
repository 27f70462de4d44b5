// What a recorder does not fetch in time is lost, and a thread that it holds waits as long as it does. Niceness is not
// enough: beside programs that spin through sched_yield(2), as inference servers do, ordinary threads of any niceness
// waited up to 3.5 s for one of two CPUs that others filled (Linux 6.18); real-time ones 0.2 ms.
#pragma once

#include <string_view>

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
/// inherits it. Who computes for kLongest without waiting for anything is ordinary again until again(), so that nobody
/// is kept from his CPU by a recorder gone astray. The limit (RLIMIT_RTTIME) is set while it lives and is inherited by
/// programs that are started meanwhile: start them before.
class Prompt {
 public:
  Prompt();
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;
  ~Prompt();

  /// Cheap where nothing was given up.
  void again();
  /// What was reached when it was made.
  [[nodiscard]] Promptness promptness() const { return promptness_; }

  static constexpr long kLongest = 300'000;  // us

 private:
  Promptness promptness_ = Promptness::ordinary;
  int niceness_ = 0;                ///< before
  unsigned long limit_before_ = 0;  ///< RLIMIT_RTTIME, soft
};

}  // namespace culprit::record
