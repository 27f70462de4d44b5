#include "formats/perfetto/export.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <tuple>
#include <vector>

#include "formats/kineto/reader.h"
#include "formats/perfetto/writer.h"
#include "support.h"
#include "support/shared_data.h"
#include "tracegen/generate.h"

namespace culprit::perfetto::test {
namespace {

using culprit::test::TempDir;

/// What a slice is, without the numbers that differ between files.
using Fingerprint = std::tuple<Ns, Ns, std::string, std::string, std::uint32_t, std::int32_t, std::int32_t,
                               std::uint64_t, std::uint32_t, std::int64_t>;

std::vector<Fingerprint> fingerprints(const Trace& trace) {
  std::vector<Fingerprint> all;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& s = trace.slices[i];
    const GpuSlice gpu = s.gpu == kNone ? GpuSlice{} : trace.gpu[s.gpu];
    all.emplace_back(trace.base_ns + s.begin, s.duration, std::string(trace.name(s)), trace.categories[s.category].name,
                     s.correlation, gpu.device, gpu.stream, gpu.bytes, gpu.grid[0] * 31 + gpu.block[1],
                     s.extra == kNone ? -1 : trace.extras[s.extra].sequence);
  }
  std::ranges::sort(all);
  return all;
}

Trace kineto(const std::string& path) {
  auto input = formats::Input::open(path);
  EXPECT_TRUE(input);
  auto trace = formats::kineto::read(std::move(*input), {});
  EXPECT_TRUE(trace);
  return std::move(*trace);
}

void comes_back(const Trace& trace) {
  const TempDir dir;
  const Status saved = save_trace(trace, dir.path("x.pftrace"));
  ASSERT_TRUE(saved) << to_string(saved.error());
  const Trace back = read_file(dir.path("x.pftrace"));
  EXPECT_EQ(back.losses[LossReason::begin_without_end], 0U);
  EXPECT_EQ(back.losses[LossReason::end_without_begin], 0U);
  const auto before = fingerprints(trace);
  const auto after = fingerprints(back);
  ASSERT_EQ(before.size(), after.size());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < before.size(); ++i) differ += before[i] != after[i] ? 1 : 0;
  EXPECT_EQ(differ, 0U);
  EXPECT_EQ(back.instants.size(), trace.instants.size());
  std::size_t samples_before = 0;
  std::size_t samples_after = 0;
  for (const CounterSeries& series : trace.counters) samples_before += series.samples.size();
  for (const CounterSeries& series : back.counters) samples_after += series.samples.size();
  EXPECT_EQ(samples_before, samples_after);
  const auto streams = [](const Trace& t) { return std::ranges::count(t.tracks, TrackKind::gpu_stream, &Track::kind); };
  EXPECT_EQ(streams(back), streams(trace));
}

TEST(PerfettoExport, GeneratedTraceComesBack) {
  const TempDir dir;
  tracegen::Options options;
  options.output = dir.path("x.json");
  const auto generated = tracegen::generate(options);
  ASSERT_TRUE(generated);
  comes_back(kineto(dir.path("x.json")));
}

TEST(PerfettoExport, OverlappingSlicesOfOneThreadComeBack) {
  const TempDir dir;
  const std::string events = R"({"ph":"X","name":"a","cat":"c","pid":1,"tid":2,"ts":0,"dur":10},)"
                             R"({"ph":"X","name":"b","cat":"c","pid":1,"tid":2,"ts":5,"dur":10},)"
                             R"({"ph":"X","name":"c","cat":"c","pid":1,"tid":2,"ts":5,"dur":10},)"
                             R"({"ph":"X","name":"d","cat":"c","pid":1,"tid":2,"ts":10,"dur":0},)"
                             R"({"ph":"X","name":"e","cat":"c","pid":1,"tid":2,"ts":10,"dur":5})";
  const Trace trace = kineto(dir.file("x.json", R"({"traceEvents":[)" + events + "]}"));
  comes_back(trace);
  ASSERT_TRUE(save_trace(trace, dir.path("x.pftrace")));
  const Trace back = read_file(dir.path("x.pftrace"));
  EXPECT_EQ(slice_named(back, "a").track, slice_named(back, "b").track);
}

