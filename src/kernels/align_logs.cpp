#include "kernels/align_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "core/saturating.h"
#include "kernels/align.h"
#include "kernels/blocks.h"
#include "kernels/classes.h"
#include "kernels/launch_identity.h"
#include "profile/function_kind.h"
#include "stats/quantile.h"

namespace culprit::kernels {

namespace {

using model::BlockNode;
using model::Change;
using model::KernelChange;
using model::KernelLaunch;
using model::KernelLog;

constexpr std::uint32_t kEditsInCopy = 256;
constexpr std::uint32_t kEditsBetween = 2000;
constexpr double kSameBlock = 0.6;
constexpr std::uint32_t kMostRotated = 4000;
/// In place of the number of a name: no launch stands here.
constexpr std::uint32_t kNothing = 0xffffffffu;

/// One side: the log, its lanes with their blocks, and numbers for names that both sides share.
struct Side {
  const KernelLog* log = nullptr;
  std::vector<model::LaneBlocks> lanes;
  std::vector<std::uint32_t> name;  ///< per launch, shared numbers
};

/// The same kernel on both sides: name, grid and block.
using Identity = std::tuple<std::uint32_t, std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>>;

Identity identity(const Side& side, std::uint32_t row) {
  const KernelLaunch& launch = side.log->launches[row];
  return {side.name[row],
          {launch.grid[0], launch.grid[1], launch.grid[2]},
          {launch.block[0], launch.block[1], launch.block[2]}};
}

struct Calls {
  std::vector<double> times[2];   ///< all calls of each side
  std::vector<double> paired[2];  ///< matched calls, same index
  double compute[2] = {0, 0};     ///< use times time
  double dram[2] = {0, 0};
  double weight[2] = {0, 0};
};

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return model::kNoNumber;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

class Comparer {
 public:
  Comparer(const KernelLog& a, const KernelLog& b, const CompareOptions& options) : options_(options) {
    add_side(a, side_[0]);
    add_side(b, side_[1]);
  }

  model::LogComparison run() {
    result_.launches_a = side_[0].log->launches.size();
    result_.launches_b = side_[1].log->launches.size();
    for (int s = 0; s < 2; ++s) collect(s);
    const std::size_t lanes = std::min(side_[0].lanes.size(), side_[1].lanes.size());
    if (side_[0].lanes.size() != side_[1].lanes.size())
      result_.notes.push_back(fmt::format("{} streams against {}: those without a partner are compared by name only",
                                          side_[0].lanes.size(), side_[1].lanes.size()));
    for (std::size_t l = 0; l < lanes; ++l) lane(side_[0].lanes[l], side_[1].lanes[l]);
    judge_names();
    if (result_.alignment_bounded)
      result_.notes.emplace_back("parts of the sequences are too different to be aligned within the bound");
    return std::move(result_);
  }

 private:
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    [[nodiscard]] std::uint32_t size() const { return end - begin; }
  };

  void add_side(const KernelLog& log, Side& side) {
    side.log = &log;
    std::vector<std::optional<std::uint32_t>> known(log.names.size());
    for (const KernelLaunch& launch : log.launches) {
      auto& number = known[launch.name];
      if (!number) number = names_.try_emplace(shown_name(log, launch), names_.size()).first->second;
      side.name.push_back(*number);
    }
    const LaunchIds ids = launch_ids(log);
    std::vector<model::Lane> lanes = lanes_of(log);
    // By device first: the order by time may differ between the logs.
    std::ranges::stable_sort(lanes, {}, [](const model::Lane& l) { return std::pair(l.process, l.device); });
    for (model::Lane& lane : lanes) side.lanes.push_back(find_blocks(log, std::move(lane), ids, {}));
  }

