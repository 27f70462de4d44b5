#include "cli/cycle_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "cli/options.h"
#include "core/units.h"
#include "report/cycles_report.h"

namespace culprit::cli {

namespace {

constexpr double kLowConfidence = 0.8;

std::vector<std::string> phase_names() {
  std::vector<std::string> names;
  names.reserve(std::size(model::kPhases));
  for (const model::Phase phase : model::kPhases) names.emplace_back(model::phase_name(phase));
  return names;
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string text_of(CycleRange range) {
  return range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}-{}", range.first, range.last);
}

/// "1 to 20 (decode, prefill)".
std::string what_there_is(const model::Cycles& cycles) {
  std::string phases;
  for (const model::Phase phase : model::kPhases)
    if (std::ranges::any_of(cycles.cycles, [&](const model::Cycle& c) { return c.phase == phase; }))
      phases += fmt::format("{}{}", phases.empty() ? "" : ", ", model::phase_name(phase));
  // By (number, rank): the first has the smallest number.
  return fmt::format("{} to {} ({})", cycles.cycles.front().number, cycles.cycles.back().number, phases);
}

Status keep(ChosenCycles& chosen, const CycleChoice& choice) {
  const model::Cycles& cycles = chosen.found.cycles;
  const auto ranges = parse_cycle_numbers(choice.numbers);
  if (!ranges) return ranges.error();
  std::vector<bool> exists(ranges->size(), false);
  std::set<std::uint32_t> all;
  std::set<std::uint32_t> kept;
  chosen.kept.assign(cycles.cycles.size(), false);
  for (std::size_t i = 0; i < cycles.cycles.size(); ++i) {
    const model::Cycle& cycle = cycles.cycles[i];
    bool in_range = ranges->empty();
    for (std::size_t r = 0; r < ranges->size(); ++r) {
      if (cycle.number < (*ranges)[r].first || cycle.number > (*ranges)[r].last) continue;
      exists[r] = true;
      in_range = true;
    }
    all.insert(cycle.number);
    if (!in_range || (!choice.phase.empty() && model::phase_name(cycle.phase) != choice.phase)) continue;
    chosen.kept[i] = true;
    kept.insert(cycle.number);
  }
  if (kept.empty())
    return usage_error(fmt::format("no cycle fits{}{}: there are cycles {}",
                                   choice.numbers.empty() ? "" : " --cycle " + choice.numbers,
                                   choice.phase.empty() ? "" : " --phase " + choice.phase, what_there_is(cycles)),
                       "`culprit cycles` lists them");
  chosen.notes.push_back(fmt::format("{} of {} cycles", format_count(kept.size()), format_count(all.size())));
  for (std::size_t r = 0; r < ranges->size(); ++r)
    if (!exists[r]) chosen.notes.push_back(fmt::format("There is no cycle {}", text_of((*ranges)[r])));
  return {};
}

}  // namespace

void add_cycle_choice(Verb& verb, CycleChoice& choice) {
  verb.add_option("--cycle", choice.numbers, "only cycles of these numbers: 3 or 1,4-6")->type_name("N[,A-B]");
  verb.add_option("--phase", choice.phase, "only cycles of a phase: prefill, decode, mixed, train_step, other")
      ->check(one_of(phase_names()));
  verb.add_option("--anchor", choice.anchor, "marker or function that begins every cycle (default: found)")
      ->type_name("NAME");
}

Result<std::vector<CycleRange>> parse_cycle_numbers(std::string_view text) {
  std::vector<CycleRange> ranges;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = number_in(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    const bool ends_in_comma = comma != std::string_view::npos && comma + 1 == text.size();
    if (!first || !last || *first > *last || ends_in_comma)
      return usage_error(fmt::format("--cycle: '{}' is neither a number nor a range", ends_in_comma ? text : part),
                         "write numbers and ranges with commas between them, as in 1,4-6");
    ranges.push_back({*first, *last});
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return ranges;
}

Result<ChosenCycles> choose_cycles(const Trace& trace, const CycleChoice& choice) {
  cycles::FindOptions find;
  find.anchor = choice.anchor;
  auto found = cycles::find_cycles(trace, order_slices(trace), find);
  if (!found) return found.error();
  ChosenCycles chosen;
  chosen.found = std::move(*found);
  const model::Cycles& cycles = chosen.found.cycles;
  if (cycles.cycles.empty())
    return input_error("holds no cycles: " + cycles.reason, trace.ranks.empty() ? "" : trace.ranks.front().path,
                       "name what begins a step with --anchor, or leave out --by cycle, --by phase, --cycle and "
                       "--phase");
  if (choice.filters())
    if (Status status = keep(chosen, choice); !status) return status.error();
  if (cycles.anchor_given && cycles.period_confidence < kLowConfidence)
    chosen.notes.push_back(
        fmt::format("Cycles begin at '{}' as asked; it is {:.0f}% likely that "
                    "a cycle is one step",
                    cycles.anchor, cycles.period_confidence * 100));
  else if (std::min(cycles.period_confidence, cycles.phase_confidence) < kLowConfidence)
    chosen.notes.push_back(
        fmt::format("Cycles are uncertain: found by {} ({}), {:.0f}% that a cycle is one step, {:.0f}% that a step "
                    "begins where the cycle does",
                    report::to_string(cycles.method), cycles.anchor, cycles.period_confidence * 100,
                    cycles.phase_confidence * 100));
  return chosen;
}

}  // namespace culprit::cli
