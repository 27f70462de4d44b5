// Random simulated workloads with known steps: are the cuts where steps begin, and is the stated confidence earned?
//
// CULPRIT_CYCLES_RUNS in the environment sets how many workloads are tried (default 60).
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

tracegen::Options random_options(std::mt19937_64& random, const std::string& output) {
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
  o.graph = one_of(false, false, true);
  o.inputs = one_of(1U, 1U, 2U, 3U);
  o.python = one_of(false, false, true);
  o.markers = false;
  return o;
}

struct Score {
  std::size_t steps = 0;
  std::size_t right = 0;
  std::size_t counts = 0;  // of ranks
  std::size_t counts_right = 0;
};

/// A step is right when some cycle's first launch is at most one launch away from the step's first launch.
Score score(const Trace& trace, const Found& found, const nlohmann::json& truth) {
  const model::Cycles& cycles = found.cycles;
  Score s;
  for (std::uint16_t rank = 0; rank < trace.ranks.size(); ++rank) {
    std::vector<std::pair<Ns, std::uint32_t>> launches;  // (when, cycle) of GPU work with a known launcher
    for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
      const GpuSlice& gpu = trace.gpu[g];
      if (trace.slices[gpu.slice].rank == rank && gpu.launcher != kNone)
        launches.emplace_back(trace.slices[gpu.launcher].begin, found.cycle_of_slice[gpu.slice]);
    }
    std::ranges::sort(launches);
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
    const auto mine = std::ranges::count_if(
        cycles.cycles, [&](const model::Cycle& c) { return c.rank == rank && !c.devices.empty(); });
    s.steps += steps;
    ++s.counts;
    s.counts_right += static_cast<std::size_t>(mine) == steps ? 1U : 0U;
  }
  return s;
}

TEST(GeneratedWorkloads, CutsAreWhereStepsBeginAndConfidenceIsEarned) {
  const char* wanted = std::getenv("CULPRIT_CYCLES_RUNS");
  const int runs = wanted != nullptr ? std::atoi(wanted) : 60;
  const test::TempDir dir;
  std::mt19937_64 random(20240607);
  Score all;
  struct Bin {
    double stated = 0;
    std::size_t runs = 0;
    std::size_t right = 0;
  };
  std::map<int, Bin> period;
  std::map<int, Bin> phase;
  for (int run = 0; run < runs; ++run) {
    const tracegen::Options options = random_options(random, dir.path("t.json"));
    const auto generated = tracegen::generate(options);
    ASSERT_TRUE(generated.ok());
    auto trace = formats::load_run(generated->traces, {1, {}});
    ASSERT_TRUE(trace.ok());
    FindOptions find;
    find.ignore_host_functions = run % 2 == 0;
    const auto found = find_cycles(*trace, order_slices(*trace), find);
    ASSERT_TRUE(found.ok());
    std::ifstream file(generated->truth);
    const Score s = score(*trace, *found, nlohmann::json::parse(file));
    if (s.right * 10 < s.steps * 9 || s.counts_right < s.counts)
      fmt::print("seed {}: {} {} steps, {} ranks, lost {} ppm, graph {}: {} of {} right, {} of {} counts; {}\n",
                 options.seed, tracegen::to_string(options.workload), options.steps, options.ranks, options.lost_ppm,
                 options.graph, s.right, s.steps, s.counts_right, s.counts, found->cycles.reason);
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

}  // namespace
}  // namespace culprit::cycles
