#include "kernels/blocks.h"

#include <fmt/format.h>
#include <tsl/hopscotch_map.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "core/saturating.h"
#include "kernels/blocks_positions.h"
#include "kernels/blocks_regions.h"
#include "stats/quantile.h"

namespace culprit::kernels {

namespace {

using model::BlockNode;
using model::Likeness;

constexpr std::array<Likeness, 3> kLikenesses = {Likeness::same_kernel, Likeness::same_name, Likeness::same_family};
/// Looser likeness has to explain so much more to be preferred.
constexpr std::array<double, 3> kLikenessWeight = {1.0, 0.8, 0.6};
constexpr int kRounds = 16;
constexpr int kDepth = 3;
/// Fewer repeated launches than this are chance.
constexpr std::uint32_t kLeastLaunches = 8;
/// With only two copies, a block of fewer launches is chance.
constexpr std::uint32_t kLeastPair = 8;
/// Inside a block, structure that covers less of it is left out.
constexpr double kLeastInside = 0.25;
/// Composite elements are told from launches by this bit.
constexpr std::uint32_t kComposite = 0x80000000u;
constexpr std::size_t kShapesCompared = 64;
constexpr double kShapeAlike = 0.7;

/// An element of the sequence that is searched: one launch, or a block that was found.
struct Item {
  std::uint32_t first = 0;
  std::uint32_t launches = 1;
  std::int32_t node = -1;
  std::uint32_t shape = 0;
};

struct Choice {
  RepeatRegion region;
  Likeness likeness = Likeness::same_kernel;
  double score = 0;
};

class Finder {
 public:
  Finder(const model::KernelLog& log, std::span<const std::uint32_t> lane, const LaunchIds& ids,
         const BlockOptions& options)
      : log_(log), options_(options) {
    const std::array<const std::vector<std::uint32_t>*, 3> from = {&ids.kernel, &ids.name, &ids.family};
    for (std::size_t l = 0; l < from.size(); ++l) {
      ids_[l].reserve(lane.size());
      for (const std::uint32_t launch : lane) ids_[l].push_back((*from[l])[launch]);
    }
    rows_.assign(lane.begin(), lane.end());
  }

  std::vector<BlockNode> run() {
    std::vector<Item> items(rows_.size());
    for (std::size_t i = 0; i < items.size(); ++i) items[i].first = static_cast<std::uint32_t>(i);
    collapse(items, 0, static_cast<double>(kLeastLaunches), 0);
    return to_nodes(items);
  }

