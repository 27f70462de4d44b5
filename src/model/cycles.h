// The cycles (steps, iterations) of a run and how they were found. `cycles` fills it; `profile`, `kernels` and `report`
// use it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace culprit::model {

enum class Phase : std::uint8_t { prefill, decode, mixed, train_step, other };
inline constexpr std::array kPhases = {Phase::prefill, Phase::decode, Phase::mixed, Phase::train_step, Phase::other};
/// As written on the command line and in output: "train_step".
std::string_view phase_name(Phase phase);

/// How cycles were found, in order of trust.
enum class CycleMethod : std::uint8_t {
  none,               ///< nothing repeats
  marker,             ///< ProfilerStep#N, NVTX or other annotations, or a name that the user gave
  host_function,      ///< the outermost repeated function of the busy thread
  launch_sequence,    ///< the repeating sequence of GPU operations
  operator_sequence,  ///< the repeating sequence of operators on the host, where there is no GPU work
  work_unit,          ///< units of work, by the scheduling of a program that marks no steps
};
/// Whether cycles are steps of the program, not what units of work or windows are made of.
inline constexpr bool are_steps(CycleMethod method) {
  return method != CycleMethod::none && method != CycleMethod::work_unit;
}
/// Whether the anchor is the description of a sequence and no name.
inline constexpr bool is_sequence(CycleMethod method) {
  return method == CycleMethod::launch_sequence || method == CycleMethod::operator_sequence;
}

/// What a cycle worked on; -1 is unknown.
struct Workload {
  std::int64_t batch = -1;           ///< requests
  std::int64_t tokens = -1;          ///< tokens computed in this cycle
  std::int64_t context_tokens = -1;  ///< of these in prefill
  std::int64_t decode_tokens = -1;   ///< of these in decode
  std::int64_t cached_tokens = -1;   ///< of all requests, that a decode step looks back at; about so many
};

/// The part of a cycle that one device saw: from the begin of the first GPU operation launched inside the cycle to that
/// of the next cycle.
struct DeviceWindow {
  std::int32_t device = -1;
  Ns begin = 0;
  Ns end = 0;
  Ns busy = 0;  ///< union of kernels, memcpy and memset inside the window
  Ns idle = 0;  ///< end - begin - busy
  std::uint64_t operations = 0;
};

/// What tells where a cycle ends.
enum class CycleEnd : std::uint8_t {
  unknown,  ///< not said: of the last cycle of a process nothing does
  at_next,  ///< the begin of the next one, whether or not that one was left out
  open,     ///< nothing: it is the last one that was found
};

struct Cycle {
  std::uint32_t number = 0;            ///< 1-based, over all ranks the same number means the same step
  std::uint16_t rank = 0;              ///< row of the trace's ranks
  std::uint32_t process = 0xffffffff;  ///< row of the trace's processes, or none
  Phase phase = Phase::other;
  bool phase_guessed = false;  ///< from the names of kernels alone
  Workload workload;
  Ns begin = 0;       ///< of the host window; without host data of the first GPU operation
  Ns period = 0;      ///< to the begin of the next cycle; of the last cycle: to the end of its span
  Ns span_begin = 0;  ///< first and last activity of the cycle
  Ns span_end = 0;
  Ns no_work = 0;        ///< part of the period in which nothing was to be done
  bool partial = false;  ///< cut by the begin or the end of the recording, or several steps, whose markers were lost
  bool warm_up = false;  ///< longer than its successors for reasons of starting
  bool stands_still = false;  ///< the last one waits for a CPU: its period is what it took by the end
  CycleEnd ends = CycleEnd::unknown;
  std::vector<DeviceWindow> devices;
};

/// Confidences are probabilities 0..1 that the statement holds.
struct Cycles {
  CycleMethod method = CycleMethod::none;
  std::string anchor;              ///< name of what delimits the cycles, or a description of the sequence
  bool anchor_given = false;       ///< by the user: where a step begins is no question, what one is may be
  double period_confidence = 0;    ///< that a cycle is one step, not a part or a multiple of one
  double phase_confidence = 0;     ///< that a step begins where the cycle begins
  std::string reason;              ///< one sentence for people
  std::vector<std::string> notes;  ///< what was left out or assumed
  std::vector<Cycle> cycles;       ///< by (number, rank)
};

/// Per cycle: whether its period is that of a whole, ordinary step. Not so are partial and warm-up cycles, and the last
/// one of every process, whose end is unknown; but one that stands still took longer than any other by then.
std::vector<bool> whole_periods(const Cycles& cycles);

}  // namespace culprit::model
