// What running two sides alternately found (`culprit ab`). `ab` fills it, `report` shows it. Where there is one value
// per side, [0] is the baseline's and [1] the candidate's. Relative changes: 0.1 is 10 % more.
#pragma once

#include <culprit/outcome.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "model/cycles.h"
#include "model/profile.h"

namespace culprit::model {

using culprit::Outcome;

/// Why it ended: the effect was found, one of the asked-for size is excluded, the budget is spent, the pairs asked for
/// were run, the user ended it, a side ended.
enum class AlternationEnd : std::uint8_t { found, excluded, budget, pairs, interrupted, side_ended };
std::string_view to_string(AlternationEnd end);

/// Fewer pairs than this are not looked at.
inline constexpr std::size_t kFewestPairs = 6;
/// Of turns: a side may be slow for longer than one of them, and fewer pairs do not tell how alike neighbours are.
inline constexpr std::size_t kFewestTurns = 16;

/// The pairs of one quantity, of steps of one phase where steps are compared.
struct PairedChange {
  Phase phase = Phase::other;
  std::size_t pairs = 0;
  std::array<std::size_t, 2> values{};               ///< steps, or runs, with like ones on the other side
  std::array<double, 2> mean{kNoNumber, kNoNumber};  ///< geometric, of these
  double change = kNoNumber;                         ///< middle of the pairs'; of like work only
  double low = kNoNumber;                            ///< 95 % interval over all looks together; none with too few pairs
  double high = kNoNumber;
  double spread = kNoNumber;  ///< standard deviation of single pairs
  double memory = 1;          ///< by how much more the pairs vary together than independent ones; widens the interval
  std::array<std::size_t, 2> other_work{};  ///< steps without like ones on the other side
  /// Of the arithmetic means, with the 95 % interval of Student's t: what all of them together take. Another matter
  /// than `change`, which is of the typical pair, where few take far longer than the rest.
  std::array<double, 2> total_mean{kNoNumber, kNoNumber};
  double total = kNoNumber;
  double total_low = kNoNumber;
  double total_high = kNoNumber;
};

/// Why turns are as long as they are: the user said so, no steps were seen, how long steps are, how the noise of their
/// times remembers.
enum class LengthFrom : std::uint8_t { given, usual, steps, noise };
std::string_view to_string(LengthFrom from);

/// From where it is known how much starts of the same program differ in what is compared: that is no part of the
/// interval, starts of equal servers were measured, those stand for another quantity, or all pairs have the same, as
/// counts of equal programs had.
enum class SpreadFrom : std::uint8_t { none, starts, step_time, same };
std::string_view to_string(SpreadFrom from);

/// How much starts of the same program differ, as standard deviations of the change.
struct BetweenStarts {
  SpreadFrom from = SpreadFrom::none;
  double spread = 0;   ///< in the interval
  double assumed = 0;  ///< before this run's own starts said anything
  double told = 0;     ///< what these say of it counts as much as so many further starts
};

/// Of turns: how the time was cut.
struct Turns {
  std::size_t turns = 0;
  Ns length = 0;
  LengthFrom length_from = LengthFrom::given;
  Ns settling = 0;                        ///< begin of a turn that is not like the rest, and left out
  std::array<std::size_t, 2> spanning{};  ///< steps that began in another turn than they ended in, or while settling
  std::string freezer;                    ///< how sides were frozen
  std::uint64_t memory = 0;               ///< bytes that both sides had at once; 0: not known
  bool queues_seen = false;               ///< behind each turn it was waited until devices had nothing to do for it
  std::size_t queues_left = 0;            ///< turns behind which they still had
  Ns queues_waited = 0;                   ///< behind all turns together
};

struct Alternation {
  Outcome outcome = Outcome::inconclusive;
  AlternationEnd end = AlternationEnd::budget;
  std::array<std::string, 2> sides;  ///< as the user named them
  std::string quantity;              ///< "step time", "run time", "CPU time"
  std::string unit;                  ///< of its means: "ns", or "" for a count
  bool of_steps = false;             ///< its values are of steps, not of turns or runs
  double detect = 0;                 ///< the asked-for effect
  std::size_t looks = 0;
  double seconds = 0;                 ///< that it took
  std::vector<PairedChange> changes;  ///< the first decides: the phase in which most time is spent
  bool in_turns = false;
  Turns turns;
  std::size_t starts = 0;  ///< of both sides, by this program; 0: they ran before, or each run is one
  BetweenStarts between_starts{};
  std::size_t pairs_left_out = 0;  ///< a side had nothing to compare in them
  std::vector<std::string> notes;
};

}  // namespace culprit::model
