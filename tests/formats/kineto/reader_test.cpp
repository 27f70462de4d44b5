// What the reader accepts, and what it loses when the input is damaged: only what is damaged, and counted.
#include "formats/kineto/reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "formats/kineto/read_text.h"

namespace culprit::formats::kineto {
namespace {

using test::TempDir;

Result<Trace> read_text(std::string_view text, unsigned workers = 2) { return test::read_json(text, workers); }
Trace good(std::string_view text, unsigned workers = 2) { return test::trace_of(text, workers); }
std::string wrap(std::string_view events) { return test::with_events(events); }

std::string kernel(std::string_view name, int ts, int dur = 5, int correlation = 7) {
  return fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":{},"args":{{"device":0,"stream":7,"correlation":{},"grid":[2,3,4],"block":[32,1,1],"registers per thread":40,"shared memory":1024}}}})",
      name, ts, dur, correlation);
}
std::string launch(int ts, int correlation = 7) {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":100,"ts":{},"dur":2,"args":{{"correlation":{}}}}})",
      ts, correlation);
}
std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) out.emplace_back(trace.name(trace.slices[i]));
  return out;
}

TEST(Reader, KeepsTimesNamesAndGpuArguments) {
  const Trace t = good(wrap(launch(10) + "," + kernel("k", 20)));
  ASSERT_EQ(t.slices.size(), 2U);
  EXPECT_EQ(t.slices[1].begin, 20000);
  EXPECT_EQ(t.slices[1].duration, 5000);
  ASSERT_EQ(t.gpu.size(), 1U);
  const GpuSlice& g = t.gpu[0];
  EXPECT_EQ(g.launcher, 0U);
  EXPECT_EQ(g.grid[2], 4U);
  EXPECT_EQ(g.block[0], 32);
  EXPECT_EQ(g.registers, 40);
  EXPECT_EQ(g.shared_memory, 1024U);
  EXPECT_EQ(t.losses.total(), 0U);
  const Track& stream = t.tracks[t.slices[1].track];
  EXPECT_EQ(stream.kind, TrackKind::gpu_stream);
  EXPECT_EQ(stream.stream, 7);
}

TEST(Reader, AcceptsABareListWithAndWithoutItsEnd) {
  EXPECT_EQ(good("[" + kernel("a", 1) + "," + kernel("b", 9) + "]").slices.size(), 2U);
  const Trace open = good("\n [" + kernel("a", 1) + "," + kernel("b", 9));
  EXPECT_EQ(open.slices.size(), 2U);
  EXPECT_EQ(open.losses.total(Severity::data_loss), 0U);
}

TEST(Reader, FindsEventsBehindOtherMembersThatMentionThem) {
  const Trace t = good(
      R"({"note":"\"traceEvents\": [{\"ph\":\"X\"}]","nested":{"traceEvents":[{"ph":"X","name":"no","ts":1}]},"traceEvents":[)" +
      kernel("yes", 1) +
      R"(],"baseTimeNanoseconds":1700000000000000000,"distributedInfo":{"backend":"nccl","rank":3,"world_size":8},"deviceProperties":[{"id":0,"name":"A100","totalGlobalMem":5,"numSms":108}]})");
  EXPECT_EQ(names(t), (std::vector<std::string>{"yes"}));
  EXPECT_EQ(t.ranks[0].rank, 3);
  EXPECT_EQ(t.ranks[0].world_size, 8);
  EXPECT_EQ(t.base_ns, 1700000000000000000);
  EXPECT_EQ(t.clock, "realtime");
  ASSERT_EQ(t.devices.size(), 1U);
  EXPECT_EQ(t.devices[0].name, "A100");
  EXPECT_EQ(t.losses.total(), 1U) << "the kernel has no launcher";
}

TEST(Reader, EmptyEventListIsAnEmptyTrace) {
  const Trace t = good(R"({"traceEvents":[]})");
  EXPECT_EQ(t.slices.size(), 0U);
  EXPECT_EQ(t.losses.total(), 0U);
  EXPECT_EQ(good("[]").slices.size(), 0U);
}

