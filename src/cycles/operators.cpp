// Operators of the host as a sequence, for runs without GPU work.
#include "cycles/operators.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/hash.h"
#include "cycles/tokens.h"

namespace culprit::cycles {

namespace {

/// What a name says, looked at once.
struct Known {
  bool looked_at = false;
  bool step = false;  ///< named as a step: what repeats lies inside
  Role role = Role::none;
  std::uint8_t hint = 0;
};

struct Busiest {
  TrackId track = kNone;
  std::uint64_t operators = 0;
};

std::vector<Busiest> busiest_threads(const Trace& trace) {
  std::vector<std::uint64_t> operators(trace.tracks.size(), 0);
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    if (const Slice& s = trace.slices[i]; trace.slice_class(s) == SliceClass::cpu_op) ++operators[s.track];
  std::vector<Busiest> busiest(trace.ranks.size());
  for (TrackId t = 0; t < trace.tracks.size(); ++t) {
    Busiest& mine = busiest[trace.processes[trace.tracks[t].process].rank];
    if (operators[t] > mine.operators) mine = {t, operators[t]};
  }
  return busiest;
}

}  // namespace

std::vector<Operations> list_operators(const Trace& trace, const SliceOrder& order) {
  const std::vector<Busiest> busiest = busiest_threads(trace);
  std::vector<std::uint32_t> count(trace.strings.size());
  std::vector<Known> names(trace.strings.size());
  std::vector<Operations> ranks(trace.ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    Operations& mine = ranks[r];
    mine.source = OperationSource::host_thread;
    mine.track = busiest[r].track;
    if (mine.track == kNone) continue;
    const auto each = [&](auto&& use) {
      for (std::uint64_t k = order.track_begin[mine.track]; k < order.track_begin[mine.track + 1]; ++k)
        if (const Slice& s = trace.slices[order.order[k]]; trace.slice_class(s) == SliceClass::cpu_op)
          use(s, order.order[k]);
    };
    std::ranges::fill(count, 0U);
    each([&](const Slice& s, SliceIndex) { ++count[s.name]; });
    Ns closed_until = std::numeric_limits<Ns>::min();
    each([&](const Slice& s, SliceIndex index) {
      if (s.begin < closed_until || count[s.name] < kMinRepetitions) return;
      Known& known = names[s.name];
      if (!known.looked_at) {
        const std::string_view name = trace.name(s);
        known = {true, marker_rank(name) >= MarkerRank::step_word, role_of_operator(name), phase_hint_of_host(name)};
      }
      if (known.step) return;
      closed_until = s.end();
      Operation op;
      op.at = s.begin;
      op.host_end = op.next_from = s.end();
      op.work = s.duration;
      op.name = op.shape = hash_of(std::uint64_t{s.name});
      op.slice = index;
      op.role = known.role;
      op.hint = known.hint;
      op.computes = true;
      mine.list.push_back(op);
    });
  }
  return ranks;
}

std::vector<std::vector<Ns>> operator_times(const Trace& trace, const SliceOrder& order) {
  std::vector<std::vector<Ns>> times;
  for (const Operations& rank : list_operators(trace, order)) {
    times.emplace_back();
    for (const Operation& op : rank.list) times.back().push_back(op.at);
  }
  return times;
}

}  // namespace culprit::cycles
