#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "ab/turns.h"
#include "core/units.h"
#include "model/work_units.h"
#include "stats/moments.h"
#include "stats/quantile.h"

namespace culprit::ab {

namespace {

constexpr Ns kBin = 20'000'000;   // of time since a turn began
constexpr double kUnlike = 0.02;  // relative difference that matters
constexpr double kErrors = 3;     // standard errors that chance seldom makes
constexpr std::size_t kFewestInBin = 5;

/// The turn of a side in which something began, or nullptr. `turns` of that side by time.
const Turn* turn_at(const std::vector<Turn>& turns, Ns at) {
  const auto after = std::ranges::upper_bound(turns, at, {}, [](const Turn& turn) { return turn.span.begin; });
  if (after == turns.begin()) return nullptr;
  const Turn& turn = *std::prev(after);
  return at < turn.span.end ? &turn : nullptr;
}

std::vector<Turn> of_side(const std::vector<Turn>& turns, std::uint8_t side) {
  std::vector<Turn> own;
  std::ranges::copy_if(turns, std::back_inserter(own), [&](const Turn& turn) { return turn.side == side; });
  return own;
}

/// One value per turn: the mean of the stretches of a counter that lie wholly in it, behind its settling.
Result<TurnValues> means_of(const std::array<StepsOf, 2>& sides, const std::vector<Turn>& turns,
                            const Quantity& quantity) {
  for (std::size_t side = 0; side < 2; ++side)
    if (sides[side].steps.empty())
      return environment_error(fmt::format("{}: {}", kSideNames[side], sides[side].how), "",
                               "'culprit info --show counters' lists those of a recording");
  TurnValues result;
  const bool meant = !sides[0].meant.empty() && sides[0].meant == sides[1].meant;
  result.quantity = meant ? sides[0].meant : name_of(quantity);
  result.unit = unit_of(quantity);
  result.settling = kLeastSettling;
  for (std::uint8_t side = 0; side < 2; ++side) {
    for (const Turn& turn : of_side(turns, side)) {
      const auto& all = sides[side].steps;
      const auto first = std::ranges::lower_bound(all, turn.span.begin + result.settling, {}, &Step::begin);
      const auto last = std::ranges::lower_bound(all, turn.span.end, {}, &Step::begin);
      std::vector<Step> inside(first, last);
      std::erase_if(inside, [&](const Step& stretch) { return stretch.end > turn.span.end; });
      const double mean = mean_value(inside);
      if (mean > 0) result.values.push_back({turn.pair, side, model::Phase::other, {}, mean});
    }
  }
  return result;
}

/// Why whole turns are compared, and by what.
std::string note_of_units(const std::array<StepsOf, 2>& sides) {
  std::string why;
  for (std::size_t side = 0; side < 2; ++side) {
    if (!sides[side].steps.empty()) continue;
    why += fmt::format("{}the {} ({})", why.empty() ? "" : " nor in ", kSideNames[side],
                       sides[side].how.empty() ? "nothing repeats" : sides[side].how);
  }
  const std::string& unit = sides[0].unit;
  const std::string& other = sides[1].unit;
  return fmt::format("No steps are found in {}: whole turns are compared by the work done in them, counted in {}", why,
                     unit == other ? unit : fmt::format("{} of the baseline and {} of the candidate", unit, other));
}

constexpr Ns kStretchesOfTurn = 2;  // the other side's turn is at least so long, and so is this one's

Error other_units(const std::array<StepsOf, 2>& sides) {
  const auto of = [](const StepsOf& side) {
    return !side.unit.empty() ? side.unit : side.steps.empty() ? "nothing that is counted" : "steps";
  };
  return environment_error(fmt::format("the baseline is seen to do {}, the candidate {}", of(sides[0]), of(sides[1])),
                           "",
                           "nothing alike is counted: mark steps (docs/annotate.md), or watch a function (--python)");
}

/// Half of the stretches in which units were counted are no longer; 0: there are none.
Ns usual_stretch(const std::vector<Counted>& counted) {
  std::vector<Ns> lengths;
  lengths.reserve(counted.size());
  for (const Counted& stretch : counted) lengths.push_back(stretch.end - stretch.begin);
  return lengths.empty() ? 0 : stats::median_of_times(lengths);
}

/// Units of each of the turns of a side. What was counted in stretches that reach into several is shared by length.
std::vector<double> counts_of(const std::vector<Counted>& counted, const std::vector<Turn>& own) {
  std::vector<double> counts(own.size());
  for (const Counted& stretch : counted) {
    if (own.empty() || !(stretch.count > 0)) continue;
    const auto inside = [&](const Turn& turn) {
      return std::max<Ns>(0, std::min(stretch.end, turn.span.end) - std::max(stretch.begin, turn.span.begin));
    };
    const auto away = [&](const Turn& turn) {
      return std::max(turn.span.begin - stretch.end, stretch.begin - turn.span.end);
    };
    Ns all = 0;
    for (const Turn& turn : own) all += inside(turn);
    if (all == 0)
      counts[static_cast<std::size_t>(std::ranges::min_element(own, {}, away) - own.begin())] += stretch.count;
    for (std::size_t t = 0; t < own.size() && all > 0; ++t)
      counts[t] += stretch.count * static_cast<double>(inside(own[t])) / static_cast<double>(all);
  }
  return counts;
}

/// One value per turn: its time by the units that were counted in it.
Result<TurnValues> counted_values(const std::array<StepsOf, 2>& sides, const std::vector<Turn>& turns) {
  // How one is sent may be what differs.
  const auto by_answers = [](const StepsOf& side) { return side.counted_from == model::kAnswers; };
  if (sides[0].counted_what != sides[1].counted_what ||
      (sides[0].counted_from != sides[1].counted_from && std::ranges::none_of(sides, by_answers)))
    return other_units(sides);
  TurnValues result;
  result.quantity = "time per unit of work";
  result.note = note_of_units(sides);
  result.unit = "ns";
  result.shortest = kStretchesOfTurn * std::max(usual_stretch(sides[0].counted), usual_stretch(sides[1].counted));
  for (std::uint8_t side = 0; side < 2; ++side) {
    const std::vector<Turn> own = of_side(turns, side);
    const std::vector<double> counts = counts_of(sides.at(side).counted, own);
    std::size_t stalled = 0;
    for (std::size_t t = 1; t + 1 < own.size(); ++t) {
      const auto length = static_cast<double>(own[t].span.end - own[t].span.begin);
      if (counts[t] > 0)
        result.values.push_back({own[t].pair, side, model::Phase::other, {}, length / counts[t]});
      else
        ++stalled;
    }
    if (own.size() > 2)
      result.left_out.stalled.at(side) = static_cast<double>(stalled) / static_cast<double>(own.size() - 2);
  }
  return result;
}

constexpr double kMostLeftOut = 1.0 / 3;  // of a side's turns

bool is_cut_short(model::Outcome outcome, const std::array<double, 2>& cut, double detect) {
  const auto& [a, b] = cut;
  return std::max(a, b) > kMostLeftOut || (outcome == model::Outcome::no_change && std::abs(a - b) > detect);
}

/// Whether the side that stalled more often would look better than it is. An outcome against it stands all the more.
bool is_in_favour(model::Outcome outcome, const std::array<double, 2>& stalled, double detect) {
  const auto& [a, b] = stalled;
  if (std::max(a, b) > kMostLeftOut) return true;
  if (outcome == model::Outcome::regression) return a - b > detect;
  if (outcome == model::Outcome::improvement) return b - a > detect;
  return std::abs(a - b) > detect;
}

}  // namespace

Status is_long_enough(Ns length, Ns shortest) {
  if (length >= shortest) return {};
  return environment_error(fmt::format("units of work are counted every {}, and turns are of {}",
                                       format_duration(shortest / kStretchesOfTurn), format_duration(length)),
                           "", fmt::format("give --turns {}ms or more", shortest / kMs + 1));
}

Ns settling_of(const std::array<std::vector<Step>, 2>& steps, const std::vector<Turn>& turns) {
  Ns longest = 0;
  for (const Turn& turn : turns) longest = std::max(longest, turn.span.end - turn.span.begin);
  const Ns half = longest / 2;
  std::vector<std::vector<double>> bins(static_cast<std::size_t>(half / kBin) + 1);
  std::vector<double> rest;
  for (std::uint8_t side = 0; side < 2; ++side) {
    const std::vector<Turn> own = of_side(turns, side);
    // Of like work only: kinds of work follow each other.
    std::map<std::pair<model::Phase, compare::WorkClass>, std::vector<const Step*>> kinds;
    for (const Step& step : steps[side]) kinds[{step.phase, step.work}].push_back(&step);
    for (const auto& [kind, all] : kinds) {
      std::vector<double> logs;
      for (const Step* step : all)
        if (step->value > 0) logs.push_back(std::log(step->value));
      const double mean = stats::moments(logs).mean;
      for (const Step* step : all) {
        const Turn* turn = turn_at(own, step->begin);
        if (turn == nullptr || step->end > turn->span.end || !(step->value > 0)) continue;
        const Ns since = step->begin - turn->span.begin;
        const double value = std::log(step->value) - mean;
        if (since >= half)
          rest.push_back(value);
        else
          bins[static_cast<std::size_t>(since / kBin)].push_back(value);
      }
    }
  }
  const stats::Moments usual = stats::moments(rest);
  Ns settling = kLeastSettling;
  if (rest.size() < kFewestInBin) return settling;
  for (std::size_t b = 0; b < bins.size(); ++b) {
    const stats::Moments bin = stats::moments(bins[b]);
    if (bin.n < kFewestInBin) continue;
    const double error = std::sqrt(bin.std * bin.std / static_cast<double>(bin.n) +
                                   usual.std * usual.std / static_cast<double>(usual.n));
    const double difference = std::abs(bin.mean - usual.mean);
    if (difference <= kUnlike || difference <= kErrors * error) break;
    settling = std::max(settling, static_cast<Ns>(b + 1) * kBin);
  }
  return std::min(settling, half);
}

Result<TurnValues> values_of(const std::array<StepsOf, 2>& sides, const std::vector<Turn>& turns,
                             const Quantity& quantity) {
  if (quantity.kind == Quantity::Kind::counter) return means_of(sides, turns, quantity);
  TurnValues result;
  const bool steps = std::ranges::all_of(sides, [](const StepsOf& side) { return !side.steps.empty(); });
  const bool units = std::ranges::all_of(sides, [](const StepsOf& side) { return !side.units.empty(); });
  const bool counted = std::ranges::all_of(sides, [](const StepsOf& side) { return !side.counted.empty(); });
  const bool by_time = quantity.kind == Quantity::Kind::automatic || quantity.kind == Quantity::Kind::throughput;
  if (!steps && !units && counted && by_time) return counted_values(sides, turns);
  if (!steps && !units) {
    const auto has_none = [](const StepsOf& side) {
      return side.steps.empty() && side.units.empty() && side.counted.empty();
    };
    const std::size_t bad = has_none(sides[0]) ? 0 : 1;
    if (!sides[bad].without.empty())
      return environment_error(fmt::format("{}: {}", kSideNames[bad], sides[bad].without), "",
                               "give --on a name that 'culprit top' of a recording lists, or cpu");
    if (!has_none(sides[bad])) return other_units(sides);
    return environment_error(
        fmt::format("no steps and no units of work are found in the {} ({})", kSideNames[bad], sides[bad].how), "",
        "see that it has work to do; docs/annotate.md says how to mark steps");
  }
  if (steps && quantity.kind != Quantity::Kind::throughput) {
    result.quantity = name_of(quantity);
    result.unit = unit_of(quantity);
    result.of_steps = true;
    result.settling = settling_of({sides[0].steps, sides[1].steps}, turns);
    for (std::uint8_t side = 0; side < 2; ++side) {
      const std::vector<Turn> own = of_side(turns, side);
      Ns all = 0;
      for (const Turn& turn : own) all += turn.span.end - turn.span.begin - result.settling;
      Ns cut = 0;
      for (const Step& step : sides[side].steps) {
        const Turn* turn = turn_at(own, step.begin);
        if (turn != nullptr && step.end > turn->span.end)
          cut += turn->span.end - std::max(step.begin, turn->span.begin + result.settling);
        if (turn == nullptr || step.begin < turn->span.begin + result.settling || step.end > turn->span.end) {
          ++result.spanning[side];
          continue;
        }
        result.values.push_back({turn->pair, side, step.phase, step.work, step.value});
      }
      if (all > 0) result.left_out.cut[side] = static_cast<double>(std::max<Ns>(cut, 0)) / static_cast<double>(all);
    }
    return result;
  }
  if (!steps && quantity.kind != Quantity::Kind::automatic && quantity.kind != Quantity::Kind::throughput)
    return environment_error(fmt::format("no {} is known: there are no steps ({})", name_of(quantity), sides[0].how),
                             "", "compare units of work: leave out --on");
  // One wake-up is one unit on both sides, whatever else is seen of it.
  if (!steps && sides[0].wait != sides[1].wait) return other_units(sides);
  result.quantity = steps ? name_of(quantity) : "time per unit of work";
  if (!steps) result.note = note_of_units(sides);
  result.unit = "ns";
  result.settling = kLeastSettling;
  std::array<std::vector<Ns>, 2> ends;
  for (std::size_t side = 0; side < 2; ++side) {
    ends[side] = sides[side].units;
    if (!steps) continue;
    ends[side].clear();
    for (const Step& step : sides[side].steps) ends[side].push_back(step.end);
    std::ranges::sort(ends[side]);
  }
  for (std::uint8_t side = 0; side < 2; ++side) {
    const std::vector<Turn> own = of_side(turns, side);
    std::size_t stalled = 0;
    for (const Turn& turn : own) {
      const Ns begin = turn.span.begin + result.settling;
      const auto count =
          std::ranges::lower_bound(ends[side], turn.span.end) - std::ranges::lower_bound(ends[side], begin);
      if (count > 0)
        result.values.push_back({turn.pair,
                                 side,
                                 model::Phase::other,
                                 {},
                                 static_cast<double>(turn.span.end - begin) / static_cast<double>(count)});
      else
        ++stalled;
    }
    if (!own.empty()) result.left_out.stalled[side] = static_cast<double>(stalled) / static_cast<double>(own.size());
  }
  return result;
}

model::Outcome limited(model::Outcome outcome, const LeftOut& left_out, double detect) {
  return is_cut_short(outcome, left_out.cut, detect) || is_in_favour(outcome, left_out.stalled, detect)
             ? model::Outcome::inconclusive
             : outcome;
}

std::string why_limited(model::Outcome outcome, const LeftOut& left_out, double detect) {
  using enum model::Outcome;
  const std::string what = outcome == inconclusive ? ""
                           : outcome == no_change  ? "That nothing changed"
                                                   : "A difference";
  if (is_in_favour(outcome, left_out.stalled, detect))
    return fmt::format(
        "{} {:.0f} and {:.0f} % of the turns no work came to its end: leaving those out favours the side that stalls{}",
        what.empty() ? "In" : fmt::format("{} would follow, but in", what), left_out.stalled[0] * 100,
        left_out.stalled[1] * 100,
        std::ranges::min(left_out.stalled) > 0 ? ", and longer ones (--turns) are needed" : "");
  if (what.empty() || !is_cut_short(outcome, left_out.cut, detect)) return {};
  return fmt::format(
      "{} would follow, but steps that switches cut took {:.0f} and {:.0f} % of the turns: longer ones (--turns) are "
      "needed",
      what, left_out.cut[0] * 100, left_out.cut[1] * 100);
}

LeftOut worst_of(const LeftOut& a, const LeftOut& b) {
  LeftOut worst;
  for (std::size_t side = 0; side < 2; ++side) {
    worst.cut[side] = std::max(a.cut[side], b.cut[side]);
    worst.stalled[side] = std::max(a.stalled[side], b.stalled[side]);
  }
  return worst;
}

std::vector<Span> spans_of(const std::vector<Turn>& turns, std::uint8_t side, Ns settling) {
  std::vector<Span> spans;
  for (const Turn& turn : of_side(turns, side)) spans.push_back({turn.span.begin + settling, turn.span.end});
  return spans;
}

}  // namespace culprit::ab
