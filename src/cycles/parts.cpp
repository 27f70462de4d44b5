// Layers taken for steps: a repetition whose every turn is another one of numbered siblings (`blocks.2`, `blocks.3`,
// ...) is a part of a step, however regular it is.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cycles/confidence.h"
#include "cycles/cutting.h"
#include "cycles/name_hints.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kMinParts = 3;

struct Occurrence {
  Ns begin = 0;
  Ns end = 0;
  StringId name = 0;
  std::int64_t number = 0;
};
/// By family, ascending.
using Parts = std::map<std::string, std::vector<Occurrence>>;

bool holds_parts(SliceClass c) {
  return c == SliceClass::annotation || c == SliceClass::python || c == SliceClass::cpu_op;
}

/// The numbered parts on one thread; of nested ones of a family the outer.
Parts parts_on(const Trace& trace, const SliceOrder& order, TrackId track,
               std::vector<std::optional<std::optional<NumberedPart>>>& known) {
  Parts parts;
  for (std::uint64_t k = order.track_begin[track]; k < order.track_begin[track + 1]; ++k) {
    const Slice& s = trace.slices[order.order[k]];
    if (!holds_parts(trace.slice_class(s))) continue;
    if (!known[s.name]) known[s.name] = numbered_part(trace.name(s));
    const std::optional<NumberedPart>& part = *known[s.name];
    if (!part) continue;
    std::vector<Occurrence>& list = parts[part->family];
    if (list.empty() || s.begin >= list.back().end) list.push_back({s.begin, s.end(), s.name, part->number});
  }
  return parts;
}

/// Whether nearly every cycle sees one number of the family, and the next cycle another one.
bool one_per_cycle(const std::vector<Cut>& cuts, const std::vector<Occurrence>& parts) {
  std::size_t seen = 0;
  std::size_t single = 0;
  std::size_t changes = 0;
  std::size_t k = 0;
  std::int64_t before = -1;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    while (k < parts.size() && parts[k].begin < cuts[i].begin) ++k;
    const bool last = i + 1 == cuts.size();
    std::int64_t number = -1;
    bool several = false;
    for (; k < parts.size() && (last || parts[k].begin < cuts[i + 1].begin); ++k) {
      several = several || (number >= 0 && parts[k].number != number);
      number = parts[k].number;
    }
    if (number < 0) continue;
    ++seen;
    single += several ? 0U : 1U;
    changes += number != before ? 1U : 0U;
    before = number;
  }
  return seen >= kMinParts && seen * 5 >= cuts.size() * 4 && single * 5 >= seen * 4 && changes * 5 >= seen * 4;
}

/// Begins of the passes through all parts: where the numbers, which rise by one, start again. Empty unless they do so
/// often enough to show whole steps.
std::vector<Cut> passes(const std::vector<Occurrence>& parts) {
  std::int64_t least = parts.front().number;
  for (const Occurrence& o : parts) least = std::min(least, o.number);
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool starts = parts[i].number == least && (i == 0 || parts[i - 1].number > least);
    if (starts) cuts.push_back({parts[i].begin, parts[i].begin, parts[i].name, -1});
    const bool rises = i == 0 || parts[i].number == parts[i - 1].number || parts[i].number - 1 == parts[i - 1].number;
    if (!starts && !rises) return {};
  }
  if (cuts.size() < 3) cuts.clear();
  return cuts;
}

}  // namespace

Cutting doubt_parts(const Trace& trace, const SliceOrder& order, Cutting cutting) {
  if (cutting.device_time || (!cutting.given && cutting.method == model::CycleMethod::marker &&
                              cutting.period_confidence >= confidence::kUndoubted))
    return cutting;
  std::vector<std::optional<std::optional<NumberedPart>>> known(trace.strings.size());
  std::string family;
  Cutting steps;
  for (const Lane& lane : cutting.lanes) {
    if (lane.track == kNone) continue;
    const Parts parts = parts_on(trace, order, lane.track, known);
    for (const auto& [name, list] : parts) {
      if (!family.empty() && name != family) continue;
      if (!one_per_cycle(lane.cuts, list)) continue;
      if (family.empty()) family = name;
      Lane pass;
      pass.rank = lane.rank;
      pass.process = lane.process;
      pass.track = lane.track;
      pass.cuts = passes(list);
      if (!pass.cuts.empty()) steps.lanes.push_back(std::move(pass));
      break;
    }
  }
  if (family.empty()) return cutting;
  if (cutting.given) {
    cutting.period_confidence = std::min(cutting.period_confidence, confidence::kNumberedPart);
    cutting.notes.push_back(fmt::format(
        "each cycle holds another one of the numbered parts \"{}\": it is likelier a part of a step (a layer)",
        family));
    return cutting;
  }
  if (steps.lanes.size() == cutting.lanes.size()) {
    steps.method = model::CycleMethod::host_function;
    steps.anchor = std::string(trace.strings[steps.lanes.front().cuts.front().name]);
    steps.period_confidence = confidence::kPasses;
    steps.phase_confidence = confidence::kPassesPhase;
    steps.reason = fmt::format(
        "the numbered parts \"{}\" start again {} times; a cycle begins at the first of them, a step possibly before",
        family, steps.most());
    steps.notes = std::move(cutting.notes);
    return steps;
  }
  cutting.period_confidence = std::min(cutting.period_confidence, confidence::kNumberedPart);
  cutting.phase_confidence = std::min(cutting.phase_confidence, confidence::kNumberedPart);
  cutting.reason += fmt::format(
      "; but each holds another one of the numbered parts \"{}\", so a cycle is a part of a step (a layer), and the "
      "recording shows no whole steps",
      family);
  return cutting;
}

}  // namespace culprit::cycles
