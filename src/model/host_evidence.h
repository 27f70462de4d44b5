// What the operating system saw of the recorded processes, step by step: the numbers that tell a waiting program from a
// working one. `profile` measures it in a recording, `compare` holds two recordings against each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cycles.h"

namespace culprit::model {

/// One state of the recorded threads: "running", "runnable", "blocked in fsync".
struct HostState {
  std::string what;
  /// Of all threads together, inside the whole cycles of each phase (by the number of the Phase), ns.
  std::array<double, kPhases.size()> total_ns{};
};

/// One sampled series while the whole cycles ran.
struct HostCounter {
  std::string name;
  std::string unit;  ///< empty: unknown
  double mean = 0;   ///< by time: a value holds until the next
  std::uint64_t samples = 0;
  std::vector<double> windows{};  ///< means of the windows in which work was counted; of recordings without cycles
};

/// What became of the time of the thread that runs the steps, in the whole cycles of each phase, ns. Over all processes
/// with steps; the sum of the three is the sum of the periods, but for what the recorder did not see.
struct StepThread {
  std::string name;  ///< of the first one
  std::string process{};
  bool main = false;  ///< its number is the process's
  std::array<double, kPhases.size()> on_cpu{};
  std::array<double, kPhases.size()> runnable{};
  std::array<double, kPhases.size()> blocked{};
};

/// A thread that for most of a recording, or of its end, could not run: it waited for a CPU, was stopped, or slept so
/// that no signal ends it. ns.
struct HeldThread {
  std::string name{};
  std::string process{};
  bool main = false;
  double recorded = 0;
  double on_cpu = 0;
  double runnable = 0;
  double stopped = 0;
  double uninterruptible = 0;
};

/// The end of a recording in which no step began any more. ns, since the last one began.
struct LongEnd {
  HeldThread thread;       ///< that of the steps
  bool held = false;       ///< it could not run, for most of that
  bool in_step = false;    ///< the last one has not ended
  std::string waits_in{};  ///< the call in which it was blocked for most of that; "": it was not, or nobody tells
  bool for_work = false;   ///< it waits for work there, or may, as far as is known
};

/// It hangs, or does something long: the last step has not ended, or its thread waits for what is no work.
inline bool is_stuck(const LongEnd& end) {
  return !end.held && (end.in_step || (!end.waits_in.empty() && !end.for_work));
}

/// What is seen of that, in a sentence; `whose`: "recording", "candidate".
std::string stuck_text(const LongEnd& end, std::string_view whose);

/// A recording in which no thread ran.
struct Asleep {
  std::string in{};             ///< by number of threads: "futex (12), epoll_wait (1)"
  bool for_each_other = false;  ///< all wait for threads or processes that were recorded, as far as is known
};

/// A short part of a recording.
struct Stretch {
  double others = 0;     ///< CPUs that no recorded process had
  double steps = 0;      ///< that began in it, or units of work that were done
  double period_ns = 0;  ///< sum of the periods of these steps; of units how long it lasted
};

/// One recording.
struct HostEvidence {
  std::size_t recordings = 0;                          ///< that were pooled
  bool per_second = false;                             ///< no cycles: one of a second stands for the whole recording
  bool scheduling = false;                             ///< false: the recording has no scheduling, `states` is empty
  std::array<std::uint64_t, kPhases.size()> cycles{};  ///< whole ones, by phase
  std::array<double, kPhases.size()> period_ns{};      ///< sum of their periods
  double steps_per_second = 0;                         ///< from the first one to the end; 0: not known
  std::vector<HostState> states;                       ///< by name
  std::vector<HostCounter> counters;                   ///< by name; series of several processes are added
  std::optional<StepThread> step;                      ///< where a thread of the steps is known
  std::vector<HeldThread> held{};                      ///< of a recording without whole cycles, or with few
  std::optional<LongEnd> long_end{};                   ///< of one with
  std::optional<Asleep> asleep{};                      ///< of one in which nothing ran
  std::map<std::string, double> beside;                ///< mean CPUs that processes took which are not recorded
  /// Of the time that threads waited for a CPU, the share in which one had it that is not recorded: of the threads of
  /// the steps, or of all where none is known. Empty: nobody tells who had the CPUs, or nobody waited.
  std::optional<double> behind_others;
  std::vector<Stretch> stretches{};                       ///< of one that tells who else had the CPUs
  double answered_per_second = 0;                         ///< requests that were captured; 0: not known
  std::map<std::string, std::vector<double>> requests{};  ///< what they took, by kind of time, ns
};

/// The same number of two recordings. A state that one side does not have is 0, a counter that it does not have is
/// empty.
struct HostChange {
  std::string what;
  std::string unit;
  std::array<std::optional<double>, 2> value;
};

/// Whether a counter is a limit on a group of processes, or the effect of one: where a side tells nothing of it there
/// is none. Of other counters what a side does not tell is not known.
bool is_limit_of_group(std::string_view counter);

/// One kind of time of the requests of two recordings, ns.
struct RequestChange {
  std::string what;
  std::array<std::size_t, 2> count{};
  std::array<double, 2> median{};
  std::array<double, 2> p99{};
  bool moved = false;  ///< by more than chance and than recordings of the same differ
};

/// Relative change of the time that fixed work of the recorder took, with its 95 % interval.
struct MachineChange {
  double change = 0;
  double low = 0;
  double high = 0;
};

/// Others who came and went on one side: what steps, or units of work, took while they had CPUs, and while not.
struct Bursts {
  std::size_t side = 1;
  double of_time = 0;               ///< share of the time in which they had them
  double of_steps = 0;              ///< share of the steps that began then
  std::array<double, 2> cpus{};     ///< that others had else, and then
  std::array<double, 2> step_ns{};  ///< that a step took else, and then, in the mean
};

/// Both recordings, as far as their phases are the same.
struct HostChanges {
  bool per_second = false;  ///< states are ns per second instead of per step
  std::array<bool, 2> scheduling{};
  std::array<double, 2> steps_per_second{};  ///< as they came, whatever they worked on; 0: not known
  std::vector<HostChange> step;              ///< ns per step of the thread that runs it: on CPU, runnable, blocked
  std::string step_thread;                   ///< its name
  std::vector<HostChange> beside;            ///< CPUs that other processes took; largest difference first
  std::array<std::optional<double>, 2> behind_others{};  ///< share of the wait for CPUs, as in HostEvidence
  std::optional<Bursts> bursts;
  std::array<double, 2> answered_per_second{};  ///< requests; 0: not known
  std::vector<RequestChange> requests;          ///< of kinds of time that both have
  std::optional<MachineChange> machine;         ///< it was slower or faster
  std::optional<MachineChange> memory;          ///< its memory was, by much
  std::vector<HostChange> states;    ///< ns per step, weighted as the phases of the baseline; largest difference first
  std::vector<HostChange> counters;  ///< those that moved, by name, or the most certain first
  std::vector<HostChange> unshown;   ///< for rules: clocks, fixed work, connections and memory of groups, moved or not
  std::size_t most_counters = 0;     ///< of them are shown to people, as the first ones say most; 0: all
  std::size_t counters_alike = 0;    ///< that did not
};

}  // namespace culprit::model
