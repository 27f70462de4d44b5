// Cycles from host functions: the outermost repeated function of the thread that does most of the work: launches most,
// or, where there is no GPU work, has most operators.
//
// The rules of the reference (a function that is called at the outermost level, more than twice, and takes most of the
// time) with its defects repaired: one stack per (process, thread); a slice is a child only when it lies inside its
// parent; the order of candidates is total; wrappers are looked through; a part of a model is never taken for a step
// with confidence.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/hash.h"
#include "core/saturating.h"
#include "cycles/confidence.h"
#include "cycles/cutting.h"
#include "cycles/name_hints.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kMinCalls = 3;

struct Candidate {
  StringId name = 0;
  std::vector<Cut> cuts;
  Ns total = 0;
  std::uint64_t launches = 0;
};

/// The thread of each process that launches most, or has most operators (ties: the first).
std::vector<TrackId> busy_threads(const Trace& trace, SliceClass wanted, const SliceOrder& order, bool operators) {
  std::vector<std::uint64_t> launches(trace.tracks.size(), 0);
  for (std::size_t g = 0; g < trace.gpu.size(); ++g)
    if (trace.gpu[g].launcher != kNone) ++launches[trace.slices[trace.gpu[g].launcher].track];
  std::vector<std::uint64_t> functions(trace.tracks.size(), 0);
  for (TrackId t = 0; t < trace.tracks.size(); ++t)
    for (std::uint64_t k = order.track_begin[t]; k < order.track_begin[t + 1]; ++k) {
      const SliceClass c = trace.slice_class(trace.slices[order.order[k]]);
      functions[t] += c == wanted ? 1U : 0U;
      if (operators && c == SliceClass::cpu_op) ++launches[t];
    }
  std::map<ProcessId, TrackId> best;
  for (TrackId t = 0; t < trace.tracks.size(); ++t) {
    if (functions[t] < kMinCalls) continue;
    const auto [at, added] = best.emplace(trace.tracks[t].process, t);
    if (added) continue;
    const TrackId other = at->second;
    if (std::pair(launches[t], functions[t]) > std::pair(launches[other], functions[other])) at->second = t;
  }
  std::vector<TrackId> threads;
  threads.reserve(best.size());
  for (const auto& [process, track] : best) threads.push_back(track);
  return threads;
}

/// Functions of `track` at the outermost level at which anything repeats.
std::vector<Candidate> outermost_repeated(const Trace& trace, const SliceOrder& order, TrackId track, SliceClass wanted,
                                          const std::vector<Ns>& launches) {
  std::unordered_map<StringId, std::uint32_t, Hash> calls;
  std::vector<Ns> ends;
  const auto each = [&](auto&& use) {
    ends.clear();
    for (std::uint64_t k = order.track_begin[track]; k < order.track_begin[track + 1]; ++k) {
      const Slice& s = trace.slices[order.order[k]];
      if (trace.slice_class(s) != wanted) continue;
      use(s);
    }
  };
  each([&](const Slice& s) { ++calls[s.name]; });

  // A frame is open to its children while it is not itself a repeated function that could be an anchor.
  std::vector<char> denied(trace.strings.size(), 2);
  const auto is_denied = [&](StringId name) {
    if (denied[name] == 2) denied[name] = is_denied_function(trace.strings[name]) ? 1 : 0;
    return denied[name] == 1;
  };
  std::unordered_map<StringId, std::size_t, Hash> ids;
  std::vector<Candidate> candidates;
  Ns closed_until = std::numeric_limits<Ns>::min();
  each([&](const Slice& s) {
    if (s.begin < closed_until) return;
    if (calls[s.name] < kMinCalls || is_denied(s.name)) return;
    const auto [at, added] = ids.emplace(s.name, candidates.size());
    if (added) candidates.push_back({s.name, {}, 0, 0});
    Candidate& c = candidates[at->second];
    c.cuts.push_back({s.begin, s.end(), s.name, -1});
    c.total = add_saturating(c.total, s.duration);
    c.launches += static_cast<std::uint64_t>(std::ranges::lower_bound(launches, s.end()) -
                                             std::ranges::lower_bound(launches, s.begin));
    closed_until = std::max(closed_until, s.end());
  });
  return candidates;
}

}  // namespace

