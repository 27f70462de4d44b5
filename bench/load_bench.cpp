// What loading is made of, piece by piece: a change of speed in `make bench` shows here where it comes from.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/string_table.h"
#include "core/units.h"
#include "formats/kineto/extract.h"
#include "formats/kineto/split.h"

namespace {

using namespace culprit;
using namespace culprit::formats::kineto;

/// Events of a training step as Kineto writes them: operator, launch, arrow, kernel, arrow.
std::string events(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) {
    if (i != 0) text += ",\n  ";
    text += fmt::format(
        R"~({{"ph": "X", "cat": "cpu_op", "name": "aten::op{0}", "pid": 4000, "tid": 4000, "ts": {1}.123, "dur": 6.078, "args": {{"External id": {1}}}}},
  {{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4000, "tid": 4000, "ts": {1}.5, "dur": 2.5, "args": {{"External id": {1}, "correlation": {1}}}}},
  {{"ph": "s", "id": {1}, "pid": 4000, "tid": 4000, "ts": {1}.5, "cat": "ac2g", "name": "ac2g"}},
  {{"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::F{0}>(int)", "pid": 0, "tid": 7, "ts": {1}.9, "dur": 3.25, "args": {{"device": 0, "stream": 7, "correlation": {1}, "grid": [108, 1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}}}},
  {{"ph": "f", "id": {1}, "pid": 0, "tid": 7, "ts": {1}.9, "cat": "ac2g", "name": "ac2g", "bp": "e"}})~",
        i % 40, 7000000000LL + i * 10LL);
  }
  return text;
}

void extract_piece(benchmark::State& state) {
  const std::string text = events(static_cast<std::size_t>(state.range(0)));
  std::vector<char> buffer(text.size() + 1 + kTail);
  Extractor extractor;
  Batch batch;
  for (auto _ : state) {
    std::memcpy(buffer.data() + 1, text.data(), text.size());
    extractor.extract(buffer.data() + 1, text.size(), Ending::more_follows, batch);
    benchmark::DoNotOptimize(batch.slices.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(extract_piece)->Arg(64 << 10)->Arg(512 << 10);

void repair_text(benchmark::State& state) {
  const std::string text = events(512 << 10);
  std::string copy;
  for (auto _ : state) {
    copy = text;
    benchmark::DoNotOptimize(repair(copy.data(), copy.size()).utf8);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(repair_text);

void find_boundary(benchmark::State& state) {
  const std::string text = events(512 << 10);
  for (auto _ : state) benchmark::DoNotOptimize(last_boundary(text));
}
BENCHMARK(find_boundary);

void parse_time(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_us("4909913692199.694"));
}
BENCHMARK(parse_time);

void intern_known_name(benchmark::State& state) {
  StringTable table;
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i)
    names.push_back(fmt::format("void at::native::vectorized_elementwise_kernel<4, at::native::F{}>(int)", i));
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(table.intern(names[i++ % names.size()]));
}
BENCHMARK(intern_known_name);

}  // namespace

BENCHMARK_MAIN();
