// What a recorded program did, in units of its own work, where it marks no steps: requests answered, messages handed
// on, processes run, wake-ups handled. `cycles` finds them in scheduling and system calls, `compare` holds two
// recordings against each other, `report` shows them.
//
// A wait for work is never a part of a unit: it is demand that did not come.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace culprit::model {

enum class UnitKind : std::uint8_t {
  window,       ///< no unit was found: stretches of equal length
  request,      ///< received and answered by one thread
  message,      ///< the same between the processes of one program
  process,      ///< from its start to its end
  wakeup,       ///< from a wake-up of a thread until it waits for work again
  iteration,    ///< of an event loop: from one wait for events to the next, also where that need not wait
  transaction,  ///< several requests that come again and again in the same order
  cpu_time,     ///< a millisecond on a CPU, of a program that never waits
};
std::string_view to_string(UnitKind kind);

/// What WorkUnits::latencies are.
enum class LatencyKind : std::uint8_t {
  wake_to_wait,  ///< from a wake-up of a thread, when it became runnable, to its next wait for work
  process,       ///< from begin to end
  thread,        ///< the same of threads that answer one request each
  answer,        ///< from when a request came to its connection to when its answer was sent
};
std::string_view to_string(LatencyKind kind);

/// One sort of unit.
struct WorkUnit {
  UnitKind kind = UnitKind::window;
  std::string process;  ///< program and threads that do it, digits as 'N'
  std::string thread;
  std::string receive;  ///< system calls that delimit it; of wake-ups the wait; else empty
  std::string send;
  std::uint64_t count = 0;
  std::optional<double> count_error;  ///< of an estimate: half of its 95 % interval, as a share of it
  std::uint64_t threads = 0;
  double confidence = 0;           ///< 0..1: that this counts the program's own units
  std::string reason;              ///< of the confidence
  std::vector<double> per_window;  ///< as WorkUnits::windows
  std::vector<Ns> ends;            ///< of processes: when each was done, in order; else empty
};
/// "requests".
std::string plural(const WorkUnit& unit);
/// What is counted and between which calls: "requests of nginx (recvfrom to writev)".
std::string unit_text(const WorkUnit& unit);
/// Whether two recordings count the same thing.
bool same_unit(const WorkUnit& a, const WorkUnit& b);

/// What all recorded threads did in a stretch of time, ns.
struct WorkWindow {
  Ns begin = 0;
  Ns end = 0;
  double on_cpu = 0;
  double run_queue = 0;
  double blocked = 0;  ///< inside the work: in a disk, a lock, a page fault, ...
  double waiting = 0;  ///< for work
};

/// Calls, waits, or anything that is counted and takes time.
struct CountedTime {
  std::string name;
  std::uint64_t count = 0;
  double total_ns = 0;
  bool waits = false;  ///< a call in which threads wait for work
};

/// A process that was not recorded, and the CPUs it took on average.
struct Bystander {
  std::string name;
  double cpus = 0;
};

inline constexpr std::string_view kUnixSockets = "Unix sockets";
/// WorkUnit::receive of requests that are counted by their answers, whichever calls receive and send.
inline constexpr std::string_view kAnswers = "answers";

struct WorkUnits {
  bool recorded = false;               ///< the trace has scheduling; else the rest is empty
  bool idle = false;                   ///< hardly anything ran
  std::string program;                 ///< that took most of the CPU time
  std::vector<std::string> programs;   ///< all that were recorded, by name
  double seconds = 0;                  ///< of all windows
  std::vector<WorkUnit> units;         ///< the one that stands for the program first; never empty when recorded
  std::vector<WorkWindow> windows;     ///< in order
  Ns base = 0;                         ///< Unix time of their 0; 0: not known
  std::vector<Ns> latencies;           ///< of the first unit's threads, sorted; of answers only counts
  std::vector<std::uint64_t> answers;  ///< LatencyKind::answer: counts in the buckets of stats/log_buckets.h
  std::string port;                    ///< where they were given: "port 80", kUnixSockets
  double answer_bytes = 0;             ///< of one, in the mean; 0: not known
  std::vector<Ns> starts;  ///< where one thread does the first unit: when it was woken, in order; else empty
  LatencyKind latency_kind = LatencyKind::wake_to_wait;
  std::vector<CountedTime> blocked;  ///< inside the work, by what; longest first
  std::vector<CountedTime> waits;    ///< for work, by what; longest first
  std::vector<CountedTime> calls;    ///< system calls of all recorded threads; longest first
  std::vector<Bystander> others;     ///< most first
};

/// Sum over all windows.
WorkWindow sum_of(const WorkUnits& work);

}  // namespace culprit::model
