#include "report/run_comparison_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <ranges>
#include <utility>

#include "core/units.h"
#include "model/settings.h"
#include "report/alternation_report.h"
#include "report/calls_report.h"
#include "report/host_report.h"
#include "report/standstill_report.h"
#include "report/work_comparison.h"

namespace culprit::report {

namespace {

using model::kSideNames;
using model::Outcome;
using model::RunComparison;

/// What would decide.
std::string enough_text(std::size_t recordings) {
  if (recordings == 0) return {};
  if (recordings > model::kMostRecordings)
    return fmt::format("; more than {} recordings of each side would be needed to decide", model::kMostRecordings);
  return fmt::format("; {} recordings of each side, taken in turns, would probably decide", recordings);
}

/// What the intervals rest on.
std::string basis_text(const RunComparison& comparison) {
  std::string text =
      fmt::format("Changes within {:g} % do not count.", comparison.cycle_times.front().tolerance * kPercent);
  if (is_measured(comparison.cycle_times)) {
    double between = 0;
    std::size_t earlier = 0;
    std::optional<std::size_t> side;
    for (const model::CycleTimeOutcome& o : comparison.cycle_times)
      if (model::is_judged(o)) {
        between = std::max(between, o.between);
        earlier = std::max(earlier, o.earlier);
        if (o.earlier_side) side = o.earlier_side;
      }
    text += side ? fmt::format(" Measured: {} recordings of the {} differ by {:.2g} % (standard deviation).", earlier,
                               kSideNames.at(*side), between * kPercent)
            : earlier > 0 ? earlier_text(between, earlier)
                          : fmt::format(" Measured: recordings of a side differ by {:.2g} % (standard deviation).",
                                        between * kPercent);
  }
  if (!comparison.assumptions.empty())
    text += fmt::format(" Assumed: {}. {}", fmt::join(comparison.assumptions, "; "),
                        what_would_measure(is_measured(comparison.cycle_times)));
  return text;
}

/// Few long cycles move a mean, half of all no median. Empty: it says nearly the same.
std::string medians_text(const model::CycleTimeOutcome& o) {
  constexpr double kLittle = 0.02;  // of logarithms, as all
  constexpr double kNearly = 0.1;   // of the change
  constexpr double kFar = 0.1;      // from the mean of a side
  const auto& [before, after] = o.median_ns;
  if (!(before > 0) || !(after > 0)) return {};
  const double change = std::log1p(o.change);
  const double away = std::abs(std::log(after / before) - change);
  const bool far = std::max(std::abs(std::log(before / o.time_ns[0])), std::abs(std::log(after / o.time_ns[1]))) > kFar;
  if (!far && (away <= kLittle || away <= kNearly * std::abs(change))) return {};
  return fmt::format("; medians {} -> {}, {:+.1f} %", format_duration(before), format_duration(after),
                     (after / before - 1) * kPercent);
}

/// Of sides that ran in turns: recordings only say where a difference comes from.
std::vector<std::string> alternated_lines(const RunComparison& comparison) {
  std::vector<std::string> lines = alternation_lines(*comparison.alternation);
  if (comparison.host)
    for (std::string line :
         {throttled_text(*comparison.host), beside_text(*comparison.host), machine_text(*comparison.host),
          memory_text(*comparison.host), requests_text(*comparison.host)})
      if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

/// Where nothing is decided, what is known to differ stands beside it.
std::string settings_text(const RunComparison& comparison) {
  constexpr std::size_t kMostNamed = 3;
  if (comparison.outcome != Outcome::inconclusive) return {};
  const auto tells_them = [](const model::Verdict& v) { return v.cause == "environment_changed"; };
  if (std::ranges::any_of(comparison.verdicts, tells_them)) return {};
  std::string text;
  const std::vector<model::SettingChange> settings = model::settings_that_differ(comparison.environment);
  for (const model::SettingChange& setting : settings | std::views::take(kMostNamed))
    text += fmt::format("{}{}: {} -> {}", text.empty() ? "" : "; ", setting.what, setting.value[0], setting.value[1]);
  if (const std::size_t more = settings.size() - std::min(settings.size(), kMostNamed); more > 0)
    text += fmt::format("; {} more setting{}", more, more == 1 ? " differs" : "s differ");
  return text;
}

}  // namespace

std::string other_work_text(const model::CycleTimeOutcome& o) {
  if (o.usual_work[0] == o.usual_work[1])
    return fmt::format("Too few steps of like work ({}): {} of the baseline and {} of the candidate, most often of {}",
                       phase_name(o.phase), o.other_work[0], o.other_work[1], o.usual_work[0]);
  return fmt::format(
      "No steps of like work ({}): the {} of the baseline are most often of {}, the {} of the candidate of {}",
      phase_name(o.phase), o.other_work[0], o.usual_work[0], o.other_work[1], o.usual_work[1]);
}

OutcomeText outcome_text(const RunComparison& comparison) {
  OutcomeText text;
  std::vector<std::string>& lines = text.answer;
  std::vector<std::string>& details = text.details;
  if (comparison.alternation) {
    details = alternated_lines(comparison);
    lines.push_back(std::move(details.front()));
    details.erase(details.begin());
    return text;
  }
  if (comparison.same_recording) {
    lines.emplace_back("Baseline and candidate are the same recording: there is nothing to compare.");
    return text;
  }
  if (comparison.outcome == Outcome::not_comparable) {
    lines.push_back(fmt::format("Not comparable: {}", comparison.why));
    const auto& [base, candidate] = comparison.sides;
    const auto period = [](const std::optional<Ns>& ns) { return ns ? format_duration(*ns) : std::string("unknown"); };
    if (base.cycles != 0 || candidate.cycles != 0) {
      lines.push_back(fmt::format("cycles: {} in the baseline, {} in the candidate; nothing follows from that",
                                  base.cycles, candidate.cycles));
      lines.push_back(fmt::format(
          "  median period of whole cycles: {} in the baseline, {} in the candidate; nothing follows from that",
          period(base.median_period), period(candidate.median_period)));
    }
    lines.push_back(comparison.comparability.remedy + ".");
    if (comparison.host)
      for (std::string line : {throttled_text(*comparison.host), beside_text(*comparison.host)})
        if (!line.empty()) details.push_back(std::move(line));
    return text;
  }
  // Where a side did nothing, nothing of it was recorded either.
  const bool nothing = comparison.standstill && !comparison.standstill->compared;
  if (nothing) lines.push_back(standstill_line(comparison));
  for (const model::Difference& d : comparison.comparability.differences)
    if (d.first)
      (nothing ? details : lines)
          .push_back(fmt::format("Not recorded alike: {} {} against {}", d.what, d.base, d.candidate));
  if (nothing) {
    if (comparison.host)
      for (std::string line : {throttled_text(*comparison.host), beside_text(*comparison.host)})
        if (!line.empty()) details.push_back(std::move(line));
    return text;
  }
  if (std::string settings = settings_text(comparison); !settings.empty()) details.push_back(std::move(settings));
  if (comparison.work) {
    for (std::string& line : work_answer_lines(comparison)) lines.push_back(std::move(line));
    std::ranges::move(work_detail_lines(comparison), std::back_inserter(details));
    return text;
  }
  const bool limited = !comparison.why.empty();
  if (limited) lines.push_back(fmt::format("Outcome: inconclusive: {}", comparison.why));
  const std::string steps = comparison.host ? steps_text(*comparison.host) : std::string();
  const auto add_surroundings = [&] {
    for (std::string line :
         {throttled_text(*comparison.host), beside_text(*comparison.host), machine_text(*comparison.host),
          memory_text(*comparison.host), requests_text(*comparison.host)})
      if (!line.empty()) details.push_back(std::move(line));
  };
  if (!steps.empty()) {
    lines.push_back(limited ? fmt::format("Steps: {}", steps)
                            : fmt::format("Outcome: {}; steps {}", to_string(comparison.outcome), steps));
    add_surroundings();
  }
  // Where no line says it of all, those of the phases are the answer.
  std::vector<std::string>& of_phases = steps.empty() && !limited ? lines : details;
  const bool none_judged = std::ranges::none_of(comparison.cycle_times, model::is_judged);
  for (const model::CycleTimeOutcome& o : comparison.cycle_times) {
    if (!model::is_judged(o)) {
      if (none_judged) of_phases.push_back(other_work_text(o));
      continue;
    }
    std::string line = limited ? fmt::format("Cycle time ({}): {:+.1f} %", phase_name(o.phase), o.change * kPercent)
                               : fmt::format("Outcome ({}): {}; cycle time {:+.1f} %", phase_name(o.phase),
                                             to_string(o.outcome), o.change * kPercent);
    if (std::isfinite(o.low))
      line += fmt::format(" (95 % interval {:+.1f} to {:+.1f} %)", o.low * kPercent, o.high * kPercent);
    line += fmt::format(", from {} and {} whole cycles{}", o.cycles[0], o.cycles[1], medians_text(o));
    if (!std::isfinite(o.low) && (o.outcome == Outcome::regression || o.outcome == Outcome::improvement))
      line += fmt::format("; too few independent ones for an interval, but all of the candidate are {}",
                          o.change > 0 ? "longer" : "shorter");
    if (o.these_differ && o.outcome == Outcome::inconclusive && comparison.outcome == Outcome::inconclusive && !limited)
      line += fmt::format(
          "; these recordings differ by {:+.0f} % ({:+.0f} to {:+.0f} %), as two of the same program may",
          o.these_differ->change * kPercent, o.these_differ->low * kPercent, o.these_differ->high * kPercent);
    if (o.outcome == Outcome::inconclusive && !limited)
      line += std::isfinite(o.smallest_seen) ? fmt::format("; a regression of {:.1f} % would have been seen{}",
                                                           o.smallest_seen * kPercent, enough_text(o.enough))
              : *std::ranges::min_element(o.cycles) < 2
                  ? "; too few to tell"
                  : fmt::format("; too few independent ones to tell ({:.1f} and {:.1f}: neighbours are alike)",
                                o.effective[0], o.effective[1]);
    of_phases.push_back(std::move(line));
  }
  if (comparison.host && steps.empty()) add_surroundings();
  std::ranges::move(calls_lines(comparison), std::back_inserter(details));
  if (!limited) details.push_back(basis_text(comparison));
  return text;
}

}  // namespace culprit::report
