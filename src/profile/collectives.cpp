#include "profile/collectives.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "core/saturating.h"
#include "profile/function_kind.h"
#include "stats/quantile.h"
#include "trace/rank_numbers.h"

namespace culprit::profile {

namespace {

/// One call on one rank.
struct Call {
  Ns begin = 0;
  Ns end = 0;
  std::uint64_t elements = 0;  ///< that it sent; 0: not known
};

/// Communicator, or name, in the cycle of a number.
using Key = std::tuple<std::uint32_t, StringId, StringId>;
using Calls = std::map<Key, std::map<std::uint16_t, std::vector<Call>>>;  // by rank, by time

/// Keeps of each key the ranks that have as many calls as most of them: whose k-th calls are one.
void keep_shared(Calls& calls) {
  for (auto& [key, ranks] : calls) {
    std::map<std::size_t, std::size_t> numbers;  // how many ranks have so many calls
    for (const auto& [rank, all] : ranks) ++numbers[all.size()];
    const std::size_t usual = std::ranges::max_element(numbers, {}, [](const auto& n) { return n.second; })->first;
    std::erase_if(ranks, [usual](const auto& of_rank) { return of_rank.second.size() != usual; });
  }
  std::erase_if(calls, [](const auto& of_key) { return of_key.second.size() < 2; });
}

/// Those that ranks share.
Calls calls_of(const Trace& trace, const cycles::Found& found) {
  Calls calls;
  std::vector<std::int8_t> known(trace.strings.size(), -1);
  const auto& cycles = found.cycles.cycles;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const GpuSlice& gpu = trace.gpu[g];
    const Slice& slice = trace.slices[gpu.slice];
    if (gpu.slice >= found.cycle_of_slice.size() || trace.slice_class(slice) != SliceClass::kernel) continue;
    const std::uint32_t c = found.cycle_of_slice[gpu.slice];
    if (c == kNone || cycles[c].partial || cycles[c].warm_up) continue;
    if (known[slice.name] < 0)
      known[slice.name] = kind_of(SliceClass::kernel, trace.name(slice)) == FunctionKind::gpu_comm ? 1 : 0;
    if (known[slice.name] == 0) continue;
    const StringId group = slice.extra == kNone ? 0 : trace.extras[slice.extra].group;
    calls[{cycles[c].number, group, group == 0 ? slice.name : StringId{0}}][slice.rank].push_back(
        {slice.begin, slice.end(), slice.extra == kNone ? 0 : trace.extras[slice.extra].elements});
  }
  for (auto& [key, ranks] : calls)
    for (auto& [rank, all] : ranks) std::ranges::sort(all, {}, &Call::begin);
  keep_shared(calls);
  return calls;
}

/// How far the clock of a rank is ahead of that of another one, which stands for all that it shares calls with, at
/// once or through others.
struct Clock {
  std::uint16_t root = 0;
  Ns ahead = 0;
};

/// Two ranks that share calls.
struct Shared {
  std::uint16_t first = 0;
  std::uint16_t other = 0;
  std::size_t calls = 0;
  Ns ahead = 0;  ///< the other's clock
};

/// Clock of each rank with shared calls. Ranks with most calls in common are put on one clock first.
std::map<std::uint16_t, Clock> clocks_of(const Calls& calls) {
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<Ns>> differences;
  std::map<std::uint16_t, Clock> clocks;
  for (const auto& [key, ranks] : calls) {
    const std::uint16_t first = ranks.begin()->first;
    const std::vector<Call>& of_first = ranks.begin()->second;
    for (const auto& [rank, all] : ranks) {
      clocks[rank].root = rank;
      if (rank == first) continue;
      std::vector<Ns>& ahead = differences[{first, rank}];
      for (std::size_t i = 0; i < all.size(); ++i) ahead.push_back(subtract_saturating(all[i].end, of_first[i].end));
    }
  }
  std::vector<Shared> pairs;
  pairs.reserve(differences.size());
  for (auto& [two, ahead] : differences)
    pairs.push_back({two.first, two.second, ahead.size(), stats::median_of_times(ahead)});
  std::ranges::stable_sort(pairs, std::ranges::greater(), &Shared::calls);
  for (const Shared& pair : pairs) {
    const Clock mine = clocks.at(pair.first);
    const Clock theirs = clocks.at(pair.other);
    if (mine.root == theirs.root) continue;
    const Ns shift = subtract_saturating(add_saturating(mine.ahead, pair.ahead), theirs.ahead);
    for (auto& [rank, clock] : clocks)
      if (clock.root == theirs.root) clock = {mine.root, add_saturating(clock.ahead, shift)};
  }
  return clocks;
}

/// Of a rank, by number of the cycle.
using Steps = std::map<std::uint32_t, model::StepCollectives>;

/// One call of all ranks that share it, on one clock, in the cycle of a number.
void count(std::uint32_t number, const std::vector<std::pair<std::uint16_t, Call>>& ranks,
           std::map<std::uint16_t, Steps>& steps) {
  Ns last = ranks.front().second.begin;
  Ns before = ranks.front().second.begin;
  Ns end = ranks.front().second.end;
  Ns first_end = end;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const Call& call = ranks[i].second;
    before = i == 1 ? std::min(last, call.begin) : std::max(before, std::min(last, call.begin));
    last = std::max(last, call.begin);
    end = std::max(end, call.end);
    first_end = std::min(first_end, call.end);
  }
  constexpr Ns kTogether = 50'000;
  if (subtract_saturating(end, first_end) > std::max<Ns>(kTogether, subtract_saturating(end, last) / 4)) return;
  for (const auto& [rank, call] : ranks) {
    model::StepCollectives& sum = steps[rank][number];
    ++sum.calls;
    sum.elements += call.elements > 0 ? static_cast<double>(call.elements) : model::kNoNumber;
    sum.wait_ns += static_cast<double>(subtract_saturating(last, call.begin));
    sum.transfer_ns += static_cast<double>(std::max<Ns>(0, subtract_saturating(call.end, last)));
    if (call.begin == last) sum.held_up_ns += static_cast<double>(subtract_saturating(last, before));
  }
}

}  // namespace