TEST(Reader, ProcessAndThreadIdsMayBeNumbersOrText) {
  const Trace t = good(wrap(
      R"({"ph":"X","name":"a","pid":1,"tid":"1","ts":1,"dur":1},{"ph":"X","name":"b","pid":"1","tid":1,"ts":1,"dur":1},)"
      R"~({"ph":"X","name":"c","pid":"node-7(42)","tid":"worker","ts":1,"dur":1},{"ph":"X","name":"d","pid":"Spans","tid":"x","ts":1,"dur":1})~"));
  EXPECT_EQ(t.slices[0].track, t.slices[1].track);
  const Process& host = t.processes[t.tracks[t.slices[2].track].process];
  EXPECT_EQ(host.pid, 42);
  EXPECT_EQ(t.strings[host.host], "node-7");
  EXPECT_EQ(t.strings[t.tracks[t.slices[2].track].name], "worker");
  EXPECT_EQ(t.processes[t.tracks[t.slices[3].track].process].pid, -1);
}

TEST(Reader, BothGenerationsOfCategoriesMeanTheSame) {
  for (const char* cat : {"Kernel", "kernel"})
    EXPECT_EQ(good(wrap(fmt::format(R"({{"ph":"X","cat":"{}","name":"k","ts":1,"dur":1}})", cat))).gpu.size(), 1U);
  for (const char* cat : {"Memcpy", "gpu_memcpy"}) EXPECT_EQ(classify_category(cat), SliceClass::memcpy);
  for (const char* cat : {"Runtime", "cuda_runtime"}) EXPECT_EQ(classify_category(cat), SliceClass::runtime);
  EXPECT_EQ(classify_category("Kernelx"), SliceClass::other);
}

TEST(Reader, PairsBeginsWithEndsByThread) {
  const Trace t = good(wrap(
      R"({"ph":"B","name":"outer","pid":1,"tid":1,"ts":1},{"ph":"B","name":"other","pid":1,"tid":2,"ts":2},{"ph":"B","name":"inner","pid":1,"tid":1,"ts":2},)"
      R"({"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"E","pid":1,"tid":1,"ts":5},{"ph":"E","pid":1,"tid":1,"ts":6})"));
  ASSERT_EQ(t.slices.size(), 3U);
  EXPECT_EQ(names(t), (std::vector<std::string>{"inner", "outer", "other"}));
  EXPECT_EQ(t.slices[1].duration, 4000);
  EXPECT_EQ(t.losses[LossReason::end_without_begin], 1U);
  EXPECT_EQ(t.losses[LossReason::begin_without_end], 1U);
}

TEST(Reader, PairsAsynchronousSlicesByIdAndKeepsInstantsAndCounters) {
  const Trace t = good(wrap(
      R"({"ph":"b","cat":"a","id":"0x1","name":"n","pid":1,"tid":1,"ts":1},{"ph":"b","cat":"a","id":"0x2","name":"n","pid":1,"tid":1,"ts":2},{"ph":"e","cat":"a","id":"0x1","name":"n","pid":1,"tid":1,"ts":9},)"
      R"({"ph":"e","cat":"a","id":"0x2","name":"n","pid":1,"tid":1,"ts":4},{"ph":"i","name":"now","pid":1,"tid":1,"ts":3},)"
      R"({"ph":"C","name":"mem","pid":1,"ts":3,"args":{"value":1.5,"other":2,"text":"x"}},{"ph":"C","name":"mem","pid":1,"ts":2,"args":{"value":NaN}})"));
  ASSERT_EQ(t.slices.size(), 2U);
  EXPECT_EQ(t.slices[0].duration + t.slices[1].duration, 10000);
  EXPECT_EQ(t.instants.size(), 1U);
  ASSERT_EQ(t.counters.size(), 2U);
  EXPECT_EQ(t.strings[t.counters[0].name], "mem");
  EXPECT_EQ(t.strings[t.counters[1].name], "mem.other");
  EXPECT_EQ(t.losses[LossReason::counter_value_invalid], 1U);
}

TEST(Reader, ACounterWhoseNameHasAnInvalidEscapeKeepsItAsItIsWritten) {
  const Trace t = good(wrap(R"({"ph":"C","name":"a","pid":1,"ts":1,"args":{"bad\cx":1}})"));
  ASSERT_EQ(t.counters.size(), 1U);
  EXPECT_EQ(t.strings[t.counters[0].name], R"(a.bad\cx)");
}

