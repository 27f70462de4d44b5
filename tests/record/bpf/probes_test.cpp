// The programs in this kernel; skipped where it does not let them in.
#include "record/bpf/probes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <vector>

#include "record/collector/collector.h"

namespace culprit::record::bpf {
namespace {

constexpr Ns kMillisecond = 1'000'000;

void wait_ns(Ns time) {
  const timespec t{time / 1'000'000'000, time % 1'000'000'000};
  nanosleep(&t, nullptr);
}

struct Heard final : Listener {
  std::vector<culprit_switch> switches;
  std::vector<culprit_syscall> syscalls;
  void on_switch(const culprit_switch& record) override { switches.push_back(record); }
  void on_syscall(const culprit_syscall& record) override { syscalls.push_back(record); }
  void clear() {
    switches.clear();
    syscalls.clear();
  }
};

/// A process that sleeps 100 ms again and again.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    for (; pid_ == 0;) wait_ns(100 * kMillisecond);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(Probes, WhatTargetsDoIsHeardUntilTheyAreDetached) {
  const Sleeper sleeper;
  const Sleeper stranger;
  Heard heard;
  Probes probes;
  probes.want(kSched | kSyscalls);
  probes.listen(heard);
  if (const Status status = probes.open(); !status) GTEST_SKIP() << to_string(status.error());
  probes.add_target(sleeper.pid());
  wait_ns(350 * kMillisecond);
  probes.consume();
  EXPECT_FALSE(heard.switches.empty());
  EXPECT_FALSE(heard.syscalls.empty());
  for (const culprit_syscall& call : heard.syscalls) EXPECT_EQ(call.tgid, sleeper.pid());

  probes.detach();
  probes.consume();
  heard.clear();
  wait_ns(350 * kMillisecond);
  probes.consume();
  EXPECT_TRUE(heard.switches.empty());
  EXPECT_TRUE(heard.syscalls.empty());
  probes.unlisten(heard);
}

}  // namespace
}  // namespace culprit::record::bpf
