// In which processes samples of a function were: of a lock, whose holder has threads that wait for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/units.h"
#include "profile/collected.h"
#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using testing_support::TraceMaker;

constexpr Ns kEnd = 1000 * kMs;

class Threads {
 public:
  /// It runs for so long, and is blocked in futex as long as it is told, one after the other.
  void thread(std::int64_t pid, std::int64_t tid, Ns runs, Ns waits) {
    maker_.slice(maker_.sched(pid, tid), "sched", "oncpu", 0, runs);
    maker_.slice(maker_.thread(pid, tid), "blocked", "blocked:futex", runs, waits);
  }
  void sample(std::int64_t pid, std::int64_t tid, std::string_view function) {
    StackFrame frame;
    frame.function = maker_.trace().strings.intern(function);
    maker_.trace().stack_frames.push_back(frame);
    StackSample sample;
    sample.at = kMs;
    sample.track = maker_.thread(pid, tid);
    sample.frame = static_cast<std::uint32_t>(maker_.trace().stack_frames.size() - 1);
    maker_.trace().stack_samples.push_back(sample);
  }
  /// Of that process's.
  void step(std::int64_t pid, std::int64_t tid) { maker_.slice(maker_.thread(pid, tid), "step", "step", 0, kMs); }
  model::SampledIn of(const char* function, const model::Cycles& cycles = {}) {
    return collected_in(maker_.trace(), {{0, kEnd}}, cycles).python_in[function];
  }
  Trace& trace() { return maker_.trace(); }

 private:
  TraceMaker maker_;
};

TEST(SampledIn, WhoHoldsALockRunsBesideAThreadThatWaitsForIt) {
  Threads threads;
  threads.thread(10, 1, 400 * kMs, 500 * kMs);  // runs the steps
  threads.thread(10, 2, 500 * kMs, 0);
  threads.sample(10, 2, "_hold (gil.py:3)");
  const model::SampledIn in = threads.of("_hold (gil.py)");
  EXPECT_EQ(in.all, 1);
  EXPECT_EQ(in.waiting, 1);
  EXPECT_EQ(in.beside, 1);
}

TEST(SampledIn, WhichSamplesAreOfThreadsThatRunStepsIsTold) {
  Threads threads;
  threads.thread(10, 1, 400 * kMs, 500 * kMs);
  threads.thread(10, 2, 500 * kMs, 0);
  threads.step(10, 1);
  for (const int tid : {1, 2, 2, 2}) threads.sample(10, tid, "forward (model.py:3)");
  model::Cycles cycles;
  cycles.cycles.emplace_back().process = threads.trace().tracks.front().process;
  EXPECT_EQ(threads.of("forward (model.py)", cycles).in_steps, 1);
  EXPECT_TRUE(std::isnan(threads.of("forward (model.py)").in_steps)) << "no steps";
}

TEST(SampledIn, AWorkerProcessThatWorksHoldsUpNobodyByALock) {
  Threads threads;
  threads.thread(10, 1, 400 * kMs, 500 * kMs);  // waits for the worker
  threads.thread(20, 1, 900 * kMs, 0);
  threads.thread(20, 2, 5 * kMs, 900 * kMs);  // feeds a queue: idle
  threads.sample(20, 1, "augment (images.py:3)");
  const model::SampledIn in = threads.of("augment (images.py)");
  EXPECT_EQ(in.all, 1);
  EXPECT_EQ(in.waiting, 0);
  EXPECT_EQ(in.beside, 0);
}

TEST(SampledIn, AThreadDoesNotWaitBesideItself) {
  Threads threads;
  threads.thread(20, 1, 500 * kMs, 300 * kMs);
  threads.sample(20, 1, "augment (images.py:3)");
  EXPECT_EQ(threads.of("augment (images.py)").waiting, 1);
  EXPECT_EQ(threads.of("augment (images.py)").beside, 0);
}

TEST(SampledIn, ManyThreadsThatEachWorkLittleWaitTogether) {
  Threads threads;
  for (std::int64_t tid = 1; tid <= 40; ++tid) threads.thread(10, tid, kMs, 9 * kMs);  // one for each request
  threads.sample(10, 3, "handle (server.py:3)");
  EXPECT_EQ(threads.of("handle (server.py)").waiting, 1);
  EXPECT_EQ(threads.of("handle (server.py)").beside, 1);
}

}  // namespace
}  // namespace culprit::profile
