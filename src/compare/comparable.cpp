#include "compare/comparable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace culprit::compare {

namespace {

using model::Cycle;
using model::CycleMethod;
using model::Cycles;
using model::Phase;
using model::Profile;

constexpr std::array kPhases = {Phase::prefill, Phase::decode, Phase::mixed, Phase::train_step, Phase::other};

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 5> kNames = {"prefill", "decode", "mixed", "train step", "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view name_of(CycleMethod method) {
  constexpr std::array<std::string_view, 4> kNames = {"nothing", "a marker", "a host function", "the launch sequence"};
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
      return Refusal{fmt::format("no cycles were found in the {}: {}", side, cycles->reason),
                     "Name what begins a cycle of both runs with --anchor"};
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

std::vector<std::string> comparison_notes(const Cycles& base, const Cycles& candidate) {
  constexpr double kMuch = 0.1;
  constexpr double kDoubtful = 0.5;
  std::vector<std::string> notes;
  const auto share = [](const std::map<Phase, std::size_t>& count, Phase phase) {
    std::size_t all = 0;
    for (const auto& [other, n] : count) all += n;
    const auto it = count.find(phase);
    return it == count.end() || all == 0 ? 0.0 : static_cast<double>(it->second) / static_cast<double>(all);
  };
  const auto a = whole_cycles(base);
  const auto b = whole_cycles(candidate);
  if (std::ranges::any_of(kPhases, [&](Phase p) { return std::abs(share(a, p) - share(b, p)) > kMuch; }))
    notes.push_back(fmt::format("The mix of phases differs: baseline {}, candidate {}; each phase is compared alone",
                                phases_of(base), phases_of(candidate)));
  for (const auto& [side, cycles] : {std::pair("baseline", &base), std::pair("candidate", &candidate)})
    if (cycles->period_confidence < kDoubtful)
      notes.push_back(fmt::format("Confidence is low that a cycle of the {} is one step: {}", side, cycles->reason));
  return notes;
}

Roles match_roles(const Profile& base, const Profile& candidate) {
  Roles roles;
  roles.base.resize(base.processes.size());
  roles.candidate.resize(candidate.processes.size());
  // (rank, place) gets one number on both sides; where the numbers of the baseline are distinct, those are kept.
  std::map<std::pair<std::int32_t, std::size_t>, std::int64_t> number;
  const auto ordered = [](const Profile& profile) {
    std::vector<Ns> busy(profile.processes.size(), 0);
    for (const model::FunctionUse& use : profile.functions) busy[use.process] += use.exposed >= 0 ? use.exposed : 0;
    std::vector<Ns> time(profile.processes.size(), 0);
    for (const model::FunctionUse& use : profile.functions) time[use.process] += use.duration;
    std::vector<std::size_t> rows(profile.processes.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    std::ranges::sort(rows, {}, [&](std::size_t i) {
      // Processes of one job that do the same work differ little in time: who launches is told by pid, then.
      const model::ProfileProcess& process = profile.processes[i];
      return std::tuple(process.rank, busy[i] == 0, busy[i] == 0 ? -time[i] : Ns{0}, process.pid, i);
    });
    return rows;
  };
  std::map<std::int64_t, int> uses;
  for (const model::ProfileProcess& process : base.processes) ++uses[process.pid];
  const bool distinct = std::ranges::all_of(uses, [](const auto& use) { return use.second == 1; });
  const auto assign = [&](const Profile& profile, std::vector<std::int64_t>& out, bool first) {
    std::map<std::int32_t, std::size_t> place;
    for (const std::size_t i : ordered(profile)) {
      const std::pair key(profile.processes[i].rank, place[profile.processes[i].rank]++);
      const auto it = number.find(key);
      if (it == number.end())
        number[key] = first && distinct
                          ? profile.processes[i].pid
                          : key.first * 1000 + static_cast<std::int64_t>(key.second) + (first ? 0 : 1'000'000'000);
      out[i] = number[key];
    }
  };
  assign(base, roles.base, true);
  assign(candidate, roles.candidate, false);
  return roles;
}

void append_replicate(Profile& run, const Profile& replicate) {
  const Roles roles = match_roles(run, replicate);
  const auto copy = [&](StringId id) { return run.texts.intern(replicate.texts[id]); };
  std::vector<std::uint32_t> process_row;
  for (std::size_t p = 0; p < replicate.processes.size(); ++p) {
    const auto at = std::ranges::find(roles.base, roles.candidate[p]);
    if (at != roles.base.end()) {
      process_row.push_back(static_cast<std::uint32_t>(at - roles.base.begin()));
      continue;
    }
    model::ProfileProcess process = replicate.processes[p];
    process.host = copy(process.host);
    process_row.push_back(static_cast<std::uint32_t>(run.processes.size()));
    run.processes.push_back(process);
  }
  const auto cycles = static_cast<std::uint32_t>(run.cycles.size());
  const auto uses = static_cast<std::uint32_t>(run.functions.size());
  for (model::ProfileCycle cycle : replicate.cycles) {
    cycle.anchor = copy(cycle.anchor);
    run.cycles.push_back(cycle);
  }
  for (model::FunctionUse use : replicate.functions) {
    use.cycle += cycles;
    use.process = process_row[use.process];
    use.function = copy(use.function);
    use.device = copy(use.device);
    use.kind = copy(use.kind);
    use.short_name = copy(use.short_name);
    run.functions.push_back(use);
  }
  for (model::ResourceUse resource : replicate.resources) {
    resource.use += uses;
    resource.metric = copy(resource.metric);
    run.resources.push_back(resource);
  }
}

}  // namespace culprit::compare
