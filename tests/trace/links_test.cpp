// Launchers and flows are what the events say, not where they stand.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "trace/build.h"

namespace culprit {
namespace {

using test::Building;
using test::row_of;

/// Adds rows and flow ends in every of some random orders and lets `check` look at the result.
void in_any_order(std::vector<std::function<void(Building&)>> rows, const std::function<void(const Trace&)>& check) {
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    Building b;
    for (const auto& row : rows) row(b);
    check(b.finish());
    std::ranges::shuffle(rows, random);
  }
}

const GpuSlice& gpu_of(const Trace& t, std::string_view name) { return t.gpu[t.slices[row_of(t, name)].gpu]; }

TEST(Launchers, TheOuterOfTwoCallsWithOneIdLaunched) {
  in_any_order({[](Building& b) { b.slice(b.thread(1, 1), "cuda_driver", "cuLaunchKernel", 12, 3, 5); },
                [](Building& b) { b.slice(b.thread(1, 1), "cuda_runtime", "cudaLaunchKernel", 10, 9, 5); },
                [](Building& b) { b.kernel(b.thread(0, 7), "k", 30, 5, 5); }},
               [](const Trace& t) { EXPECT_EQ(gpu_of(t, "k").launcher, row_of(t, "cudaLaunchKernel")); });
}

TEST(Launchers, OfCallsWithOneSpanTheRuntimeLaunched) {
  in_any_order({[](Building& b) { b.slice(b.thread(1, 1), "cuda_driver", "a driver call", 10, 3, 5); },
                [](Building& b) { b.slice(b.thread(1, 1), "cuda_runtime", "runtime call", 10, 3, 5); },
                [](Building& b) { b.kernel(b.thread(0, 7), "k", 30, 5, 5); }},
               [](const Trace& t) { EXPECT_EQ(gpu_of(t, "k").launcher, row_of(t, "runtime call")); });
}

TEST(Launchers, NodesOfAGraphShareTheirs) {
  Building b;
  b.slice(b.thread(1, 1), "cuda_runtime", "cudaGraphLaunch", 10, 3, 5);
  b.kernel(b.thread(0, 7), "a", 30, 5, 5);
  b.kernel(b.thread(0, 7), "b", 40, 5, 5);
  b.kernel(b.thread(0, 7), "alone", 50, 5, 6);
  const Trace t = b.finish();
  EXPECT_EQ(gpu_of(t, "a").launcher, 0U);
  EXPECT_EQ(gpu_of(t, "b").launcher, 0U);
  EXPECT_EQ(gpu_of(t, "alone").launcher, kNone);
  EXPECT_EQ(t.losses[LossReason::gpu_without_launcher], 1U);
}

TEST(Launchers, IdsFarApartAreFoundToo) {
  Building b;
  for (const std::uint32_t id : {1U, 0x7fffffffU, 0xfffffff0U}) {
    b.slice(b.thread(1, 1), "cuda_runtime", "launch", id, 3, id);
    b.kernel(b.thread(0, 7), "k", Ns{id} + 10, 5, id);
  }
  const Trace t = b.finish();
  for (std::size_t g = 0; g < t.gpu.size(); ++g)
    EXPECT_EQ(t.slices[t.gpu[g].launcher].correlation, t.slices[t.gpu[g].slice].correlation);
}

TEST(Launchers, ANumberedCallHasNoCorrelationId) {
  Building b;
  Slice op = b.make(b.thread(1, 1), "cpu_op", "aten::mm", 1, 9);
  TraceBuilder::number_call(op, 5);
  b.builder.add(op);
  b.kernel(b.thread(0, 7), "k", 30, 5, 5);
  const Trace t = b.finish();
  EXPECT_EQ(t.slices[0].correlation, 0U);
  EXPECT_EQ(t.slices[0].rank, 0U);
  EXPECT_EQ(gpu_of(t, "k").launcher, kNone);
}

TEST(Flows, AnArrowLinksWhereNoCorrelationIdDoes) {
  in_any_order({[](Building& b) { b.slice(b.thread(1, 1), "cuda_runtime", "launch", 10, 3, 1); },
                [](Building& b) { b.kernel(b.thread(0, 7), "k", 30, 5, 2); },
                [](Building& b) { b.open('s', b.thread(1, 1), 10, "", 99, "ac2g", 5); },
                [](Building& b) { b.open('f', b.thread(0, 7), 30, "", 99, "ac2g", 5); }},
               [](const Trace& t) {
                 EXPECT_EQ(gpu_of(t, "k").launcher, row_of(t, "launch"));
                 EXPECT_TRUE(t.flows.empty()) << "the launcher says it";
                 EXPECT_EQ(t.losses.total(), 0U);
               });
}

TEST(Flows, AnArrowThatRepeatsTheCorrelationIdSaysNothingNew) {
  in_any_order({[](Building& b) { b.slice(b.thread(1, 1), "cuda_runtime", "launch", 10, 3, 5); },
                [](Building& b) { b.kernel(b.thread(0, 7), "k", 30, 5, 5); },
                [](Building& b) { b.open('s', b.thread(1, 1), 10, "", 99, "ac2g", 5); }},
               [](const Trace& t) {
                 EXPECT_EQ(gpu_of(t, "k").launcher, row_of(t, "launch"));
                 EXPECT_TRUE(t.flows.empty());
                 EXPECT_EQ(t.losses.total(), 0U);
               });
}

TEST(Flows, WhereOneEndRepeatsTheIdTheOtherStillFindsIt) {
  // The launch carries the id of the arrow, the kernel does not; then the other way round.
  in_any_order({[](Building& b) { b.slice(b.thread(1, 1), "cuda_runtime", "launch", 10, 3, 5); },
                [](Building& b) { b.kernel(b.thread(0, 7), "k", 30, 5); },
                [](Building& b) { b.open('s', b.thread(1, 1), 10, "", 99, "ac2g", 5); },
                [](Building& b) { b.open('f', b.thread(0, 7), 30, "", 99, "ac2g", 5); }},
               [](const Trace& t) { EXPECT_EQ(gpu_of(t, "k").launcher, row_of(t, "launch")); });
  in_any_order({[](Building& b) { b.slice(b.thread(1, 1), "cuda_runtime", "launch", 10, 3); },
                [](Building& b) { b.kernel(b.thread(0, 7), "k", 30, 5, 5); },
                [](Building& b) { b.open('s', b.thread(1, 1), 10, "", 99, "ac2g", 5); },
                [](Building& b) { b.open('f', b.thread(0, 7), 30, "", 99, "ac2g", 5); }},
               [](const Trace& t) { EXPECT_EQ(gpu_of(t, "k").launcher, row_of(t, "launch")); });
}

TEST(Flows, StartAtTheInnermostSliceAndPassThroughSteps) {
  in_any_order({[](Building& b) { b.slice(b.thread(1, 1), "python_function", "outer", 10, 20); },
                [](Building& b) { b.slice(b.thread(1, 1), "cpu_op", "inner", 10, 20); },
                [](Building& b) { b.slice(b.thread(1, 2), "cpu_op", "step", 40, 5); },
                [](Building& b) { b.slice(b.thread(1, 3), "cpu_op", "end", 60, 5); },
                [](Building& b) { b.open('s', b.thread(1, 1), 12, "", 4, "fwdbwd"); },
                [](Building& b) { b.open('t', b.thread(1, 2), 41, "", 4, "fwdbwd"); },
                [](Building& b) { b.open('f', b.thread(1, 3), 60, "", 4, "fwdbwd"); }},
               [](const Trace& t) {
                 ASSERT_EQ(t.flows.size(), 2U);
                 EXPECT_EQ(t.flows[0].from, row_of(t, "inner"));
                 EXPECT_EQ(t.flows[0].to, row_of(t, "step"));
                 EXPECT_EQ(t.flows[1].from, row_of(t, "step"));
                 EXPECT_EQ(t.flows[1].to, row_of(t, "end"));
                 EXPECT_EQ(t.flows[0].kind, FlowKind::forward_backward);
               });
}

TEST(Flows, OfOneMomentStartBeforeStepBeforeEnd) {
  in_any_order({[](Building& b) { b.slice(b.thread(1, 1), "cpu_op", "a", 10, 5); },
                [](Building& b) { b.slice(b.thread(1, 2), "cpu_op", "b", 10, 5); },
                [](Building& b) { b.slice(b.thread(1, 3), "cpu_op", "c", 10, 5); },
                [](Building& b) { b.open('s', b.thread(1, 3), 10, "", 4, "x"); },
                [](Building& b) { b.open('t', b.thread(1, 2), 10, "", 4, "x"); },
                [](Building& b) { b.open('f', b.thread(1, 1), 10, "", 4, "x"); }},
               [](const Trace& t) {
                 ASSERT_EQ(t.flows.size(), 2U);
                 EXPECT_EQ(t.flows[0].from, row_of(t, "c"));
                 EXPECT_EQ(t.flows[1].to, row_of(t, "a"));
               });
}

TEST(Flows, AnEndWithoutSliceIsCounted) {
  Building b;
  b.slice(b.thread(1, 1), "cpu_op", "a", 10, 5);
  b.open('s', b.thread(1, 1), 99, "", 4, "fwdbwd");
  const Trace t = b.finish();
  EXPECT_EQ(t.losses[LossReason::flow_unbound], 1U);
  EXPECT_TRUE(t.flows.empty());
}

}  // namespace
}  // namespace culprit
