#include "cycles/operations.h"

#include <algorithm>
#include <map>

#include "core/hash.h"
#include "core/saturating.h"
#include "cycles/operators.h"
#include "cycles/tokens.h"

namespace culprit::cycles {

namespace {

/// What an operation runs, apart from names of kernels.
enum class Sort : std::uint8_t { kernel, synchronisation, graph };

struct Names {
  std::vector<std::int8_t> role;   // -1: not looked at
  std::vector<std::int8_t> host;   // -1: not looked at, 1: graph launch, 2: synchronisation, 0: other
  std::vector<std::int16_t> hint;  // -1: not looked at

  std::uint8_t hint_of(const Trace& trace, const Slice& s) {
    std::int16_t& known = hint[s.name];
    if (known < 0) known = phase_hint_of_kernel(trace.name(s));
    return static_cast<std::uint8_t>(known);
  }

  Role role_of(const Trace& trace, const Slice& s) {
    std::int8_t& known = role[s.name];
    if (known < 0)
      known = static_cast<std::int8_t>(trace.slice_class(s) == SliceClass::memcpy ? role_of_copy(trace.name(s))
                                                                                  : role_of_kernel(trace.name(s)));
    return static_cast<Role>(known);
  }
  std::int8_t host_of(const Trace& trace, const Slice& s) {
    std::int8_t& known = host[s.name];
    if (known < 0)
      known = static_cast<std::int8_t>(is_graph_launch(trace.name(s)) ? 1 : is_synchronisation(trace.name(s)) ? 2 : 0);
    return known;
  }
};

bool earlier(const Operation& a, const Operation& b) { return a.at != b.at ? a.at < b.at : a.slice < b.slice; }

/// Joins the nodes of each graph launch: neighbours after sorting, since they share the launcher's begin. Which kernels
/// a graph holds tells graphs apart; how many of each does not, so that a lost node changes nothing. A graph of which
/// all nodes do the same for a step (those of an optimizer) does that.
void join_graphs(std::vector<Operation>& list) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < list.size();) {
    if (!list[i].graph) {
      list[out++] = list[i++];
      continue;
    }
    std::vector<std::uint64_t> names;
    Operation joined = list[i];
    joined.work = 0;
    const Ns at = joined.at;
    for (; i < list.size() && list[i].graph && list[i].at == at; ++i) {
      names.push_back(list[i].name);
      joined.work = add_saturating(joined.work, list[i].work);
      joined.hint |= list[i].hint;
      joined.computes = joined.computes || list[i].computes;
      if (list[i].role != joined.role) joined.role = Role::none;
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    joined.shape = hash_of(names);
    joined.name = hash_parts(0, Sort::graph);
    list[out++] = joined;
  }
  list.resize(out);
}

}  // namespace

bool has_gpu_work(const Trace& trace) { return trace.gpu.size() >= kMinRepetitions; }

std::vector<Operations> list_operations(const Trace& trace, const SliceOrder& order) {
  if (!has_gpu_work(trace)) return list_operators(trace, order);
  std::vector<Operations> ranks(trace.ranks.size());
  std::map<std::pair<std::uint16_t, std::int32_t>, Ns> busy;
  std::vector<std::uint64_t> linked(trace.ranks.size(), 0);
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const Slice& s = trace.slices[trace.gpu[g].slice];
    Ns& sum = busy[{s.rank, trace.gpu[g].device}];
    sum = add_saturating(sum, s.duration + 1);
  }
  std::vector<Ns> most(ranks.size(), -1);
  for (const auto& [key, sum] : busy)
    if (sum > most[key.first]) {
      most[key.first] = sum;
      ranks[key.first].device = key.second;
    }
  std::vector<std::uint64_t> count(ranks.size(), 0);
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const std::uint16_t rank = trace.slices[trace.gpu[g].slice].rank;
    if (trace.gpu[g].device != ranks[rank].device) continue;
    ++count[rank];
    linked[rank] += trace.gpu[g].launcher != kNone ? 1U : 0U;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (linked[r] * 2 < count[r]) ranks[r].source = OperationSource::device;
    ranks[r].list.reserve(ranks[r].source == OperationSource::device ? count[r] : linked[r]);
  }

  Names names;
  names.role.assign(trace.strings.size(), -1);
  names.host.assign(trace.strings.size(), -1);
  names.hint.assign(trace.strings.size(), -1);
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const GpuSlice& gpu = trace.gpu[g];
    const Slice& s = trace.slices[gpu.slice];
    Operations& mine = ranks[s.rank];
    if (gpu.device != mine.device) continue;
    Operation op;
    op.slice = gpu.slice;
    op.at = s.begin;
    op.host_end = s.begin;
    op.work = s.duration;
    if (mine.source == OperationSource::launches) {
      if (gpu.launcher == kNone) {
        ++mine.unlinked;
        continue;
      }
      const Slice& launcher = trace.slices[gpu.launcher];
      op.at = launcher.begin;
      op.host_end = launcher.end();
      op.graph = names.host_of(trace, launcher) == 1;
    }
    op.next_from = op.at;
    op.name = hash_parts(s.name, Sort::kernel);
    op.shape = hash_parts(s.name, gpu.grid[0], gpu.grid[1], gpu.grid[2]);
    op.role = names.role_of(trace, s);
    op.hint = names.hint_of(trace, s);
    op.computes = trace.slice_class(s) == SliceClass::kernel;
    mine.list.push_back(op);
  }
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& s = trace.slices[i];
    if (!is_host_api(trace.slice_class(s)) || s.gpu != kNone || names.host_of(trace, s) != 2) continue;
    Operations& mine = ranks[s.rank];
    if (mine.source == OperationSource::device || mine.list.empty()) continue;
    Operation op;
    op.at = op.next_from = s.begin;
    op.host_end = s.end();
    op.name = op.shape = hash_parts(s.name, Sort::synchronisation);
    op.slice = static_cast<SliceIndex>(i);
    op.role = Role::sync;
    mine.list.push_back(op);
  }
  for (Operations& mine : ranks) {
    if (!std::is_sorted(mine.list.begin(), mine.list.end(), earlier))
      std::sort(mine.list.begin(), mine.list.end(), earlier);
    join_graphs(mine.list);
  }
  return ranks;
}

}  // namespace culprit::cycles
