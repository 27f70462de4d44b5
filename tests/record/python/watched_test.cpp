// What the agent tells becomes slices; what it tells of a time that cannot be does not.
#include "record/python/watched.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "record/inject/status_file.h"
#include "record/nvtx/recording.h"
#include "support/temp_file.h"

namespace culprit::record::python {
namespace {

using namespace std::string_view_literals;

/// A process whose agent is this test.
struct Agent : ::testing::Test {
  Agent() {
    void* at = mmap(nullptr, CULPRIT_AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    header = static_cast<culprit_agent_header*>(at);
    inject::Injected injected;
    injected.shared = inject::Shared(at, CULPRIT_AGENT_BYTES);
    watched = std::make_unique<Watched>(getpid(), std::move(injected), specs);
    Result<perfetto::Writer> made = perfetto::Writer::create(folder.path("run.pftrace"));
    writer = std::make_unique<perfetto::Writer>(std::move(*made));
    put(CULPRIT_AGENT_FUNCTION, monotonic_now(), "f\0a.py\0001\0m:f"sv);
  }

  void put(culprit_agent_type type, Ns time, std::string_view text = {}, std::uint32_t value = 0,
           std::int32_t tid = gettid(), std::uint8_t flags = 0) {
    culprit_agent_record record{};
    record.flags = flags;
    record.size = static_cast<std::uint16_t>((sizeof record + text.size() + 7) & ~std::size_t{7});
    record.type = type;
    record.tid = tid;
    record.value = value;
    record.time = static_cast<std::uint64_t>(time);
    record.text_bytes = static_cast<std::uint16_t>(text.size());
    char* const data = reinterpret_cast<char*>(header) + CULPRIT_AGENT_HEADER_BYTES + CULPRIT_AGENT_CONFIG_BYTES;
    const std::uint64_t to_end = CULPRIT_AGENT_CAPACITY - header->head % CULPRIT_AGENT_CAPACITY;
    if (to_end < record.size) {
      std::memset(data + CULPRIT_AGENT_CAPACITY - to_end, 0, to_end);  // a pad
      header->head += to_end;
    }
    char* to = data + header->head % CULPRIT_AGENT_CAPACITY;
    std::memcpy(to, &record, sizeof record);
    std::ranges::copy(text, to + sizeof record);
    header->head += record.size;
  }

  std::vector<Ns> durations() {
    EXPECT_TRUE(writer->close().ok());
    std::vector<Ns> all;
    const test::Recording recording = test::read_recording(folder.path("run.pftrace"));
    for (const test::RecordedSlice& slice : recording.named("f"))
      all.push_back(static_cast<Ns>(slice.end - slice.begin));
    return all;
  }

  test::TempDir folder;
  std::vector<FunctionSpec> specs;
  culprit_agent_header* header = nullptr;
  std::unique_ptr<Watched> watched;
  std::unique_ptr<perfetto::Writer> writer;
};

TEST_F(Agent, WhatItsOwnThreadCollectsIsNoneOfTheProgram) {
  header->thread = static_cast<std::uint32_t>(gettid());
  const Ns now = monotonic_now();
  const std::int32_t other = gettid() + 1;
  put(CULPRIT_AGENT_GC_BEGIN, now, {}, 1);
  put(CULPRIT_AGENT_GC_END, now, {}, 1);
  put(CULPRIT_AGENT_GC_BEGIN, now, {}, 2, other);
  put(CULPRIT_AGENT_GC_END, now, {}, 2, other);
  EXPECT_TRUE(watched->read(*writer, monotonic_now()));
  EXPECT_TRUE(writer->close().ok());
  const test::Recording recording = test::read_recording(folder.path("run.pftrace"));
  EXPECT_TRUE(recording.named("gc generation 1").empty());
  EXPECT_EQ(recording.named("gc generation 2").size(), 1u);
}

TEST_F(Agent, IsQuietWhileLittleComes) {
  EXPECT_FALSE(watched->is_quiet()) << "nobody has looked";
  put(CULPRIT_AGENT_BEGIN, monotonic_now());
  watched->read(*writer, monotonic_now());
  EXPECT_TRUE(watched->is_quiet());
  for (std::size_t i = 0; i < 2000; ++i) put(CULPRIT_AGENT_BEGIN, monotonic_now());
  watched->read(*writer, monotonic_now());
  EXPECT_FALSE(watched->is_quiet());
  watched->read(*writer, monotonic_now());
  EXPECT_TRUE(watched->is_quiet());
}

TEST_F(Agent, WhatIsExecutedWhileTheAgentIsStillOnItsWayHereIsNoticed) {
  EXPECT_FALSE(watched->has_executed_another()) << "where the stack was is not known";
  const auto with_stack = [&](std::uint64_t stack) {
    inject::Injected injected;
    void* at = mmap(nullptr, CULPRIT_AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    injected.shared = inject::Shared(at, CULPRIT_AGENT_BYTES);
    injected.stack = stack;
    return Watched(getpid(), std::move(injected), specs).has_executed_another();
  };
  const std::uint64_t now = inject::start_of_stack(getpid());
  EXPECT_FALSE(with_stack(now));
  EXPECT_TRUE(with_stack(now + 4096));
}

TEST_F(Agent, ARecorderThatWaitedForACpuTakesWhatHappenedMeanwhile) {
  const Ns looked = monotonic_now() - 5 * kSecond;
  const Ns at = monotonic_now() - kSecond;
  put(CULPRIT_AGENT_BEGIN, at);
  put(CULPRIT_AGENT_END, at + 1000);
  watched->read(*writer, looked);
  EXPECT_EQ(watched->malformed(), 0U);
  EXPECT_EQ(durations(), std::vector<Ns>{1000});
}

TEST_F(Agent, CallsThatBeganBeforeTheRecordingAreLeftOut) {
  const Ns begin = monotonic_now();
  put(CULPRIT_AGENT_BEGIN, begin - 3000);
  put(CULPRIT_AGENT_BEGIN, begin - 2000);
  put(CULPRIT_AGENT_END, begin - 1000);
  put(CULPRIT_AGENT_BEGIN, begin + 1000);
  put(CULPRIT_AGENT_END, begin + 1500);
  put(CULPRIT_AGENT_END, begin + 2000);
  watched->read(*writer, monotonic_now(), begin);
  EXPECT_EQ(watched->malformed(), 0U);
  EXPECT_EQ(watched->calls(), 1U);
  EXPECT_EQ(durations(), std::vector<Ns>{500});
}

TEST_F(Agent, CallsThatBeginAfterTheRecordingAreLeftOutAndThoseUnderWayEnd) {
  const Ns end = monotonic_now() - 5000;
  put(CULPRIT_AGENT_BEGIN, end - 500);
  put(CULPRIT_AGENT_END, end + 200);
  put(CULPRIT_AGENT_BEGIN, end + 1000);
  put(CULPRIT_AGENT_END, end + 1500);
  watched->read(*writer, monotonic_now(), 0, end);
  EXPECT_EQ(watched->calls(), 1U);
  EXPECT_EQ(durations(), std::vector<Ns>{700});
}

TEST_F(Agent, WhatGoesOnWhenAFileEndsEndsInNone) {
  const Ns begin = monotonic_now() - kSecond;
  put(CULPRIT_AGENT_BEGIN, begin);
  watched->read(*writer, monotonic_now());
  watched->cut();
  ASSERT_TRUE(writer->next_file(folder.path("next.pftrace"), {}).ok());
  put(CULPRIT_AGENT_BEGIN, begin + 1000);
  put(CULPRIT_AGENT_END, begin + 1500);
  put(CULPRIT_AGENT_END, begin + 2000);
  watched->read(*writer, monotonic_now());
  const std::vector<Ns> first = durations();
  ASSERT_EQ(first.size(), 1U);
  const test::Recording next = test::read_recording(folder.path("next.pftrace"));
  EXPECT_EQ(next.ends_without_begin, 0U);
  ASSERT_EQ(next.named("f").size(), 1U);
  EXPECT_EQ(next.named("f")[0].end - next.named("f")[0].begin, 500U);
}

TEST_F(Agent, WhatItDroppedBeforeTheRecordingBeganIsNoLoss) {
  header->dropped = 7;
  watched->read(*writer, monotonic_now(), kNotBegun);
  EXPECT_EQ(watched->dropped(), 0U);
  header->dropped = 9;
  watched->read(*writer, monotonic_now(), monotonic_now());
  EXPECT_EQ(watched->dropped(), 2U);
}

TEST_F(Agent, WhatIsToComeIsNotTaken) {
  put(CULPRIT_AGENT_BEGIN, monotonic_now() + 3600 * kSecond);
  watched->read(*writer, monotonic_now());
  EXPECT_EQ(watched->malformed(), 1U);
  EXPECT_EQ(watched->calls(), 0U);
}

TEST_F(Agent, CallsThatAreOpenWhenARecordIsNotTakenEndThere) {
  const Ns at = monotonic_now();
  put(CULPRIT_AGENT_BEGIN, at);
  put(CULPRIT_AGENT_END, at + 3600 * kSecond);
  watched->read(*writer, monotonic_now());
  put(CULPRIT_AGENT_BEGIN, at + 2000);
  put(CULPRIT_AGENT_END, at + 2500);
  watched->read(*writer, monotonic_now());
  EXPECT_EQ(watched->malformed(), 1U);
  EXPECT_EQ(durations(), (std::vector<Ns>{0, 500}));
}

// The recorder was late: what was dropped came after what it had read, and before what it reads now.
TEST_F(Agent, EndsBehindLostRecordsAreNotThoseOfCallsBeforeThem) {
  const Ns at = monotonic_now() - kSecond;
  header->dropped = 2;
  watched->read(*writer, monotonic_now());
  put(CULPRIT_AGENT_BEGIN, at);
  put(CULPRIT_AGENT_GC_BEGIN, at + 100, {}, 1);
  put(CULPRIT_AGENT_END, at + 70'000, {}, 0, gettid(), CULPRIT_AGENT_BEHIND_LOST);
  put(CULPRIT_AGENT_BEGIN, at + 80'000);
  put(CULPRIT_AGENT_END, at + 80'500);
  watched->read(*writer, monotonic_now());
  EXPECT_EQ(watched->malformed(), 0U);
  EXPECT_EQ(durations(), (std::vector<Ns>{100, 500}));
}

TEST_F(Agent, CallsThatAreTooDeepAreCountedAndEndNoOther) {
  constexpr Ns kDepth = 300, kKept = 256;
  const Ns begin = monotonic_now() - kSecond;
  for (Ns n = 0; n < kDepth; ++n) put(CULPRIT_AGENT_BEGIN, begin + n);
  for (Ns n = 0; n < kDepth; ++n) put(CULPRIT_AGENT_END, begin + kDepth + n);
  watched->read(*writer, monotonic_now());
  EXPECT_EQ(watched->malformed(), 0U);
  EXPECT_EQ(watched->uncounted(), static_cast<std::uint64_t>(kDepth - kKept));
  std::vector<Ns> expected;
  for (Ns n = 0; n < kKept; ++n) expected.push_back(2 * (kDepth - n) - 1);
  EXPECT_EQ(durations(), expected);
}

TEST_F(Agent, ThreadsThatHaveEndedMakeRoomForOthers) {
  const Ns begin = monotonic_now() - kSecond;
  constexpr std::int32_t kThreads = 9000;
  for (std::int32_t tid = 1; tid <= kThreads; ++tid) {
    put(CULPRIT_AGENT_BEGIN, begin, {}, 0, 1'000'000'000 + tid);
    put(CULPRIT_AGENT_END, begin + 10, {}, 0, 1'000'000'000 + tid);
  }
  watched->read(*writer, monotonic_now());
  EXPECT_EQ(watched->malformed(), 0U);
  EXPECT_EQ(durations(), std::vector<Ns>(kThreads, 10));
}

TEST_F(Agent, MoreThreadsAtOnceThanThereIsRoomForAreCounted) {
  const Ns begin = monotonic_now() - kSecond;
  constexpr std::int32_t kThreads = 5000, kRoom = 4096;
  for (std::int32_t tid = 1; tid <= kThreads; ++tid) put(CULPRIT_AGENT_BEGIN, begin, {}, 0, 1'000'000'000 + tid);
  for (std::int32_t tid = 1; tid <= kThreads; ++tid) put(CULPRIT_AGENT_END, begin + 10, {}, 0, 1'000'000'000 + tid);
  watched->read(*writer, monotonic_now());
  EXPECT_EQ(watched->malformed(), 0U);
  EXPECT_EQ(watched->uncounted(), static_cast<std::uint64_t>(kRoom)) << "those threads have ended";
  std::vector<Ns> expected(kRoom, 0);
  expected.resize(kThreads, 10);
  EXPECT_EQ(durations(), expected);
}

TEST_F(Agent, ThreadsWithoutEndAreCountedWhereTheirTracksWouldBeTooMany) {
  const Ns begin = monotonic_now() - kSecond;
  constexpr std::int32_t kThreads = 70'000, kTracks = 65'536, kAtOnce = 10'000;
  for (std::int32_t tid = 1; tid <= kThreads; ++tid) {
    put(CULPRIT_AGENT_BEGIN, begin, {}, 0, 1'000'000'000 + tid);
    put(CULPRIT_AGENT_END, begin + 10, {}, 0, 1'000'000'000 + tid);
    if (tid % kAtOnce == 0) watched->read(*writer, monotonic_now());
  }
  EXPECT_EQ(watched->malformed(), 0U);
  EXPECT_EQ(watched->calls(), static_cast<std::uint64_t>(kTracks));
  EXPECT_EQ(watched->uncounted(), static_cast<std::uint64_t>(kThreads - kTracks));
}

TEST_F(Agent, OnlyWhatWasAskedForIsMissing) {
  specs = {FunctionSpec{}, FunctionSpec{}};
  specs[0].text = "m:f";
  specs[1].text = "m:g";
  const Ns now = monotonic_now();
  for (int n = 0; n < 2; ++n) {
    put(CULPRIT_AGENT_MESSAGE, now, "absent\0m:f"sv);
    put(CULPRIT_AGENT_MESSAGE, now, "unusable\0m:g\0is no Python function"sv);
    put(CULPRIT_AGENT_MESSAGE, now, "found\0m:g"sv);
  }
  put(CULPRIT_AGENT_MESSAGE, now, "absent\0m:other"sv);
  put(CULPRIT_AGENT_MESSAGE, now, "unusable\0m:other\0is no Python function"sv);
  put(CULPRIT_AGENT_MESSAGE, now, "found\0m:other"sv);
  watched->read(*writer, monotonic_now());
  EXPECT_EQ(watched->absent(), std::set<std::string>{"m:f"});
  EXPECT_EQ(watched->unusable(), (std::map<std::string, std::string>{{"m:g", "is no Python function"}}));
  EXPECT_EQ(watched->found(), (std::set<std::string>{"m:f", "m:g"}));
  EXPECT_EQ(watched->malformed(), 3U);
}

TEST_F(Agent, WhatACallSaysOfItsStepIsNone) {
  specs = {FunctionSpec{}};
  specs[0].text = "m:f";
  specs[0].step = "bs=8";
  for (const bool says : {true, false}) {
    specs[0].says = says;
    const Ns begin = monotonic_now();
    put(CULPRIT_AGENT_BEGIN, begin);
    put(CULPRIT_AGENT_GC_BEGIN, begin + 2, {}, 1);
    put(CULPRIT_AGENT_GC_END, begin + 4, {}, 1);
    put(CULPRIT_AGENT_END, begin + 9);
    watched->read(*writer, monotonic_now());
    EXPECT_EQ(watched->new_steps(), says ? 0U : 1U);
  }
  EXPECT_TRUE(writer->close().ok());
  const test::Recording recording = test::read_recording(folder.path("run.pftrace"));
  const auto is_one = [&](std::string_view name, std::string_view category, std::uint64_t duration) {
    const auto found = recording.named(name);
    ASSERT_EQ(found.size(), 1U) << name;
    EXPECT_EQ(found[0].category, category);
    EXPECT_EQ(found[0].end - found[0].begin, duration);
  };
  is_one("bs=8", "annotation", 9);
  is_one("step: bs=8", "step", 9);
  const auto collections = recording.named("gc generation 1");
  ASSERT_EQ(collections.size(), 2U);
  for (const test::RecordedSlice& slice : collections) EXPECT_EQ(slice.end - slice.begin, 2U);
}

TEST_F(Agent, AFunctionWhoseNameWasLostShiftsNoOther) {
  const Ns begin = monotonic_now() - kSecond;
  put(CULPRIT_AGENT_FUNCTION, begin, "h\0a.py\0002\0m:h"sv, 2);
  put(CULPRIT_AGENT_BEGIN, begin, {}, 2);
  put(CULPRIT_AGENT_BEGIN, begin + 1, {}, 1);
  put(CULPRIT_AGENT_BEGIN, begin + 2, {}, 0);
  put(CULPRIT_AGENT_END, begin + 5, {}, 0);
  put(CULPRIT_AGENT_END, begin + 6, {}, 1);
  put(CULPRIT_AGENT_END, begin + 7, {}, 2);
  watched->read(*writer, monotonic_now());
  EXPECT_EQ(watched->malformed(), 0U);
  EXPECT_EQ(watched->uncounted(), 1U);
  EXPECT_EQ(watched->calls(), 2U);
  EXPECT_EQ(durations(), std::vector<Ns>{3});
}

}  // namespace
}  // namespace culprit::record::python
