// The programs in this kernel; skipped where it does not let them in.
#include "record/bpf/probes.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
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

/// What threads tell of one system call.
struct Calls final : Listener {
  std::int32_t nr = SYS_getppid;
  std::map<std::int32_t, culprit_call_total> last;  ///< by thread
  void on_calls(const culprit_calls& record) override {
    if (record.total.nr == nr) last[record.tid] = record.total;
  }
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t sum = 0;
    for (const auto& [tid, total] : last) sum += total.count;
    return sum;
  }
};

/// A process that waits until it is told, then calls `work` and ends.
class Worker {
 public:
  explicit Worker(const std::function<void()>& work) {
    if (pipe(go_) != 0) abort();
    pid_ = fork();
    if (pid_ != 0) return;
    char c = 0;
    while (read(go_[0], &c, 1) < 0) {
    }
    work();
    _exit(0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int fd : go_) close(fd);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void go() { ASSERT_EQ(write(go_[1], "g", 1), 1); }
  void run_to_end() {
    go();
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

 private:
  int go_[2] = {-1, -1};
  pid_t pid_ = -1;
};

TEST(Probes, EveryCallOfThreadsThatLiveShortIsCounted) {
  constexpr int kThreads = 400;
  constexpr int kCalls = 10;
  Calls heard;
  Probes probes;
  probes.want(kSyscalls);
  probes.listen(heard);
  if (const Status status = probes.open(); !status) GTEST_SKIP() << to_string(status.error());
  Worker worker([] {
    for (int i = 0; i < kThreads; ++i)
      std::thread([] {
        for (int k = 0; k < kCalls; ++k) syscall(SYS_getppid);
      }).join();
  });
  probes.add_target(worker.pid());
  worker.run_to_end();
  while (probes.consume() > 0) {
  }
  EXPECT_EQ(heard.last.size(), static_cast<std::size_t>(kThreads));
  EXPECT_EQ(heard.count(), static_cast<std::uint64_t>(kThreads * kCalls));
  for (const auto& [tid, total] : heard.last) EXPECT_EQ(total.timed, total.count);
  EXPECT_EQ(probes.losses().totals_missed, 0u);
  probes.unlisten(heard);
}

TEST(Probes, ManyCallsAreAllCountedAndOneInEightIsTimed) {
  constexpr std::uint64_t kCalls = 200'000;
  Calls heard;
  Probes probes;
  probes.want(kSyscalls);
  probes.listen(heard);
  if (const Status status = probes.open(); !status) GTEST_SKIP() << to_string(status.error());
  Worker worker([] {
    for (std::uint64_t k = 0; k < kCalls; ++k) syscall(SYS_getppid);
  });
  probes.add_target(worker.pid());
  worker.run_to_end();
  probes.consume();
  ASSERT_EQ(heard.count(), kCalls);
  const culprit_call_total total = heard.last.begin()->second;
  EXPECT_GT(total.timed, kCalls / 8);
  EXPECT_LT(total.timed, kCalls / 8 + 10'000);
  EXPECT_GT(total.total_ns / total.timed, 0u);
  probes.unlisten(heard);
}

/// Answers each byte that comes with two, to so many who connect, one after the other.
void answer_all(int listener, int connections) {
  for (int i = 0; i < connections; ++i) {
    const int peer = accept(listener, nullptr, nullptr);
    char text = 0;
    while (read(peer, &text, 1) == 1)
      for (int part = 0; part < 2; ++part)
        if (write(peer, &text, 1) != 1) _exit(1);
    close(peer);
  }
}

/// A server of Unix sockets and who asks it: so many requests over each of so many connections.
class Asked {
 public:
  Asked(int connections, int requests) : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    address_.sun_family = AF_UNIX;
    auto* name = reinterpret_cast<sockaddr*>(&address_);
    length_ = sizeof address_.sun_family;  // the kernel finds a name
    if (bind(listener_, name, length_) != 0) std::abort();
    length_ = sizeof address_;
    if (getsockname(listener_, name, &length_) != 0 || listen(listener_, connections) != 0) std::abort();
    server.emplace([listener = listener_, connections] { answer_all(listener, connections); });
    client.emplace([this, connections, requests] { ask(connections, requests); });
  }
  ~Asked() { close(listener_); }

  void run_to_end() {
    std::thread asks([this] { client->run_to_end(); });
    server->run_to_end();
    asks.join();
  }

  std::optional<Worker> server, client;

 private:
  void ask(int connections, int requests) {
    for (int i = 0; i < connections; ++i) {
      const int peer = socket(AF_UNIX, SOCK_STREAM, 0);
      if (connect(peer, reinterpret_cast<sockaddr*>(&address_), length_) != 0) _exit(1);
      for (int k = 0; k < requests; ++k) {
        char text[2] = {'x', 0};
        if (write(peer, text, 1) != 1 || recv(peer, text, 2, MSG_WAITALL) != 2) _exit(1);
      }
      close(peer);
    }
  }

  int listener_;
  sockaddr_un address_{};
  socklen_t length_ = 0;
};

struct Answered {
  std::map<std::int32_t, std::uint64_t> answers;  // by process
  std::uint64_t bytes = 0;
};

Answered answered(const Probes& probes) {
  Answered all;
  for (const Times& row : probes.answer_times()) {
    all.bytes += row.total.bytes;
    EXPECT_EQ(row.key.device, 0u);
    for (const std::uint32_t count : row.total.counts) all.answers[row.key.tgid] += count;
  }
  return all;
}

/// Empty: answers are seen from now on.
std::string why_no_answers(Probes& probes) {
  probes.want(kAnswers);
  if (const Status status = probes.open(); !status) return to_string(status.error());
  return probes.sees_answers() ? "" : "the kernel does not tell when data come to a socket (Linux 6.3)";
}

TEST(Probes, AnswersOverUnixSocketsCountForWhoAccepted) {
  constexpr int kConnections = 20;
  constexpr int kRequests = 5;
  Asked asked(kConnections, kRequests);
  Probes probes;
  if (const std::string why = why_no_answers(probes); !why.empty()) GTEST_SKIP() << why;
  probes.add_target(asked.server->pid());
  probes.add_target(asked.client->pid());
  asked.run_to_end();
  const Answered all = answered(probes);
  EXPECT_EQ(all.answers, (std::map<std::int32_t, std::uint64_t>{{asked.server->pid(), kConnections * kRequests}}));
  EXPECT_EQ(all.bytes, 2 * kConnections * kRequests);
  const culprit_sends sends = probes.sends(asked.server->pid());
  EXPECT_EQ(sends.all, 2 * kConnections * kRequests);
  EXPECT_EQ(sends.seen, sends.all);
}

TEST(Probes, WhatIsSentIsCountedWhileNoRequestIsLookedAt) {
  constexpr int kConnections = 2;
  constexpr int kRequests = 3'000;
  Asked asked(kConnections, kRequests);
  Probes probes;
  if (const std::string why = why_no_answers(probes); !why.empty()) GTEST_SKIP() << why;
  probes.add_target(asked.server->pid());
  probes.look_at_requests(false);
  asked.run_to_end();
  const culprit_sends sends = probes.sends(asked.server->pid());
  EXPECT_TRUE(answered(probes).answers.empty());
  EXPECT_EQ(sends.all, 2 * kConnections * kRequests);
  EXPECT_EQ(sends.seen, 0u);
}

TEST(Probes, AThreadWithManyDifferentCallsLosesNone) {
  Calls heard;
  Probes probes;
  probes.want(kSyscalls);
  probes.listen(heard);
  if (const Status status = probes.open(); !status) GTEST_SKIP() << to_string(status.error());
  constexpr int kNumbers = 300;
  constexpr int kFirst = 2000;  // of numbers that no kernel knows
  heard.nr = -1;
  Worker worker([] {
    for (int round = 0; round < 3; ++round)
      for (int i = 0; i < kNumbers; ++i) syscall(kFirst + i);
  });
  struct All final : Listener {
    std::map<std::int32_t, std::uint64_t> counts;
    void on_calls(const culprit_calls& record) override { counts[record.total.nr] = record.total.count; }
  } all;
  probes.listen(all);
  probes.add_target(worker.pid());
  worker.run_to_end();
  while (probes.consume() > 0) {
  }
  for (const SyscallTotal& row : probes.syscall_totals()) all.counts[row.key.nr] += row.total.count;
  for (int i = 0; i < kNumbers; ++i) EXPECT_EQ(all.counts[kFirst + i], 3u) << i;
  probes.unlisten(all);
  probes.unlisten(heard);
}

bool opens_window(Probes& probes, bool timed) {
  return probes.begin_window(timed) && probes.window_opened(true).value_or(std::nullopt).has_value();
}

TEST(Probes, OutsideOfWindowsNoCallIsSeen) {
  // Before the links are there: a child would hold them open.
  Worker worker([] {
    for (;;) {
      syscall(SYS_getppid);
      wait_ns(kMillisecond);
    }
  });
  Calls heard;
  Probes probes;
  probes.want(kSyscalls);
  probes.listen(heard);
  probes.look_at_calls_in_windows();
  if (const Status status = probes.open(); !status) GTEST_SKIP() << to_string(status.error());
  probes.add_target(worker.pid());
  worker.go();
  const auto calls = [&] {
    probes.ask_for_calls();
    probes.consume();
    return heard.count();
  };
  wait_ns(100 * kMillisecond);
  EXPECT_EQ(calls(), 0u) << "no window was open";
  const Ns before = monotonic_now();
  ASSERT_TRUE(opens_window(probes, true));
  wait_ns(100 * kMillisecond);
  probes.close_window();
  const std::uint64_t timed = calls();
  EXPECT_GT(timed, 0u);
  EXPECT_LE(timed, static_cast<std::uint64_t>((monotonic_now() - before) / kMillisecond) + 2) << "one a millisecond";
  EXPECT_NEAR(static_cast<double>(heard.last.begin()->second.timed), static_cast<double>(timed), 1);
  wait_ns(100 * kMillisecond);
  EXPECT_EQ(calls(), timed);
  ASSERT_TRUE(opens_window(probes, false));
  wait_ns(100 * kMillisecond);
  probes.close_window();
  EXPECT_GT(calls(), timed);
  EXPECT_LE(heard.last.begin()->second.timed, timed) << "this window was for counting only";
  probes.unlisten(heard);
}

TEST(Probes, ACallThatOutlastsItsWindowIsToldOnce) {
  Worker worker([] {
    for (int k = 0; k < 60; ++k) wait_ns(30 * kMillisecond);
  });
  Calls heard;
  Probes probes;
  probes.want(kSyscalls);
  probes.listen(heard);
  probes.look_at_calls_in_windows();
  if (const Status status = probes.open(); !status) GTEST_SKIP() << to_string(status.error());
  probes.add_target(worker.pid());
  std::thread work([&] { worker.run_to_end(); });
  const auto unended = [&] {
    std::uint64_t sum = 0;
    for (const Times& row : probes.times()) sum += row.total.unended;
    return sum;
  };
  // A thread is in one call at a time, or between two.
  constexpr std::uint64_t kWindows = 3;
  for (std::uint64_t window = 1; window <= kWindows; ++window) {
    const std::uint64_t before = unended();
    ASSERT_TRUE(opens_window(probes, true));
    wait_ns(80 * kMillisecond);
    probes.close_window();
    probes.ask_for_calls();
    EXPECT_EQ(unended(), before) << "nobody asked for them";
    probes.ask_for_calls(true);
    EXPECT_LE(unended(), before + 1);
    const std::uint64_t told = unended();
    wait_ns(50 * kMillisecond);
    probes.ask_for_calls(true);
    EXPECT_EQ(unended(), told);
  }
  EXPECT_GE(unended(), 1U);
  const std::uint64_t of_timed = unended();
  ASSERT_TRUE(opens_window(probes, false));
  wait_ns(50 * kMillisecond);
  probes.close_window();
  probes.ask_for_calls(true);
  EXPECT_EQ(unended(), of_timed) << "this window was for counting only";
  work.join();
  probes.unlisten(heard);
}

/// Of a function, as /proc/kallsyms has it; 0 where that hides it.
std::uint64_t kernel_address(std::string_view wanted) {
  std::ifstream file("/proc/kallsyms");
  std::uint64_t address = 0;
  char type = 0;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    if (words >> std::hex >> address >> type >> name && name == wanted) return address;
  }
  return 0;
}

struct Sampled final : Listener {
  std::vector<culprit_sample> samples;
  void on_sample(const culprit_sample& record) override { samples.push_back(record); }
  [[nodiscard]] double asks() const {
    double sum = 0;
    for (const culprit_sample& sample : samples) sum += sample.asks;
    return sum;
  }
};

TEST(Probes, AStackStandsForTheAsksAtWhichNoneWasTaken) {
  constexpr unsigned kHz = 500;
  constexpr unsigned kEvery = 5;
  Sampled heard;
  Probes probes;
  probes.want(kSamples);
  probes.set_sample_rate(kHz);
  probes.listen(heard);
  Status status = probes.open();
  if (status) status = probes.samples();
  if (!status) GTEST_SKIP() << to_string(status.error());
  const auto run = [&] {
    heard.samples.clear();
    Worker worker([] {
      for (const clock_t end = clock() + CLOCKS_PER_SEC * 2 / 5; clock() < end;) {
      }
    });
    probes.add_target(worker.pid());
    worker.run_to_end();
    while (probes.consume() > 0) {
    }
  };
  run();
  ASSERT_GT(heard.samples.size(), 50u);
  for (const culprit_sample& sample : heard.samples) EXPECT_EQ(sample.asks, 1u);
  probes.take_samples_of(kEvery);
  run();
  ASSERT_GT(heard.samples.size(), 10u);
  for (const culprit_sample& sample : heard.samples) EXPECT_EQ(sample.asks, kEvery);
  // On a crowded machine a process is met more often than its clock says; without the asks it would be 0.08 s.
  EXPECT_GT(heard.asks() / kHz, 0.25);
  EXPECT_LT(heard.asks() / kHz, 0.75);
  probes.take_samples_of(0);
  run();
  EXPECT_EQ(heard.samples.back().asks, 1u) << "at least one";
  probes.unlisten(heard);
}

TEST(Probes, TheKernelNamesItsFunctions) {
  const std::uint64_t address = kernel_address("vfs_read");
  if (address == 0) GTEST_SKIP() << "/proc/kallsyms hides addresses";
  Probes probes;
  probes.want(kSamples);
  if (const Status status = probes.open(); !status) GTEST_SKIP() << to_string(status.error());
  const std::uint64_t frames[] = {address + 4, 0x1000};
  CodeStack stack;
  probes.symbols().append_kernel(frames, stack);
  EXPECT_EQ(folded(stack), "[kernel];vfs_read") << "an address that belongs to nobody is not shown";
}

}  // namespace
}  // namespace culprit::record::bpf