std::vector<model::RankCollectives> collectives_of(const Trace& trace, const cycles::Found& found) {
  if (trace.ranks.size() < 2) return {};
  const Calls calls = calls_of(trace, found);
  const std::map<std::uint16_t, Clock> clocks = clocks_of(calls);
  std::map<std::uint16_t, Steps> steps;
  std::vector<std::pair<std::uint16_t, Call>> shared;
  for (const auto& [key, ranks] : calls)
    for (std::size_t i = 0; i < ranks.begin()->second.size(); ++i) {
      shared.clear();
      for (const auto& [rank, all] : ranks) {
        const Ns ahead = clocks.at(rank).ahead;
        shared.emplace_back(rank, Call{subtract_saturating(all[i].begin, ahead), subtract_saturating(all[i].end, ahead),
                                       all[i].elements});
      }
      count(std::get<0>(key), shared, steps);
    }
  const std::vector<std::int32_t> numbers = rank_numbers(trace);
  std::vector<model::RankCollectives> result;
  for (auto& [rank, of_rank] : steps) {
    model::RankCollectives& sum = result.emplace_back();
    sum.rank = numbers[rank];
    for (const model::Cycle& cycle : found.cycles.cycles)
      if (cycle.rank == rank && !cycle.partial && !cycle.warm_up) {
        ++sum.cycles;
        of_rank.try_emplace(cycle.number);
      }
    for (auto& [number, step] : of_rank) {
      step.number = number;
      sum.calls += step.calls;
      sum.wait_ns += step.wait_ns;
      sum.transfer_ns += step.transfer_ns;
      sum.held_up_ns += step.held_up_ns;
      sum.steps.push_back(step);
    }
  }
  return result;
}

}  // namespace culprit::profile