TEST(Reader, TotalsOfPyTorchsAllocatorsAreCountersOfTheProcess) {
  const Trace t = good(wrap(
      R"({"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":1,"args":{"Device Type":0,"Device Id":-1,"Bytes":8,"Total Allocated":8}},)"
      R"({"ph":"i","name":"[memory]","pid":1,"tid":2,"ts":2,"args":{"Device Type":0,"Device Id":-1,"Bytes":-8,"Total Allocated":0}},)"
      R"({"args":{"Total Reserved":40,"Total Allocated":30,"Device Id":1,"Device Type":1},"ts":3,"tid":1,"pid":1,"name":"[OutOfMemory]","ph":"i"},)"
      R"({"ph":"i","args":{"Device Type":12,"Device Id":0,"Total Allocated":5},"name":"[memory]","pid":1,"tid":1,"ts":4},)"
      R"({"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":5,"args":{"Device Type":0,"Total Allocated":NaN}},)"
      R"({"ph":"i","name":"other","pid":1,"tid":1,"ts":5,"args":{"Device Type":0,"Total Allocated":7}},)"
      R"({"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":6,"args":{"Bytes":1}})"));
  EXPECT_EQ(t.instants.size(), 7U);
  std::map<std::string, std::vector<double>> values;
  for (const CounterSeries& series : t.counters)
    for (const CounterSample& sample : series.samples)
      values[std::string(t.strings[series.name])].push_back(sample.value);
  EXPECT_EQ(values, (std::map<std::string, std::vector<double>>{{"memory allocated.bytes", {8, 0}},
                                                                {"GPU 1 memory allocated.bytes", {30}},
                                                                {"GPU 1 memory reserved.bytes", {40}},
                                                                {"Device 12:0 memory allocated.bytes", {5}}}));
  EXPECT_EQ(t.counters.size(), 4U);
  EXPECT_EQ(t.losses[LossReason::counter_value_invalid], 1U);
}

TEST(Reader, CountersOfOneNameOnSeveralTracksStayApart) {
  const Trace t = good(wrap(R"({"ph":"C","name":"gpu_usage","pid":"h","tid":"CAT_XPU_0","ts":1,"args":{"value":1}},)"
                            R"({"ph":"C","name":"gpu_usage","pid":"h","tid":"CAT_XPU_1","ts":1,"args":{"value":2}},)"
                            R"({"ph":"C","name":"gpu_usage","pid":"h","tid":"CAT_XPU_0","ts":2,"args":{"value":3}})"));
  ASSERT_EQ(t.counters.size(), 2U);
  EXPECT_EQ(t.counters[0].samples.size(), 2U);
  EXPECT_EQ(t.strings[t.tracks[t.counters[1].track].name], "CAT_XPU_1");
}

TEST(Reader, FlowsLinkWhatCorrelationDoesNot) {
  const std::string flow =
      R"({"ph":"s","id":5,"pid":100,"tid":100,"ts":10,"cat":"ac2g","name":"ac2g"},{"ph":"f","id":5,"pid":0,"tid":7,"ts":20,"cat":"ac2g","name":"ac2g","bp":"e"})";
  const Trace linked = good(wrap(launch(10, 1) + "," + kernel("k", 20, 5, 2) + "," + flow));
  EXPECT_EQ(linked.gpu[0].launcher, 0U);
  EXPECT_TRUE(linked.flows.empty());
  const Trace backward = good(wrap(
      R"({"ph":"X","cat":"cpu_op","name":"f","pid":1,"tid":1,"ts":1,"dur":3},{"ph":"X","cat":"cpu_op","name":"g","pid":1,"tid":2,"ts":7,"dur":3},)"
      R"({"ph":"s","id":1,"pid":1,"tid":1,"ts":1,"cat":"fwdbwd","name":"fwdbwd"},{"ph":"f","id":1,"pid":1,"tid":2,"ts":8,"cat":"fwdbwd","name":"fwdbwd"},{"ph":"f","id":9,"pid":1,"tid":3,"ts":8,"cat":"fwdbwd","name":"x"})"));
  ASSERT_EQ(backward.flows.size(), 1U);
  EXPECT_EQ(backward.flows[0].from, 0U);
  EXPECT_EQ(backward.flows[0].to, 1U);
  EXPECT_EQ(backward.flows[0].kind, FlowKind::forward_backward);
  EXPECT_EQ(backward.losses[LossReason::flow_unbound], 1U);
}

TEST(Reader, GraphNodesShareTheirLauncher) {
  const Trace t = good(wrap(launch(1) + "," + kernel("a", 5) + "," + kernel("b", 12)));
  EXPECT_EQ(t.gpu[0].launcher, 0U);
  EXPECT_EQ(t.gpu[1].launcher, 0U);
}

