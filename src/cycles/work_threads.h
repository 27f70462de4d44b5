// What every recorded thread did, from scheduling and system-call totals: the material of units of work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/host_evidence.h"
#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit::cycles {

struct WorkThread {
  ProcessId process = 0;
  std::int64_t tid = -1;
  std::string process_name;  ///< of its program: what stands before ": " in a title, digits as 'N'
  std::string thread_name;
  bool scheduled = false;
  Ns begin = 0;  ///< of its first slice
  Ns end = 0;    ///< of its last one
  double on_cpu = 0;
  double worked = 0;      ///< on a CPU, runnable, or blocked inside the work
  std::string wait;       ///< for work, in which it waits longest
  std::vector<Ns> wakes;  ///< ends of its waits for work
  bool by_time = false;   ///< it waits for events, and hardly ever receives or sends anything then: a time-out woke it
  std::vector<Ns> latencies;                   ///< from each to the next wait; the last may be missing
  std::map<std::string, std::uint64_t> calls;  ///< system calls by name
  std::map<std::string, std::vector<std::uint32_t>> calls_per_window;  ///< of those that receive, send or accept
};

struct WorkThreads {
  std::vector<WorkThread> threads;  ///< by process and number
  std::vector<model::WorkWindow> windows;
  bool has_calls = false;
  std::map<std::string, model::CountedTime> blocked, waits, calls;
};

/// "worker-12" as "worker-N": numbers differ from run to run. Those inside a word ("cc1plus") and versions stay.
std::string without_numbers(std::string_view name);
/// "postgres" of "postgres: checkpointer": what follows tells what the process does at the moment.
std::string_view program_of(std::string_view title);
/// The same of a process, digits as 'N'.
std::string program_name(const Trace& trace, ProcessId process);

/// Windows end where totals of system calls were taken of threads that lived on; without any they are a second long, or
/// a twentieth of a recording shorter than 20 s, and the last one is half as long at least. They fill the recording,
/// whatever happened in it. At most some thousand: neighbours are put together.
WorkThreads work_threads(const Trace& trace);

/// What the recorder found its threads in, where none of them ran. nullopt: some did, or nobody tells.
std::optional<model::Asleep> asleep_in(const Trace& trace);
/// Why a recording of a program that does nothing has no units of work. `polls`: its threads ran, by time.
std::string idle_reason(const Trace& trace, bool polls = false);

}  // namespace culprit::cycles
