#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "core/saturating.h"
#include "cycles/draft.h"
#include "cycles/name_hints.h"
#include "stats/quantile.h"

namespace culprit::cycles {

namespace {

/// Ends of the last collective of every cycle of a lane, by communicator, or name where the trace does not tell
/// communicators apart. The last one, because a recording that begins inside a step lacks the first.
using Collectives = std::map<std::pair<StringId, StringId>, std::map<std::int64_t, Ns>>;

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
    const auto cycle = static_cast<std::int64_t>(c) - draft.lanes[l].first;
    const auto [at, fresh] = out[l][{group, group == 0 ? s.name : StringId{0}}].try_emplace(cycle, s.end());
    if (!fresh) at->second = std::max(at->second, s.end());
  }
  return out;
}

constexpr std::int64_t kMostShift = 64;  // ranks that began further apart are looked for where the clock says

/// How well two lanes fit when cycle i of the one is cycle i + shift of the other.
struct Fit {
  std::int64_t shift = 0;
  Ns offset = 0;  ///< clock of the other minus clock of the first
  Ns spread = 0;  ///< of the offset over the cycles
  std::size_t pairs = 0;
};

/// Times of different files may be further apart than any Ns.
Ns distance(Ns a, Ns b) { return a < b ? subtract_saturating(b, a) : subtract_saturating(a, b); }

std::optional<Fit> fit_of(const Collectives& first, const Collectives& other, std::int64_t shift) {
  std::vector<Ns> differences;
  for (const auto& [key, ends] : other) {
    const auto base = first.find(key);
    if (base == first.end()) continue;
    for (const auto& [cycle, end] : ends)
      if (const auto at = base->second.find(cycle + shift); at != base->second.end())
        differences.push_back(subtract_saturating(end, at->second));
  }
  if (differences.empty()) return std::nullopt;
  Fit fit{shift, stats::median_of_times(differences), 0, differences.size()};
  for (Ns& d : differences) d = distance(d, fit.offset);
  fit.spread = stats::median_of_times(differences);
  return fit;
}

struct Alignment {
  std::int64_t shift = 0;  ///< cycles that the other lane began after the first
  Ns offset = 0;           ///< of its clock
  std::size_t cycles = 0;  ///< that are compared
};

/// The shift at which the clocks agree best, by the middle one of the other lane's collectives.
std::optional<std::int64_t> shift_by_clock(const Collectives& first, const Collectives& other) {
  for (const auto& [key, ends] : other) {
    const auto base = first.find(key);
    if (base == first.end() || base->second.empty() || ends.empty()) continue;
    const auto middle = std::next(ends.begin(), static_cast<std::ptrdiff_t>(ends.size() / 2));
    const Ns end = middle->second;
    const auto nearest =
        std::ranges::min_element(base->second, {}, [end](const auto& e) { return distance(e.second, end); });
    return nearest->first - middle->first;
  }
  return std::nullopt;
}

/// Which cycles of two lanes share their collectives. All ranks leave a collective together, so at the right shift the
/// ends differ by the offset of the clocks alone, equally in every cycle: that decides where steps differ in length.
/// Where they do not, every shift fits, and the one for which the clocks agree is taken. nullopt when neither tells.
std::optional<Alignment> align(const Collectives& first, const Collectives& other, std::int64_t cycles_of_first,
                               std::int64_t cycles_of_other, Ns period) {
  std::vector<Fit> fits;
  const std::int64_t from = std::max(-kMostShift, 1 - cycles_of_other);
  const std::int64_t to = std::min(kMostShift, cycles_of_first - 1);
  std::vector<std::int64_t> shifts;
  for (std::int64_t shift = from; shift <= to; ++shift) shifts.push_back(shift);
  if (const auto clock = shift_by_clock(first, other); clock && (*clock < from || *clock > to))
    shifts.push_back(*clock);
  std::size_t most = 0;
  for (const std::int64_t shift : shifts)
    if (const std::optional<Fit> fit = fit_of(first, other, shift)) {
      fits.push_back(*fit);
      most = std::max(most, fit->pairs);
    }
  // Few pairs agree by chance; half of what can overlap do not.
  std::erase_if(fits, [&](const Fit& fit) { return fit.pairs * 2 < most || (most >= 3 && fit.pairs < 3); });
  if (fits.empty()) return std::nullopt;
  const auto steadiest = std::ranges::min_element(fits, {}, &Fit::spread);
  const auto nearest = std::ranges::min_element(fits, {}, [](const Fit& f) { return distance(f.offset, 0); });
  const auto result = [](const Fit& fit) { return Alignment{fit.shift, fit.offset, fit.pairs}; };
  constexpr Ns kNoise = 2000;  // rounding of the times
  const auto rivals = std::ranges::count_if(
      fits, [&](const Fit& fit) { return fit.spread <= std::max(multiply_saturating(steadiest->spread, 3), kNoise); });
  if (rivals == 1 && steadiest->pairs >= 3) return result(*steadiest);
  if (multiply_saturating(distance(nearest->offset, 0), 10) <= period) return result(*nearest);
  return std::nullopt;
}

constexpr Ns kWorthSaying = 1'000'000;

Ns usual_period(const Draft& draft) {
  std::vector<Ns> periods;
  periods.reserve(draft.cycles.size());
  for (const model::Cycle& c : draft.cycles) periods.push_back(c.period);
  return periods.empty() ? 0 : stats::median_of_times(periods);
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
        const std::optional<Alignment> alignment =
            align(collectives[0], collectives[l], draft.lanes[0].size(), draft.lanes[l].size(), usual_period(draft));
        shift[l] = alignment ? alignment->shift : 0;
        const std::uint16_t mine = draft.lanes[l].lane->rank;
        const std::uint16_t theirs = draft.lanes[0].lane->rank;
        const Ns away = alignment ? distance(alignment->offset, 0) : 0;
        if (!alignment)
          notes.push_back(
              fmt::format("rank {} shares no collectives with rank {} that tell which cycles belong together: counted "
                          "from the first of each",
                          mine, theirs));
        else if (away >= kWorthSaying)
          notes.push_back(fmt::format(
              "the clock of rank {} is {} {} that of rank {}, by the ends of {} shared collectives", mine,
              format_duration(away), alignment->offset > 0 ? "ahead of" : "behind", theirs, alignment->cycles));
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