TEST(Reader, NestedArgumentTextIsMerged) {
  const Trace t = good(wrap(
      R"({"ph":"X","cat":"Kernel","name":"k","pid":1,"tid":1,"ts":1,"dur":1,"args":{"args":"{\"device\":3,\"stream\":11}"}},{"ph":"X","cat":"Kernel","name":"k","pid":1,"tid":1,"ts":1,"dur":1,"args":{"args":"{broken"}})"));
  EXPECT_EQ(t.gpu[0].device, 3);
  EXPECT_EQ(t.gpu[0].stream, 11);
  EXPECT_EQ(t.losses[LossReason::nested_args_invalid], 1U);
}

TEST(Reader, ThreadAndProcessNamesComeFromMetadata) {
  const Trace t = good(wrap(
      R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"python"}},{"ph":"M","name":"thread_name","pid":1,"tid":4,"args":{"name":"main"}},{"ph":"X","name":"a","pid":1,"tid":4,"ts":1,"dur":1})"));
  EXPECT_EQ(t.strings[t.tracks[t.slices[0].track].name], "main");
  EXPECT_EQ(t.strings[t.processes[t.tracks[t.slices[0].track].process].name], "python");
}

// --- names

TEST(Names, NullOrNonTextNamesAreKeptAndCounted) {
  const Trace t = good(wrap(
      R"({"ph":"X","name":null,"ts":1,"dur":1},{"ph":"X","name":5,"ts":1,"dur":1},{"ph":"X","ts":1,"dur":1},{"ph":"X","name":{"a":[1]},"ts":1,"dur":1},{"ph":"X","name":"fine","ts":1,"dur":1})"));
  EXPECT_EQ(t.slices.size(), 5U);
  EXPECT_EQ(t.losses[LossReason::name_invalid], 4U);
  EXPECT_EQ(t.name(t.slices[4]), "fine");
}

TEST(Names, EscapesAreDecodedAndLoneSurrogatesKept) {
  const Trace t =
      good(wrap(R"({"ph":"X","name":"a\u003cb\n\"c\"","ts":1,"dur":1},{"ph":"X","name":"\ud800x","ts":2,"dur":1})"));
  EXPECT_EQ(t.name(t.slices[0]), "a<b\n\"c\"");
  EXPECT_EQ(t.name(t.slices[1]), "\\ud800x");
  EXPECT_EQ(t.losses[LossReason::utf8_repaired], 1U);
}

TEST(Names, InvalidUtf8AndControlCharactersLoseNothingElse) {
  const Trace t = good(wrap(kernel("a\xff\xfe", 1) + "," + kernel("b\x01\tc", 2) + "," + kernel("fine", 3)));
  EXPECT_EQ(names(t), (std::vector<std::string>{"a??", "b  c", "fine"}));
  EXPECT_EQ(t.losses[LossReason::utf8_repaired], 2U);
  EXPECT_EQ(t.losses[LossReason::control_repaired], 2U);
}

// --- damage

