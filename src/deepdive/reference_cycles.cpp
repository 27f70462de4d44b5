#include "deepdive/reference_cycles.h"

#include <fmt/format.h>

#include <tsl/hopscotch_map.h>
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/hash.h"
#include "core/text.h"
#include "deepdive/anchor_groups.h"
#include "deepdive/call_tree.h"

namespace culprit::deepdive {

namespace {

using model::Phase;

constexpr std::uint8_t kMain = 1;
constexpr std::uint8_t kPrefill = 2;

bool is_host_time(const Slice& slice, const Trace& trace) {
  return slice.duration > 0 && !is_gpu_work(trace.slice_class(slice));
}

ProcessId process_of(const Trace& trace, SliceIndex slice) { return trace.tracks[trace.slices[slice].track].process; }

/// Everything that several steps below share.
struct Work {
  const Trace& trace;
  const SliceOrder& order;
  StringId main = kNone;
  StringId prefill = kNone;
  CallTree tree;
  std::vector<Anchor> anchors;       ///< in time order
  std::vector<std::uint32_t> owner;  ///< by slice: row of `anchors`, or kNone
  std::vector<SliceIndex> boundary;  ///< by anchor: the slice around it that holds no other anchor
};

/// Parents of host slices that are no Python: the Python slice of the process that began last before them, when it
/// lasts as long as they do.
void attach_host_slices(Work& work) {
  const Trace& trace = work.trace;
  std::vector<std::vector<SliceIndex>> python(trace.processes.size());
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    if (is_python(trace, trace.slices[i]))
      python[process_of(trace, static_cast<SliceIndex>(i))].push_back(static_cast<SliceIndex>(i));
  const auto begin_of = [&](SliceIndex i) { return trace.slices[i].begin; };
  for (auto& slices : python)
    std::ranges::stable_sort(slices, [&](SliceIndex a, SliceIndex b) {
      const Slice& x = trace.slices[a];
      const Slice& y = trace.slices[b];
      return x.begin != y.begin ? x.begin < y.begin : x.duration > y.duration;
    });
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (!is_host_time(slice, trace) || is_python(trace, slice)) continue;
    const auto& slices = python[process_of(trace, static_cast<SliceIndex>(i))];
    const auto after = std::ranges::upper_bound(slices, slice.begin, {}, begin_of);
    if (after == slices.begin()) continue;
    const SliceIndex candidate = *(after - 1);
    if (trace.slices[candidate].end() + kRounding >= slice.end()) work.tree.parent[i] = candidate;
  }
}

/// Finds the effective anchors (those inside no call of the same name) and gives each host slice the nearest of them on
/// the way to its root.
void find_owners(Work& work) {
  const Trace& trace = work.trace;
  const auto bit = [&](const Slice& slice) -> std::uint8_t {
    if (!is_host_time(slice, trace)) return 0;
    return slice.name == work.main ? kMain : slice.name == work.prefill ? kPrefill : 0;
  };
  // Parents first: Python slices thread by thread in time order, then the others, which are nobody's parents.
  std::vector<SliceIndex> sequence;
  for (const SliceIndex i : work.order.order)
    if (is_python(trace, trace.slices[i])) sequence.push_back(i);
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    if (is_host_time(trace.slices[i], trace) && !is_python(trace, trace.slices[i]))
      sequence.push_back(static_cast<SliceIndex>(i));
  std::vector<std::uint8_t> above(trace.slices.size(), 0);
  std::vector<SliceIndex> nearest(trace.slices.size(), kNone);
  for (const SliceIndex i : sequence) {
    const SliceIndex parent = work.tree.parent[i];
    const std::uint8_t inherited = parent == kNone ? std::uint8_t{0} : above[parent];
    const std::uint8_t own = bit(trace.slices[i]);
    above[i] = inherited | own;
    nearest[i] = parent == kNone ? kNone : nearest[parent];
    if (own == 0 || (inherited & own) != 0) continue;
    nearest[i] = i;
    Anchor anchor;
    anchor.slice = i;
    anchor.begin = trace.slices[i].begin;
    anchor.end = trace.slices[i].end();
    anchor.pid = trace.processes[process_of(trace, i)].pid;
    work.anchors.push_back(anchor);
  }
  std::ranges::stable_sort(work.anchors, [](const Anchor& a, const Anchor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.slice < b.slice;
  });
  work.owner.assign(trace.slices.size(), kNone);
  for (std::uint32_t a = 0; a < work.anchors.size(); ++a) work.owner[work.anchors[a].slice] = a;
  for (const SliceIndex i : sequence)
    if (nearest[i] != kNone) work.owner[i] = work.owner[nearest[i]];
}

/// Climbs from each anchor while no other anchor of its process lies in the slice around it.
void find_boundaries(Work& work) {
  const Trace& trace = work.trace;
  std::map<ProcessId, std::vector<std::uint32_t>> of_process;
  for (std::uint32_t a = 0; a < work.anchors.size(); ++a)
    of_process[process_of(trace, work.anchors[a].slice)].push_back(a);
  work.boundary.assign(work.anchors.size(), kNone);
  for (const auto& [process, rows] : of_process) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const Anchor& anchor = work.anchors[rows[k]];
      const auto holds = [&, &mine = rows](const Slice& slice, std::size_t other) {
        const Anchor& a = work.anchors[mine[other]];
        return a.begin >= slice.begin && a.end <= slice.end();
      };
      SliceIndex node = anchor.slice;
      while (work.tree.depth[node] > 0) {
        const SliceIndex parent = work.tree.parent[node];
        const Slice& around = trace.slices[parent];
        if ((k > 0 && holds(around, k - 1)) || (k + 1 < rows.size() && holds(around, k + 1))) break;
        node = parent;
      }
      work.boundary[rows[k]] = node;
    }
  }
}

