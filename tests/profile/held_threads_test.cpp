// Threads that could not run for most of a recording.
#include "profile/held_threads.h"

#include <gtest/gtest.h>

#include <string_view>

#include "trace/builder.h"

namespace culprit::profile {
namespace {

class Recording {
 public:
  void state(std::int64_t tid, std::string_view name, Ns begin, Ns end) {
    TrackKey key;
    key.pid = 7;
    key.tid = tid;
    key.kind = TrackKind::sched;
    Slice slice;
    slice.begin = begin;
    slice.duration = end - begin;
    slice.name = builder_.intern(name);
    slice.track = builder_.track(key);
    slice.category = builder_.category("sched");
    builder_.name_thread(slice.track, builder_.intern(tid == 7 ? "worker" : "helper"));
    builder_.name_process(builder_.process(7, 0), builder_.intern("server"));
    builder_.add(slice);
  }
  Trace finish() { return std::move(builder_).finish(); }

 private:
  TraceBuilder builder_{Rank{}};
};

TEST(HeldThreads, WhoCouldNotRunForFourFifthsIsOne) {
  Recording r;
  r.state(7, "oncpu", 0, 10);
  r.state(7, "runq", 10, 900);
  r.state(7, "blocked", 900, 1000);
  r.state(8, "runq", 0, 700);  // less than four fifths
  r.state(8, "blocked", 700, 1000);
  const auto held = held_threads(r.finish());
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].name, "worker");
  EXPECT_EQ(held[0].process, "server");
  EXPECT_TRUE(held[0].main);
  EXPECT_EQ(held[0].recorded, 1000);
  EXPECT_EQ(held[0].on_cpu, 10);
  EXPECT_EQ(held[0].runnable, 890);
  EXPECT_EQ(held[0].stopped, 0);
}

TEST(HeldThreads, StoppedAndAsleepWithoutSignalsAreAlikeToIt) {
  Recording r;
  r.state(7, "stopped", 0, 500);
  r.state(7, "blocked_uninterruptible", 500, 900);
  r.state(7, "oncpu", 900, 1000);
  r.state(8, "runq", 0, 1000);
  const auto held = held_threads(r.finish());
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[0].stopped, 500);
  EXPECT_EQ(held[0].uninterruptible, 400);
  EXPECT_FALSE(held[1].main);
}

TEST(HeldThreads, WhoWaitsForWorkOrWorksIsNone) {
  Recording r;
  r.state(7, "blocked", 0, 990);
  r.state(7, "oncpu", 990, 1000);
  r.state(8, "oncpu", 0, 1000);
  EXPECT_TRUE(held_threads(r.finish()).empty());
  EXPECT_TRUE(held_threads(Recording().finish()).empty());
}

}  // namespace
}  // namespace culprit::profile
