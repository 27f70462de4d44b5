#include "record/syscalls/run_clock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "record/collector/collector.h"
#include "support/cpu_time.h"

namespace culprit::record::syscalls {
namespace {

TEST(RunClock, ToTheNanosecondWhileTheThreadRuns) {
  RunClock clock(gettid());
  if (!clock.read()) GTEST_SKIP() << "the kernel gives no clock of a thread (perf_event_open)";
  int near = 0;
  for (int i = 0; i < 20; ++i) {
    const Ns begin = monotonic_now();
    const Ns before = *clock.read();
    const double ran = test::cpu_seconds([] {
      for (const Ns end = monotonic_now() + 700'000; monotonic_now() < end;) {
      }
    });
    const auto by_clock = static_cast<double>(*clock.read() - before);
    EXPECT_GE(by_clock, ran * 1e9);
    EXPECT_LE(by_clock, static_cast<double>(monotonic_now() - begin));
    if (by_clock < ran * 1e9 + 500'000) ++near;
  }
  // No multiple of a tick. Between the readings this thread does little else, but the machine may take a CPU from it.
  EXPECT_GE(near, 10);
}

TEST(RunClock, StandsWhileTheThreadSleeps) {
  RunClock clock(gettid());
  if (!clock.read()) GTEST_SKIP() << "the kernel gives no clock of a thread (perf_event_open)";
  usleep(50'000);
  EXPECT_LT(*clock.read(), 20'000'000);
}

TEST(RunClock, OfNobodyIsNone) {
  EXPECT_FALSE(RunClock(1 << 30).read().has_value());
  RunClock clock(gettid());
  RunClock other = std::move(clock);
  EXPECT_FALSE(clock.read().has_value());  // NOLINT(bugprone-use-after-move): that is what is asked
}

}  // namespace
}  // namespace culprit::record::syscalls