/// What lies between two anchors of a process belongs to the one that follows.
void own_transitions(Work& work) {
  const Trace& trace = work.trace;
  struct Gap {
    Ns begin;
    Ns end;
    std::uint32_t anchor;
  };
  std::vector<std::vector<Gap>> gaps(trace.processes.size());
  std::vector<std::vector<std::uint32_t>> of_process(trace.processes.size());
  for (std::uint32_t a = 0; a < work.anchors.size(); ++a)
    of_process[process_of(trace, work.anchors[a].slice)].push_back(a);
  for (std::size_t p = 0; p < of_process.size(); ++p) {
    auto& rows = of_process[p];
    const auto begin_of = [&](std::uint32_t a) { return trace.slices[work.boundary[a]].begin; };
    std::ranges::stable_sort(rows, {}, begin_of);
    for (std::size_t k = 1; k < rows.size(); ++k)
      gaps[p].push_back({trace.slices[work.boundary[rows[k - 1]]].end(), begin_of(rows[k]), rows[k]});
    std::ranges::stable_sort(gaps[p], {}, &Gap::begin);
  }
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (work.owner[i] != kNone || !is_host_time(slice, trace)) continue;
    const auto& list = gaps[process_of(trace, static_cast<SliceIndex>(i))];
    const auto after = std::ranges::upper_bound(list, slice.begin + kRounding, {}, &Gap::begin);
    if (after == list.begin()) continue;
    const Gap& gap = *(after - 1);
    if (slice.end() <= gap.end + kRounding) work.owner[i] = gap.anchor;
  }
}

