// Which cycles of a run a verb looks at: the options --cycle, --phase and --anchor.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "core/error.h"
#include "cycles/find.h"
#include "trace/trace.h"

namespace culprit::cli {

/// As given on the command line; empty: not given.
struct CycleChoice {
  std::string numbers;  ///< "3", "1,4-6"
  std::string phase;
  std::string anchor;
  [[nodiscard]] bool filters() const { return !numbers.empty() || !phase.empty(); }
};

/// First and last number of a range of cycles.
struct CycleRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

struct ChosenCycles {
  cycles::Found found;
  std::vector<bool> kept;          ///< by row of found.cycles.cycles; empty when no cycles were chosen
  std::vector<std::string> notes;  ///< what was chosen, which numbers do not exist, that confidence is low
};

/// Declares --cycle, --phase and --anchor.
void add_cycle_choice(Verb& verb, CycleChoice& choice);

/// "3", "1,4-6" as ranges. Error: usage.
Result<std::vector<CycleRange>> parse_cycle_numbers(std::string_view text);

/// Finds the cycles of `trace` and marks those chosen. Errors: input, when there are no cycles (the reason says why),
/// when none is chosen, or when the anchor does not occur.
Result<ChosenCycles> choose_cycles(const Trace& trace, const CycleChoice& choice);

}  // namespace culprit::cli
