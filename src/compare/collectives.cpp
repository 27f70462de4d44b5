#include "compare/collectives.h"

#include <algorithm>
#include <array>

namespace culprit::compare {

void add_collectives(const std::vector<model::RankCollectives>& recording, std::vector<model::RankCollectives>& side) {
  for (const model::RankCollectives& rank : recording) {
    const auto known = std::ranges::find(side, rank.rank, &model::RankCollectives::rank);
    if (known == side.end()) {
      side.push_back(rank);
      continue;
    }
    known->cycles += rank.cycles;
    known->calls += rank.calls;
    known->wait_ns += rank.wait_ns;
    known->transfer_ns += rank.transfer_ns;
    known->held_up_ns += rank.held_up_ns;
  }
}

std::vector<model::CollectiveChange> collective_changes(const std::vector<model::RankCollectives>& base,
                                                        const std::vector<model::RankCollectives>& candidate) {
  std::vector<model::CollectiveChange> changes;
  for (const model::RankCollectives& before : base) {
    const auto after = std::ranges::find(candidate, before.rank, &model::RankCollectives::rank);
    if (after == candidate.end() || before.cycles == 0 || after->cycles == 0) continue;
    model::CollectiveChange& change = changes.emplace_back();
    change.rank = before.rank;
    const std::array sides = {&before, &*after};
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const auto cycles = static_cast<double>(sides[s]->cycles);
      change.wait_ns[s] = sides[s]->wait_ns / cycles;
      change.transfer_ns[s] = sides[s]->transfer_ns / cycles;
      change.held_up_ns[s] = sides[s]->held_up_ns / cycles;
      change.calls[s] = static_cast<double>(sides[s]->calls) / cycles;
    }
  }
  return changes;
}

}  // namespace culprit::compare
