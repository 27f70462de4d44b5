#include "formats/kineto/writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/io/input.h"
#include "formats/kineto/reader.h"
#include "support/trace_maker.h"

namespace culprit::formats::kineto {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing_support::TraceMaker;

std::string text_of(const Trace& trace, std::uint16_t rank = 0) {
  std::string text;
  const Status status = write_trace(trace, rank, [&](std::string_view piece) {
    text += piece;
    return Status{};
  });
  EXPECT_TRUE(status.ok());
  return text;
}

/// What has to survive writing and loading, one line per thing, independent of ids.
std::vector<std::string> content_of(const Trace& trace) {
  std::vector<std::string> lines;
  const auto place = [&](TrackId id) {
    const Track& t = trace.tracks[id];
    const Process& p = trace.processes[t.process];
    return json::array({p.pid, trace.strings[p.text], trace.strings[p.name], trace.strings[p.labels], t.tid,
                        trace.strings[t.name], static_cast<int>(t.kind), t.device, t.stream});
  };
  const auto brief = [&](SliceIndex i) {
    if (i == kNone) return json();
    const Slice& s = trace.slices[i];
    return json::array({trace.name(s), s.begin + trace.base_ns, s.duration, place(s.track)});
  };
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& s = trace.slices[i];
    json line = {"slice", brief(static_cast<SliceIndex>(i)), trace.categories[s.category].name, s.correlation};
    if (s.gpu != kNone) {
      const GpuSlice& g = trace.gpu[s.gpu];
      line.push_back(
          {brief(g.launcher), g.bytes, g.stream, g.device, g.grid, g.block, g.shared_memory, g.registers, g.context});
    }
    if (s.extra != kNone) {
      const SliceExtra& e = trace.extras[s.extra];
      line.push_back({e.sequence, e.forward_thread, e.graph_node, trace.strings[e.collective], trace.strings[e.group],
                      e.elements});
    }
    lines.push_back(line.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  for (std::size_t i = 0; i < trace.instants.size(); ++i) {
    const Instant& at = trace.instants[i];
    lines.push_back(json({"instant", at.at + trace.base_ns, trace.strings[at.name], place(at.track)})
                        .dump(-1, ' ', false, json::error_handler_t::replace));
  }
  for (const CounterSeries& c : trace.counters)
    for (const CounterSample& s : c.samples)
      lines.push_back(json({"counter", trace.strings[c.name], s.at + trace.base_ns, s.value})
                          .dump(-1, ' ', false, json::error_handler_t::replace));
  for (const Flow& f : trace.flows)
    lines.push_back(json({"flow", static_cast<int>(f.kind), brief(f.from), brief(f.to)})
                        .dump(-1, ' ', false, json::error_handler_t::replace));
  for (const Device& d : trace.devices)
    lines.push_back(json({"device", d.id, d.name, d.memory_bytes, d.multiprocessors, d.warp_size, d.compute_capability})
                        .dump(-1, ' ', false, json::error_handler_t::replace));
  for (const Rank& r : trace.ranks)
    lines.push_back(json({"rank", r.rank, r.world_size, r.backend, r.base_ns, r.has_base, r.host, r.schema})
                        .dump(-1, ' ', false, json::error_handler_t::replace));
  std::ranges::sort(lines);
  return lines;
}

struct WriterFile : testing::Test {
  fs::path dir = fs::temp_directory_path() / ("culprit_writer_" + std::to_string(getpid()));
  void SetUp() override { fs::create_directories(dir); }
  void TearDown() override { fs::remove_all(dir); }

  Trace save_and_load(const Trace& trace, const std::string& name) const {
    const Status saved = save_trace(trace, 0, dir / name);
    EXPECT_TRUE(saved.ok());
    return load(dir / name);
  }
  static Trace load(const std::string& path) {
    auto input = Input::open(path);
    EXPECT_TRUE(input.ok());
    auto trace = read(std::move(*input), {.workers = 1, .progress = {}});
    EXPECT_TRUE(trace.ok());
    return std::move(*trace);
  }
};

TraceMaker everything() {
  TraceMaker make;
  Trace& trace = make.trace();
  trace.ranks[0] = {"x.json", 3, 8, "nccl", 1'700'000'000'123'456'789, true, 0, 0, 0, "1", "node7"};
  trace.base_ns = trace.ranks[0].base_ns;
  trace.clock = "realtime";
  trace.devices.push_back({0, 0, "NVIDIA \"H100\"", 85'000'000'000, 132, 32, "9.0"});
  const TrackId thread = make.thread(4242, 4243);
  const TrackId stream = make.stream(0, 7);
  const TrackId copies = make.stream(0, 9);
  trace.processes[0].name = trace.strings.intern("python");
  trace.processes[0].labels = trace.strings.intern("CPU");
  trace.tracks[thread].name = trace.strings.intern("thread 4243 (python)");

  const SliceIndex forward = make.slice(thread, "cpu_op", "aten::linear", 1, 999);
  make.extra(forward).sequence = 12;
  const SliceIndex launch = make.slice(thread, "cuda_runtime", "cudaLaunchKernel", 123'456, 1'001, 77);
  const SliceIndex kernel = make.gpu(stream, "kernel", "void k<1>(int*)", 130'000, 7, launch);
  GpuSlice& g = trace.gpu[trace.slices[kernel].gpu];
  g.grid[0] = 1000000;
  g.grid[1] = g.grid[2] = 1;
  g.block[0] = 1024;
  g.block[1] = g.block[2] = 1;
  g.registers = 255;
  g.shared_memory = 49152;
  g.context = 1;
  const SliceIndex second = make.gpu(stream, "kernel", "node of the same graph", 140'000, 8, launch);
  make.extra(second).graph_node = 5;
  const SliceIndex comm = make.gpu(stream, "kernel", "ncclDevKernel", 150'000, 8);
  trace.slices[comm].correlation = 78;
  make.extra(comm) = {-1, 1024, 0, 0, trace.strings.intern("allreduce"), trace.strings.intern("default_pg")};
  const SliceIndex copy = make.gpu(copies, "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 160'000, 0);
  trace.gpu[trace.slices[copy].gpu].bytes = 1ULL << 40;
  const SliceIndex backward = make.slice(make.thread(4242, 5000), "cpu_op", "LinearBackward0", 200'000, 50);
  make.flow(forward, backward, FlowKind::forward_backward);
  make.flow(forward, comm, FlowKind::async);
  trace.instants.push_back({170'001, trace.strings.intern("Iteration Start"), thread});
  trace.counters.push_back({trace.strings.intern("GPU power"), 0, thread, {{100, 350.25}, {200, 1e-300}}});
  return make;
}

TEST_F(WriterFile, WaitsOfStreamsSurvive) {
  TraceMaker make;
  make.slice(make.thread(4242, 4243), "cuda_runtime", "cudaStreamWaitEvent", 5, 2, 9);
  const SliceIndex known = make.slice(make.stream(0, 7), "cuda_sync", "Stream Wait Event", 5, 2, 9);
  make.trace().stream_waits.push_back({known, 4, 0, 7, 1, 20});
  const SliceIndex unclear = make.slice(make.stream(0, 8), "cuda_sync", "Stream Wait Event", 6, 2, 10);
  make.trace().stream_waits.push_back({unclear, 5, 0, 8, -1, 21});
  make.slice(make.stream(0, 7), "cuda_sync", "Stream Sync", 9, 2, 11);
  const Trace back = save_and_load(make.trace(), "waits.json");
  ASSERT_EQ(back.stream_waits.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const StreamWait& before = make.trace().stream_waits[i];
    const StreamWait& after = back.stream_waits[i];
    EXPECT_EQ(back.slices[after.slice].correlation, make.trace().slices[before.slice].correlation);
    EXPECT_EQ(after.recorded_by, before.recorded_by);
    EXPECT_EQ(after.device, before.device);
    EXPECT_EQ(after.stream, before.stream);
    EXPECT_EQ(after.event_device, before.event_device);
    EXPECT_EQ(after.event_stream, before.event_stream);
  }
  EXPECT_EQ(back.losses.total(), 0U);
}

TEST_F(WriterFile, EverythingSurvivesWritingAndLoading) {
  auto make = everything();
  for (const char* name : {"a.json", "a.json.gz"})
    EXPECT_EQ(content_of(save_and_load(make.trace(), name)), content_of(make.trace())) << name;
}

TEST_F(WriterFile, LoadingLosesNothing) {
  auto make = everything();
  EXPECT_EQ(save_and_load(make.trace(), "a.json").losses.total(Severity::data_loss), 0u);
}

TEST_F(WriterFile, FileIsPrivateAndCompressedByItsName) {
  auto make = everything();
  ASSERT_TRUE(save_trace(make.trace(), 0, dir / "a.json.gz").ok());
  struct stat status {};
  ASSERT_EQ(stat((dir / "a.json.gz").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(Input::open(dir / "a.json.gz")->compression(), Compression::gzip);
}

TEST_F(WriterFile, ManyEventsInManyPieces) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  for (Ns i = 0; i < 50000; ++i) make.slice(thread, "cpu_op", "op " + std::to_string(i % 100), i * 10, 9);
  EXPECT_EQ(content_of(save_and_load(make.trace(), "a.json.gz")), content_of(make.trace()));
}

TEST(Writer, WhatTheProfilerWasAskedForIsWrittenBack) {
  TraceMaker make;
  make.slice(make.thread(1, 1), "cpu_op", "op", 0, 1);
  make.trace().ranks[0].metadata = {{"profiler.with_stack", "1"}, {"profiler.evil", "1"}, {"env.x", "1"}};
  const json parsed = json::parse(text_of(make.trace()));
  EXPECT_EQ(parsed["with_stack"], 1);
  EXPECT_FALSE(parsed.contains("evil"));
  EXPECT_FALSE(parsed.contains("env.x"));
}

TEST(Writer, HostileNamesAreValidJson) {
  TraceMaker make;
  const std::string hostile = "\x1b[2J</script>\"\\|=cmd()\n\xff\xe2\x80\xae";
  const TrackId thread = make.thread(1, 1);
  make.slice(thread, hostile, hostile, 0, 1);
  make.slice(thread, "cpu_op", "", 0, 1);
  make.trace().tracks[thread].name = make.trace().strings.intern(hostile);
  make.trace().ranks[0].schema = "1,\"evil\":2";
  make.trace().ranks[0].backend = hostile;
  make.trace().devices.push_back({0, 0, hostile, 0, 0, 0, "9.0,\"x\":1"});
  const json parsed = json::parse(text_of(make.trace()));
  EXPECT_FALSE(parsed.contains("schemaVersion"));
  EXPECT_EQ(parsed["traceEvents"].size(), 3u);
  EXPECT_EQ(parsed["traceEvents"][1]["name"], "\x1b[2J</script>\"\\|=cmd()\n\xef\xbf\xbd\xe2\x80\xae");
  EXPECT_FALSE(parsed.contains("evil"));
}

TEST(Writer, EmptyTraceIsAnEmptyList) {
  TraceMaker make;
  EXPECT_TRUE(json::parse(text_of(make.trace()))["traceEvents"].empty());
}

TEST(Writer, OneRankAtATimeOnItsOwnBase) {
  TraceMaker make;
  Trace& trace = make.trace();
  trace.clock = "realtime";
  trace.base_ns = 1000;
  trace.ranks[0].base_ns = 1000;
  trace.ranks[0].has_base = true;
  const auto second = make.rank(1);
  trace.ranks[second].base_ns = 3000;
  trace.ranks[second].has_base = true;
  make.slice(make.thread(1, 1), "cpu_op", "a", 0, 1);
  make.slice(make.thread(1, 1, second), "cpu_op", "b", 7000, 1);
  const json parsed = json::parse(text_of(trace, second));
  EXPECT_EQ(parsed["baseTimeNanoseconds"], 3000);
  ASSERT_EQ(parsed["traceEvents"].size(), 1u);
  EXPECT_EQ(parsed["traceEvents"][0]["name"], "b");
  EXPECT_EQ(parsed["traceEvents"][0]["ts"], 5);
}

TEST(Writer, StopsWhenTheSinkFails) {
  TraceMaker make;
  const TrackId thread = make.thread(1, 1);
  for (Ns i = 0; i < 5000; ++i) make.slice(thread, "cpu_op", "op", i, 1);
  int calls = 0;
  const Status status = write_trace(make.trace(), 0, [&](std::string_view) {
    ++calls;
    return Status(environment_error("full", "x"));
  });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace culprit::formats::kineto