 private:
  /// Replaces repeating stretches by blocks until nothing repeats.
  void collapse(std::vector<Item>& items, std::uint32_t shortest_copies, double least_launches, int depth) {
    for (int round = 0; round < kRounds; ++round) {
      if (options_.stop.stop_requested()) return;
      std::vector<Choice> chosen = choose(items, shortest_copies, least_launches);
      if (chosen.empty()) return;
      std::vector<Item> next;
      next.reserve(items.size());
      std::size_t at = 0;
      for (Choice& choice : chosen) {
        for (; at < choice.region.starts.front(); ++at) next.push_back(items[at]);
        next.push_back(make_block(items, choice, depth));
        at = choice.region.starts.back();
      }
      for (; at < items.size(); ++at) next.push_back(items[at]);
      items = std::move(next);
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> sequence(std::span<const Item> items, std::size_t likeness) const {
    std::vector<std::uint32_t> result;
    result.reserve(items.size());
    for (const Item& item : items)
      result.push_back(item.node < 0 ? ids_[likeness][item.first] : kComposite | item.shape);
    return result;
  }

  /// Elements hide how many launches they stand for: keeps the longest row of copies of about the usual length.
  static void keep_even_copies(std::span<const Item> items, RepeatRegion& region) {
    const auto launches = [&](std::size_t copy) {
      const Item& last = items[region.starts[copy + 1] - 1];
      return last.first + last.launches - items[region.starts[copy]].first;
    };
    const std::size_t copies = region.starts.size() - 1;
    std::vector<std::uint32_t> lengths;
    for (std::size_t c = 0; c < copies; ++c) lengths.push_back(launches(c));
    const std::uint32_t usual = stats::median_low(lengths);
    const auto even = [&](std::uint32_t length) { return 3 * length >= 2 * usual && 2 * length <= 3 * usual; };
    std::size_t best_begin = 0;
    std::size_t best_end = 0;
    for (std::size_t begin = 0; begin < copies;) {
      std::size_t end = begin;
      while (end < copies && even(lengths[end])) ++end;
      if (end - begin > best_end - best_begin) {
        best_begin = begin;
        best_end = end;
      }
      begin = std::max(end, begin + 1);
    }
    region.starts = {region.starts.begin() + static_cast<std::ptrdiff_t>(best_begin),
                     region.starts.begin() + static_cast<std::ptrdiff_t>(best_end + 1)};
  }

  /// The best stretches that do not overlap, in order of position.
  [[nodiscard]] std::vector<Choice> choose(std::span<const Item> items, std::uint32_t least_copies,
                                           double least_launches) const {
    std::vector<Choice> all;
    std::vector<std::uint32_t> before;
    for (std::size_t l = 0; l < kLikenesses.size(); ++l) {
      std::vector<std::uint32_t> ids = sequence(items, l);
      if (ids == before || options_.stop.stop_requested()) continue;
      for (RepeatRegion& region : repeat_regions(ids)) {
        keep_even_copies(items, region);
        if (region.starts.size() < 3) continue;
        const auto copies = static_cast<std::uint32_t>(region.starts.size() - 1);
        const Item& last = items[region.starts.back() - 1];
        const std::uint32_t launches = last.first + last.launches - items[region.starts.front()].first;
        if (copies < least_copies || launches < kLeastLaunches || launches < least_launches) continue;
        if (copies == 2 && launches / 2 < kLeastPair) continue;
        // A row of unlike kernels of one family is no block.
        if (kLikenesses[l] == Likeness::same_family && region.period == 1) continue;
        const double shorter_is_simpler = 1.0 - 0.01 * std::log2(static_cast<double>(region.period));
        const double score = launches * region.density * kLikenessWeight[l] * shorter_is_simpler;
        all.push_back({std::move(region), kLikenesses[l], score});
      }
      before = std::move(ids);
    }
    std::ranges::stable_sort(all, std::greater<>(), &Choice::score);
    std::vector<Choice> chosen;
    std::set<std::pair<std::uint32_t, std::uint32_t>> taken;  // (end, begin)
    for (Choice& choice : all) {
      const std::uint32_t begin = choice.region.starts.front();
      const std::uint32_t end = choice.region.starts.back();
      const auto behind = taken.upper_bound({begin, 0xffffffffu});
      if (behind != taken.end() && behind->second < end) continue;
      taken.emplace(end, begin);
      chosen.push_back(std::move(choice));
    }
    std::ranges::sort(chosen, {}, [](const Choice& c) { return c.region.starts.front(); });
    return chosen;
  }

  Item make_block(std::span<const Item> items, const Choice& choice, int depth) {
    const auto& starts = choice.region.starts;
    BlockNode node;
    node.copies = static_cast<std::uint32_t>(starts.size() - 1);
    node.likeness = choice.likeness;
    node.first = items[starts.front()].first;
    for (std::size_t c = 0; c + 1 < starts.size(); ++c) node.starts.push_back(items[starts[c]].first);
    const Item& last = items[starts.back() - 1];
    node.starts.push_back(last.first + last.launches);
    node.launches = node.starts.back() - node.first;
    fill_positions(log_, rows_, ids_[1], options_.unstable, node);
    node.shape = shape_of(node);

    std::vector<Item> inside(items.begin() + starts[0], items.begin() + starts[1]);
    const std::uint32_t inside_launches = node.starts[1] - node.starts[0];
    if (depth < kDepth && inside_launches >= 2 * kLeastLaunches)
      collapse(inside, 2, kLeastInside * inside_launches, depth + 1);
    if (std::ranges::any_of(inside, [](const Item& item) { return item.node >= 0; })) node.children = to_nodes(inside);

    nodes_.push_back(std::move(node));
    const BlockNode& stored = nodes_.back();
    return {stored.first, stored.launches, static_cast<std::int32_t>(nodes_.size() - 1), stored.shape};
  }

  /// Pairs of neighbouring names of one copy, closed to a ring so that the begin does not matter.
  [[nodiscard]] std::vector<std::uint64_t> pairs_of(const BlockNode& node) const {
    std::vector<std::uint64_t> pairs;
    const std::uint32_t begin = node.starts[0];
    const std::uint32_t end = node.starts[1];
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t next = i + 1 < end ? i + 1 : begin;
      pairs.push_back((std::uint64_t{ids_[1][i]} << 32) | ids_[1][next]);
    }
    std::ranges::sort(pairs);
    return pairs;
  }

  std::uint32_t shape_of(const BlockNode& node) {
    std::vector<std::uint64_t> pairs = pairs_of(node);
    const std::size_t from = shapes_.size() > kShapesCompared ? shapes_.size() - kShapesCompared : 0;
    for (std::size_t s = from; s < shapes_.size(); ++s) {
      const auto& other = shapes_[s];
      const std::size_t fewer = std::min(pairs.size(), other.size());
      const std::size_t more = std::max(pairs.size(), other.size());
      if (static_cast<double>(fewer) < kShapeAlike * static_cast<double>(more)) continue;
      std::vector<std::uint64_t> common;
      std::ranges::set_intersection(pairs, other, std::back_inserter(common));
      const auto together = static_cast<double>(pairs.size() + other.size() - common.size());
      if (static_cast<double>(common.size()) >= kShapeAlike * together) return static_cast<std::uint32_t>(s + 1);
    }
    shapes_.push_back(std::move(pairs));
    return static_cast<std::uint32_t>(shapes_.size());
  }

  /// Blocks, and the launches between them as stretches.
  std::vector<BlockNode> to_nodes(std::span<const Item> items) const {
    std::vector<BlockNode> result;
    bool stretch = false;
    for (const Item& item : items) {
      if (item.node >= 0) {
        result.push_back(nodes_[static_cast<std::size_t>(item.node)]);
        stretch = false;
        continue;
      }
      if (!stretch) {
        result.emplace_back();
        result.back().first = item.first;
        stretch = true;
      }
      BlockNode& node = result.back();
      ++node.launches;
      ++node.period;
      node.time = add_saturating(node.time, log_.launches[rows_[item.first]].latency);
    }
    return result;
  }

  const model::KernelLog& log_;
  const BlockOptions& options_;
  std::vector<std::uint32_t> rows_;
  std::array<std::vector<std::uint32_t>, 3> ids_;
  std::vector<BlockNode> nodes_;
  std::vector<std::vector<std::uint64_t>> shapes_;
};

}  // namespace

model::LaneBlocks find_blocks(const model::KernelLog& log, model::Lane lane, const LaunchIds& ids,
                              const BlockOptions& options) {
  model::LaneBlocks result;
  result.nodes = Finder(log, lane.launches, ids, options).run();
  result.lane = std::move(lane);
  return result;
}

std::string block_label(const model::BlockNode& node) {
  const double per_copy = static_cast<double>(node.time) / node.copies;
  const std::string body =
      fmt::format("{} launch{}, {}", node.period, node.period == 1 ? "" : "es", format_duration(per_copy));
  return node.copies == 1 ? body : fmt::format("{} x [{}]", node.copies, body);
}

}  // namespace culprit::kernels