/// Gives the first anchor what comes before it, from the first call of a function that begins the later cycles.
void own_what_precedes(Work& work) {
  const Trace& trace = work.trace;
  if (work.anchors.size() < 2) return;
  constexpr std::size_t kStarters = 5;
  std::vector<std::vector<SliceIndex>> starters(work.anchors.size());
  const auto thread_of = [&](SliceIndex i) { return trace.slices[i].track; };
  for (std::size_t t = 0; t + 1 < work.order.track_begin.size(); ++t)
    for (std::uint64_t k = work.order.track_begin[t]; k < work.order.track_begin[t + 1]; ++k) {
      const SliceIndex i = work.order.order[k];
      const std::uint32_t owner = work.owner[i];
      if (owner == kNone || owner == 0 || starters[owner].size() >= kStarters) continue;
      const SliceIndex anchor = work.anchors[owner].slice;
      if (is_python(trace, trace.slices[i]) && thread_of(i) == thread_of(anchor) &&
          work.tree.depth[i] == work.tree.depth[anchor])
        starters[owner].push_back(i);
    }
  std::set<StringId> names;
  for (const auto& list : starters)
    for (const SliceIndex i : list) names.insert(trace.slices[i].name);

  const Anchor& first = work.anchors.front();
  Ns from = std::numeric_limits<Ns>::max();
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (slice.end() <= first.begin && is_python(trace, slice) && slice.track == thread_of(first.slice) &&
        names.contains(slice.name))
      from = std::min(from, slice.begin);
  }
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (is_host_time(slice, trace) && slice.end() <= first.begin && slice.begin >= from) work.owner[i] = 0;
  }
}

/// Phases by the anchors' names, else by words in the names of what they own, else by duration. True: nothing told.
bool type_anchors(Work& work) {
  const Trace& trace = work.trace;
  if (work.prefill != kNone) {
    for (Anchor& anchor : work.anchors)
      anchor.phase = trace.slices[anchor.slice].name == work.prefill ? Phase::prefill : Phase::decode;
    return false;
  }
  enum : std::uint8_t { kNothing = 0, kExtend = 1, kDecode = 2, kJustDecode = 4, kEncode = 8, kKnown = 16 };
  std::vector<std::uint8_t> words(trace.strings.size(), kNothing);
  const auto words_of = [&](StringId id) {
    std::uint8_t& word = words[id];
    if (word != kNothing) return word;
    const std::string_view name = trace.strings[id];
    const std::string small = to_lower(name);
    word = kKnown;
    if (small.find("forward_extend") != std::string::npos) word |= kExtend;
    if (small == "encode") word |= kEncode;
    if (name == "decode") word |= kJustDecode;
    constexpr std::string_view kWord = "decode";
    for (std::size_t at = small.find(kWord); at != std::string::npos; at = small.find(kWord, at + 1)) {
      const bool cased = name[at] == 'd' || name[at] == 'D';
      const bool rest = name.substr(at + 1, kWord.size() - 1) == kWord.substr(1);
      const char next = at + kWord.size() < name.size() ? name[at + kWord.size()] : '\0';
      if (cased && rest && !(next >= 'a' && next <= 'z')) word |= kDecode;
    }
    return word;
  };
  std::vector<std::uint8_t> seen(work.anchors.size(), 0);
  std::vector<std::uint8_t> decode_beyond(work.anchors.size(), 0);  // "decode" in a name that is more than the word
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const std::uint32_t owner = work.owner[i];
    if (owner == kNone || trace.slices[i].duration <= 0) continue;
    const std::uint8_t word = words_of(trace.slices[i].name);
    seen[owner] |= word;
    if ((word & kDecode) != 0 && (word & kJustDecode) == 0) decode_beyond[owner] = 1;
  }
  bool told = false;
  for (std::size_t a = 0; a < work.anchors.size(); ++a) {
    const bool plain_decode = (seen[a] & kJustDecode) != 0 && (seen[a] & kEncode) == 0;
    if ((seen[a] & kExtend) != 0)
      work.anchors[a].phase = Phase::prefill;
    else if (decode_beyond[a] != 0 || plain_decode)
      work.anchors[a].phase = Phase::decode;
    told = told || work.anchors[a].phase != Phase::other;
  }
  if (told) return false;
  if (type_by_duration(work.anchors)) return false;
  for (Anchor& anchor : work.anchors) anchor.phase = Phase::decode;
  return true;
}

