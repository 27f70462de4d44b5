// The ledger: where every nanosecond of a cycle went, once. `profile` fills it, `compare` makes the waterfall of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/string_table.h"
#include "core/units.h"

namespace culprit::model {

/// What a stretch of time was. The first four are of the thread that runs the cycles, the first and those of idle time
/// of a device.
enum class LedgerState : std::uint8_t {
  function,     ///< of a thread: on its CPU, in that function and in none that it called; of a device: its operation
  between,      ///< on its CPU in no function, or in a range that only encloses some (its name): the program's own code
  run_queue,    ///< ready, but on no CPU; the function is the one it stood in
  blocked,      ///< off its CPU; likewise
  idle_host,    ///< the next operation had not been launched yet; the function is what its thread did
  idle_launch,  ///< it was being launched
  idle_dependency,  ///< it had been launched and waited for another device; the function is that one's last operation
  idle_latency,     ///< it had been launched and had not begun, and waited for nothing that is known
  idle_graph,       ///< between two operations of one graph
  idle_unknown,     ///< who launched the next operation is not known, or there is none
  no_work,          ///< there was nothing to do; taken from the time outside of functions, or idle
  sampled,          ///< a part of `between`, in what samples of the thread's stack found there; in waterfalls alone
};
/// As written in output: "run queue".
std::string_view ledger_state_name(LedgerState state);
/// "mm", "run queue: mm", "between functions".
std::string ledger_line_name(LedgerState state, std::string_view function);

/// The window of one cycle on one device, or on the host.
struct LedgerWindow {
  std::uint32_t cycle = 0;   ///< row of Profile::cycles
  std::int32_t device = -1;  ///< -1: the thread that runs the cycles
  Ns length = 0;
  std::size_t first_line = 0;
};

struct LedgerLine {
  LedgerState state = LedgerState::function;
  StringId function = 0;   ///< of the profile's texts; of a range, with N for numbers. Empty: none
  std::int64_t count = 0;  ///< functions: begun in the window; else stretches
  Ns time = 0;
};

/// How often samples of its stack, taken by a clock, found a thread in a function while its window was `between`.
struct LedgerSamples {
  std::uint32_t cycle = 0;  ///< row of Profile::cycles
  StringId range = 0;       ///< the line's function
  StringId function = 0;    ///< the innermost of Python, else the innermost code
  std::int64_t count = 0;
  Ns time = 0;  ///< they stand for; 0: unknown
};

/// The lines of a window sum to its length.
struct Ledger {
  std::vector<LedgerWindow> windows;
  std::vector<LedgerLine> lines;  ///< by window
  std::vector<LedgerSamples>
      samples;  ///< of windows on hosts, by cycle; none of cycles that had nothing to do for a time
};

std::span<const LedgerLine> lines_of(const Ledger& ledger, std::size_t window);

}  // namespace culprit::model
