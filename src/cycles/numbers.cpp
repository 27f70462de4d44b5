#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "cycles/draft.h"
#include "cycles/name_hints.h"

namespace culprit::cycles {

namespace {

struct Collective {
  Ns end = 0;
  std::int64_t cycle = 0;  // place in its lane
};
/// By communicator, or name where the trace does not tell communicators apart.
using Collectives = std::map<std::pair<StringId, StringId>, std::vector<Collective>>;

std::vector<Collectives> collectives_of(const Trace& trace, const Draft& draft) {
  std::vector<std::uint32_t> lane_of(draft.cycles.size(), 0);
  for (std::uint32_t l = 0; l < draft.lanes.size(); ++l)
    for (std::uint32_t i = 0; i < draft.lanes[l].size(); ++i) lane_of[draft.lanes[l].first + i] = l;
  std::vector<std::int8_t> known(trace.strings.size(), -1);
  std::vector<Collectives> out(draft.lanes.size());
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const SliceIndex index = trace.gpu[g].slice;
    const Slice& s = trace.slices[index];
    const std::uint32_t c = draft.cycle_of_slice[index];
    if (c == kNone || trace.slice_class(s) != SliceClass::kernel) continue;
    if (known[s.name] < 0) known[s.name] = is_collective(trace.name(s)) ? 1 : 0;
    if (known[s.name] == 0) continue;
    const StringId group = s.extra == kNone ? 0 : trace.extras[s.extra].group;
    const std::uint32_t l = lane_of[c];
    out[l][{group, s.name}].push_back({s.end(), static_cast<std::int64_t>(c) - draft.lanes[l].first});
  }
  for (Collectives& lane : out)
    for (auto& [key, list] : lane) std::ranges::sort(list, {}, &Collective::end);
  return out;
}

/// How many cycles lane `other` began before `first`, by what cycle each finds the same collective in; all ranks leave
/// a collective at the same time. nullopt when they share none or disagree with themselves.
std::optional<std::int64_t> offset_of(const Collectives& first, const Collectives& other) {
  std::map<std::int64_t, std::uint64_t> votes;
  std::uint64_t all = 0;
  for (const auto& [key, list] : other) {
    const auto at = first.find(key);
    if (at == first.end()) continue;
    const std::vector<Collective>& base = at->second;
    std::size_t k = 0;
    for (const Collective& c : list) {
      while (k + 1 < base.size() && std::abs(base[k + 1].end - c.end) <= std::abs(base[k].end - c.end)) ++k;
      ++votes[base[k].cycle - c.cycle];
      ++all;
    }
  }
  std::optional<std::int64_t> best;
  std::uint64_t most = 0;
  for (const auto& [offset, count] : votes)
    if (count > most) {
      most = count;
      best = offset;
    }
  return most * 5 >= all * 3 ? best : std::nullopt;
}

}  // namespace

void number_cycles(const Trace& trace, Draft& draft, std::vector<std::string>& notes) {
  if (draft.lanes.empty()) return;
  std::vector<std::int64_t> shift(draft.lanes.size(), 0);
  bool numbered = true;
  for (const DraftLane& lane : draft.lanes)
    for (std::uint32_t i = 0; i < lane.size(); ++i) {
      const std::int64_t number = lane.lane->cuts[i].number;
      numbered = numbered && number >= 0 && number < (std::int64_t{1} << 40) &&
                 (i == 0 || number == lane.lane->cuts[i - 1].number + 1);
    }
  if (draft.lanes.size() > 1) {
    if (numbered) {
      for (std::size_t l = 0; l < draft.lanes.size(); ++l)
        shift[l] = draft.lanes[l].lane->cuts.front().number - draft.lanes[0].lane->cuts.front().number;
    } else {
      const std::vector<Collectives> collectives = collectives_of(trace, draft);
      for (std::size_t l = 1; l < draft.lanes.size(); ++l) {
        const std::optional<std::int64_t> offset = offset_of(collectives[0], collectives[l]);
        shift[l] = offset.value_or(0);
        if (!offset)
          notes.push_back(
              fmt::format("rank {} shares no collectives with rank {} that tell which cycles belong together: counted "
                          "from the first "
                          "of each",
                          draft.lanes[l].lane->rank, draft.lanes[0].lane->rank));
      }
    }
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t s : shift) least = std::min(least, s);
  for (std::size_t l = 0; l < draft.lanes.size(); ++l) {
    // A jump of more than all cycles would be numbers of another run; then the ranks have nothing in common.
    const std::int64_t from = shift[l] - least > static_cast<std::int64_t>(draft.cycles.size()) ? 0 : shift[l] - least;
    for (std::uint32_t i = 0; i < draft.lanes[l].size(); ++i)
      draft.cycles[draft.lanes[l].first + i].number = static_cast<std::uint32_t>(from + i + 1);
  }
}

}  // namespace culprit::cycles
