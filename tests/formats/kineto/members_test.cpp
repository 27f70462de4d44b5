// What stands where in an event, how it is escaped, and what is of the wrong type: read, or counted.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/kineto/read_text.h"
#include "trace/category_table.h"

namespace culprit::formats::kineto {
namespace {

using test::trace_of;
using test::with_events;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

/// The trace of one event.
Trace one(std::string_view event) { return trace_of(with_events(event)); }

std::vector<std::string> counters(const Trace& t) {
  std::vector<std::string> out;
  for (const CounterSeries& series : t.counters)
    for (const CounterSample& sample : series.samples)
      out.push_back(fmt::format("{}={}", t.strings[series.name], sample.value));
  return out;
}

std::vector<std::string> metrics(const Trace& t) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < t.metrics.size(); ++i)
    out.push_back(fmt::format("{}={}", t.strings[t.metrics[i].name], t.metrics[i].value));
  return out;
}

// --- order of members

TEST(Members, CountersOfAProfilerRangeAreReadWhereverTheCategoryStands) {
  const std::string args = R"("args":{"sm__cycles.sum":5,"dram__bytes.sum":7,"correlation":3})";
  for (const std::string& event :
       {R"({"ph":"X","cat":"cuda_profiler_range","name":"k","ts":1,"dur":1,)" + args + "}",
        R"({)" + args + R"(,"ph":"X","name":"k","ts":1,"dur":1,"cat":"cuda_profiler_range"})",
        R"({"ph":"X",)" + args + R"(,"cat":"Cuda-Profiler-Range","name":"k","ts":1,"dur":1})",
        R"({"cat":"cuda_profiler_range",)" + args + R"(,"name":"k","ts":1,"dur":1,"ph":"X"})"})
    EXPECT_THAT(metrics(one(event)), ElementsAre("dram__bytes.sum=7", "sm__cycles.sum=5")) << event;
}

TEST(Members, CountersAreReadWhereverThePhaseStands) {
  for (const char* event :
       {R"({"ph":"C","name":"m","ts":1,"args":{"b":2,"a":1}})", R"({"args":{"a":1,"b":2},"ts":1,"name":"m","ph":"C"})"})
    EXPECT_THAT(counters(one(event)), ElementsAre("m.a=1", "m.b=2")) << event;
}

// --- escapes

TEST(Escapes, KeysAndValuesMayBeEscaped) {
  const Trace t = one(
      R"({"\u0070h":"\u0058","c\u0061t":"ker\u006eel","n\u0061me":"\u006b","p\u0069d":"\u0030","t\u0069d":"\u0037",)"
      R"("t\u0073":"\u0031","d\u0075r":"\u0032","\u0061rgs":{"d\u0065vice":"\u0033","str\u0065am":7,"gr\u0069d":[1,2,3],)"
      R"("r\u0065gisters per thread":9,"est. achieved occupancy \u0025":50}})");
  ASSERT_EQ(t.slices.size(), 1U);
  EXPECT_EQ(t.name(t.slices[0]), "k");
  EXPECT_EQ(t.slices[0].begin, 1000);
  EXPECT_EQ(t.slices[0].duration, 2000);
  EXPECT_EQ(t.tracks[t.slices[0].track].tid, 7);
  ASSERT_EQ(t.gpu.size(), 1U);
  EXPECT_EQ(t.gpu[0].device, 3);
  EXPECT_EQ(t.gpu[0].grid[2], 3U);
  EXPECT_EQ(t.gpu[0].registers, 9);
  EXPECT_THAT(metrics(t), ElementsAre("est. achieved occupancy %=50"));
  EXPECT_EQ(t.losses.total(Severity::data_loss), 0U);
}

TEST(Escapes, CounterNamesAreUnescaped) {
  EXPECT_THAT(counters(one(R"({"ph":"C","name":"m","ts":1,"args":{"a\"b":1,"\u0063\\":2,"v\u0061lue":3}})")),
              ElementsAre("m=3", "m.a\"b=1", "m.c\\=2"));
}

