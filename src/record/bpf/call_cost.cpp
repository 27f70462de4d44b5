#include "record/bpf/call_cost.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/units.h"
#include "record/collector/collector.h"

namespace culprit::record::bpf {

double short_call() {
  constexpr int kCalls = 50;
  std::array<Ns, 9> handfuls{};
  for (Ns& handful : handfuls) {
    const Ns begin = monotonic_now();
    for (int i = 0; i < kCalls; ++i) syscall(SYS_getppid);
    handful = monotonic_now() - begin;
  }
  std::ranges::sort(handfuls);
  return static_cast<double>(handfuls[handfuls.size() / 2]) / kCalls;
}

double counted_call(volatile int& measured, bool first) {
  measured = gettid();
  constexpr int kAllTimed = 4096;
  if (first)
    for (int i = 0; i < kAllTimed; ++i) syscall(SYS_getppid);
  const double time = short_call();
  measured = 0;
  return time;
}

}  // namespace culprit::record::bpf
