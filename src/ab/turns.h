// Two sides that stay up and run in turns: one stands still while the other runs, so that both see the same machine
// within a second, and neighbouring turns are pairs.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "ab/alternate.h"
#include "ab/device_queue.h"
#include "ab/recorded_steps.h"
#include "core/error.h"

namespace culprit::ab {

struct TurnsPlan {
  std::array<pid_t, 2> sides{};                 ///< with their descendants
  std::array<std::vector<pid_t>, 2> clients{};  ///< stand still with their side, and are not recorded
  Ns length = 500'000'000;                      ///< of a turn; 0: chosen
  bool any_user = false;                        ///< root: also processes of other users
  bool groups = true;                           ///< freezers of control groups are used where there are such
  Ns patience = 20'000'000'000;                 ///< with a side in which nothing repeats
  /// Asked when something ended, or went wrong. Error: how a side failed.
  std::function<Status()> failure{};
  /// What devices still do for processes, once they stand still. Behind a turn kQueuePart of it is waited at most.
  std::function<DeviceSight(const std::vector<pid_t>&)> devices = [](const std::vector<pid_t>& processes) {
    return device_sight(processes);
  };
  static constexpr Ns kQueuePart = 10;  // of so many, one
};

/// Where these two stand in a comparison of several starts of both sides.
struct Stage {
  Ns spent = 0;            ///< of the budget
  Ns length = 0;           ///< of the turns of these two together; 0: until the budget is spent
  std::size_t pairs = 0;   ///< of earlier starts
  LeftOut left_out;        ///< the most of theirs
  model::Turns turns{};    ///< of the last start: those of this one are as long; of no length: there is none
  std::string quantity{};  ///< of the last start
  bool last = true;
};

/// One turn.
struct Turn {
  Span span;
  std::uint8_t side = 0;
  std::uint32_t pair = 0;
};

/// The begin of turns that is not like the rest: at least kLeastSettling, and as long as steps that begin there are, by
/// more than chance makes of it, longer or shorter than those of the second half of the turns. At most half a turn.
Ns settling_of(const std::array<std::vector<Step>, 2>& steps, const std::vector<Turn>& turns);
inline constexpr Ns kLeastSettling = 20'000'000;

/// What the turns say. Steps count that lie wholly in a turn of their side, behind its settling. Where a side has no
/// steps the units of work of whole turns are counted (time of a turn by its units), and `quantity` says so: those that
/// begin one by one, or else how many were counted in stretches of time. A side that stands still answers nothing, so
/// that a stretch that reaches beyond a turn belongs to that turn; in the first and the last one of a side, which may
/// also have run before or behind it, nothing is counted.
struct TurnValues {
  std::vector<Value> values;
  std::array<std::size_t, 2> spanning{};
  LeftOut left_out;  ///< of turns behind their settling
  Ns settling = 0;
  std::string quantity;
  std::string unit;
  bool of_steps = false;  ///< not of turns
  std::string note{};     ///< that whole turns are compared because there are no steps, why, and by which unit
  Ns shortest = 0;        ///< turn in which units can be counted; 0: any
};
Result<TurnValues> values_of(const std::array<StepsOf, 2>& sides, const std::vector<Turn>& turns,
                             const Quantity& quantity = {});

/// Error: turns of that length are shorter than TurnValues::shortest.
Status is_long_enough(Ns length, Ns shortest);

/// What follows where not all of the turns counts. Long steps are cut most often, so that those that count are too
/// short: where cut ones took more of one side's turns than of the other's, by more than the effect asked for, that
/// nothing changed does not follow. Turns in which a side stalled are left out: where there are more of one side's, by
/// more than that effect, nothing follows that is to its favour. Of more than a third of a side's turns nothing
/// follows.
model::Outcome limited(model::Outcome outcome, const LeftOut& left_out, double detect);

/// Why limited() withholds this outcome, a sentence; empty where it does not. Also of an inconclusive one where turns
/// in which a side stalled are too many.
std::string why_limited(model::Outcome outcome, const LeftOut& left_out, double detect);

/// The more of each.
LeftOut worst_of(const LeftOut& a, const LeftOut& b);

/// Records both, lets them run in turns until the effect that is asked for is found, excluded, or the budget is spent;
/// a readable `stop_fd` ends it with what is known. However this process ends, a guard lets both go on. Call while it
/// has one thread. Errors: a side must not be frozen or recorded, both are the same processes, nothing repeats on a
/// side.
Result<Alternated> alternate(const TurnsPlan& plan, const Question& question, int stop_fd,
                             const ProgressSink& progress = {});

/// The same of one start of several: `looks` knows the earlier ones, and knows this one behind it.
Result<Alternated> alternate(const TurnsPlan& plan, const Question& question, const Stage& stage, Looks& looks,
                             int stop_fd, const ProgressSink& progress = {});

/// Of one side of what alternate() recorded, for recording_of().
std::vector<Span> spans_of(const std::vector<Turn>& turns, std::uint8_t side, Ns settling);

}  // namespace culprit::ab
