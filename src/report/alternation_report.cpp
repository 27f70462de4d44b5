#include "report/alternation_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/json_writer.h"
#include "core/units.h"
#include "report/run_comparison_tables.h"

namespace culprit::report {

namespace {

using model::Alternation;
using model::AlternationEnd;
using model::PairedChange;

std::string end_text(const Alternation& alternation) {
  switch (alternation.end) {
    case AlternationEnd::found:
    case AlternationEnd::excluded:
      return "ended because that decides it";
    case AlternationEnd::budget:
      return "ended because the budget is spent";
    case AlternationEnd::pairs:
      return "ended after the pairs asked for";
    case AlternationEnd::interrupted:
      return "interrupted";
    case AlternationEnd::side_ended:
      return "ended because a side ended";
  }
  return {};
}

/// What was compared.
std::string_view kind_text(const Alternation& alternation) {
  return alternation.of_steps ? "steps" : alternation.in_turns ? "turns" : "runs";
}

std::string named(const Alternation& alternation, const PairedChange& change) {
  return change.phase == model::Phase::other
             ? alternation.quantity
             : fmt::format("{} ({})", alternation.quantity, model::phase_name(change.phase));
}

std::string means_text(const Alternation& alternation, const std::array<double, 2>& mean) {
  return alternation.unit == "ns" ? fmt::format("{} -> {}", format_duration(mean[0]), format_duration(mean[1]))
                                  : fmt::format("{:.3g} -> {:.3g}", mean[0], mean[1]);
}

std::string left_out_text(const Alternation& alternation) {
  std::vector<std::string> parts;
  const auto& [a, b] = alternation.turns.spanning;
  if (a + b > 0)
    parts.push_back(fmt::format("{} and {} steps that a switch cut or that began within {:.3g} ms of one", a, b,
                                static_cast<double>(alternation.turns.settling) / 1e6));
  std::array<std::size_t, 2> other{};
  for (const PairedChange& change : alternation.changes)
    for (std::size_t side = 0; side < 2; ++side) other[side] += change.other_work[side];
  if (other[0] + other[1] > 0)
    parts.push_back(
        fmt::format("{} and {} that worked on what the other side of the pair did not", other[0], other[1]));
  if (alternation.pairs_left_out > 0)
    parts.push_back(fmt::format("{} pairs without anything alike", alternation.pairs_left_out));
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// What work means that was queued on a device when its side was made to stand still.
std::string queues_text(const Alternation& alternation) {
  const model::Turns& turns = alternation.turns;
  const std::string_view means = alternation.of_steps ? "what is compared is each step's own time"
                                                      : "whole turns are compared, and there it counts in the other's";
  if (!turns.queues_seen)
    return fmt::format(
        "Work queued on a device may go on into the other's turn, since device queues are not waited for: {}", means);
  const auto each =
      static_cast<double>(turns.queues_waited) / static_cast<double>(std::max<std::size_t>(turns.turns, 1));
  std::string waited = fmt::format(
      "Behind each turn devices were waited for until they had nothing to do for its side, a tenth of a turn at most "
      "({} on average)",
      format_duration(each));
  if (turns.queues_left == 0) return waited;
  return fmt::format("{}; behind {} of {} turns they still had, which goes on into the other's: {}", waited,
                     turns.queues_left, turns.turns, means);
}

/// What frozen turns distort.
std::string turns_text(const Alternation& alternation) {
  const model::Turns& turns = alternation.turns;
  return fmt::format(
      "While one side ran the other stood still ({}): latencies and time-outs of clients mean nothing here{}. {}",
      turns.freezer,
      turns.memory > 0 ? fmt::format("; both had {} of memory at once", format_bytes(static_cast<double>(turns.memory)))
                       : std::string(),
      queues_text(alternation));
}

/// "turns of 0.4 s", and why so long where that was measured.
std::string turns_length_text(const model::Turns& turns) {
  return fmt::format("turns of {:.3g} s{}", static_cast<double>(turns.length) / 1e9,
                     turns.length_from == model::LengthFrom::noise ? ", chosen from the noise's memory" : "");
}

/// By how much starts of the same program are taken to differ, and from where that is known.
std::string between_text(const Alternation& alternation) {
  const model::BetweenStarts& between = alternation.between_starts;
  const bool one = alternation.starts == 1;
  const char* const remedy = one ? "--starts N measures it" : "more --starts measure it better";
  std::string assumed;
  switch (between.from) {
    case model::SpreadFrom::none:
      return {};
    case model::SpreadFrom::same:
      return fmt::format(
          "; all pairs of a start have the same number, as three processes of one program had: that its starts differ "
          "by {:.1f} % is in the interval; {}",
          between.spread * kPercent, remedy);
    case model::SpreadFrom::starts:
      assumed = "as measured on equal servers";
      break;
    case model::SpreadFrom::step_time:
      assumed = "which was measured of step time alone";
      break;
  }
  return fmt::format(
      "; that starts of the same program differ by {:.1f} % (standard deviation) is in the interval: {:.1f} % are "
      "assumed, {}{}; {}",
      between.spread * kPercent, between.assumed * kPercent, assumed, one ? "" : ", and corrected by what these tell",
      remedy);
}

/// How much of the answer is one of these processes only.
std::string starts_text(const Alternation& alternation) {
  if (alternation.starts == 0)
    return "This is of these two processes: by how much another start of the same program would differ is not in the "
           "interval";
  return fmt::format("Both were started {}{}",
                     alternation.starts == 1 ? "once" : fmt::format("{} times", alternation.starts),
                     between_text(alternation));
}

/// Few may take so much longer than the rest that all together changed otherwise than the typical one.
bool total_differs(const PairedChange& change) {
  return change.change < change.total_low || change.change > change.total_high;
}

/// Whether the interval lies within the difference that matters.
bool is_within(const PairedChange& change, double detect) { return change.low > -detect && change.high < detect; }

/// Whether the arithmetic mean keeps from an outcome that the interval alone would allow, as ab::Looks has it.
bool total_withholds(const PairedChange& change, double detect) {
  const bool longer = change.total_low > 0;
  const bool shorter = change.total_high < 0;
  if (is_within(change, detect)) return (longer || shorter) && std::abs(change.total) >= detect;
  return change.low > 0 ? shorter : change.high < 0 && (longer || change.total >= detect);
}

/// What the outcome means for whom asked for an effect of this size.
std::string meaning(const Alternation& alternation) {
  const std::string asked = fmt::format("{:.3g} %", alternation.detect * kPercent);
  const PairedChange& first = alternation.changes.front();
  switch (alternation.outcome) {
    case Outcome::no_change:
      return fmt::format("a difference of {} is excluded", asked);
    case Outcome::inconclusive:
      if (const std::size_t fewest = alternation.in_turns ? model::kFewestTurns : model::kFewestPairs;
          !std::isfinite(first.low))
        return first.pairs < fewest ? fmt::format("too few pairs to bound it, {} or more tell", fewest)
                                    : "too few pairs to bound it: more of them tell";
      if ((total_differs(first) && first.total * first.change < 0) || total_withholds(first, alternation.detect))
        return fmt::format("the mean of all {} says otherwise", kind_text(alternation));
      if (is_within(first, alternation.detect))
        return fmt::format("a difference of {} would be excluded if the turns had left out less", asked);
      if (first.low > 0 || first.high < 0)
        return fmt::format("no difference is excluded with an error of 5 %, an outcome takes 2 %{}",
                           alternation.in_turns ? " and turns that leave out little" : "");
      return fmt::format("neither no difference nor one of {} is excluded", asked);
    default:
      return {};
  }
}

}  // namespace

std::string change_text(const PairedChange& change) {
  if (!std::isfinite(change.change)) return {};
  if (!std::isfinite(change.low) || !std::isfinite(change.high))
    return fmt::format("{:+.1f} %", change.change * kPercent);
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", change.change * kPercent, change.low * kPercent,
                     change.high * kPercent);
}

std::vector<std::string> alternation_lines(const Alternation& alternation) {
  std::vector<std::string> lines;
  if (alternation.changes.empty()) {
    lines.push_back(fmt::format("Outcome: inconclusive: no pair was complete; {}", end_text(alternation)));
    lines.insert(lines.end(), alternation.notes.begin(), alternation.notes.end());
    return lines;
  }
  const PairedChange& first = alternation.changes.front();
  const std::string meant = meaning(alternation);
  // A mean between the typical and the few that take far longer would be neither's.
  const std::string means = total_differs(first) ? "" : ", " + means_text(alternation, first.mean);
  lines.push_back(fmt::format("Outcome: {}; {} {}{}{}", to_string(alternation.outcome), named(alternation, first),
                              change_text(first), means, meant.empty() ? "" : "; " + meant));
  lines.push_back(fmt::format("From {} pairs of {} ({} and {} {}) in {:.0f} s, single pairs {:.1f} % apart; {}",
                              first.pairs, alternation.in_turns ? turns_length_text(alternation.turns) : "runs",
                              first.values[0], first.values[1], kind_text(alternation), alternation.seconds,
                              std::isfinite(first.spread) ? first.spread * kPercent : 0.0, end_text(alternation)));
  if (total_differs(first))
    lines.push_back(fmt::format(
        "That is of the typical pair; the arithmetic mean changed by {:+.1f} % ({:+.1f} to {:+.1f}), {}: few {} take "
        "far longer than the rest",
        first.total * kPercent, first.total_low * kPercent, first.total_high * kPercent,
        means_text(alternation, first.total_mean), kind_text(alternation)));
  for (std::size_t i = 1; i < alternation.changes.size(); ++i) {
    const PairedChange& other = alternation.changes[i];
    if (other.pairs > 0)
      lines.push_back(fmt::format("Besides, {}: {}, {}, from {} pairs", named(alternation, other), change_text(other),
                                  means_text(alternation, other.mean), other.pairs));
  }
  if (const std::string left = left_out_text(alternation); !left.empty()) lines.push_back("Left out: " + left);
  if (alternation.in_turns) {
    lines.push_back(starts_text(alternation));
    lines.push_back(turns_text(alternation));
  }
  for (const std::string& note : alternation.notes) lines.push_back(note);
  return lines;
}

void write_alternation(JsonWriter& json, const Alternation& alternation) {
  json.begin_object("alternation");
  json.member("outcome", to_string(alternation.outcome));
  json.member("end", model::to_string(alternation.end));
  json.member("sides", alternation.sides);
  json.member("quantity", alternation.quantity);
  json.member("unit", alternation.unit);
  json.member("detect", alternation.detect);
  json.member("seconds", alternation.seconds);
  json.member("looks", alternation.looks);
  json.member("pairs_left_out", alternation.pairs_left_out);
  json.begin_array("changes");
  for (const PairedChange& change : alternation.changes) {
    json.begin_object(JsonForm::line);
    json.member("phase", model::phase_name(change.phase));
    json.member("pairs", change.pairs);
    json.member("values", change.values);
    json.member("mean", change.mean);
    json.member("ratio", 1 + change.change);
    json.member("ci_low", 1 + change.low);
    json.member("ci_high", 1 + change.high);
    json.member("spread", change.spread);
    json.member("memory", change.memory);
    json.member("total_ratio", 1 + change.total);
    json.member("total_ci_low", 1 + change.total_low);
    json.member("total_ci_high", 1 + change.total_high);
    json.member("other_work", change.other_work);
    json.end_object();
  }
  json.end_array();
  if (alternation.in_turns) {
    json.member("starts", alternation.starts);
    json.member("between_starts", alternation.between_starts.spread);
    json.member("between_starts_from", model::to_string(alternation.between_starts.from));
    json.member("between_starts_assumed", alternation.between_starts.assumed);
    json.member("between_starts_told", alternation.between_starts.told);
    json.begin_object("turns", JsonForm::line);
    json.member("turns", alternation.turns.turns);
    json.member("length_ns", alternation.turns.length);
    json.member("length_from", model::to_string(alternation.turns.length_from));
    json.member("settling_ns", alternation.turns.settling);
    json.member("spanning", alternation.turns.spanning);
    json.member("freezer", alternation.turns.freezer);
    json.member("memory_bytes", alternation.turns.memory);
    json.member("queues_waited_for", alternation.turns.queues_seen);
    json.member("queues_left", alternation.turns.queues_left);
    json.member("queues_waited_ns", alternation.turns.queues_waited);
    json.end_object();
  }
  json.member("notes", alternation.notes);
  json.end_object();
}

}  // namespace culprit::report
