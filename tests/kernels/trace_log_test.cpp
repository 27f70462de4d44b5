// A trace as a launch log.
#include "kernels/trace_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "formats/io/input.h"
#include "formats/kineto/reader.h"
#include "support/temp_file.h"

namespace culprit::kernels {
namespace {

const std::string kJson =
    R"({"traceEvents": [{"ph":"X","cat":"kernel","name":"late","pid":0,"tid":7,"ts":9,"dur":2,"args":{"device":0,"stream":7,
"est. achieved occupancy %": 40}},{"ph":"X","cat":"kernel","name":"early","pid":0,"tid":7,"ts":1,"dur":3,
"args":{"device":0,"stream":7,"grid":[2,1,1],"est. achieved occupancy %": 0}}]})";

model::KernelLog log_of(const std::string& json) {
  const test::TempDir dir;
  auto input = formats::Input::open(dir.file("a.json", json));
  EXPECT_TRUE(input);
  const auto trace = formats::kineto::read(std::move(*input), {});
  EXPECT_TRUE(trace);
  return trace ? kernel_log_of(*trace) : model::KernelLog();
}

TEST(TraceLog, TracesGiveLaunchesInOrderOfBegin) {
  const model::KernelLog log = log_of(kJson);
  ASSERT_EQ(log.launches.size(), 2U);
  EXPECT_EQ(log.names[log.launches[0].name], "early");
  EXPECT_EQ(log.launches[0].begin, 0);
  EXPECT_EQ(log.launches[1].begin, 8000);
  EXPECT_FLOAT_EQ(log.launches[1].occupancy, 0.4F);
  EXPECT_FLOAT_EQ(log.launches[0].occupancy, 0);
  EXPECT_EQ(log.launches[0].grid[0], 2U);
  EXPECT_TRUE(std::isnan(log.launches[0].dram));
  ASSERT_EQ(log.metrics.size(), 2U);
  for (const model::KernelMetric& metric : log.metrics) EXPECT_EQ(log.names[metric.unit], "fraction") << metric.value;
}

TEST(TraceLog, ProfilerRangesCountForTheirKernels) {
  const std::string text =
      R"({"traceEvents": [{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"cuda_profiler_range","name":"k","pid":0,"tid":0,"ts":100,"dur":50,
"args":{"dram__throughput.avg.pct_of_peak_sustained_elapsed": 25.0, "dram__bytes.sum": 1024}}]})";
  const model::KernelLog log = log_of(text);
  EXPECT_FLOAT_EQ(log.launches[0].dram, 0.25F);
  EXPECT_DOUBLE_EQ(log.launches[0].dram_bytes, 1024);
  EXPECT_EQ(log.launches[0].latency, 2000);
}

TEST(TraceLog, RangesOfOtherKernelsAreNotUsed) {
  const std::string text =
      R"({"traceEvents": [{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"cuda_profiler_range","name":"other","pid":0,"tid":0,"ts":100,"dur":50,"args":{"dram__bytes.sum": 1024}}]})";
  const model::KernelLog log = log_of(text);
  EXPECT_TRUE(std::isnan(log.launches[0].dram_bytes));
  EXPECT_EQ(log.notes.size(), 1U);
}

TEST(TraceLog, WithoutKernelsThereAreNoLaunches) {
  const model::KernelLog log = log_of(R"({"traceEvents": [{"ph":"X","name":"f","pid":0,"tid":7,"ts":1,"dur":2}]})");
  EXPECT_TRUE(log.launches.empty());
  EXPECT_EQ(log.inputs.size(), 1U);
}

}  // namespace
}  // namespace culprit::kernels