TEST(Damage, TruncatedTailLosesOnlyTheLastEvent) {
  const std::string whole = wrap(kernel("a", 1) + "," + kernel("b", 2) + "," + kernel("c", 3));
  const Trace t = good(whole.substr(0, whole.find("\"c\"") + 20));
  EXPECT_EQ(names(t), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(t.losses[LossReason::truncated_tail], 1U);
}

TEST(Damage, OneBrokenEventInTheMiddleCostsItself) {
  for (const char* broken :
       {R"({"ph":"X","name":"bad"x,"ts":1})", R"({"ph":"X","name":"bad" "ts":1})",
        R"({"ph":"X",,"name":"bad","ts":1,"args":{"x":]}})", "{\"ph\":\"X\",\"name\":\"bad\n, \"ts\":1}",
        R"({"ph":"X","name":"bad","ts":1,"args":{"a":[1})"}) {
    const Trace t = good(wrap(kernel("a", 1) + "," + broken + "," + kernel("b", 2) + "," + kernel("c", 3)));
    auto seen = names(t);
    std::erase(seen, "bad");
    EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"})) << broken;
    EXPECT_GE(t.losses.total(Severity::data_loss) + t.losses.total(Severity::info), 1U) << broken;
  }
}

TEST(Damage, AMissingCommaLosesNoEvent) {
  const Trace t = good(wrap(kernel("a", 1) + kernel("b", 2) + "," + kernel("c", 3)));
  EXPECT_EQ(names(t), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Damage, ElementsThatAreNoObjectsAreCounted) {
  const Trace t = good(wrap("1,null,\"x\",[2]," + kernel("a", 1) + ",true"));
  EXPECT_EQ(names(t), (std::vector<std::string>{"a"}));
  EXPECT_EQ(t.losses[LossReason::event_not_object], 5U);
}

TEST(Damage, TimesThatAreNoTimesDropTheEventAndNegativeDurationsBecomeZero) {
  const Trace t = good(wrap(
      R"({"ph":"X","name":"a","ts":NaN,"dur":1},{"ph":"X","name":"b","ts":1,"dur":-Infinity},{"ph":"X","name":"c","ts":1e300,"dur":1},{"ph":"X","name":"d","dur":1},{"ph":"X","name":"e","ts":null},)"
      R"({"ph":"X","name":"f","ts":"5.5","dur":"1"},{"ph":"X","name":"g","ts":5,"dur":-3},{"ph":"X","name":"h","ts":{"a":1},"dur":1})"));
  EXPECT_EQ(names(t), (std::vector<std::string>{"f", "g"}));
  EXPECT_EQ(t.slices[0].begin, 5500);
  EXPECT_EQ(t.slices[1].duration, 0);
  EXPECT_EQ(t.losses[LossReason::duration_negative], 1U);
  EXPECT_EQ(t.losses[LossReason::time_invalid], 4U);
  EXPECT_EQ(t.losses[LossReason::time_missing], 2U);
}

TEST(Damage, UnknownPhasesAreCounted) {
  EXPECT_EQ(good(wrap(R"({"ph":"Q","name":"a","ts":1},{"name":"b","ts":1},{"ph":"XX","name":"c","ts":1})"))
                .losses[LossReason::phase_unknown],
            3U);
}

TEST(Damage, DeepNestingIsNoProblem) {
  std::string deep(100000, '[');
  deep += std::string(100000, ']');
  const Trace t = good(
      wrap(kernel("a", 1) + R"(,{"ph":"X","name":"deep","ts":2,"dur":1,"args":{"x":)" + deep + "}}," + kernel("b", 3)));
  const auto seen = names(t);
  EXPECT_TRUE(std::ranges::find(seen, "a") != seen.end());
  EXPECT_TRUE(std::ranges::find(seen, "b") != seen.end());
}

TEST(Damage, WhatIsNoTraceIsAnError) {
  for (const char* text : {"", "hello", "{}", R"({"a":1})", R"({"traceEvents":5})", "{", R"({"traceEvents")",
                           R"({"a":[1,2)", R"({1:2})", "\"text\"", "null", "<html>"}) {
    auto trace = read_text(text);
    ASSERT_FALSE(trace) << text;
    EXPECT_EQ(trace.error().kind, ErrorKind::input) << text;
    EXPECT_FALSE(trace.error().where.empty()) << text;
    EXPECT_FALSE(trace.error().remedy.empty()) << text;
  }
}

// --- cuts: the text is longer than one piece, and looks like a boundary where none is

std::string many(int n, std::string_view extra = "") {
  std::string events;
  for (int i = 0; i < n; ++i) {
    if (i != 0) events += ",\n  ";
    events +=
        fmt::format(R"({{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":7,"ts":{},"dur":1{}}})", i % 50, i, extra);
  }
  return wrap(events);
}

TEST(Cuts, ManyPiecesGiveEveryEventInOrderForAnyNumberOfWorkers) {
  const std::string text = many(60000);
  const Trace one = good(text, 1);
  ASSERT_EQ(one.slices.size(), 60000U);
  for (unsigned workers : {2U, 5U}) {
    const Trace other = good(text, workers);
    ASSERT_EQ(other.slices.size(), one.slices.size());
    EXPECT_EQ(other.strings.size(), one.strings.size());
    for (std::size_t i = 0; i < one.slices.size(); ++i) {
      ASSERT_EQ(other.slices[i].begin, static_cast<Ns>(i) * 1000);
      ASSERT_EQ(other.slices[i].name, one.slices[i].name);
    }
  }
}

TEST(Cuts, BoundariesInsideStringsAndListsAreNoBoundaries) {
  // Every event holds text and a nested list that look exactly like the seam between two events.
  const Trace t = good(
      many(30000,
           R"(,"args":{"s":"},{\"ph\":\"X\"},{","l":[{"ph":"X","name":"no","ts":1},{"ph":"X","name":"no","ts":2}]})"));
  EXPECT_EQ(t.slices.size(), 30000U);
  EXPECT_EQ(t.losses.total(Severity::data_loss), 0U);
}

