// Traces as Kineto wrote them at the time of PyTorch 1.8: one category for all operators and annotations, processes and
// threads as text, whole microseconds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "cycles/find.h"
#include "formats/load.h"
#include "support/temp_file.h"

namespace culprit::cycles {
namespace {

using model::CycleMethod;

class OldTrace {
 public:
  void slice(const std::string& category, const std::string& name, int begin, int duration) {
    add(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 24572, "tid": "24572", "ts": {}, "dur": {}, "args": {{"Device": 24572, "External id": {}}}}})",
        category, name, kBase + begin, duration, ++external_));
  }
  void launch(const std::string& kernel, int begin, int duration, const char* category = "Kernel") {
    ++correlation_;
    add(fmt::format(
        R"({{"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 24572, "tid": "24572", "ts": {}, "dur": 4, "args": {{"external id": {}, "cbid": 211, "correlation": {}}}}})",
        kBase + begin, external_, correlation_));
    add(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": "0", "tid": "stream 7", "ts": {}, "dur": {}, "args": {{"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {}, "external id": {}}}}})",
        category, kernel, kBase + begin + 20, duration, correlation_, external_));
    add(fmt::format(
        R"({{"ph": "s", "id": {}, "pid": 24572, "tid": 24572, "ts": {}, "cat": "async", "name": "launch"}})",
        correlation_, kBase + begin));
    add(fmt::format(
        R"({{"ph": "f", "id": {}, "pid": "0", "tid": "stream 7", "ts": {}, "cat": "async", "name": "launch", "bp": "e"}})",
        correlation_, kBase + begin + 20));
  }
  [[nodiscard]] Found find(const FindOptions& options = {}) const {
    const test::TempDir dir;
    auto trace =
        formats::load_run({dir.file("old.json", "{\"traceEvents\": [" + events_ + "], \"traceName\": \"old\"}")}, {});
    EXPECT_TRUE(trace.ok());
    auto found = find_cycles(*trace, order_slices(*trace), options);
    EXPECT_TRUE(found.ok());
    return std::move(*found);
  }

 private:
  static constexpr long kBase = 1616667019344000;
  void add(const std::string& event) { events_ += (events_.empty() ? "\n" : ",\n") + event; }
  std::string events_;
  int external_ = 0;
  int correlation_ = 0;
};

/// Five steps of 10 ms; everything the host does has category `category`.
OldTrace training(const std::string& category, bool gpu) {
  OldTrace trace;
  for (int s = 0; s < 5; ++s) {
    const int at = s * 10'000;
    trace.slice(category, fmt::format("ProfilerStep#{}", s + 5), at, 9'990);
    trace.slice(category, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 500);
    trace.slice(category, "aten::to", at + 600, 100);
    if (gpu) trace.launch("Memcpy HtoD (Pageable -> Device)", at + 620, 60, "Memcpy");
    for (int l = 0; l < 20; ++l) {
      trace.slice(category, "aten::conv2d", at + 800 + l * 200, 100);
      if (gpu) trace.launch("volta_scudnn_128x64_relu_interior_nn_v1", at + 810 + l * 200, 90);
    }
    trace.slice(category, "Optimizer.step#SGD.step", at + 8'000, 1'000);
    if (gpu) trace.launch("void at::native::vectorized_elementwise_kernel<4>", at + 8'100, 20);
  }
  return trace;
}

TEST(OldKineto, ProfilerStepsAreMarkersWhateverTheirCategory) {
  for (const char* category : {"Operator", "cpu_op", "user_annotation", "", "Trace", "python_function", "whatever"})
    for (const bool gpu : {true, false}) {
      const model::Cycles cycles = training(category, gpu).find().cycles;
      EXPECT_EQ(cycles.method, CycleMethod::marker) << category;
      EXPECT_EQ(cycles.anchor, "ProfilerStep#N") << category;
      ASSERT_EQ(cycles.cycles.size(), 5U) << category;
      EXPECT_GT(cycles.period_confidence, 0.95) << category;
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(cycles.cycles[i].begin - cycles.cycles[0].begin, static_cast<Ns>(i) * 10'000'000) << category;
        if (!gpu) continue;
        ASSERT_EQ(cycles.cycles[i].devices.size(), 1U) << category;
        EXPECT_EQ(cycles.cycles[i].devices[0].operations, 22U) << category;
      }
    }
}

TEST(OldKineto, StepsThatUsersNamedAreMarkersThoughCalledOperators) {
  OldTrace trace;
  for (int s = 0; s < 5; ++s) {
    trace.slice("Operator", fmt::format("train iteration {}", s), s * 10'000, 9'000);
    trace.slice("Operator", "aten::mm", s * 10'000 + 100, 50);
    trace.launch("sgemm", s * 10'000 + 110, 90);
  }
  const model::Cycles cycles = trace.find().cycles;
  EXPECT_EQ(cycles.method, CycleMethod::marker);
  EXPECT_EQ(cycles.cycles.size(), 5U);
}

TEST(OldKineto, OperatorsAndFunctionsCalledStepAreNoMarkers) {
  OldTrace trace;
  for (int s = 0; s < 5; ++s) {
    trace.slice("Operator", fmt::format("ProfilerStep#{}", s), s * 10'000, 9'990);
    for (int k = 0; k < 3; ++k) {
      trace.slice("Operator", "aten::lstm_step", s * 10'000 + 100 + k * 1000, 500);
      trace.slice("python_function", "torch/optim/optimizer.py(140): step", s * 10'000 + 700 + k * 1000, 100);
    }
  }
  EXPECT_EQ(trace.find().cycles.cycles.size(), 5U);
}

TEST(OldKineto, MarkersThatAreOperatorsAreIgnoredWhenAsked) {
  FindOptions options;
  options.ignore_markers = true;
  const model::Cycles cycles = training("Operator", false).find(options).cycles;
  EXPECT_EQ(cycles.method, CycleMethod::operator_sequence);
  EXPECT_EQ(cycles.cycles.size(), 5U);
}

}  // namespace
}  // namespace culprit::cycles
