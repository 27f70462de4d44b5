#include "profile/stream_waits.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using testing_support::TraceMaker;

/// One thread that launches on streams, records events and lets streams wait for them.
struct Streams {
  TraceMaker maker;
  TrackId thread = maker.thread(4242, 4242);
  std::uint32_t calls = 0;

  SliceIndex call(std::string_view name, Ns at) { return maker.slice(thread, "cuda_runtime", name, at, 1, ++calls); }
  /// Launched at `at`, runs in [begin, end).
  void work(std::string_view name, std::int32_t device, std::int32_t stream, Ns at, Ns begin, Ns end) {
    maker.gpu(maker.stream(device, stream), "kernel", name, begin, end - begin, call("cudaLaunchKernel", at));
  }
  /// The number of the call that records an event; on which stream only the waits tell.
  std::uint32_t record(Ns at) {
    call("cudaEventRecord", at);
    return calls;
  }
  StreamWait& wait(std::int32_t device, std::int32_t stream, Ns at, std::uint32_t recorded_by,
                   std::int32_t event_stream) {
    call("cudaStreamWaitEvent", at);
    const SliceIndex slice = maker.slice(maker.stream(device, stream), "cuda_sync", "Stream Wait Event", at, 1, calls);
    maker.trace().stream_waits.push_back({slice, recorded_by, device, stream, -1, event_stream});
    return maker.trace().stream_waits.back();
  }
  /// The name of what the operation of this name waits for; "" for nothing.
  std::string awaited_by(std::string_view name) {
    const Trace& trace = maker.trace();
    const std::vector<GpuIndex> waits = waits_for_devices(trace);
    for (GpuIndex g = 0; g < waits.size(); ++g)
      if (trace.name(trace.slices[trace.gpu[g].slice]) == name)
        return waits[g] == kNone ? "" : std::string(trace.name(trace.slices[trace.gpu[waits[g]].slice]));
    return "no such operation";
  }
};

TEST(StreamWaits, WithoutAnyNothingIsToldOf) {
  Streams streams;
  streams.work("gemm", 0, 7, 0, 5, 9);
  EXPECT_TRUE(waits_for_devices(streams.maker.trace()).empty());
}

TEST(StreamWaits, WhatIsLaunchedBehindOneWaitsForWhatStoodBeforeTheEvent) {
  Streams s;
  s.work("send", 1, 20, 0, 10, 100);
  const std::uint32_t event = s.record(10);
  s.work("later", 1, 20, 12, 100, 200);
  s.work("before", 0, 7, 15, 20, 30);
  s.wait(0, 7, 20, event, 20);
  s.work("behind", 0, 7, 30, 101, 120);
  s.work("beside", 0, 8, 30, 32, 33);
  EXPECT_EQ(s.awaited_by("behind"), "send");
  for (const char* name : {"send", "later", "before", "beside"}) EXPECT_EQ(s.awaited_by(name), "") << name;
}

TEST(StreamWaits, OfSeveralThatMustEndTheLastCounts) {
  Streams s;
  s.work("long", 1, 20, 0, 10, 300);
  s.work("short", 1, 21, 1, 10, 50);
  const std::uint32_t first = s.record(2);
  const std::uint32_t second = s.record(3);
  s.wait(0, 7, 4, first, 20);
  s.wait(0, 7, 5, second, 21);
  s.work("behind", 0, 7, 6, 300, 310);
  EXPECT_EQ(s.awaited_by("behind"), "long");
}

TEST(StreamWaits, TheyReachThroughStreamsBetween) {
  Streams s;
  s.work("send", 1, 20, 0, 10, 100);
  s.wait(0, 7, 2, s.record(1), 20);
  s.wait(0, 8, 4, s.record(3), 7);
  s.work("behind", 0, 8, 5, 100, 110);
  EXPECT_EQ(s.awaited_by("behind"), "send");
  // On the way back to its own device that one's work is none of another.
  s.wait(1, 21, 7, s.record(6), 8);
  s.work("back", 1, 21, 8, 110, 120);
  EXPECT_EQ(s.awaited_by("back"), "behind");
}

TEST(StreamWaits, OfOneDeviceAreNoneOfAnother) {
  Streams s;
  s.work("send", 0, 20, 0, 10, 100);
  s.wait(0, 7, 2, s.record(1), 20);
  s.work("behind", 0, 7, 3, 100, 110);
  EXPECT_EQ(s.awaited_by("behind"), "");
}

TEST(StreamWaits, AStreamNumberThatSeveralDevicesHaveSaysNothingAlone) {
  Streams s;
  s.work("send", 1, 7, 0, 10, 100);
  s.work("first", 0, 7, 1, 10, 20);
  StreamWait& wait = s.wait(0, 7, 3, s.record(2), 7);
  s.work("behind", 0, 7, 4, 100, 110);
  EXPECT_EQ(s.awaited_by("behind"), "");
  wait.event_device = 1;
  EXPECT_EQ(s.awaited_by("behind"), "send");
}

TEST(StreamWaits, WithoutTheCallThatRecordedTheEventNothingIsKnown) {
  Streams s;
  s.work("send", 1, 20, 0, 10, 100);
  s.wait(0, 7, 3, 999, 20);
  s.work("behind", 0, 7, 4, 100, 110);
  EXPECT_EQ(s.awaited_by("behind"), "");
}

TEST(StreamWaits, WithoutItsOwnCallAWaitBeginsWithItsRecord) {
  Streams s;
  s.work("send", 1, 20, 0, 10, 100);
  const StreamWait wait = s.wait(0, 7, 3, s.record(1), 20);
  s.maker.trace().slices[wait.slice].correlation = 0;
  s.work("before", 0, 7, 2, 4, 5);
  s.work("behind", 0, 7, 4, 100, 110);
  EXPECT_EQ(s.awaited_by("before"), "");
  EXPECT_EQ(s.awaited_by("behind"), "send");
}

TEST(StreamWaits, NumbersOfCallsAreThoseOfOneRank) {
  Streams s;
  s.work("send", 1, 20, 0, 10, 100);
  const std::uint32_t event = s.record(1);
  const TrackId stream = s.maker.stream(0, 7, s.maker.rank(1));
  const SliceIndex slice = s.maker.slice(stream, "cuda_sync", "Stream Wait Event", 2, 1, 99);
  s.maker.trace().stream_waits.push_back({slice, event, 0, 7, -1, 20});
  s.work("behind", 0, 7, 4, 100, 110);
  EXPECT_EQ(s.awaited_by("behind"), "");
}

}  // namespace
}  // namespace culprit::profile
