// Random simulated workloads with known steps: are the cuts where steps begin, and is the stated confidence earned?
//
// CULPRIT_CYCLES_RUNS in the environment sets how many workloads are tried (default 60), CULPRIT_CYCLES_SEED which.
// Those that are not cut right are printed as what to give culprit-tracegen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <vector>

#include "cycles/find.h"
#include "formats/load.h"
#include "support/temp_file.h"
#include "tracegen/generate.h"

namespace culprit::cycles {
namespace {

enum class Device : std::uint8_t { gpu, cpu };

tracegen::Options random_options(std::mt19937_64& random, Device device, const std::string& output) {
  const auto one_of = [&](auto... values) {
    const std::array list{values...};
    return list[random() % list.size()];
  };
  tracegen::Options o;
  o.output = output;
  o.replace = true;
  o.workload = one_of(tracegen::Workload::serve, tracegen::Workload::serve, tracegen::Workload::train);
  o.steps = 6 + random() % 24;
  o.layers = 2 + static_cast<std::uint32_t>(random() % 5);
  o.ranks = one_of(1U, 1U, 2U, 3U);
  o.batch = 1 + static_cast<std::uint32_t>(random() % 24);
  o.seed = random() % 1'000'000;
  o.jitter_ppm = one_of(0, 20'000, 100'000, 200'000);
  o.lost_ppm = one_of(0, 0, 2'000, 10'000);
  o.prefill_every = one_of(0U, 3U, 8U);
  o.sync_every = one_of(0U, 1U, 4U);
  o.cpu = device == Device::cpu;
  o.graph = one_of(false, false, true) && !o.cpu;
  o.inputs = one_of(1U, 1U, 2U, 3U);
  o.accumulate = one_of(1U, 1U, 1U, 2U, 4U);
  o.python = one_of(false, false, true);
  o.markers = false;
  return o;
}

std::string as_command(const tracegen::Options& o) {
  const auto share = [](std::int64_t ppm) { return static_cast<double>(ppm) / 1e6; };
  return fmt::format(
      "--workload {} --steps {} --layers {} --ranks {} --batch {} --seed {} --jitter {} --lost {} --prefill-every {} "
      "--sync-every {} --inputs {} --accumulate {} --no-markers{}{}{}",
      tracegen::to_string(o.workload), o.steps, o.layers, o.ranks, o.batch, o.seed, share(o.jitter_ppm),
      share(o.lost_ppm), o.prefill_every, o.sync_every, o.inputs, o.accumulate, o.cpu ? " --cpu" : "",
      o.graph ? " --graph" : "", o.python ? " --python" : "");
}

/// Begins of what the host does for the workload, with the cycle it belongs to: launches of GPU work, or outermost
/// operators.
std::vector<std::pair<Ns, std::uint32_t>> host_work_of(const Trace& trace, const SliceOrder& order, const Found& found,
                                                       std::uint16_t rank) {
  std::vector<std::pair<Ns, std::uint32_t>> work;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const GpuSlice& gpu = trace.gpu[g];
    if (trace.slices[gpu.slice].rank == rank && gpu.launcher != kNone)
      work.emplace_back(trace.slices[gpu.launcher].begin, found.cycle_of_slice[gpu.slice]);
  }
  if (trace.gpu.empty()) {
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
      Ns closed_until = std::numeric_limits<Ns>::min();
      for (std::uint64_t k = order.track_begin[t]; k < order.track_begin[t + 1]; ++k) {
        const Slice& s = trace.slices[order.order[k]];
        if (s.rank != rank || trace.slice_class(s) != SliceClass::cpu_op || s.begin < closed_until) continue;
        closed_until = s.end();
        work.emplace_back(s.begin, found.cycle_of_slice[order.order[k]]);
      }
    }
  }
  std::ranges::sort(work);
  return work;
}

struct Score {
  std::size_t steps = 0;
  std::size_t right = 0;
  std::size_t counts = 0;  // of ranks
  std::size_t counts_right = 0;
};

/// A step is right when some cycle's first launch (or operator) is at most one away from that of the step.
Score score(const Trace& trace, const SliceOrder& order, const Found& found, const nlohmann::json& truth) {
  const model::Cycles& cycles = found.cycles;
  Score s;
  for (std::uint16_t rank = 0; rank < trace.ranks.size(); ++rank) {
    const std::vector<std::pair<Ns, std::uint32_t>> launches = host_work_of(trace, order, found, rank);
    std::set<std::uint32_t> seen;
    std::vector<std::ptrdiff_t> cuts;
    for (std::size_t i = 0; i < launches.size(); ++i)
      if (launches[i].second != kNone && seen.insert(launches[i].second).second)
        cuts.push_back(static_cast<std::ptrdiff_t>(i));
    std::size_t steps = 0;
    for (const auto& step : truth.at("steps")) {
      if (step.at("rank") != rank) continue;
      ++steps;
      const auto first =
          std::ranges::lower_bound(launches, std::pair<Ns, std::uint32_t>{step.at("begin_ns").get<Ns>(), 0});
      const std::ptrdiff_t at = first - launches.begin();
      s.right += std::ranges::any_of(cuts, [&](std::ptrdiff_t cut) { return std::abs(cut - at) <= 1; }) ? 1U : 0U;
    }
    const auto mine = std::ranges::count_if(cycles.cycles, [&](const model::Cycle& c) {
      return c.rank == rank && (trace.gpu.empty() || !c.devices.empty());
    });
    s.steps += steps;
    ++s.counts;
    s.counts_right += static_cast<std::size_t>(mine) == steps ? 1U : 0U;
  }
  return s;
}

std::uint64_t number_in_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class GeneratedWorkloads : public testing::TestWithParam<Device> {};

TEST_P(GeneratedWorkloads, CutsAreWhereStepsBeginAndConfidenceIsEarned) {
  const std::uint64_t runs = number_in_environment("CULPRIT_CYCLES_RUNS", GetParam() == Device::gpu ? 60 : 30);
  const test::TempDir dir;
  std::mt19937_64 random(number_in_environment("CULPRIT_CYCLES_SEED", 20240607));
  Score all;
  struct Bin {
    double stated = 0;
    std::size_t runs = 0;
    std::size_t right = 0;
  };
  std::map<int, Bin> period;
  std::map<int, Bin> phase;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const tracegen::Options options = random_options(random, GetParam(), dir.path("t.json"));
    const auto generated = tracegen::generate(options);
    ASSERT_TRUE(generated.ok());
    auto trace = formats::load_run(generated->traces, {1, {}});
    ASSERT_TRUE(trace.ok());
    FindOptions find;
    find.ignore_host_functions = run % 2 == 0;
    const SliceOrder order = order_slices(*trace);
    const auto found = find_cycles(*trace, order, find);
    ASSERT_TRUE(found.ok());
    std::ifstream file(generated->truth);
    const Score s = score(*trace, order, *found, nlohmann::json::parse(file));
    if (s.right * 10 < s.steps * 9 || s.counts_right < s.counts)
      fmt::print("{}: {} of {} right, {} of {} counts; \"{}\" ({:.2f}, {:.2f}): {}\n", as_command(options), s.right,
                 s.steps, s.counts_right, s.counts, found->cycles.anchor, found->cycles.period_confidence,
                 found->cycles.phase_confidence, found->cycles.reason);
    EXPECT_FALSE(found->cycles.anchor.starts_with("Optimizer")) << as_command(options);
    all.steps += s.steps;
    all.right += s.right;
    const auto count = [](std::map<int, Bin>& bins, double stated, bool right) {
      Bin& bin = bins[static_cast<int>(stated * 10)];
      bin.stated += stated;
      ++bin.runs;
      bin.right += right ? 1U : 0U;
    };
    count(period, found->cycles.period_confidence, s.counts_right == s.counts);
    count(phase, found->cycles.phase_confidence, static_cast<double>(s.right) >= 0.9 * static_cast<double>(s.steps));
  }
  const double share = static_cast<double>(all.right) / static_cast<double>(all.steps);
  fmt::print("{} workloads, {} steps, {:.2f}% within one launch\n", runs, all.steps, share * 100);
  EXPECT_GE(share, 0.99);
  for (const auto& [title, bins] : {std::pair("period", &period), std::pair("phase", &phase)}) {
    fmt::print("{:>8}  stated  right  workloads\n", title);
    for (const auto& [key, bin] : *bins) {
      const double stated = bin.stated / static_cast<double>(bin.runs);
      const double right = static_cast<double>(bin.right) / static_cast<double>(bin.runs);
      fmt::print("{:>8}  {:6.2f}  {:5.2f}  {:9}\n", "", stated, right, bin.runs);
      // Never more sure than right, beyond what so many workloads can show.
      EXPECT_GE(right,
                stated - 0.06 - 2.5 / std::sqrt(static_cast<double>(bin.runs)) * std::sqrt(stated * (1 - stated)))
          << title << " stated " << stated;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, GeneratedWorkloads, testing::Values(Device::gpu, Device::cpu),
                         [](const auto& info) { return info.param == Device::gpu ? "Gpu" : "Cpu"; });

}  // namespace
}  // namespace culprit::cycles
