#include "compare/roles.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/saturating.h"

namespace culprit::compare {

namespace {

constexpr std::size_t kMostByFunctions = 32;  // processes of a rank

/// Rows of the processes by rank and role.
std::vector<std::size_t> in_order(const model::Profile& profile) {
  std::vector<Ns> exposed(profile.processes.size(), 0);
  std::vector<Ns> time(profile.processes.size(), 0);
  for (const model::FunctionUse& use : profile.functions) {
    exposed[use.process] = add_saturating(exposed[use.process], std::max<Ns>(use.exposed, 0));
    time[use.process] = add_saturating(time[use.process], use.duration);
  }
  std::vector<std::size_t> rows(profile.processes.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::ranges::sort(rows, {}, [&](std::size_t i) {
    const model::ProfileProcess& process = profile.processes[i];
    return std::tuple(process.rank, exposed[i] == 0, exposed[i] == 0 ? -time[i] : Ns{0}, process.pid, i);
  });
  return rows;
}

using Names = std::vector<std::string_view>;

/// Of each process, what it ran, sorted.
std::vector<Names> functions_of(const model::Profile& profile) {
  std::vector<std::vector<StringId>> ids(profile.processes.size());
  for (const model::FunctionUse& use : profile.functions) ids[use.process].push_back(use.function);
  std::vector<Names> names(ids.size());
  for (std::size_t p = 0; p < ids.size(); ++p) {
    std::ranges::sort(ids[p]);
    const auto again = std::ranges::unique(ids[p]);
    ids[p].erase(again.begin(), again.end());
    for (const StringId id : ids[p]) names[p].push_back(profile.texts[id]);
    std::ranges::sort(names[p]);
  }
  return names;
}

/// Share of what two processes ran that both did.
double likeness(const Names& a, const Names& b) {
  Names both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  const std::size_t all = a.size() + b.size() - both.size();
  return all > 0 ? static_cast<double>(both.size()) / static_cast<double>(all) : 0;
}

/// Rows of the candidate by those of the baseline, of one rank: the most alike first, of those that are as alike the
/// same process, then the same place.
void match(const std::vector<std::size_t>& base, const std::vector<std::size_t>& candidate,
           const std::array<const model::Profile*, 2>& sides, const std::array<std::vector<Names>, 2>& names,
           std::map<std::size_t, std::size_t>& partner) {
  struct Choice {
    double unlike = 0;
    bool other_pid = false;
    std::size_t apart = 0;
    std::size_t from = 0;
    std::size_t to = 0;
    auto operator<=>(const Choice&) const = default;
  };
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < base.size(); ++i)
    for (std::size_t k = 0; k < candidate.size(); ++k)
      choices.push_back({-likeness(names[0][base[i]], names[1][candidate[k]]),
                         sides[0]->processes[base[i]].pid != sides[1]->processes[candidate[k]].pid,
                         i > k ? i - k : k - i, base[i], candidate[k]});
  std::ranges::sort(choices);
  std::set<std::size_t> taken;
  for (const Choice& choice : choices)
    if (!partner.contains(choice.from) && taken.insert(choice.to).second) partner[choice.from] = choice.to;
}

}  // namespace

Roles match_roles(const model::Profile& base, const model::Profile& candidate) {
  using Place = std::pair<std::int32_t, std::size_t>;  // rank, and place inside it
  std::map<Place, std::array<std::optional<std::size_t>, 2>> places;
  const std::array<const model::Profile*, 2> sides = {&base, &candidate};
  const std::array names = {functions_of(base), functions_of(candidate)};
  std::map<std::int32_t, std::array<std::vector<std::size_t>, 2>> ranks;
  for (std::size_t s = 0; s < sides.size(); ++s)
    for (const std::size_t row : in_order(*sides[s])) ranks[sides[s]->processes[row].rank][s].push_back(row);
  for (const auto& [rank, rows] : ranks) {
    std::map<std::size_t, std::size_t> partner;
    if (std::max(rows[0].size(), rows[1].size()) <= kMostByFunctions)
      match(rows[0], rows[1], sides, names, partner);
    else
      for (std::size_t i = 0; i < std::min(rows[0].size(), rows[1].size()); ++i) partner[rows[0][i]] = rows[1][i];
    std::size_t next = 0;
    std::set<std::size_t> taken;
    for (const std::size_t row : rows[0]) {
      auto& both = places[{rank, next++}];
      both[0] = row;
      if (const auto other = partner.find(row); other != partner.end()) {
        both[1] = other->second;
        taken.insert(other->second);
      }
    }
    for (const std::size_t row : rows[1])
      if (!taken.contains(row)) places[{rank, next++}][1] = row;
  }
  Roles roles;
  const std::array have_cycles = {model::have_cycles(base), model::have_cycles(candidate)};
  for (std::size_t s = 0; s < sides.size(); ++s) roles.of_side[s].resize(sides[s]->processes.size());
  for (const auto& [place, rows] : places) {
    model::ProcessPair& pair = roles.pairs.emplace_back();
    pair.rank = place.first;
    bool has_steps = false;
    for (std::size_t s = 0; s < sides.size(); ++s) {
      if (!rows[s]) continue;
      pair.pid[s] = sides[s]->processes[*rows[s]].pid;
      has_steps = has_steps || have_cycles[s][*rows[s]];
      roles.of_side[s][*rows[s]] = static_cast<std::uint32_t>(roles.pairs.size() - 1);
    }
    pair.has_steps = has_steps;
  }
  return roles;
}

void append_replicate(model::Profile& run, const model::Profile& replicate) {
  const Roles roles = match_roles(run, replicate);
  const auto copy = [&](StringId id) { return run.texts.intern(replicate.texts[id]); };
  std::vector<std::uint32_t> process_row;
  for (std::size_t p = 0; p < replicate.processes.size(); ++p) {
    const auto at = std::ranges::find(roles.of_side[0], roles.of_side[1][p]);
    if (at != roles.of_side[0].end()) {
      process_row.push_back(static_cast<std::uint32_t>(at - roles.of_side[0].begin()));
      continue;
    }
    model::ProfileProcess process = replicate.processes[p];
    process.host = copy(process.host);
    process_row.push_back(static_cast<std::uint32_t>(run.processes.size()));
    run.processes.push_back(process);
  }
  const auto cycles = static_cast<std::uint32_t>(run.cycles.size());
  const auto uses = static_cast<std::uint32_t>(run.functions.size());
  const std::size_t lines = run.ledger.lines.size();
  std::uint32_t recordings = 0;
  for (const model::ProfileCycle& cycle : run.cycles) recordings = std::max(recordings, cycle.recording + 1);
  for (model::ProfileCycle cycle : replicate.cycles) {
    cycle.anchor = copy(cycle.anchor);
    cycle.recording += recordings;
    run.cycles.push_back(cycle);
  }
  for (model::FunctionUse use : replicate.functions) {
    use.cycle += cycles;
    use.process = process_row[use.process];
    use.function = copy(use.function);
    use.device = copy(use.device);
    use.kind = copy(use.kind);
    use.short_name = copy(use.short_name);
    use.parent = copy(use.parent);
    run.functions.push_back(use);
  }
  for (model::LedgerWindow window : replicate.ledger.windows) {
    window.cycle += cycles;
    window.first_line += lines;
    run.ledger.windows.push_back(window);
  }
  for (model::LedgerLine line : replicate.ledger.lines) {
    line.function = copy(line.function);
    run.ledger.lines.push_back(line);
  }
  for (const model::LedgerSamples& samples : replicate.ledger.samples)
    run.ledger.samples.push_back(
        {samples.cycle + cycles, copy(samples.range), copy(samples.function), samples.count, samples.time});
  for (model::ResourceUse resource : replicate.resources) {
    resource.use += uses;
    resource.metric = copy(resource.metric);
    run.resources.push_back(resource);
  }
}

}  // namespace culprit::compare