TEST(PerfettoExport, FlowsComeBackWithTheirKind) {
  const TempDir dir;
  std::string events;
  for (int i = 0; i < 3; ++i)
    events += fmt::format(R"({{"ph":"X","name":"forward{0}","cat":"cpu_op","pid":1,"tid":2,"ts":{1},"dur":5}},)"
                          R"({{"ph":"X","name":"backward{0}","cat":"cpu_op","pid":1,"tid":3,"ts":{2},"dur":5}},)"
                          R"({{"ph":"s","name":"fwdbwd","cat":"fwdbwd","id":{0},"pid":1,"tid":2,"ts":{1}}},)"
                          R"({{"ph":"f","name":"fwdbwd","cat":"fwdbwd","id":{0},"pid":1,"tid":3,"ts":{2},"bp":"e"}},)",
                          i, 10 * i, 100 + 10 * i);
  events.pop_back();
  const Trace trace = kineto(dir.file("x.json", R"({"traceEvents":[)" + events + "]}"));
  ASSERT_EQ(trace.flows.size(), 3U);
  ASSERT_TRUE(save_trace(trace, dir.path("x.pftrace")));
  const Trace back = read_file(dir.path("x.pftrace"));
  ASSERT_EQ(back.flows.size(), 3U);
  for (const Flow& flow : back.flows) {
    const std::string from(back.name(back.slices[flow.from]));
    ASSERT_THAT(from, ::testing::StartsWith("forward"));
    EXPECT_EQ(back.name(back.slices[flow.to]), "backward" + from.substr(7));
    EXPECT_EQ(flow.kind, FlowKind::forward_backward);
  }
}

TEST(PerfettoExport, WaitsOfStreamsComeBack) {
  const TempDir dir;
  const std::string events =
      R"({"ph":"X","name":"cudaStreamWaitEvent","cat":"cuda_runtime","pid":9,"tid":9,"ts":1,"dur":2,"args":{"correlation":8}},)"
      R"({"ph":"X","name":"Stream Wait Event","cat":"cuda_sync","pid":0,"tid":7,"ts":1,"dur":2,"args":{"correlation":8,)"
      R"("device":0,"stream":7,"wait_on_device":1,"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":5}},)"
      R"({"ph":"X","name":"Stream Sync","cat":"cuda_sync","pid":0,"tid":7,"ts":9,"dur":2,"args":{"correlation":10}})";
  const Trace trace = kineto(dir.file("x.json", R"({"traceEvents":[)" + events + "]}"));
  ASSERT_EQ(trace.stream_waits.size(), 1U);
  comes_back(trace);
  ASSERT_TRUE(save_trace(trace, dir.path("x.pftrace")));
  const Trace back = read_file(dir.path("x.pftrace"));
  ASSERT_EQ(back.stream_waits.size(), 1U);
  const StreamWait& wait = back.stream_waits[0];
  EXPECT_EQ(back.slices[wait.slice].correlation, 8U);
  EXPECT_EQ(wait.recorded_by, 5U);
  EXPECT_EQ(wait.device, 0);
  EXPECT_EQ(wait.stream, 7);
  EXPECT_EQ(wait.event_device, 1);
  EXPECT_EQ(wait.event_stream, 20);
}

TEST(PerfettoExport, TotalsOfCallsComeBackOnce) {
  const TempDir dir;
  auto writer = Writer::create(dir.path("x.pftrace"));
  ASSERT_TRUE(writer);
  const std::vector<Argument> total = {
      {"count", std::int64_t{3}}, {"total_ns", std::int64_t{70}}, {"longest_so_far_ns", std::int64_t{50}}};
  const TrackUuid track = writer->named_track("system call totals", 100, 101);
  for (const Ns at : {10, 20}) writer->instant(track, at, "read", kCallTotals, total);
  writer->instant(track, 20, "mark", "other", {});
  ASSERT_TRUE(writer->close());
  const Trace trace = read_file(dir.path("x.pftrace"));
  ASSERT_EQ(trace.calls.size(), 2U);
  ASSERT_TRUE(save_trace(trace, dir.path("y.pftrace")));
  const Trace back = read_file(dir.path("y.pftrace"));
  ASSERT_EQ(back.calls.size(), 2U);
  EXPECT_EQ(back.instants.size(), trace.instants.size());
  EXPECT_EQ(back.calls.front().count, 3U);
  EXPECT_EQ(back.calls.front().time, 70);
  EXPECT_EQ(back.calls.front().longest_so_far, 50);
}

