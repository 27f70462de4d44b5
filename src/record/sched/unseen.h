// Threads that run although no switch told so. Kernels were seen that leave out one switch in some hundred; a thread
// that then computes without ever leaving its CPU would count as waiting in the run queue until the end of the
// recording.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/units.h"

namespace culprit::record::sched {

/// A thread that is on a CPU, unseen since `at` or a little earlier.
struct UnseenRun {
  std::int32_t tid = 0;
  std::int32_t tgid = 0;
  Ns at = 0;
};

/// The time that a thread has run, which moves on while it runs, and the CPU that it was last on. From
/// /proc/PID/task/TID; nullopt: it is gone. `proc`: where the process file system is.
std::optional<std::uint64_t> read_run_ns(std::int32_t tgid, std::int32_t tid, const std::string& proc = "/proc");
std::optional<std::uint32_t> read_last_cpu(std::int32_t tgid, std::int32_t tid);

/// Asks for threads that have been in the run queue for a while (kPatience), some in each look. Who ran more between
/// two looks, and of whom no record has come by the look after, runs unseen: since the first of these looks when it ran
/// most of the time between them, else since the second.
class UnseenRuns {
 public:
  using Read = std::function<std::optional<std::uint64_t>(std::int32_t tgid, std::int32_t tid)>;
  static constexpr Ns kPatience = 5'000'000;
  static constexpr std::size_t kMostAsked = 16;      ///< in one look
  static constexpr std::size_t kMostThreads = 4096;  ///< further ones are not looked after

  explicit UnseenRuns(Read read = [](std::int32_t tgid, std::int32_t tid) { return read_run_ns(tgid, tid); })
      : read_(std::move(read)) {}

  /// It left its CPU or was woken, and can run.
  void waits(std::int32_t tid, std::int32_t tgid, Ns at);
  /// It got a CPU or blocked.
  void seen(std::int32_t tid);
  void ended(std::int32_t tid) { threads_.erase(tid); }
  /// To be called when all records up to the look before have come.
  std::vector<UnseenRun> look(Ns now);

 private:
  struct Thread {
    std::int32_t tgid = 0;
    bool waits = false;  ///< kept where it does not: most come again at once
    Ns since = 0;
    std::optional<std::uint64_t> run_ns;  ///< at the last look
    Ns looked = 0;
    std::optional<UnseenRun> found;  ///< at the last look
  };

  Read read_;
  std::unordered_map<std::int32_t, Thread> threads_;
};

}  // namespace culprit::record::sched