std::optional<Cutting> cut_by_function(const Trace& trace, const SliceOrder& order, const HostWork& work) {
  const std::uint64_t all = work.all();
  for (const SliceClass wanted : {SliceClass::python, SliceClass::cpu_op}) {
    if (wanted == SliceClass::cpu_op && (work.operators || all == 0)) continue;  // every one of them repeats
    const std::vector<TrackId> threads = busy_threads(trace, wanted, order, work.operators);
    // Names are judged over all processes, so that all of them get the same anchor.
    std::map<StringId, std::tuple<std::uint64_t, Ns, std::size_t>> sums;  // launches, total, most calls in one process
    std::vector<std::vector<Candidate>> of_thread;
    for (const TrackId track : threads) {
      const std::uint16_t rank = trace.processes[trace.tracks[track].process].rank;
      of_thread.push_back(outermost_repeated(trace, order, track, wanted, work.begins[rank]));
      for (const Candidate& c : of_thread.back()) {
        auto& [launched, total, most] = sums[c.name];
        launched += c.launches;
        total = add_saturating(total, c.total);
        most = std::max(most, c.cuts.size());
      }
    }
    StringId best = 0;
    std::tuple<std::uint64_t, Ns> best_key{0, -1};
    for (const auto& [name, sum] : sums) {
      const auto& [launched, total, most] = sum;
      if (most < kMinCalls) continue;
      const std::tuple<std::uint64_t, Ns> key{launched, total};
      if (best_key < key || (best_key == key && trace.strings[name] < trace.strings[best])) {
        best = name;
        best_key = key;
      }
    }
    if (std::get<1>(best_key) < 0) continue;
    // Operators repeat everywhere; only one that holds nearly everything can be a step.
    const double share = all > 0 ? static_cast<double>(std::get<0>(best_key)) / static_cast<double>(all) : 0;
    if (all > 0 && share < (wanted == SliceClass::python ? confidence::kFunctionHolds : confidence::kOperatorHolds))
      continue;
    Cutting cutting;
    cutting.method = model::CycleMethod::host_function;
    cutting.anchor = std::string(trace.strings[best]);
    for (std::size_t t = 0; t < threads.size(); ++t)
      for (Candidate& c : of_thread[t]) {
        if (c.name != best) continue;
        Lane lane;
        lane.process = trace.tracks[threads[t]].process;
        lane.rank = trace.processes[lane.process].rank;
        lane.track = threads[t];
        lane.cuts = std::move(c.cuts);
        cutting.lanes.push_back(std::move(lane));
      }
    std::ranges::sort(cutting.lanes, {}, [](const Lane& lane) { return std::pair(lane.rank, lane.process); });
    const bool part = is_model_part(cutting.anchor);
    cutting.period_confidence = part                           ? confidence::kModelPart
                                : all == 0                     ? confidence::kFunctionWithoutWork
                                : wanted == SliceClass::python ? confidence::kFunction
                                                               : confidence::kOperator;
    cutting.phase_confidence = part ? confidence::kModelPart : confidence::kFunctionPhase;
    const std::string_view kind = wanted == SliceClass::python ? "Python function" : "operator";
    cutting.reason =
        all == 0 ? fmt::format("the outermost repeated {} of the busiest thread: {} calls", kind, cutting.most())
                 : fmt::format("the outermost repeated {} of the busy thread: {} calls that {} {:.0f}% of the {}", kind,
                               cutting.most(), work.operators ? "hold" : "launch", share * 100,
                               work.operators ? "operators" : "GPU work");
    if (part) cutting.notes.emplace_back("the name is that of a part of a model: a cycle may be a part of a step");
    return cutting;
  }
  return std::nullopt;
}

}  // namespace culprit::cycles