  void collect(int s) {
    const Side& side = side_[s];
    for (std::uint32_t row = 0; row < side.log->launches.size(); ++row) {
      const KernelLaunch& launch = side.log->launches[row];
      Calls& calls = calls_[identity(side, row)];
      const auto time = static_cast<double>(launch.latency);
      calls.times[s].push_back(time);
      const double compute = compute_use(launch);
      const auto dram = static_cast<double>(launch.dram);
      if (!std::isnan(compute) && !std::isnan(dram)) {
        calls.compute[s] += compute * time;
        calls.dram[s] += dram * time;
        calls.weight[s] += time;
      }
      Ns& total = s == 0 ? result_.time_a : result_.time_b;
      total = add_saturating(total, launch.latency);
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> names_in(int s, const model::Lane& lane, Range range) const {
    std::vector<std::uint32_t> names;
    names.reserve(range.size());
    for (std::uint32_t i = range.begin; i < range.end; ++i) names.push_back(side_[s].name[lane.launches[i]]);
    return names;
  }

  void pair_up(const model::Lane& a, std::uint32_t i, const model::Lane& b, std::uint32_t j) {
    const std::uint32_t row_a = a.launches[i];
    const std::uint32_t row_b = b.launches[j];
    ++result_.aligned;
    const Identity id = identity(side_[0], row_a);
    if (id != identity(side_[1], row_b)) return;
    Calls& calls = calls_[id];
    calls.paired[0].push_back(static_cast<double>(side_[0].log->launches[row_a].latency));
    calls.paired[1].push_back(static_cast<double>(side_[1].log->launches[row_b].latency));
  }

  /// Launches of both ranges by name and order.
  void align_ranges(const model::Lane& a, Range ra, const model::Lane& b, Range rb) {
    const Alignment found = align(names_in(0, a, ra), names_in(1, b, rb), kEditsBetween);
    result_.alignment_bounded = result_.alignment_bounded || found.bounded;
    for (const Aligned& pair : found.pairs) pair_up(a, ra.begin + pair.a, b, rb.begin + pair.b);
  }

  [[nodiscard]] std::vector<std::uint64_t> signature(int s, const model::Lane& lane, const BlockNode& node) const {
    const auto names = names_in(s, lane, {node.starts[0], node.starts[1]});
    std::vector<std::uint64_t> pairs;
    for (std::size_t i = 0; i < names.size(); ++i)
      pairs.push_back((std::uint64_t{names[i]} << 32) | names[(i + 1) % names.size()]);
    std::ranges::sort(pairs);
    return pairs;
  }

  /// Equal numbers for blocks of nearly the same launches, 0 for stretches.
  std::vector<std::uint32_t> block_numbers(int s, const model::LaneBlocks& lane) {
    std::vector<std::uint32_t> numbers;
    for (const BlockNode& node : lane.nodes) {
      if (node.copies < 2) {
        numbers.push_back(0);
        continue;
      }
      auto pairs = signature(s, lane.lane, node);
      std::uint32_t number = 0;
      for (std::size_t k = 0; k < signatures_.size() && number == 0; ++k) {
        std::vector<std::uint64_t> common;
        std::ranges::set_intersection(pairs, signatures_[k], std::back_inserter(common));
        const auto together = static_cast<double>(pairs.size() + signatures_[k].size() - common.size());
        if (static_cast<double>(common.size()) >= kSameBlock * together) number = static_cast<std::uint32_t>(k + 1);
      }
      if (number == 0) {
        signatures_.push_back(std::move(pairs));
        number = static_cast<std::uint32_t>(signatures_.size());
      }
      numbers.push_back(number);
    }
    return numbers;
  }

  void lane(const model::LaneBlocks& a, const model::LaneBlocks& b) {
    signatures_.clear();
    const auto numbers_a = block_numbers(0, a);
    const auto numbers_b = block_numbers(1, b);
    Range ra;
    Range rb;
    for (const Aligned& pair : align(numbers_a, numbers_b, kEditsBetween).pairs) {
      const BlockNode& node_a = a.nodes[pair.a];
      const BlockNode& node_b = b.nodes[pair.b];
      if (node_a.copies < 2) continue;
      ra.end = node_a.first;
      rb.end = node_b.first;
      align_ranges(a.lane, ra, b.lane, rb);
      block(a.lane, node_a, b.lane, node_b);
      ra.begin = node_a.first + node_a.launches;
      rb.begin = node_b.first + node_b.launches;
    }
    ra.end = static_cast<std::uint32_t>(a.lane.launches.size());
    rb.end = static_cast<std::uint32_t>(b.lane.launches.size());
    align_ranges(a.lane, ra, b.lane, rb);
  }

  /// By how many launches block b has to be turned to begin like block a.
  [[nodiscard]] std::uint32_t rotation(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) const {
    if (a.size() != b.size() || a.size() > kMostRotated) return 0;
    std::uint32_t best = 0;
    std::size_t best_equal = 0;
    for (std::uint32_t r = 0; r < b.size(); ++r) {
      if (b[r] != a[0]) continue;
      std::size_t equal = 0;
      for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[(i + r) % b.size()] ? 1u : 0u;
      if (equal <= best_equal) continue;
      best = r;
      best_equal = equal;
    }
    return best;
  }

  void block(const model::Lane& a, const BlockNode& node_a, const model::Lane& b, const BlockNode& node_b) {
    const auto body_a = names_in(0, a, {node_a.starts[0], node_a.starts[1]});
    const auto body_b = names_in(1, b, {node_b.starts[0], node_b.starts[1]});
    const std::uint32_t turn = rotation(body_a, body_b);
    std::vector<std::uint32_t> starts_b = node_b.starts;
    if (turn > 0) {
      for (std::uint32_t& start : starts_b) start += turn;
      starts_b.pop_back();
    }
    const std::size_t copies = std::min(node_a.starts.size(), starts_b.size()) - 1;
    std::vector<std::vector<double>> times_a(body_a.size());
    std::vector<std::vector<double>> times_b(body_a.size());
    std::vector<std::map<std::uint32_t, std::uint32_t>> instead(body_a.size());
    for (std::size_t c = 0; c < copies; ++c)
      copy(a, {node_a.starts[c], node_a.starts[c + 1]}, b, {starts_b[c], starts_b[c + 1]}, body_a, times_a, times_b,
           instead);
    for (std::uint32_t i = 0; i < body_a.size(); ++i) {
      ++result_.positions_compared;
      KernelChange change = position(times_a[i], times_b[i], instead[i], copies);
      if (change.change == Change::same) continue;
      const std::uint32_t row = a.launches[node_a.starts[0] + i];
      change.name = shown_name(*side_[0].log, side_[0].log->launches[row]);
      if (is_communication(side_[0].name[row], 0, row)) change.change = Change::not_judged;
      change.where = fmt::format("{} x [{} launch{}], launch {}", node_a.copies, node_a.period,
                                 node_a.period == 1 ? "" : "es", i + 1);
      result_.positions.push_back(std::move(change));
    }
  }

  /// Times per position of the first copy of block a, and which names stand there in b instead.
  void copy(const model::Lane& a, Range ra, const model::Lane& b, Range rb, std::span<const std::uint32_t> body,
            std::vector<std::vector<double>>& times_a, std::vector<std::vector<double>>& times_b,
            std::vector<std::map<std::uint32_t, std::uint32_t>>& instead) {
    const auto names_a = names_in(0, a, ra);
    const auto names_b = names_in(1, b, rb);
    const Alignment found = align(names_a, names_b, kEditsInCopy);
    result_.alignment_bounded = result_.alignment_bounded || found.bounded;
    // Positions count from the first copy; a copy that differs from it takes part in the names only.
    const bool regular = std::ranges::equal(names_a, body);
    std::uint32_t next_a = 0;
    std::uint32_t next_b = 0;
    const auto unmatched = [&](std::uint32_t end_a, std::uint32_t end_b) {
      for (; regular && next_a < end_a; ++next_a, ++next_b)
        ++instead[next_a][next_b < end_b ? side_[1].name[b.launches[rb.begin + next_b]] : kNothing];
    };
    for (const Aligned& pair : found.pairs) {
      unmatched(pair.a, pair.b);
      next_a = pair.a + 1;
      next_b = pair.b + 1;
      pair_up(a, ra.begin + pair.a, b, rb.begin + pair.b);
      if (!regular) continue;
      const auto time = [&](int s, std::uint32_t row) {
        return static_cast<double>(side_[s].log->launches[row].latency);
      };
      times_a[pair.a].push_back(time(0, a.launches[ra.begin + pair.a]));
      times_b[pair.a].push_back(time(1, b.launches[rb.begin + pair.b]));
    }
    unmatched(static_cast<std::uint32_t>(names_a.size()), static_cast<std::uint32_t>(names_b.size()));
  }

  [[nodiscard]] std::string text_of(std::uint32_t number) const {
    for (const auto& [name, known] : names_)
      if (known == number) return name;
    return {};
  }

  [[nodiscard]] KernelChange position(const std::vector<double>& a, const std::vector<double>& b,
                                      const std::map<std::uint32_t, std::uint32_t>& instead, std::size_t copies) const {
    KernelChange change;
    change.calls_a = a.size();
    change.calls_b = b.size();
    if (2 * a.size() < copies && !instead.empty()) {
      const auto [name, count] = *std::ranges::max_element(instead, {}, [](const auto& entry) { return entry.second; });
      if (2 * count <= copies) return change;
      change.change = name == kNothing ? Change::gone : Change::replaced;
      if (name != kNothing) change.name_b = text_of(name);
      return change;
    }
    const Judgement judgement = judge(a, b, options_.tolerance);
    change.change = judgement.change;
    change.ratio = judgement.ratio;
    change.limit = judgement.limit;
    change.median_a = stats::median(a);
    change.median_b = stats::median(b);
    change.mean_a = mean_of(a);
    change.mean_b = mean_of(b);
    return change;
  }

  bool is_communication(std::uint32_t name, int s, std::uint32_t row) {
    const auto [at, fresh] = communication_.try_emplace(name, false);
    if (fresh) {
      const KernelLog& log = *side_[s].log;
      at->second = family_of(log.names[log.launches[row].name]) == KernelFamily::communication;
    }
    return at->second;
  }

  void judge_names() {
    std::map<std::uint32_t, std::string_view> text;
    for (const auto& [name, number] : names_) text[number] = name;
    for (auto& [id, calls] : calls_) {
      KernelChange change;
      const auto& [name, grid, block] = id;
      change.name = text[name];
      if (grid[0] != 0)
        change.where =
            fmt::format("grid {}x{}x{}, block {}x{}x{}", grid[0], grid[1], grid[2], block[0], block[1], block[2]);
      change.calls_a = calls.times[0].size();
      change.calls_b = calls.times[1].size();
      change.median_a = stats::median(calls.times[0]);
      change.median_b = stats::median(calls.times[1]);
      change.mean_a = mean_of(calls.times[0]);
      change.mean_b = mean_of(calls.times[1]);
      change.ratio = change.median_b / change.median_a;
      const auto use = [&](int s) {
        if (calls.weight[s] <= 0) return model::UseClass::unknown;
        return use_class(calls.compute[s] / calls.weight[s], calls.dram[s] / calls.weight[s], options_.low);
      };
      change.class_a = use(0);
      change.class_b = use(1);
      if (family_of(change.name) == KernelFamily::communication) {
        change.change = Change::not_judged;
        change.note = transfer_note(name);
      } else if (calls.times[1].empty()) {
        change.change = Change::gone;
      } else if (calls.times[0].empty()) {
        change.change = Change::appeared;
      } else if (!calls.paired[0].empty()) {
        const Judgement judgement = judge_pairs(calls.paired[0], calls.paired[1], options_.tolerance);
        change.change = judgement.change;
        change.ratio = judgement.ratio;
        change.limit = judgement.limit;
        // Medians of all calls may only say otherwise because the mix of work differs.
        change.note = fmt::format("by {} matched calls", calls.paired[0].size());
      } else {
        const Judgement judgement = judge(calls.times[0], calls.times[1], options_.tolerance);
        change.change = judgement.change == Change::same ? Change::same : Change::unclear;
        change.ratio = judgement.ratio;
        change.limit = judgement.limit;
        change.note = "no call could be matched";
      }
      result_.names.push_back(std::move(change));
    }
    const auto impact = [](const KernelChange& c) {
      const auto calls = static_cast<double>(std::min(c.calls_a, c.calls_b));
      if (std::isnan(c.median_a)) return c.median_b * static_cast<double>(c.calls_b);
      if (std::isnan(c.median_b)) return c.median_a * static_cast<double>(c.calls_a);
      return std::abs(c.median_b - c.median_a) * calls;
    };
    const auto quiet = [](const KernelChange& c) { return c.change == Change::same || c.change == Change::not_judged; };
    std::ranges::stable_sort(result_.names, [&](const KernelChange& a, const KernelChange& b) {
      return quiet(a) != quiet(b) ? !quiet(a) : impact(a) > impact(b);
    });
  }

  /// Medians of waiting per device and of transfer, of both sides, for a communication kernel.
  std::string transfer_note(std::uint32_t name) {
    std::string note;
    for (int s = 0; s < 2; ++s) {
      std::map<std::pair<std::int32_t, std::int16_t>, std::vector<const KernelLaunch*>> devices;
      for (std::size_t row = 0; row < side_[s].log->launches.size(); ++row)
        if (side_[s].name[row] == name) {
          const KernelLaunch& launch = side_[s].log->launches[row];
          if (launch.begin < 0) return "duration includes waiting for others; begins are unknown";
          devices[{launch.process, launch.device}].push_back(&launch);
        }
      if (devices.size() < 2) return "duration includes waiting for others; only one device is in the log";
      std::size_t calls = devices.begin()->second.size();
      for (auto& [key, launches] : devices) {
        std::ranges::stable_sort(launches, {}, &KernelLaunch::begin);
        if (launches.size() != calls) return "devices have different numbers of calls: waiting and transfer not split";
      }
      std::vector<double> transfer;
      std::map<std::pair<std::int32_t, std::int16_t>, std::vector<double>> waits;
      for (std::size_t k = 0; k < calls; ++k) {
        Ns begin = 0;
        Ns end = 0;
        for (const auto& [key, launches] : devices) {
          begin = std::max(begin, launches[k]->begin);
          end = std::max(end, add_saturating(launches[k]->begin, launches[k]->latency));
        }
        transfer.push_back(static_cast<double>(std::max<Ns>(0, end - begin)));
        for (const auto& [key, launches] : devices)
          waits[key].push_back(static_cast<double>(begin - launches[k]->begin));
      }
      note += fmt::format("{}transfer {}", s == 0 ? "" : "; then ", format_duration(stats::median(transfer)));
      for (const auto& [key, wait] : waits)
        note += fmt::format(", device {} waits {}", key.second, format_duration(stats::median(wait)));
    }
    return note + " (medians)";
  }

  const CompareOptions& options_;
  Side side_[2];
  std::map<std::string, std::uint32_t> names_;
  std::map<Identity, Calls> calls_;
  std::map<std::uint32_t, bool> communication_;
  std::vector<std::vector<std::uint64_t>> signatures_;
  model::LogComparison result_;
};

}  // namespace

std::string_view to_string(model::Change change) {
  constexpr std::string_view kTexts[] = {"same", "slower",   "faster",  "new",
                                         "gone", "replaced", "unclear", "not judged"};
  return kTexts[static_cast<std::size_t>(change)];
}

model::LogComparison compare_logs(const KernelLog& a, const KernelLog& b, const CompareOptions& options) {
  return Comparer(a, b, options).run();
}

}  // namespace culprit::kernels