/// GPU rows by the host call that launched them: `first[l]` to `first[l + 1]` of `rows`.
struct Launches {
  std::vector<GpuIndex> rows;
  tsl::hopscotch_map<SliceIndex, std::pair<std::uint32_t, std::uint32_t>, Hash> of;
};

Launches link_launches(const Trace& trace, std::vector<SliceIndex>& launcher) {
  const auto key = [&](const Slice& slice) {
    return static_cast<std::uint64_t>(trace.tracks[slice.track].process) << 32 | slice.correlation;
  };
  tsl::hopscotch_map<std::uint64_t, SliceIndex, Hash> calls;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (slice.correlation == 0 || slice.duration <= 0 || slice.gpu != kNone) continue;
    if (trace.slice_class(slice) != SliceClass::runtime && trace.name(slice) != "cuLaunchKernelEx") continue;
    calls.try_emplace(key(slice), static_cast<SliceIndex>(i));
  }
  launcher.assign(trace.gpu.size(), kNone);
  Launches launches;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const Slice& slice = trace.slices[trace.gpu[g].slice];
    const auto it = slice.correlation == 0 ? calls.end() : calls.find(key(slice));
    // Profilers that give GPU work its device as process id are linked by the reader.
    launcher[g] = it != calls.end() ? it->second : trace.gpu[g].launcher;
    if (launcher[g] != kNone) launches.rows.push_back(static_cast<GpuIndex>(g));
  }
  std::ranges::stable_sort(launches.rows, {}, [&](GpuIndex g) { return launcher[g]; });
  for (std::uint32_t begin = 0; begin < launches.rows.size();) {
    std::uint32_t end = begin;
    const SliceIndex call = launcher[launches.rows[begin]];
    while (end < launches.rows.size() && launcher[launches.rows[end]] == call) ++end;
    launches.of[call] = {begin, end};
    begin = end;
  }
  return launches;
}

void place_members(Work& work, const std::vector<CycleInterval>& intervals, ReferenceCycles& result) {
  const Trace& trace = work.trace;
  constexpr std::size_t kMostPerSlice = 8;
  constexpr std::size_t kMostAnyway = std::size_t{1} << 20;
  const std::size_t most = kMostPerSlice * trace.slices.size() + kMostAnyway;
  std::size_t placed = 0;

  std::vector<std::vector<std::uint32_t>> cycles_of_anchor(work.anchors.size());
  for (std::uint32_t c = 0; c < intervals.size(); ++c)
    for (const std::uint32_t a : intervals[c].anchors) cycles_of_anchor[a].push_back(c);
  const Launches launches = link_launches(trace, result.launcher);
  const auto join = [&](std::uint32_t cycle, SliceIndex i) {
    const Slice& slice = trace.slices[i];
    auto& members = result.cycles[cycle].members;
    members.push_back({i, slice.begin, slice.duration});
    ++placed;
    const auto it = launches.of.find(i);
    if (it == launches.of.end()) return;
    for (std::uint32_t k = it->second.first; k < it->second.second; ++k) {
      const SliceIndex child = trace.gpu[launches.rows[k]].slice;
      if (trace.slices[child].duration <= 0) continue;
      members.push_back({child, trace.slices[child].begin, trace.slices[child].duration});
      ++placed;
    }
  };
  for (std::size_t row = 0; row < trace.slices.size(); ++row) {
    const auto i = static_cast<SliceIndex>(row);
    const Slice& slice = trace.slices[i];
    if (!is_host_time(slice, trace)) continue;
    const std::uint32_t owner = work.owner[i];
    if (owner != kNone && !cycles_of_anchor[owner].empty()) {
      for (const std::uint32_t c : cycles_of_anchor[owner]) join(c, i);
      continue;
    }
    auto it = std::ranges::upper_bound(intervals, slice.begin, {}, &CycleInterval::begin);
    if (it != intervals.begin()) --it;
    for (; it != intervals.end() && it->begin < slice.end(); ++it) {
      const Ns begin = std::max(slice.begin, it->begin);
      const Ns end = std::min(slice.end(), it->end);
      if (begin >= end) continue;
      const auto c = static_cast<std::uint32_t>(it - intervals.begin());
      if (begin == slice.begin && end == slice.end()) {
        join(c, i);
      } else if (placed < most) {
        result.cycles[c].members.push_back({i, begin, end - begin});
        ++placed;
        ++result.cut;
      } else {
        ++result.not_placed;
        break;
      }
    }
  }
}