TEST(PerfettoExport, TextPidsAndHugeTidsGetNumbersAndKeepNames) {
  const TempDir dir;
  const std::string events =
      R"({"ph":"X","name":"a","cat":"c","pid":"Spans","tid":"PyTorch Profiler","ts":-5,"dur":10},)"
      R"({"ph":"X","name":"b","cat":"c","pid":0,"tid":139876543210987,"ts":5,"dur":10})";
  const Trace trace =
      kineto(dir.file("x.json", R"({"baseTimeNanoseconds":1700000000000000000,"traceEvents":[)" + events + "]}"));
  comes_back(trace);
  ASSERT_TRUE(save_trace(trace, dir.path("x.pftrace")));
  const std::string text = decode(dir.path("x.pftrace"));
  EXPECT_THAT(text, ::testing::HasSubstr("process_name: \"Spans\""));
  EXPECT_THAT(text, ::testing::HasSubstr("thread 139876543210987"));
}

TEST(PerfettoExport, NothingIsLeftBehindWhenTheDiskIsFull) {
  EXPECT_FALSE(save_trace(Trace{}, "/dev/full"));
  const TempDir dir;
  EXPECT_FALSE(save_trace(Trace{}, dir.path("no/such/folder.pftrace")));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(PerfettoExport, CorpusTracesComeBack) {
  CULPRIT_NEEDS_SHARED("corpus/kineto");
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(culprit::test::shared("corpus/kineto")))
    if (entry.is_regular_file() && entry.path().string().find(".json") != std::string::npos &&
        entry.file_size() < (std::uintmax_t{1} << 20))
      files.push_back(entry.path());
  std::ranges::sort(files);
  std::size_t tried = 0;
  for (const std::string& file : files) {
    if (tried == 12) break;
    SCOPED_TRACE(file);
    auto input = formats::Input::open(file);
    if (!input) continue;
    auto trace = formats::kineto::read(std::move(*input), {});
    if (!trace || trace->slices.empty()) continue;
    ++tried;
    comes_back(*trace);
  }
  EXPECT_GT(tried, 0U);
}

/// Three threads, streams, counters and marks; equal times, so that only content can order them.
std::vector<std::string> json_events() {
  std::vector<std::string> events;
  for (int i = 0; i < 60; ++i) {
    events.push_back(fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"op{}","pid":1,"tid":{},"ts":{},"dur":5}})", i % 7,
                                 i % 3, i / 6));
    events.push_back(fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":7,"ts":{},"dur":2,"args":{{"device":0,"stream":{},"correlation":{}}}}})",
        i % 5, i / 4, i % 2, i));
    events.push_back(fmt::format(R"({{"ph":"i","name":"mark{}","pid":1,"tid":{},"ts":{}}})", i % 4, i % 3, i / 10));
    events.push_back(fmt::format(R"({{"ph":"C","name":"c{}","pid":1,"ts":{},"args":{{"v":{}}}}})", i % 3, i / 3, i));
  }
  return events;
}

std::string exported(const TempDir& dir, const std::vector<std::string>& events) {
  std::string text = R"({"traceEvents": [)";
  for (const std::string& event : events) text += (&event == events.data() ? "" : ",\n") + event;
  const Trace trace = kineto(dir.file("trace.json", text + "]}"));
  EXPECT_TRUE(save_trace(trace, dir.path("out.pftrace"), true));
  return bytes_of(dir.path("out.pftrace"));
}

TEST(PerfettoExport, TheSameEventsAreTheSameBytesInAnyOrder) {
  const TempDir dir;
  std::vector<std::string> events = json_events();
  const std::string first = exported(dir, events);
  EXPECT_EQ(exported(dir, events), first);
  std::mt19937 chance(7);
  for (int i = 0; i < 5; ++i) {
    std::ranges::shuffle(events, chance);
    EXPECT_EQ(exported(dir, events), first);
  }
  events.pop_back();
  EXPECT_NE(exported(dir, events), first);
  EXPECT_EQ(count_of(decode(dir.path("out.pftrace")), "trace_uuid"), 1U);
}

}  // namespace
}  // namespace culprit::perfetto::test
