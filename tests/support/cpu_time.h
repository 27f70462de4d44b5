// How much longer one piece of work takes than another, on machines that do other things, too: by the CPU time of the
// thread, in turns, the best of each.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace culprit::test {

inline double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// For which all threads of this process have run, s.
inline double cpu_seconds_of_process() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

/// CPU time of this thread that `work` takes, s.
template <class Work>
double cpu_seconds(const Work& work) {
  const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  work();
  return seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/// How many times as long `more` takes as `less`: of three turns, and of up to ten until that is below `enough`.
template <class More, class Less>
double times_as_long(const More& more, const Less& less, double enough) {
  constexpr int kFewest = 3;
  constexpr int kTurns = 10;
  double long_one = std::numeric_limits<double>::infinity();
  double short_one = long_one;
  for (int turn = 0; turn < kFewest || (turn < kTurns && long_one >= enough * short_one); ++turn) {
    short_one = std::min(short_one, cpu_seconds(less));
    long_one = std::min(long_one, cpu_seconds(more));
  }
  return long_one / short_one;
}

}  // namespace culprit::test
