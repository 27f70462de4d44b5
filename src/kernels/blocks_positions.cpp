#include "kernels/blocks_positions.h"

#include <algorithm>
#include <cmath>

#include "core/saturating.h"
#include "kernels/align.h"
#include "stats/quantile.h"

namespace culprit::kernels {

namespace {

/// A copy with more differences than this is counted as changed and its middle left out.
constexpr std::uint32_t kMaxEdits = 256;

struct Running {
  std::uint32_t n = 0;
  double mean = 0;
  double squares = 0;
  Ns min = 0;
  Ns max = 0;

  void add(Ns value) {
    min = n == 0 ? value : std::min(min, value);
    max = n == 0 ? value : std::max(max, value);
    ++n;
    const double delta = static_cast<double>(value) - mean;
    mean += delta / n;
    squares += delta * (static_cast<double>(value) - mean);
  }
};

std::uint32_t usual_length(std::span<const std::uint32_t> starts) {
  std::vector<std::uint32_t> lengths;
  for (std::size_t c = 0; c + 1 < starts.size(); ++c) lengths.push_back(starts[c + 1] - starts[c]);
  return stats::median_high(std::move(lengths));
}

}  // namespace

void fill_positions(const model::KernelLog& log, std::span<const std::uint32_t> rows,
                    std::span<const std::uint32_t> names, double unstable, model::BlockNode& node) {
  const auto& starts = node.starts;
  node.period = usual_length(starts);
  std::uint32_t model_begin = starts[0];
  for (std::size_t c = 0; c + 1 < starts.size(); ++c)
    if (starts[c + 1] - starts[c] == node.period) {
      model_begin = starts[c];
      break;
    }
  const auto model = names.subspan(model_begin, node.period);
  std::vector<Running> running(node.period);
  std::vector<bool> other(node.period, false);
  const auto latency = [&](std::uint32_t position) { return log.launches[rows[position]].latency; };

  node.time = 0;
  for (std::uint32_t i = starts.front(); i < starts.back(); ++i) node.time = add_saturating(node.time, latency(i));
  node.changed_copies = 0;
  for (std::size_t c = 0; c + 1 < starts.size(); ++c) {
    const auto copy = names.subspan(starts[c], starts[c + 1] - starts[c]);
    if (std::ranges::equal(model, copy)) {
      for (std::uint32_t i = 0; i < node.period; ++i) running[i].add(latency(starts[c] + i));
      continue;
    }
    ++node.changed_copies;
    std::uint32_t next_model = 0;
    std::uint32_t next_copy = 0;
    const auto gap_until = [&](std::uint32_t model_end, std::uint32_t copy_end) {
      const std::uint32_t both = std::min(model_end - next_model, copy_end - next_copy);
      for (std::uint32_t i = 0; i < both; ++i) other[next_model + i] = true;
    };
    for (const Aligned& pair : align(model, copy, kMaxEdits).pairs) {
      gap_until(pair.a, pair.b);
      running[pair.a].add(latency(starts[c] + pair.b));
      next_model = pair.a + 1;
      next_copy = pair.b + 1;
    }
    gap_until(node.period, static_cast<std::uint32_t>(copy.size()));
  }

  node.positions.clear();
  node.positions.reserve(node.period);
  for (std::uint32_t i = 0; i < node.period; ++i) {
    const Running& r = running[i];
    model::BlockPosition position;
    position.name = log.launches[rows[model_begin + i]].name;
    position.copies = r.n;
    position.mean = r.mean;
    position.deviation = r.n > 1 ? std::sqrt(r.squares / (r.n - 1)) : 0;
    position.min = r.min;
    position.max = r.max;
    position.other_names = other[i];
    position.unstable = other[i] || r.n < node.copies || position.deviation > unstable * position.mean;
    node.positions.push_back(position);
  }
}

}  // namespace culprit::kernels
