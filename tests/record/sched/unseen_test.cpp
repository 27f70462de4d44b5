#include "record/sched/unseen.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>

#include "core/units.h"

namespace culprit::record::sched {
namespace {

struct Machine {
  std::map<std::int32_t, std::uint64_t> threads;
  int asked = 0;
  UnseenRuns runs{[this](std::int32_t, std::int32_t tid) -> std::optional<std::uint64_t> {
    ++asked;
    const auto found = threads.find(tid);
    return found == threads.end() ? std::nullopt : std::optional(found->second);
  }};
};

TEST(UnseenRuns, WhoRunsOnAlthoughItWaitsIsFound) {
  Machine m;
  m.threads[7] = 100;
  m.runs.waits(7, 5, 0);
  EXPECT_TRUE(m.runs.look(4 * kMs).empty());
  EXPECT_EQ(m.asked, 0) << "waits are short as a rule";
  EXPECT_TRUE(m.runs.look(30 * kMs).empty());
  m.threads[7] = 5'000'000;
  EXPECT_TRUE(m.runs.look(40 * kMs).empty()) << "its record may be under way";
  const auto found = m.runs.look(50 * kMs);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tid, 7);
  EXPECT_EQ(found[0].tgid, 5);
  EXPECT_EQ(found[0].at, 40 * kMs) << "half of the time: it may just have begun";
  EXPECT_TRUE(m.runs.look(60 * kMs).empty()) << "once";
}

TEST(UnseenRuns, WhoRanAllAlongDidSoAtTheLookBefore) {
  Machine m;
  m.threads[7] = 100;
  m.runs.waits(7, 5, 0);
  m.runs.look(30 * kMs);
  m.threads[7] = 100 + 8 * kMs;
  m.runs.look(40 * kMs);
  const auto found = m.runs.look(50 * kMs);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].at, 30 * kMs);
}

TEST(UnseenRuns, WhoWaitsWaits) {
  Machine m;
  m.threads[7] = 100;
  m.runs.waits(7, 5, 0);
  for (Ns at = 0; at < 500; at += 10) EXPECT_TRUE(m.runs.look(at * kMs).empty());
}

TEST(UnseenRuns, ARecordThatComesLateCounts) {
  Machine m;
  m.threads[7] = 100;
  m.runs.waits(7, 5, 0);
  m.runs.look(30 * kMs);
  m.threads[7] = 5'000'000;
  m.runs.look(40 * kMs);
  m.runs.seen(7);
  EXPECT_TRUE(m.runs.look(50 * kMs).empty());
}

TEST(UnseenRuns, NewWaitsBeginAnew) {
  Machine m;
  m.threads[7] = 100;
  m.runs.waits(7, 5, 0);
  m.runs.look(30 * kMs);
  m.threads[7] = 5'000'000;
  m.runs.waits(7, 5, 35 * kMs);  // it ran and left again
  for (Ns at = 36; at < 300; at += 10) EXPECT_TRUE(m.runs.look(at * kMs).empty());
}

TEST(UnseenRuns, AsksForSomeInEachLookAndForgetsTheDead) {
  Machine m;
  for (std::int32_t tid = 1; tid <= 1000; ++tid) m.runs.waits(tid, 5, 0);
  m.runs.look(30 * kMs);
  EXPECT_EQ(m.asked, static_cast<int>(UnseenRuns::kMostAsked));
  for (Ns at = 40; at < 2000; at += 10) m.runs.look(at * kMs);
  EXPECT_EQ(m.asked, 1000) << "each was gone";
}

TEST(UnseenRuns, NobodyIsForgottenBehindOthersThatWait) {
  Machine m;
  for (std::int32_t tid = 1; tid <= 100; ++tid) {
    m.threads[tid] = 100;
    m.runs.waits(tid, 5, 0);
  }
  std::size_t found = 0;
  for (Ns at = 10; at < 500; at += 10) {
    for (auto& [tid, run_ns] : m.threads)
      if (tid % 50 == 0) run_ns += 10 * kMs;
    found += m.runs.look(at * kMs).size();
  }
  EXPECT_EQ(found, 2U);
}

TEST(ReadRunTime, KnowsWhatThisThreadRan) {
  const auto before = read_run_ns(getpid(), gettid());
  ASSERT_TRUE(before);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
  while (std::chrono::steady_clock::now() < end) {
  }
  EXPECT_GT(read_run_ns(getpid(), gettid()), before);
  EXPECT_LT(read_last_cpu(getpid(), gettid()), static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_CONF)));
  EXPECT_FALSE(read_run_ns(getpid(), 1));
  EXPECT_FALSE(read_last_cpu(getpid(), 1));
}

}  // namespace
}  // namespace culprit::record::sched
