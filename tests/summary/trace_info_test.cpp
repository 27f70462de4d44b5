#include "summary/trace_info.h"

#include <gtest/gtest.h>

#include "support/trace_maker.h"

namespace culprit::summary {
namespace {

using testing_support::TraceMaker;

TEST(TraceInfo, EmptyTrace) {
  const Trace trace;
  const auto info = trace_info(trace);
  EXPECT_EQ(info.slices, 0u);
  EXPECT_EQ(info.duration, 0);
  EXPECT_EQ(info.kernels.count, 0u);
  EXPECT_EQ(info.top_name, "");
  EXPECT_TRUE(info.losses.empty());
}

TEST(TraceInfo, KernelsCopiesAndFillsApart) {
  TraceMaker make;
  const TrackId stream = make.stream(0, 7);
  make.gpu(stream, "kernel", "a", 0, 10);
  make.gpu(stream, "kernel", "b", 10, 30);
  make.gpu(stream, "kernel", "a", 40, 10);
  make.gpu(stream, "gpu_memcpy", "Memcpy HtoD", 60, 5);
  make.gpu(stream, "gpu_memset", "Memset", 70, 2);
  const auto info = trace_info(make.trace());
  EXPECT_EQ(info.kernels.count, 3u);
  EXPECT_EQ(info.kernels.sum, 50);
  EXPECT_EQ(info.unique_kernels, 2u);
  EXPECT_EQ(info.top_name, "b");
  EXPECT_EQ(info.top.sum, 30);
  EXPECT_EQ(info.memcpy.count, 1u);
  EXPECT_EQ(info.memcpy.sum, 5);
  EXPECT_EQ(info.memset.count, 1u);
  EXPECT_EQ(info.memset.sum, 2);
  EXPECT_EQ(info.busy_union, 57);
  EXPECT_EQ(info.duration, 72);
  EXPECT_EQ(info.names, 4u) << "other texts are none";
}

TEST(TraceInfo, BusyUnionOverDevicesAndStreamsTogetherAndApart) {
  TraceMaker make;
  make.gpu(make.stream(0, 7), "kernel", "a", 0, 10);
  make.gpu(make.stream(0, 8), "kernel", "a", 5, 10);
  make.gpu(make.stream(1, 7), "kernel", "a", 12, 10);
  make.trace().devices.push_back({1, 0, "H100", 80, 132, 32, "9.0"});
  make.trace().devices.push_back({2, 0, "H100", 80, 132, 32, "9.0"});
  const auto info = trace_info(make.trace());
  EXPECT_EQ(info.busy_union, 22);
  ASSERT_EQ(info.devices.size(), 3u);
  EXPECT_EQ(info.devices[0].busy_union, 15);
  EXPECT_EQ(info.devices[0].streams, 2u);
  EXPECT_EQ(info.devices[0].name, "");
  EXPECT_EQ(info.devices[1].busy_union, 10);
  EXPECT_EQ(info.devices[1].name, "H100");
  EXPECT_EQ(info.devices[2].gpu_work.count, 0u);
}

TEST(TraceInfo, TheSameDeviceNumberOfTwoRanksIsTwoDevices) {
  TraceMaker make;
  const auto second = make.rank(5);
  make.gpu(make.stream(0, 7), "kernel", "a", 0, 10);
  make.gpu(make.stream(0, 7, second), "kernel", "a", 0, 20);
  const auto info = trace_info(make.trace());
  ASSERT_EQ(info.devices.size(), 2u);
  EXPECT_EQ(info.devices[0].busy_union, 10);
  EXPECT_EQ(info.devices[1].busy_union, 20);
  EXPECT_EQ(info.devices[1].rank, 5);
}

TEST(TraceInfo, MarkersRepeatAndDigitsDoNotCount) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  for (int i = 0; i < 4; ++i) {
    make.slice(thread, "user_annotation", "execute_" + std::to_string(i * 100) + "_x", i * 100, 90);
    make.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i + 8), i * 100, 50);
  }
  make.slice(thread, "user_annotation", "once", 0, 1000);
  const auto info = trace_info(make.trace());
  ASSERT_EQ(info.markers.size(), 2u);
  EXPECT_EQ(info.markers[0].pattern, "ProfilerStep#N");
  EXPECT_EQ(info.markers[0].slices.count, 4u);
  EXPECT_EQ(info.markers[1].pattern, "execute_N_x");
}

TEST(TraceInfo, LossesCarryMeaningAndRemedy) {
  TraceMaker make;
  make.trace().losses.add(LossReason::truncated_tail, 1, "x.json byte 12");
  const auto info = trace_info(make.trace());
  ASSERT_EQ(info.losses.size(), 1u);
  EXPECT_EQ(info.losses[0].reason, "truncated_tail");
  EXPECT_EQ(info.losses[0].severity, "data loss");
  EXPECT_EQ(info.losses[0].first_seen, "x.json byte 12");
  EXPECT_FALSE(info.losses[0].remedy.empty());
}

TEST(TraceInfo, SumsDoNotOverflow) {
  TraceMaker make;
  const TrackId stream = make.stream(0, 7);
  for (int i = 0; i < 12; ++i) make.gpu(stream, "kernel", "a", 0, 1'000'000'000'000'000'000);
  EXPECT_EQ(trace_info(make.trace()).kernels.sum, std::numeric_limits<Ns>::max());
}

}  // namespace
}  // namespace culprit::summary
