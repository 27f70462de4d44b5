#include "compare/comparable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

namespace culprit::compare {

namespace {

using model::Cycle;
using model::CycleMethod;
using model::Cycles;
using model::kPhases;
using model::Phase;

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 5> kNames = {"prefill", "decode", "mixed", "train step", "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view name_of(CycleMethod method) {
  constexpr std::array<std::string_view, 5> kNames = {"nothing", "a marker", "a host function", "the launch sequence",
                                                      "the operator sequence"};
  return kNames[static_cast<std::size_t>(method)];
}

std::string without_digits(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c < '0' || c > '9') result += c;
  return result;
}

std::map<Phase, std::size_t> whole_cycles(const Cycles& cycles) {
  std::map<Phase, std::size_t> count;
  for (const Cycle& cycle : cycles.cycles)
    if (!cycle.partial && !cycle.warm_up) ++count[cycle.phase];
  return count;
}

std::string phases_of(const Cycles& cycles) {
  std::string text;
  for (const auto& [phase, n] : whole_cycles(cycles))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, name_of(phase));
  return text.empty() ? "no whole cycle" : text;
}

}  // namespace

std::vector<Phase> common_phases(const Cycles& base, const Cycles& candidate) {
  const auto a = whole_cycles(base);
  const auto b = whole_cycles(candidate);
  std::vector<Phase> common;
  for (const Phase phase : kPhases)
    if (a.contains(phase) && b.contains(phase)) common.push_back(phase);
  return common;
}

std::optional<Refusal> why_not_comparable(const Cycles& base, const Cycles& candidate) {
  for (const auto& [side, cycles] : {std::pair("baseline", &base), std::pair("candidate", &candidate)})
    if (cycles->method == CycleMethod::none || cycles->cycles.empty())
      return Refusal{
          fmt::format("no cycles were found in the {}: {}", side, cycles->reason),
          "See what it did instead ('culprit info'), or name what begins a cycle of both runs with --anchor"};
  if (base.method != candidate.method)
    return Refusal{fmt::format("cycles of the baseline were found by {} ('{}'), those of the candidate by {} ('{}')",
                               name_of(base.method), base.anchor, name_of(candidate.method), candidate.anchor),
                   "Name what begins a cycle of both runs with --anchor"};
  // The text of a sequence describes it and is no name.
  if (!is_sequence(base.method) && without_digits(base.anchor) != without_digits(candidate.anchor))
    return Refusal{fmt::format("a cycle of the baseline begins at '{}', one of the candidate at '{}'", base.anchor,
                               candidate.anchor),
                   "Name what begins a cycle of both runs with --anchor"};
  if (common_phases(base, candidate).empty())
    return Refusal{fmt::format("the runs have no phase in common: the baseline has {}, the candidate {}",
                               phases_of(base), phases_of(candidate)),
                   "Record the same phases on both sides"};
  return std::nullopt;
}

std::optional<std::string> work_told_by_one(const Cycles& base, const Cycles& candidate) {
  constexpr double kMost = 0.5;
  if (base.method != candidate.method || is_sequence(base.method) ||
      without_digits(base.anchor) != without_digits(candidate.anchor))
    return std::nullopt;
  const auto told = [](const Cycles& cycles) {
    std::size_t known = 0, all = 0;
    for (const Cycle& cycle : cycles.cycles) {
      if (cycle.partial || cycle.warm_up) continue;
      ++all;
      if ((cycle.phase != Phase::other && !cycle.phase_guessed) || cycle.workload.batch >= 0 ||
          cycle.workload.tokens >= 0)
        ++known;
    }
    return all == 0 ? -1.0 : static_cast<double>(known) / static_cast<double>(all);
  };
  const double a = told(base), b = told(candidate);
  if (std::min(a, b) != 0 || std::max(a, b) < kMost) return std::nullopt;
  return fmt::format(
      "Steps of the {} do not tell what they worked on (phase, requests), as those of the {} do: all are compared "
      "alike",
      a == 0 ? "baseline" : "candidate", a == 0 ? "candidate" : "baseline");
}

bool needs_forgetting(const Cycles& base, const Cycles& candidate) {
  if (!common_phases(base, candidate).empty()) return false;
  Cycles a = base;
  Cycles b = candidate;
  forget_guessed_phases(a.cycles);
  forget_guessed_phases(b.cycles);
  return !common_phases(a, b).empty();
}

void forget_phases(model::HostEvidence& host) {
  const auto sum_up = [](auto& of_phase) {
    const auto sum =
        std::accumulate(of_phase.begin(), of_phase.end(), typename std::decay_t<decltype(of_phase)>::value_type{});
    of_phase = {};
    of_phase[static_cast<std::size_t>(Phase::other)] = sum;
  };
  sum_up(host.cycles);
  sum_up(host.period_ns);
  for (model::HostState& state : host.states) sum_up(state.total_ns);
  if (!host.step) return;
  sum_up(host.step->on_cpu);
  sum_up(host.step->runnable);
  sum_up(host.step->blocked);
}

std::optional<std::string> other_mix_of_phases(const Cycles& base, const Cycles& candidate) {
  constexpr double kMuch = 0.1;
  const auto share = [](const std::map<Phase, std::size_t>& count, Phase phase) {
    std::size_t all = 0;
    for (const auto& [other, n] : count) all += n;
    const auto it = count.find(phase);
    return it == count.end() || all == 0 ? 0.0 : static_cast<double>(it->second) / static_cast<double>(all);
  };
  const auto a = whole_cycles(base);
  const auto b = whole_cycles(candidate);
  if (std::ranges::none_of(kPhases, [&](Phase p) { return std::abs(share(a, p) - share(b, p)) > kMuch; }))
    return std::nullopt;
  return fmt::format("The mix of phases differs: baseline {}, candidate {}; each phase is compared alone",
                     phases_of(base), phases_of(candidate));
}

}  // namespace culprit::compare
