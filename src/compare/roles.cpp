#include "compare/roles.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/saturating.h"

namespace culprit::compare {

namespace {

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

}  // namespace

Roles match_roles(const model::Profile& base, const model::Profile& candidate) {
  using Place = std::pair<std::int32_t, std::size_t>;  // rank, and place inside it
  std::map<Place, std::array<std::optional<std::size_t>, 2>> places;
  const std::array<const model::Profile*, 2> sides = {&base, &candidate};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    std::map<std::int32_t, std::size_t> next;
    for (const std::size_t row : in_order(*sides[s])) {
      const std::int32_t rank = sides[s]->processes[row].rank;
      places[{rank, next[rank]++}][s] = row;
    }
  }
  Roles roles;
  for (std::size_t s = 0; s < sides.size(); ++s) roles.of_side[s].resize(sides[s]->processes.size());
  for (const auto& [place, rows] : places) {
    model::ProcessPair& pair = roles.pairs.emplace_back();
    pair.rank = place.first;
    for (std::size_t s = 0; s < sides.size(); ++s) {
      if (!rows[s]) continue;
      pair.pid[s] = sides[s]->processes[*rows[s]].pid;
      roles.of_side[s][*rows[s]] = static_cast<std::uint32_t>(roles.pairs.size() - 1);
    }
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
  for (model::ResourceUse resource : replicate.resources) {
    resource.use += uses;
    resource.metric = copy(resource.metric);
    run.resources.push_back(resource);
  }
}

}  // namespace culprit::compare