void set_spans(const Trace& trace, ReferenceCycle& cycle, const CycleInterval& interval) {
  bool python = false;
  bool any = false;
  const auto widen = [](Ns& begin, Ns& end, bool& known, const ReferenceMember& member) {
    begin = known ? std::min(begin, member.begin) : member.begin;
    end = known ? std::max(end, member.begin + member.duration) : member.begin + member.duration;
    known = true;
  };
  for (const ReferenceMember& member : cycle.members) {
    widen(cycle.full_begin, cycle.full_end, any, member);
    if (is_python(trace, trace.slices[member.slice])) widen(cycle.begin, cycle.end, python, member);
  }
  if (!python) {
    cycle.begin = interval.begin;
    cycle.end = interval.end;
  }
  if (!any) {
    cycle.full_begin = interval.begin;
    cycle.full_end = interval.end;
  }
}

}  // namespace

Result<ReferenceCycles> reference_cycles(const Trace& trace, const SliceOrder& order, const ReferenceOptions& options) {
  const std::string where = trace.ranks.empty() ? std::string() : trace.ranks.front().path;
  ReferenceCycles result;
  Work work{trace, order, kNone, kNone, call_tree(trace, order), {}, {}, {}};
  const std::vector<AnchorCandidate> candidates = outermost_functions(trace, order, work.tree);
  if (options.anchor.empty()) {
    work.main = choose_anchor(trace, candidates);
    if (work.main == kNone)
      return input_error("no Python function runs at least three times at the outermost level, so there is no cycle",
                         where, fmt::format("name one with --anchor, or {}", options.otherwise));
  } else {
    work.main = trace.strings.find(options.anchor, kNone);
  }
  work.prefill = choose_prefill_anchor(trace, candidates, work.main);
  if (!options.only_python_nests) attach_host_slices(work);
  find_owners(work);
  if (work.anchors.empty())
    return input_error(fmt::format("nothing that takes time is called '{}'", options.anchor), where,
                       "give the name of a function or marker of the trace");
  result.anchor = trace.strings[work.main];
  if (work.prefill != kNone) result.prefill_anchor = trace.strings[work.prefill];
  find_boundaries(work);
  own_transitions(work);
  own_what_precedes(work);
  const bool untyped = type_anchors(work);
  const std::vector<CycleInterval> intervals = cycle_intervals(work.anchors, options.align);

  for (const CycleInterval& interval : intervals) {
    ReferenceCycle cycle;
    cycle.number = static_cast<std::int64_t>(result.cycles.size()) + 1;
    cycle.phase = untyped ? Phase::other : interval.phase;
    std::uint32_t longest = interval.anchors.front();
    for (const std::uint32_t a : interval.anchors)
      if (work.anchors[a].duration() > work.anchors[longest].duration()) longest = a;
    cycle.anchor = work.anchors[longest].slice;
    result.cycles.push_back(std::move(cycle));
  }
  place_members(work, intervals, result);
  for (std::size_t c = 0; c < intervals.size(); ++c) set_spans(trace, result.cycles[c], intervals[c]);
  repair_phases(result.cycles);
  return result;
}

}  // namespace culprit::deepdive
