// Block search and full kernel report on launch logs of 10^4 to 10^7 launches: steps of 12 layers of 40 launches, 1 %
// of the launches replaced, so that exact repeats are short.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/blocks.h"
#include "kernels/classes.h"
#include "kernels/fusion.h"
#include "kernels/launch_gaps.h"
#include "kernels/launch_identity.h"
#include "kernels/launch_tables.h"

namespace {

using namespace culprit;

model::KernelLog make_log(std::size_t launches) {
  model::KernelLog log;
  std::vector<StringId> names;
  for (int i = 0; i < 60; ++i) names.push_back(log.names.intern("kernel_" + std::to_string(i)));
  std::uint64_t state = 88172645463325252ULL;
  const auto random = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  log.launches.reserve(launches);
  Ns begin = 0;
  while (log.launches.size() < launches) {
    const std::size_t in_step = log.launches.size() % 520;
    const std::size_t kind = in_step < 480 ? in_step % 40 : 40 + (in_step - 480) % 20;
    model::KernelLaunch launch;
    launch.name = names[random() % 100 == 0 ? random() % 60 : kind];
    launch.latency = static_cast<Ns>(5'000 + 1'000 * kind + random() % 200);
    launch.begin = begin;
    launch.dram = 0.4f;
    launch.tensor = 0.0f;
    begin += launch.latency + 1'000;
    log.launches.push_back(launch);
  }
  return log;
}

void find_blocks(benchmark::State& state) {
  const model::KernelLog log = make_log(static_cast<std::size_t>(state.range(0)));
  std::size_t nodes = 0;
  for (auto _ : state) {
    const kernels::LaunchIds ids = kernels::launch_ids(log);
    for (model::Lane& lane : kernels::lanes_of(log))
      nodes += kernels::find_blocks(log, std::move(lane), ids, {}).nodes.size();
  }
  benchmark::DoNotOptimize(nodes);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(find_blocks)->RangeMultiplier(10)->Range(10'000, 10'000'000)->Unit(benchmark::kMillisecond);

void full_report(benchmark::State& state) {
  const model::KernelLog log = make_log(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernels::name_table(log, {}));
    benchmark::DoNotOptimize(kernels::use_report(log, {}));
    const kernels::LaunchIds ids = kernels::launch_ids(log);
    std::vector<model::Lane> lanes = kernels::lanes_of(log);
    benchmark::DoNotOptimize(kernels::fusion_report(log, lanes, {}));
    benchmark::DoNotOptimize(kernels::launch_report(log, {}));
    for (model::Lane& lane : lanes) benchmark::DoNotOptimize(kernels::find_blocks(log, std::move(lane), ids, {}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(full_report)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