TEST(Escapes, AKeyThatOnlyLooksLikeOneAfterItsQuoteIsNone) {
  const Trace t = one(R"({"ph":"X","name":"a","ts":1,"dur":1,"ph\"x":"Q","ts\"":5})");
  ASSERT_EQ(t.slices.size(), 1U);
  EXPECT_EQ(t.slices[0].begin, 1000);
}

TEST(Escapes, ProcessesKnownByTextAreNamedWithoutEscapes) {
  const Trace t = one(R"({"ph":"X","name":"a","pid":"a\u0022b","tid":"\u00e9","ts":1,"dur":1})");
  EXPECT_EQ(t.strings[t.processes[0].text], "a\"b");
  EXPECT_EQ(t.strings[t.tracks[0].name], "é");
}

TEST(Escapes, TheEventListMayBeEscapedAndSoMayItsNeighbours) {
  const Trace t =
      trace_of(R"({"dist\u0072ibutedInfo":{"rank":3},"\u0074raceEvents":[{"ph":"X","name":"a","ts":1,"dur":1}]})");
  EXPECT_EQ(t.slices.size(), 1U);
  EXPECT_EQ(t.ranks[0].rank, 3);
}

// --- many and long

TEST(Counters, AsManyArgumentsAsThereAreAreRead) {
  std::string args;
  for (int i = 0; i < 500; ++i) args += fmt::format("{}\"v{}\":{}", i == 0 ? "" : ",", i, i);
  EXPECT_EQ(counters(one(fmt::format(R"({{"ph":"C","name":"m","ts":1,"args":{{{}}}}})", args))).size(), 500U);
  EXPECT_EQ(metrics(one(fmt::format(
                        R"({{"ph":"X","cat":"cuda_profiler_range","name":"m","ts":1,"dur":1,"args":{{{}}}}})", args)))
                .size(),
            500U);
}

TEST(Counters, LongNamesAreReadWhole) {
  const std::string longest(3000, 'x');
  EXPECT_THAT(counters(one(fmt::format(R"({{"ph":"C","name":"m","ts":1,"args":{{"{}":4}}}})", longest))),
              ElementsAre("m." + longest + "=4"));
}

