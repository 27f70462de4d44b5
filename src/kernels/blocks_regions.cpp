#include "kernels/blocks_regions.h"

#include "core/hash.h"

#include <tsl/hopscotch_map.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace culprit::kernels {

namespace {

/// Lengths of the stretches whose next occurrence is looked for. Short ones survive differences, long ones do not take
/// a similar part of the same copy for the next copy.
constexpr std::array<std::uint32_t, 4> kStretches = {2, 4, 8, 16};
constexpr double kLeastDensity = 0.5;
/// The last copy counts when this much of it is there.
constexpr double kLastCopy = 0.9;

std::uint32_t tolerance(std::uint32_t period) { return (period + 4) / 12; }

struct Vote {
  std::uint32_t lag = 0;
  std::uint32_t at = 0;
  auto operator<=>(const Vote&) const = default;
};

/// Hash of the `k` elements that begin at every position, by doubling: h_2k[i] of h_k[i] and h_k[i + k].
std::vector<Vote> votes_of(std::span<const std::uint32_t> sequence) {
  const std::size_t n = sequence.size();
  std::vector<std::uint64_t> hash(n);
  for (std::size_t i = 0; i < n; ++i) hash[i] = hash_of(std::uint64_t{sequence[i]});
  std::vector<Vote> votes;
  std::size_t length = 1;
  tsl::hopscotch_map<std::uint64_t, std::uint32_t> next;
  for (const std::uint32_t k : kStretches) {
    if (k > n) break;
    for (; length < k; length *= 2)
      for (std::size_t i = 0; i + 2 * length <= n; ++i) hash[i] = hash_parts(hash[i], hash[i + length]);
    next.clear();
    for (std::size_t i = n - k + 1; i-- > 0;) {
      const auto at = static_cast<std::uint32_t>(i);
      const auto [found, fresh] = next.try_emplace(hash[i], at);
      if (fresh) continue;
      votes.push_back({found->second - at, at});
      found.value() = at;
    }
  }
  std::ranges::sort(votes);
  votes.erase(std::unique(votes.begin(), votes.end()), votes.end());
  return votes;
}

struct LagRange {
  std::uint32_t lag = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t count() const { return end - begin; }
};

std::vector<LagRange> ranges_of(std::span<const Vote> votes) {
  std::vector<LagRange> ranges;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (ranges.empty() || ranges.back().lag != votes[i].lag) ranges.push_back({votes[i].lag, i, i});
    ranges.back().end = i + 1;
  }
  return ranges;
}

/// First vote at or behind `position`, or nullptr.
const Vote* vote_from(std::span<const Vote> chain, std::uint32_t position) {
  const auto found = std::ranges::lower_bound(chain, position, {}, &Vote::at);
  return found == chain.end() ? nullptr : &*found;
}

std::size_t votes_between(std::span<const Vote> chain, std::uint32_t from, std::uint32_t to) {
  return static_cast<std::size_t>(std::ranges::lower_bound(chain, to, {}, &Vote::at) -
                                  std::ranges::lower_bound(chain, from, {}, &Vote::at));
}

/// Drops votes at both ends that stand too far apart to be part of the repetition.
std::span<const Vote> trim(std::span<const Vote> chain, std::uint32_t period) {
  const std::uint32_t window = std::max(1u, period / 2);
  const auto enough = [&](std::size_t votes) { return 2 * votes >= window; };
  while (!chain.empty() && !enough(votes_between(chain, chain.front().at, chain.front().at + window)))
    chain = chain.subspan(1);
  while (!chain.empty()) {
    const std::uint32_t last = chain.back().at + 1;
    if (enough(votes_between(chain, last > window ? last - window : 0, last))) break;
    chain = chain.first(chain.size() - 1);
  }
  return chain;
}

/// Cuts the stretch of a chain of votes into copies.
void add_region(std::span<const std::uint32_t> sequence, std::span<const Vote> chain, std::uint32_t period,
                std::vector<RepeatRegion>& to) {
  chain = trim(chain, period);
  if (chain.empty()) return;
  const std::uint32_t begin = chain.front().at;
  const std::uint32_t votes_end = chain.back().at + 1;
  const double density = static_cast<double>(chain.size()) / static_cast<double>(votes_end - begin);
  if (density < kLeastDensity) return;
  std::uint32_t end = chain.back().at + chain.back().lag + 1;
  while (end < sequence.size() && sequence[end] == sequence[end - chain.back().lag]) ++end;

  RepeatRegion region;
  region.period = period;
  region.density = std::min(1.0, density);
  std::uint32_t start = begin;
  while (start < end) {
    region.starts.push_back(start);
    const Vote* vote = vote_from(chain, start);
    std::uint32_t step = period;
    if (vote != nullptr && vote->at < start + period) step = vote->lag;
    if (start + step > end) break;
    start += step;
  }
  const std::uint32_t last = region.starts.back();
  if (start == end) {
    region.starts.push_back(end);
  } else if (static_cast<double>(end - last) >= kLastCopy * period) {
    region.starts.push_back(end);
  }
  if (region.starts.size() >= 3) to.push_back(std::move(region));
}

}  // namespace

std::vector<RepeatRegion> repeat_regions(std::span<const std::uint32_t> sequence) {
  const std::vector<Vote> votes = votes_of(sequence);
  const std::vector<LagRange> ranges = ranges_of(votes);
  std::vector<RepeatRegion> regions;
  std::vector<Vote> near;
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    const std::uint32_t period = ranges[r].lag;
    if (ranges[r].count() * 4 < period) continue;  // not even a quarter of one period
    const std::uint32_t slack = tolerance(period);
    std::size_t first = r;
    std::size_t last = r;
    bool highest = true;
    while (first > 0 && ranges[first - 1].lag + slack >= period) {
      --first;
      highest = highest && ranges[first].count() < ranges[r].count();
    }
    while (last + 1 < ranges.size() && ranges[last + 1].lag <= period + slack) {
      ++last;
      highest = highest && ranges[last].count() <= ranges[r].count();
    }
    if (!highest) continue;
    near.assign(votes.begin() + static_cast<std::ptrdiff_t>(ranges[first].begin),
                votes.begin() + static_cast<std::ptrdiff_t>(ranges[last].end));
    // One vote per position: the one nearest to the period.
    const auto distance = [period](const Vote& v) { return v.lag > period ? v.lag - period : period - v.lag; };
    std::ranges::sort(near, [&](const Vote& a, const Vote& b) {
      return a.at != b.at ? a.at < b.at : std::pair(distance(a), a.lag) < std::pair(distance(b), b.lag);
    });
    near.erase(std::unique(near.begin(), near.end(), [](const Vote& a, const Vote& b) { return a.at == b.at; }),
               near.end());

    const std::uint32_t reach = period + period / 4 + 4;
    std::size_t begin = 0;
    for (std::size_t i = 1; i <= near.size(); ++i) {
      if (i < near.size() && near[i].at - near[i - 1].at <= reach) continue;
      add_region(sequence, std::span(near).subspan(begin, i - begin), period, regions);
      begin = i;
    }
  }
  return regions;
}

}  // namespace culprit::kernels