TEST(Cuts, ThePieceSizeChangesNothing) {
  const std::string text = many(
      300, R"(,"args":{"s":"},{\"ph\":\"X\"},{","l":[{"ph":"X","name":"no","ts":1},{"ph":"X","name":"no","ts":2}]})");
  const TempDir dir;
  const std::string path = dir.file("t.json", text);
  for (std::size_t bytes : {16U, 64U, 100U, 333U, 4096U}) {
    auto trace = read(std::move(Input::open(path)).value(), {.workers = 3, .piece_bytes = bytes});
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->slices.size(), 300U) << bytes;
    EXPECT_EQ(trace->losses.total(Severity::data_loss), 0U) << bytes;
  }
}

TEST(Cuts, OneEventLargerThanManyPiecesIsRead) {
  const std::string large(std::size_t{3} << 20, 'x');
  const Trace t = good(wrap(kernel("a", 1) + R"(,{"ph":"X","name":"big","ts":2,"dur":1,"args":{"x":")" + large +
                            R"("}},)" + kernel("b", 3)));
  EXPECT_EQ(names(t), (std::vector<std::string>{"a", "big", "b"}));
  EXPECT_EQ(t.losses.total(Severity::data_loss), 0U);
}

TEST(Cuts, AnEventOver64MiBIsCountedAndItsNeighboursStay) {
  std::string text = wrap(kernel("a", 1) + R"(,{"ph":"X","name":"big","ts":2,"dur":1,"args":{"x":"@"}},)" +
                          kernel("b", 3) + "," + kernel("c", 4));
  text.replace(text.find('@'), 1, std::string(std::size_t{80} << 20, 'x'));
  const Trace t = good(text);
  EXPECT_EQ(names(t), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(t.losses[LossReason::event_too_large], 1U);
}

TEST(Cuts, DamageInALongTextCostsOneEvent) {
  std::string text = many(60000);
  const std::size_t at = text.find("\"k7\"", text.size() / 2);
  text[at] = ' ';  // an opening quote is gone
  const Trace t = good(text);
  EXPECT_GE(t.slices.size(), 59998U);
  EXPECT_LE(t.slices.size(), 59999U);
  EXPECT_GE(t.losses[LossReason::event_malformed], 1U);
}

TEST(Cuts, EveryEventDamagedIsStillLinear) {
  std::string events;
  for (int i = 0; i < 40000; ++i)
    events += fmt::format("{}{{\"ph\":\"X\",\"name\":\"k,\"ts\":{}}}", i == 0 ? "" : ",", i);
  const Trace t = good(wrap(events));
  EXPECT_EQ(t.slices.size(), 0U);
  EXPECT_GE(t.losses.total(Severity::data_loss), 1U);
}

// --- compression

TEST(Compression, GzipZstdAndPlainAreTheSame) {
  const std::string text = many(20000);
  for (const std::string& packed :
       {test::gzip(text), test::zstd(text), test::gzip(text.substr(0, 1000)) + test::gzip(text.substr(1000))}) {
    const Trace t = good(packed);
    EXPECT_EQ(t.slices.size(), 20000U);
    EXPECT_EQ(t.ranks[0].text_bytes, text.size());
    EXPECT_EQ(t.losses.total(Severity::data_loss), 0U);
  }
}

TEST(Compression, CutDataKeepsWhatCameBefore) {
  const std::string text = many(60000);
  for (const std::string& packed : {test::gzip(text), test::zstd(text)}) {
    const Trace t = good(std::string_view(packed).substr(0, packed.size() / 2));
    EXPECT_GT(t.slices.size(), 1000U);
    EXPECT_LT(t.slices.size(), 60000U);
    EXPECT_EQ(t.losses[LossReason::compressed_damage], 1U);
    EXPECT_EQ(t.losses[LossReason::truncated_tail], 1U);
  }
}

TEST(Compression, NothingReadableIsAnError) {
  const std::string packed = test::gzip(many(100));
  for (std::size_t keep : {3U, 12U}) {
    auto trace = read_text(packed.substr(0, keep));
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().kind, ErrorKind::input);
  }
}

}  // namespace
}  // namespace culprit::formats::kineto