TEST(Counters, ALongNameOfManyValuesIsCutByMemoryAndCounted) {
  std::string args;
  for (int i = 0; i < 2000; ++i) args += fmt::format("{}\"{}\":1", i == 0 ? "" : ",", i);
  const Trace t = one(fmt::format(R"({{"ph":"C","name":"{}","ts":1,"args":{{{}}}}})", std::string(20'000, 'n'), args));
  EXPECT_GT(t.counters.size(), 50U);
  EXPECT_EQ(t.counters.size() + t.losses[LossReason::counter_names_long], 2000U);
}

TEST(Counters, ArgumentsWithNamesOfOtherThingsAreCountersToo) {
  EXPECT_THAT(
      counters(one(R"({"ph":"C","name":"m","ts":1,"args":{"bytes":1,"device":2,"stream":3,"name":4,"args":5}})")),
      ElementsAre("m.args=5", "m.bytes=1", "m.device=2", "m.name=4", "m.stream=3"));
}

TEST(Counters, NumbersWrittenAsTextsAreNumbers) {
  EXPECT_THAT(counters(one(R"({"ph":"C","name":"m","ts":1,"args":{"value":"1.5","text":"none"}})")),
              ElementsAre("m=1.5"));
}

TEST(Counters, WhatIsNoNumberIsCounted) {
  const Trace t = one(R"({"ph":"C","name":"m","ts":1,"args":{"a":null,"b":true,"c":[1],"d":{"e":1},"f":1}})");
  EXPECT_THAT(counters(t), ElementsAre("m.f=1"));
  EXPECT_EQ(t.losses[LossReason::counter_value_invalid], 4U);
}

TEST(Categories, MoreThanAFewThousandAreKeptApart) {
  std::string events;
  for (int i = 0; i < 40'000; ++i)
    events += fmt::format(R"({}{{"ph":"X","cat":"c{}","name":"n","ts":{},"dur":1}})", i == 0 ? "" : ",", i, i);
  const Trace t = trace_of(with_events(events), 1);
  ASSERT_EQ(t.slices.size(), 40'000U);
  EXPECT_EQ(t.losses.total(), 0U);
  for (const int i : {0, 4095, 4096, 25'001, 39'999})
    EXPECT_EQ(t.categories[t.slices[static_cast<std::size_t>(i)].category].name, fmt::format("c{}", i));
}

TEST(Categories, BeyondWhatCanBeNumberedTheyAreCountedAndKernelsStayKernels) {
  std::string events;
  for (int i = 0; i < 70'000; ++i)
    events += fmt::format(R"({{"ph":"X","cat":"c{}","name":"n","ts":{},"dur":1}},)", i, i);
  events += R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1})";
  const Trace t = trace_of(with_events(events), 2);
  EXPECT_EQ(t.gpu.size(), 1U);
  EXPECT_EQ(t.slice_class(t.slices[70'000]), SliceClass::kernel);
  EXPECT_EQ(t.losses[LossReason::categories_collapsed], 70'000U + 2 - CategoryTable::kMost);
}

TEST(Categories, OneThatIsNoTextIsCounted) {
  const Trace t = trace_of(with_events(
      R"({"ph":"X","cat":["a","b"],"name":"n","ts":1,"dur":1},{"ph":"X","cat":5,"name":"n","ts":2,"dur":1},)"
      R"({"ph":"X","cat":null,"name":"n","ts":3,"dur":1},{"ph":"X","name":"n","ts":3,"dur":1})"));
  EXPECT_EQ(t.slices.size(), 4U);
  EXPECT_EQ(t.losses[LossReason::category_invalid], 2U);
}

TEST(Categories, OldKinetoKeepsItsWords) {
  const Trace t = one(R"({"ph":"X","cat":"Operator","name":"ProfilerStep#5","pid":1,"tid":1,"ts":1,"dur":1})");
  EXPECT_EQ(t.categories[t.slices[0].category].name, "Operator");
  EXPECT_EQ(t.slice_class(t.slices[0]), SliceClass::cpu_op);
}

// --- wrong values

std::string kernel_with(std::string_view args) {
  return fmt::format(R"({{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":{{{}}}}})", args);
}

TEST(Arguments, NegativeCountsAreLeftOutAndCounted) {
  const Trace t = one(kernel_with(
      R"("bytes":-1,"grid":[1,-2,3],"block":[-1,1,1],"registers per thread":-4,"shared memory":-5,"device":-1,"stream":-7,"context":-2)"));
  ASSERT_EQ(t.gpu.size(), 1U);
  const GpuSlice& g = t.gpu[0];
  EXPECT_EQ(g.bytes, 0U);
  EXPECT_THAT(g.grid, ElementsAre(0U, 0U, 0U));
  EXPECT_THAT(g.block, ElementsAre(0U, 0U, 0U));
  EXPECT_EQ(g.registers, 0U);
  EXPECT_EQ(g.shared_memory, 0U);
  EXPECT_EQ(g.context, 0U);
  EXPECT_EQ(g.device, 0) << "of the process id";
  EXPECT_EQ(g.stream, 7) << "of the thread id";
  EXPECT_EQ(t.losses[LossReason::argument_invalid], 8U);
}

TEST(Arguments, WhatDoesNotFitIsLeftOutAndCounted) {
  const Trace t = one(kernel_with(
      R"("bytes":18446744073709551616,"grid":[4294967296,1,1],"block":[70000,1,1],"registers per thread":1e9,"device":40000,"stream":"x","correlation":"abc")"));
  EXPECT_EQ(t.gpu[0].bytes, 0U);
  EXPECT_EQ(t.gpu[0].grid[0], 0U);
  EXPECT_EQ(t.losses[LossReason::argument_invalid], 7U);
}

TEST(Arguments, LargeAndFractionalAndTextualNumbersThatFitAreRead) {
  const Trace t = one(kernel_with(
      R"("bytes":18446744073709551615,"grid":["4294967295",1.0,1e3],"device":"3","stream":7.0,"correlation":"12")"));
  EXPECT_EQ(t.gpu[0].bytes, 18446744073709551615U);
  EXPECT_THAT(t.gpu[0].grid, ElementsAre(4294967295U, 1U, 1000U));
  EXPECT_EQ(t.gpu[0].device, 3);
  EXPECT_EQ(t.slices[0].correlation, 12U);
  EXPECT_EQ(t.losses[LossReason::argument_invalid], 0U);
}

TEST(Arguments, NullIsAbsent) {
  const Trace t = one(kernel_with(R"("bytes":null,"grid":null,"stream":null,"correlation":null)"));
  EXPECT_EQ(t.gpu[0].stream, 7);
  EXPECT_EQ(t.losses[LossReason::argument_invalid], 0U);
}

TEST(Arguments, NegativeOrHugeCorrelationIdsAreCounted) {
  const Trace t =
      trace_of(with_events(kernel_with(R"("correlation":-1)") + "," + kernel_with(R"("correlation":4294967296)")));
  EXPECT_EQ(t.slices[0].correlation, 0U);
  EXPECT_EQ(t.losses[LossReason::correlation_overflow], 2U);
}

TEST(Arguments, TheyAreOfNoInterestWhereNothingReadsThem) {
  const Trace t = one(
      R"({"ph":"X","cat":"cuda_sync","name":"Context Sync","pid":0,"tid":7,"ts":1,"dur":1,"args":{"stream":-1,"device":0}})");
  EXPECT_EQ(t.losses.total(), 0U);
}

std::string sync(std::string_view name, std::string_view arguments) {
  return fmt::format(R"({{"ph":"X","cat":"cuda_sync","name":"{}","pid":0,"tid":7,"ts":1,"dur":1,"args":{{{}}}}})", name,
                     arguments);
}

TEST(Arguments, TheEventThatAStreamWaitsForIsKept) {
  const Trace t = trace_of(with_events(
      R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":0,"dur":1},)" +
      sync("Stream Wait Event", R"("stream":9,"device":2,"correlation":8,"wait_on_stream":20,)"
                                R"("wait_on_cuda_event_record_corr_id":5,"wait_on_cuda_event_id":3)") +
      "," +
      sync("Stream Wait Event", R"("wait_on_stream":0,"wait_on_cuda_event_record_corr_id":6,"wait_on_device":1)")));
  ASSERT_EQ(t.stream_waits.size(), 2U);
  const bool turned = t.stream_waits[0].recorded_by != 5;
  const StreamWait& told = t.stream_waits[turned ? 1 : 0];
  const StreamWait& of_track = t.stream_waits[turned ? 0 : 1];
  EXPECT_EQ(t.slices[told.slice].correlation, 8U);
  EXPECT_EQ(told.recorded_by, 5U);
  EXPECT_EQ(told.device, 2);
  EXPECT_EQ(told.stream, 9);
  EXPECT_EQ(told.event_device, -1);
  EXPECT_EQ(told.event_stream, 20);
  // Where nothing else says it, the track does.
  EXPECT_EQ(of_track.device, 0);
  EXPECT_EQ(of_track.stream, 7);
  EXPECT_EQ(of_track.event_device, 1);
  EXPECT_EQ(of_track.event_stream, 0);
  EXPECT_EQ(t.losses.total(), 0U);
}

TEST(Arguments, AWaitWhoseEventIsNotKnownIsNone) {
  const std::string known = R"("wait_on_stream":20,"wait_on_cuda_event_record_corr_id":5)";
  for (const std::string& event :
       {sync("Stream Wait Event", R"("wait_on_stream":-1,"wait_on_cuda_event_record_corr_id":-1)"),
        sync("Stream Wait Event", R"("wait_on_stream":20)"), sync("Event Sync", known), sync("Stream Wait Event", ""),
        sync("Stream Wait Event", R"("wait_on_stream":20,"wait_on_cuda_event_record_corr_id":4294967296)")}) {
    const Trace t = one(event);
    EXPECT_TRUE(t.stream_waits.empty()) << event;
    EXPECT_EQ(t.losses.total(), 0U) << event;
  }
  EXPECT_EQ(one(sync("Stream Wait Event", known)).stream_waits.size(), 1U);
  EXPECT_EQ(one(sync("Stream Wait Event", R"("wait_on_stream":"x")")).losses[LossReason::argument_invalid], 1U);
}

TEST(Arguments, AListOrATextInTheirPlaceIsCounted) {
  const Trace t = trace_of(with_events(
      R"({"ph":"X","name":"a","ts":1,"dur":1,"args":[1]},{"ph":"X","name":"b","ts":2,"dur":1,"args":"x"},{"ph":"X","name":"c","ts":3,"dur":1,"args":null})"));
  EXPECT_EQ(t.slices.size(), 3U);
  EXPECT_EQ(t.losses[LossReason::argument_invalid], 2U);
}

TEST(Members, OneThatStandsTwiceIsCountedAndTheLastCounts) {
  const Trace t = trace_of(with_events(
      R"({"ph":"X","name":"a","name":"b","ts":1,"dur":1,"cat":"kernel","args":{"bytes":5,"stream":1,"stream":2},"args":{"stream":3}},)"
      R"({"ph":"C","name":"m","ts":1,"args":{"v":1,"v":2}})"));
  EXPECT_EQ(t.name(t.slices[0]), "b");
  EXPECT_EQ(t.gpu[0].stream, 3);
  EXPECT_EQ(t.gpu[0].bytes, 0U) << "of the arguments that were replaced";
  EXPECT_THAT(counters(t), ElementsAre("m.v=2"));
  EXPECT_EQ(t.losses[LossReason::member_repeated], 4U);
}

TEST(Members, ASliceWithoutDurationIsKeptAndCounted) {
  const Trace t = trace_of(with_events(R"({"ph":"X","name":"a","ts":1},{"ph":"X","name":"b","ts":1,"dur":null})"));
  EXPECT_EQ(t.slices.size(), 2U);
  EXPECT_EQ(t.losses[LossReason::duration_missing], 2U);
}

TEST(Members, MetadataWithoutItsTextIsCounted) {
  const Trace t = trace_of(with_events(
      R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":5}},{"ph":"M","name":"process_name","pid":1},)"
      R"({"ph":"M","name":"thread_sort_index","pid":1,"args":{"sort_index":5}},{"ph":"M","name":"process_labels","pid":1,"args":{"labels":"CPU"}})"));
  EXPECT_EQ(t.losses[LossReason::metadata_invalid], 2U);
  EXPECT_EQ(t.losses.total(), 2U);
}

TEST(Members, IdsInTheirScopePairApart) {
  // Two processes use one local id; a global id is one over processes.
  const Trace t = trace_of(with_events(
      R"({"ph":"b","cat":"a","id2":{"local":"0x1"},"name":"n","pid":1,"tid":1,"ts":1},{"ph":"b","cat":"a","id2":{"local":"0x1"},"name":"n","pid":2,"tid":1,"ts":2},)"
      R"({"ph":"e","cat":"a","id2":{"local":"0x1"},"name":"n","pid":1,"tid":1,"ts":5},{"ph":"e","cat":"a","id2":{"local":"0x1"},"name":"n","pid":2,"tid":1,"ts":9},)"
      R"({"ph":"b","cat":"a","id2":{"global":"0x2"},"name":"g","pid":1,"tid":1,"ts":1},{"ph":"e","cat":"a","id2":{"global":"0x2"},"name":"g","pid":2,"tid":1,"ts":3})"));
  std::vector<Ns> durations;
  for (SliceIndex i = 0; i < t.slices.size(); ++i) durations.push_back(t.slices[i].duration);
  EXPECT_THAT(durations, UnorderedElementsAre(4000, 7000, 2000));
  EXPECT_EQ(t.losses.total(), 0U);
}

// --- around the events

TEST(Envelope, ASecondDocumentIsCountedWithItsPlace) {
  const std::string one_trace = with_events(R"({"ph":"X","name":"a","ts":1,"dur":1})");
  const std::string list = R"([{"ph":"X","name":"b","ts":1,"dur":1}])";
  for (const auto& [first, second] : {std::pair(one_trace, one_trace),
                                      {one_trace, list},
                                      {list, one_trace},
                                      {list, std::string("garbage")},
                                      {one_trace, std::string("}")}}) {
    const Trace t = trace_of(first + "\n" + second + "\n");
    EXPECT_EQ(t.slices.size(), 1U);
    EXPECT_EQ(t.losses[LossReason::text_behind_end], second.size() + 1) << second;
    EXPECT_TRUE(t.losses.first_seen(LossReason::text_behind_end).ends_with(fmt::format("byte {}", first.size() + 1)))
        << t.losses.first_seen(LossReason::text_behind_end);
  }
  EXPECT_EQ(trace_of(one_trace + " \n\t\r\n").losses.total(), 0U);
}

TEST(Envelope, ALongSecondDocumentIsNoneOfTheTrace) {
  std::string events;
  for (int i = 0; i < 30'000; ++i)
    events += fmt::format(R"({}{{"ph":"X","cat":"c","name":"n{}","ts":{},"dur":1}})", i == 0 ? "" : ",", i, i);
  const std::string first = with_events(R"({"ph":"X","name":"a","ts":1,"dur":1})");
  const std::string second = with_events(events);
  const Trace t = trace_of(first + second);
  EXPECT_EQ(t.slices.size(), 1U);
  EXPECT_EQ(t.losses[LossReason::text_behind_end], second.size());
  EXPECT_EQ(t.losses.total(), second.size());
  EXPECT_LT(t.strings.size(), 10U) << "names of what was not read";
}

TEST(Envelope, ASecondListOfEventsIsCounted) {
  const std::string event = R"({"ph":"X","name":"a","ts":1,"dur":1})";
  const Trace t =
      trace_of(fmt::format(R"({{"traceEvents":[{0}],"x":1,"traceEvents":[{0},{0}],"traceEvents":[]}})", event));
  EXPECT_EQ(t.slices.size(), 1U);
  EXPECT_EQ(t.losses[LossReason::event_list_repeated], 2U);
  EXPECT_FALSE(t.losses.first_seen(LossReason::event_list_repeated).empty());
}

TEST(Envelope, AWholeTraceInPlaceOfAnEventIsCounted) {
  const std::string whole = with_events(R"({"ph":"X","name":"a","ts":1,"dur":1})");
  const Trace t = trace_of("[" + whole + "," + whole + "]");
  EXPECT_EQ(t.losses[LossReason::event_list_repeated], 2U);
  EXPECT_EQ(t.losses[LossReason::phase_unknown], 0U);
}

TEST(Envelope, MembersThatStandTwiceAreCountedAndTheLastCounts) {
  const Trace t = trace_of(R"({"distributedInfo":{"rank":1},"traceEvents":[],"distributedInfo":{"rank":2}})");
  EXPECT_EQ(t.ranks[0].rank, 2);
  EXPECT_EQ(t.losses[LossReason::member_repeated], 1U);
}

TEST(Envelope, MembersOfTheWrongTypeAreCounted) {
  const Trace t = trace_of(
      R"({"deviceProperties":{},"distributedInfo":[1],"baseTimeNanoseconds":"soon","schemaVersion":1,"traceEvents":[]})");
  EXPECT_EQ(t.losses[LossReason::metadata_invalid], 3U);
  EXPECT_EQ(trace_of(R"({"distributedInfo":null,"traceEvents":[]})").losses.total(), 0U);
}

TEST(Envelope, WhatTheProfilerWasAskedForIsKept) {
  const Trace t =
      trace_of(R"({"with_stack": 1, "record_shapes": 0 ,"with_flops":true,"with_modules":false,"traceEvents":[]})");
  using Facts = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(t.ranks[0].metadata, (Facts{{"profiler.with_flops", "1"}, {"profiler.with_stack", "1"}}));
}

TEST(Envelope, TheBaseIsExactHoweverItIsWritten) {
  for (const char* base : {"1700000000123456789", "\"1700000000123456789\"", "1700000000123456789.0"})
    EXPECT_EQ(trace_of(fmt::format(R"({{"traceEvents":[],"baseTimeNanoseconds":{}}})", base)).base_ns,
              1700000000123456789)
        << base;
}

TEST(Envelope, ThousandsOfOtherMembersHideNone) {
  std::string text = "{";
  for (int i = 0; i < 5000; ++i) text += fmt::format("\"m{}\":[{}],", i, i);
  const Trace t = trace_of(text + R"("traceEvents":[],"distributedInfo":{"rank":7}})");
  EXPECT_EQ(t.ranks[0].rank, 7);
}

}  // namespace
}  // namespace culprit::formats::kineto
