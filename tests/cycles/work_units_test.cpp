#include "cycles/work_units.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "cycles/make_recorded.h"
#include "cycles/waits.h"

namespace culprit::cycles {
namespace {

TEST(WorkUnits, AThreadThatReceivesAsOftenAsItSendsAnswersRequests) {
  Recorded r;
  auto server = r.thread(7, 7, "redis-server", "redis-server");
  r.serve(server, 200, 8 * kMs, kMs, kMs);
  for (const Ns second : {1, 2}) {
    r.calls(server, second * kSecond, "read", 5003);
    r.calls(server, second * kSecond, "write", 5000);
    r.calls(server, second * kSecond, "epoll_wait", 100);
  }
  const model::WorkUnits work = r.find();
  ASSERT_TRUE(work.recorded);
  const model::WorkUnit& unit = work.units.front();
  EXPECT_EQ(unit.kind, model::UnitKind::request);
  EXPECT_EQ(unit.count, 10000U);
  EXPECT_EQ(unit.process, "redis-server");
  EXPECT_EQ(unit.receive, "read");
  EXPECT_EQ(unit.send, "write");
  EXPECT_GE(unit.confidence, 0.8);
  EXPECT_EQ(unit.per_window, (std::vector<double>{5000, 5000}));
  EXPECT_DOUBLE_EQ(work.seconds, 2);
}

TEST(WorkUnits, TheTimeBetweenRequestsIsNoPartOfThem) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 100, 17 * kMs, kMs, 2 * kMs);
  const model::WorkUnits work = r.find();
  const model::WorkWindow sum = sum_of(work);
  EXPECT_DOUBLE_EQ(sum.on_cpu, 200.0 * kMs);
  EXPECT_DOUBLE_EQ(sum.run_queue, 100.0 * kMs);
  EXPECT_DOUBLE_EQ(sum.blocked, 0);
  EXPECT_DOUBLE_EQ(sum.waiting, 1700.0 * kMs);
  ASSERT_EQ(work.latencies.size(), 99U) << "the last has no next wait";
  EXPECT_EQ(work.latencies.front(), 3 * kMs) << "from the wake-up: the run queue counts";
  EXPECT_EQ(work.latencies.back(), 3 * kMs);
}

TEST(WorkUnits, WithoutSystemCallsWakeUpsAreCountedAndNotTakenForRequests) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 100, 5 * kMs, kMs, 4 * kMs);
  const model::WorkUnits work = r.find();
  ASSERT_EQ(work.units.size(), 1U);
  EXPECT_EQ(work.units[0].kind, model::UnitKind::wakeup);
  EXPECT_EQ(work.units[0].count, 100U);
  EXPECT_EQ(work.units[0].receive, "epoll_wait");
  EXPECT_LT(work.units[0].confidence, 0.8);
}

TEST(WorkUnits, DisksAndLocksAreWorkOfAThreadThatWaitsForEvents) {
  Recorded r;
  auto server = r.thread(7, 7, "postgres", "postgres");
  for (int i = 0; i < 50; ++i) {
    r.does(server, "blocked", 10 * kMs, "epoll_wait");
    r.does(server, "oncpu", kMs);
    r.does(server, "blocked_uninterruptible", 3 * kMs, "fdatasync");
    r.does(server, "blocked", 2 * kMs, "futex");
    r.does(server, "oncpu", kMs);
  }
  const model::WorkUnits work = r.find();
  EXPECT_DOUBLE_EQ(sum_of(work).blocked, 250.0 * kMs);
  ASSERT_EQ(work.blocked.size(), 2U);
  EXPECT_EQ(work.blocked[0].name, "fdatasync");
  EXPECT_EQ(work.blocked[0].count, 50U);
  EXPECT_EQ(work.blocked[1].name, "futex");
  ASSERT_EQ(work.latencies.size(), 49U);
  EXPECT_EQ(work.latencies[0], 7 * kMs);
}

TEST(WorkUnits, AReadThatNoSignalEndsIsOneOfAFile) {
  Recorded r;
  auto server = r.thread(7, 7, "postgres", "postgres");
  for (int i = 0; i < 50; ++i) {
    r.does(server, "blocked", 10 * kMs, "epoll_wait");
    r.does(server, "oncpu", kMs);
    r.does(server, "blocked_uninterruptible", 4 * kMs, "read");
    r.does(server, "blocked_uninterruptible", 3 * kMs, "fsync");
    r.does(server, "blocked_uninterruptible", 2 * kMs, "unknown");
    r.does(server, "blocked_uninterruptible", kMs);
    r.does(server, "oncpu", kMs);
  }
  const model::WorkUnits work = r.find();
  ASSERT_EQ(work.blocked.size(), 3U);
  EXPECT_EQ(work.blocked[0].name, "read, uninterruptible");
  EXPECT_EQ(work.blocked[1].name, "disk or memory");
  EXPECT_EQ(work.blocked[1].count, 100U);
  EXPECT_EQ(work.blocked[2].name, "fsync");
}

TEST(WorkUnits, AReadThatASignalEndsIsOfAPipeOrAConnection) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  for (int i = 0; i < 50; ++i) {
    r.does(server, "blocked", 20 * kMs, "read");
    r.does(server, "oncpu", kMs);
    r.does(server, "blocked_uninterruptible", kMs, "read");
  }
  const model::WorkUnits work = r.find();
  ASSERT_EQ(work.blocked.size(), 1U);
  EXPECT_EQ(work.blocked[0].name, "read, uninterruptible");
  ASSERT_EQ(work.waits.size(), 1U);
  EXPECT_EQ(work.waits[0].name, "read") << "for work";
}

TEST(WorkUnits, AnIdleThreadOfAPoolOnlyWaits) {
  Recorded r;
  auto worker = r.thread(7, 8, "server", "pool-3");
  r.serve(worker, 20, 50 * kMs, 0, kMs, "futex");
  const model::WorkUnits work = r.find();
  EXPECT_DOUBLE_EQ(sum_of(work).blocked, 0);
  EXPECT_DOUBLE_EQ(sum_of(work).waiting, 1000.0 * kMs);
  EXPECT_EQ(work.units[0].thread, "pool-N") << "numbers of threads differ from run to run";
}

TEST(WorkUnits, OfSeveralProcessesTheFirstOneStandsForTheProgram) {
  Recorded r;
  auto front = r.thread(7, 7, "python", "io");
  auto worker = r.thread(9, 9, "Worker", "Worker");
  r.serve(front, 100, 9 * kMs, 0, kMs);
  r.serve(worker, 100, kMs, 0, 9 * kMs);
  r.calls(front, kSecond, "recvfrom", 100);
  r.calls(front, kSecond, "write", 100);
  r.calls(worker, kSecond, "read", 300);
  r.calls(worker, kSecond, "sendto", 300);
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].kind, model::UnitKind::message);
  EXPECT_EQ(work.units[0].process, "python");
  EXPECT_EQ(work.units[0].count, 100U);
  EXPECT_EQ(work.units[1].process, "Worker");
  EXPECT_EQ(work.program, "Worker") << "it took most of the CPU time";
}

TEST(WorkUnits, TwoTriesToReceivePerAnswerAreOneRequest) {
  Recorded r;
  auto backend = r.thread(7, 7, "postgres", "postgres");
  r.serve(backend, 50, 10 * kMs, 0, 10 * kMs);
  r.calls(backend, kSecond, "recvfrom", 1001);
  r.calls(backend, kSecond, "sendto", 500);
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].kind, model::UnitKind::request);
  EXPECT_EQ(work.units[0].count, 500U);
}

TEST(WorkUnits, AThreadMayHandleTwoSortsOfMessages) {
  Recorded r;
  auto io = r.thread(7, 7, "python", "io");
  r.serve(io, 50, 10 * kMs, 0, 10 * kMs);
  r.calls(io, kSecond, "recvfrom", 970);
  r.calls(io, kSecond, "write", 938);  // one wake-up for two that arrived together
  r.calls(io, kSecond, "read", 114);
  r.calls(io, kSecond, "sendto", 114);
  const model::WorkUnits work = r.find();
  ASSERT_GE(work.units.size(), 2U);
  const auto messages = std::ranges::find(work.units, "recvfrom", &model::WorkUnit::receive);
  ASSERT_NE(messages, work.units.end());
  EXPECT_EQ(messages->count, 970U);
  EXPECT_NE(std::ranges::find(work.units, "sendto", &model::WorkUnit::send), work.units.end());
}

TEST(WorkUnits, CallsThatDoNotPairAreNoRequests) {
  Recorded r;
  auto logger = r.thread(7, 7, "logger", "logger");
  r.serve(logger, 50, 10 * kMs, 0, 10 * kMs);
  r.calls(logger, kSecond, "read", 100);
  r.calls(logger, kSecond, "write", 731);
  EXPECT_EQ(r.find().units[0].kind, model::UnitKind::wakeup);
}

TEST(WorkUnits, ProcessesThatBeginAndEndAreUnitsOfABuild) {
  Recorded r;
  auto make = r.thread(7, 7, "make", "make");
  r.serve(make, 10, 99 * kMs, 0, kMs, "wait4");
  for (int i = 0; i < 10; ++i) {
    auto compiler = r.thread(100 + i, 100 + i, "cc1", "cc1", i * 95 * kMs + 10 * kMs);
    r.does(compiler, "oncpu", 80 * kMs);
  }
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].kind, model::UnitKind::process);
  EXPECT_EQ(work.units[0].process, "cc1");
  EXPECT_EQ(work.units[0].count, 10U);
  ASSERT_EQ(work.latencies.size(), 10U);
  EXPECT_EQ(work.latencies[0], 80 * kMs);
  ASSERT_EQ(work.units[0].ends.size(), 10U);
  EXPECT_EQ(work.units[0].ends[0], 90 * kMs);
  EXPECT_EQ(work.units[0].ends[9], 9 * 95 * kMs + 90 * kMs);
}

/// One process for each connection, which ends with it; each answers so many requests.
model::WorkUnits backends_that_end(std::uint32_t requests) {
  Recorded r;
  auto postmaster = r.thread(7, 7, "postgres", "postgres");
  r.serve(postmaster, 10, 99 * kMs, 0, kMs, "epoll_wait");
  for (int i = 0; i < 10; ++i) {
    auto backend =
        r.thread(100 + i, 100 + i, fmt::format("postgres: bench 10.0.0.1({}) SELECT", 4711 + i), "postgres", 10 * kMs);
    r.serve(backend, 60, 10 * kMs, 0, 5 * kMs);
    r.calls(backend, kSecond, "recvfrom", requests);
    r.calls(backend, kSecond, "sendto", requests);
  }
  return r.find();
}

TEST(WorkUnits, ProcessesThatAnswerManyRequestsAreNotTheWork) {
  const model::WorkUnits work = backends_that_end(500);
  EXPECT_EQ(work.units[0].kind, model::UnitKind::request);
  EXPECT_EQ(work.units[0].count, 5000U);
  EXPECT_NE(std::ranges::find(work.units, model::UnitKind::process, &model::WorkUnit::kind), work.units.end());
}

TEST(WorkUnits, ProcessesThatAnswerFewRequestsAreTheWork) {
  const model::WorkUnits work = backends_that_end(3);
  EXPECT_EQ(work.units[0].kind, model::UnitKind::process);
  EXPECT_EQ(work.units[0].count, 10U);
}

TEST(WorkUnits, AProgramThatOnlyWaitsIsIdle) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.does(server, "blocked", 5 * kSecond, "epoll_wait");
  r.does(server, "oncpu", kMs);
  r.does(server, "blocked", 5 * kSecond, "epoll_wait");
  const model::WorkUnits work = r.find();
  EXPECT_TRUE(work.idle);
  EXPECT_EQ(work.units[0].kind, model::UnitKind::window);
}

TEST(WorkUnits, AProgramThatOnlyComputesGetsAsMuchDoneAsItHasTheCpu) {
  Recorded r;
  auto thread = r.thread(7, 7, "sysbench", "sysbench");
  for (int i = 0; i < 10; ++i) {
    r.does(thread, "oncpu", 400 * kMs);
    r.does(thread, "runq", 600 * kMs);
  }
  auto timer = r.thread(7, 8, "sysbench", "sysbench");
  r.serve(timer, 10, 999 * kMs, 0, kMs, "clock_nanosleep");
  const model::WorkUnits work = r.find();
  EXPECT_FALSE(work.idle);
  const model::WorkUnit& unit = work.units[0];
  EXPECT_EQ(unit.kind, model::UnitKind::cpu_time);
  EXPECT_EQ(unit.process, "sysbench");
  EXPECT_EQ(unit.count, 4010U);
  EXPECT_EQ(unit_text(unit), "CPU milliseconds of sysbench, which never waits");
  ASSERT_EQ(work.windows.size(), 20U);
  EXPECT_DOUBLE_EQ(unit.per_window[2], 400);
}

TEST(WorkUnits, AProgramThatComputesHalfOfTheTimeHasWindows) {
  Recorded r;
  auto thread = r.thread(7, 7, "sysbench", "sysbench");
  r.does(thread, "oncpu", 5 * kSecond);
  r.does(thread, "blocked", 5 * kSecond, "fdatasync");
  EXPECT_EQ(r.find().units[0].kind, model::UnitKind::window);
}

TEST(WorkUnits, BystandersHaveNames) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 100, 5 * kMs, kMs, 4 * kMs);
  r.bystander("stress-ng-cpu", 1.9);
  const model::WorkUnits work = r.find();
  ASSERT_EQ(work.others.size(), 1U);
  EXPECT_EQ(work.others[0].name, "stress-ng-cpu");
  EXPECT_NEAR(work.others[0].cpus, 1.9, 1e-9);
}

TEST(WorkUnits, AnAnswerInSeveralPartsIsOneRequest) {
  Recorded r;
  auto server = r.thread(7, 7, "python3", "python3");
  r.serve(server, 50, 10 * kMs, 0, 10 * kMs);
  r.calls(server, kSecond, "read", 5003);
  r.calls(server, kSecond, "write", 10001);
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].kind, model::UnitKind::request);
  EXPECT_EQ(work.units[0].count, 5003U);
  EXPECT_EQ(work.units[0].process, "python3") << "the version is no number of a run";
}

TEST(WorkUnits, ReceivesThatFindNothingAndWaitAreNoRequests) {
  Recorded r;
  auto backend = r.thread(7, 7, "postgres", "postgres");
  r.serve(backend, 50, 10 * kMs, 0, 10 * kMs);
  r.calls(backend, kSecond, "recvfrom", 2350);
  r.calls(backend, kSecond, "sendto", 1400);
  r.calls(backend, kSecond, "epoll_wait", 953);
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].kind, model::UnitKind::request);
  EXPECT_EQ(work.units[0].count, 1400U);
}

TEST(WorkUnits, TitlesThatTellTheStateOfAProcessAreOneProgram) {
  Recorded r;
  std::int64_t pid = 7;
  for (const std::string_view title :
       {"postgres: bench 10.0.0.1(4711) SELECT", "postgres: bench 10.0.0.1(4712) idle"}) {
    auto backend = r.thread(pid, pid, title, "postgres");
    r.serve(backend, 50, 10 * kMs, 0, 10 * kMs);
    r.calls(backend, kSecond, "recvfrom", 500);
    r.calls(backend, kSecond, "sendto", 500);
    ++pid;
  }
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].kind, model::UnitKind::request);
  EXPECT_EQ(work.units[0].process, "postgres");
  EXPECT_EQ(work.units[0].count, 1000U);
}

/// One thread accepts, and each connection has a thread of its own, as in Python's http.server.
Recorded threaded_server(int connections) {
  Recorded r;
  auto listener = r.thread(7, 7, "python3", "python3");
  r.serve(listener, connections, 8 * kMs, 0, 2 * kMs, "poll");
  r.calls(listener, 250 * kMs, "accept4", static_cast<std::uint64_t>(connections) / 2);
  r.calls(listener, 500 * kMs, "accept4", static_cast<std::uint64_t>(connections - connections / 2));
  r.calls(listener, 750 * kMs, "mmap", 1);
  for (int i = 0; i < connections; ++i) {
    auto worker = r.thread(7, 100 + i, "python3", "python3", (10 * i + 9) * kMs);
    r.does(worker, "runq", kMs);
    r.does(worker, "blocked", kMs, "recvfrom");
    r.does(worker, "oncpu", kMs);
    r.calls(worker, worker.at, "recvfrom", 1);
    r.calls(worker, worker.at, "sendto", 2);
  }
  return r;
}

TEST(WorkUnits, AThreadForEachConnectionIsARequestEach) {
  const model::WorkUnits work = threaded_server(100).find();
  EXPECT_EQ(work.units[0].kind, model::UnitKind::request);
  EXPECT_EQ(work.units[0].receive, "accept4");
  EXPECT_EQ(work.units[0].count, 100U);
  EXPECT_EQ(work.latency_kind, model::LatencyKind::thread);
  ASSERT_EQ(work.latencies.size(), 99U) << "the last one lives up to the end";
  EXPECT_EQ(work.latencies[50], 3 * kMs) << "the run queue and what the thread waits for belong to the request";
}

TEST(WorkUnits, TotalsOfThreadsThatEndMakeNoWindows) {
  const model::WorkUnits work = threaded_server(100).find();
  ASSERT_EQ(work.windows.size(), 3U) << "two rounds in which the listener's calls were counted, and the rest";
  EXPECT_EQ(work.windows[0].end, 250 * kMs);
  EXPECT_EQ(work.windows[1].end, 500 * kMs);
}

TEST(WorkUnits, TheTotalsOfOneRoundAreOneWindow) {
  Recorded r;
  for (int i = 0; i < 3; ++i) {
    auto backend = r.thread(7 + i, 7 + i, "postgres", "postgres");
    r.serve(backend, 75, 5 * kMs, 0, 5 * kMs);
    for (const Ns at : {250 * kMs, 500 * kMs, 750 * kMs}) {
      r.calls(backend, at - i * 400, "recvfrom", 100);  // read one after the other
      r.calls(backend, at - i * 400, "sendto", 100);
    }
  }
  const model::WorkUnits work = r.find();
  ASSERT_EQ(work.windows.size(), 3U);
  EXPECT_EQ(work.units[0].per_window, (std::vector<double>{300, 300, 300}));
}

TEST(WorkUnits, RatesAreOfTheWholeRecordingAndNotOfItsBusyPart) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 100, 5 * kMs, kMs, 4 * kMs);
  r.fact("record.duration_ns", "4000000000");
  EXPECT_DOUBLE_EQ(r.find().seconds, 4);
}

TEST(WorkUnits, ARecordingInWhichNothingRanIsIdle) {
  Recorded r;
  r.bystander("cc1plus", 1);
  r.fact("sched.source", "ebpf");
  r.fact("record.duration_ns", "4000000000");
  const model::WorkUnits work = r.find();
  EXPECT_TRUE(work.recorded);
  EXPECT_TRUE(work.idle);
  EXPECT_EQ(work.units[0].kind, model::UnitKind::window);
}

TEST(WorkUnits, NumbersInsideWordsStay) {
  Recorded r;
  auto compiler = r.thread(7, 7, "cc1plus", "worker12");
  r.serve(compiler, 100, 5 * kMs, kMs, 4 * kMs);
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].process, "cc1plus");
  EXPECT_EQ(work.units[0].thread, "workerN");
}

TEST(WorkUnits, ATraceWithoutSchedulingHasNone) { EXPECT_FALSE(find_work_units(Trace{}).recorded); }

TEST(Waits, TellWaitingForWorkFromWork) {
  EXPECT_EQ(wait_of("epoll_wait"), Wait::for_work);
  EXPECT_EQ(wait_of("accept4"), Wait::for_work);
  EXPECT_EQ(wait_of("futex"), Wait::pool);
  EXPECT_EQ(wait_of("nanosleep"), Wait::time);
  EXPECT_EQ(wait_of("fdatasync"), Wait::in_work);
  EXPECT_EQ(wait_of("page_fault"), Wait::in_work);
}

TEST(WorkUnits, ASleepInARequestIsWorkAndOneOfATimerIsNone) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  for (int i = 0; i < 100; ++i) {
    r.does(server, "blocked", 2 * kMs, "recvfrom");
    r.does(server, "oncpu", kMs);
    r.does(server, "blocked", 6 * kMs, "clock_nanosleep");
    r.does(server, "oncpu", kMs);
  }
  auto timer = r.thread(7, 8, "server", "timer");
  r.serve(timer, 50, 18 * kMs, kMs, kMs, "clock_nanosleep");
  const model::WorkUnits work = r.find();
  ASSERT_EQ(work.blocked.size(), 1U);
  EXPECT_EQ(work.blocked[0].name, "clock_nanosleep");
  EXPECT_EQ(work.blocked[0].count, 100U);
  EXPECT_DOUBLE_EQ(sum_of(work).waiting, 200.0 * kMs + 50 * 18.0 * kMs);
}

/// Threads of an idle vLLM: 100 time-outs a second each.
model::WorkUnits time_outs(std::uint64_t reads) {
  Recorded r;
  for (std::int64_t tid = 8; tid < 12; ++tid) {
    auto timer = r.thread(7, tid, "VLLM::Worker", "gloo_tcp_loop");
    r.serve(timer, 100, 9'900'000, 20'000, 80'000);
    r.calls(timer, kSecond, "epoll_wait", 100);
    if (reads > 0) r.calls(timer, kSecond, "read", reads);
  }
  // A scheduler that asks its socket all the time.
  auto poller = r.thread(7, 7, "VLLM::Worker", "scheduler");
  r.does(poller, "oncpu", kSecond);
  r.calls(poller, kSecond, "poll", 10'000);
  return r.find();
}

TEST(WorkUnits, AServerWhoseThreadsWakeByTimeOnlyIsIdle) {
  const model::WorkUnits idle = time_outs(0);
  EXPECT_TRUE(idle.idle) << idle.units.front().reason;
  EXPECT_EQ(idle.units.front().kind, model::UnitKind::window);
  const model::WorkUnits busy = time_outs(100);
  EXPECT_FALSE(busy.idle) << "something came each time";
  EXPECT_EQ(busy.units.front().kind, model::UnitKind::iteration);
}

TEST(WorkUnits, WhoSendsAsOftenAsAnswersWereSeenAnswersHoweverOftenItTriesToReceive) {
  Recorded r;
  for (std::int64_t pid = 7; pid < 9; ++pid) {
    // The second one also waits for locks, which look like waits for work: 7457 answers, 13699 tries, 6545 waits.
    const std::uint64_t tries = pid == 7 ? 7000 + 6000 : 13699;
    auto backend = r.thread(pid, pid, "postgres: bench", "postgres");
    r.serve(backend, 100, 5 * kMs, kMs, 4 * kMs);
    r.calls(backend, kSecond, "recvfrom", tries);
    r.calls(backend, kSecond, "sendto", pid == 7 ? 7000 : 7457);
    r.calls(backend, kSecond, "epoll_wait", pid == 7 ? 6000 : 6545);
    r.answers(pid, "port 5432", "answer", 100, pid == 7 ? 7001 : 7450);
  }
  const model::WorkUnits work = r.find();
  const model::WorkUnit& unit = work.units.front();
  EXPECT_EQ(unit.kind, model::UnitKind::request);
  EXPECT_EQ(unit.threads, 2U);
  EXPECT_EQ(unit.count, 7000U + 7457U);
}

TEST(WorkUnits, WaitsForLocksThatLookLikeWaitsForWorkLeaveRequestsThatTheyAre) {
  // Statements of pgbench over a local socket.
  Recorded r;
  std::int64_t pid = 7;
  for (const auto& [waits, sends, receives] : {std::tuple(1802U, 1926U, 3642U), {1645U, 1933U, 3462U}}) {
    auto backend = r.thread(pid, pid, "postgres: bench", "postgres");
    r.serve(backend, 100, 5 * kMs, kMs, 4 * kMs);
    r.calls(backend, kSecond, "recvfrom", receives);
    r.calls(backend, kSecond, "sendto", sends);
    r.calls(backend, kSecond, "epoll_wait", waits);
    ++pid;
  }
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units.front().kind, model::UnitKind::request);
  EXPECT_EQ(work.units.front().count, 1926U + 1933U);
}

/// Backends of which one makes as many tries as it sends and waits together, and the others nearly.
Recorded backends(bool alike) {
  Recorded r;
  for (std::int64_t pid = 7; pid < 11; ++pid) {
    auto backend = r.thread(pid, pid, "postgres: bench", "postgres");
    r.serve(backend, 100, 5 * kMs, kMs, 4 * kMs);
    r.calls(backend, kSecond, "recvfrom", pid == 7 ? 4900 : alike ? 4500 : 7300);
    r.calls(backend, kSecond, "sendto", pid == 7 ? 2750 : 2400);
    r.calls(backend, kSecond, "epoll_wait", 2150);
    r.answers(pid, "port 5432", "answer", 100, 2200);
  }
  for (const auto& [at, count] : {std::pair(0 * kSecond, 0.0), {kSecond, 8800.0}}) r.counted("answers", 7, at, count);
  return r;
}

TEST(WorkUnits, ThreadsOfOneNameThatCallNearlyAlikeAnswerAlike) {
  Recorded r = backends(true);
  const model::WorkUnit unit = r.find().units.front();
  EXPECT_EQ(unit.send, "sendto");
  EXPECT_EQ(unit.threads, 4U);
  EXPECT_EQ(unit.count, 2750U + 3 * 2400U);
}

TEST(WorkUnits, AnswersComeBeforeCallsOfOneThreadOfMany) {
  Recorded r = backends(false);
  const model::WorkUnit unit = r.find().units.front();
  EXPECT_EQ(unit.receive, "answers");
  EXPECT_EQ(unit.count, 8800U);
}

TEST(WorkUnits, TurnsOfAnEventLoopCountAlsoWhereItNeedNotWait) {
  Recorded r;
  auto server = r.thread(7, 7, "uring", "uring");
  r.serve(server, 100, 5 * kMs, kMs, 4 * kMs, "io_uring_enter");
  r.calls(server, kSecond, "io_uring_enter", 250);
  const model::WorkUnits work = r.find();
  const model::WorkUnit& unit = work.units.front();
  EXPECT_EQ(unit.kind, model::UnitKind::iteration) << unit.reason;
  EXPECT_EQ(unit.count, 250U);
  EXPECT_EQ(unit.per_window, (std::vector<double>{250}));
  EXPECT_LT(unit.confidence, 0.8);
}

TEST(WorkUnits, WindowsWithoutCallsReachTheEndOfTheRecording) {
  for (const int times : {209, 203}) {
    Recorded r;
    auto server = r.thread(7, 7, "server", "server");
    r.serve(server, times, 50 * kMs, 10 * kMs, 40 * kMs);
    const model::WorkUnits work = r.find();
    EXPECT_DOUBLE_EQ(work.seconds, times * 0.1);
    ASSERT_EQ(work.windows.size(), times == 209 ? 21U : 20U) << "less than half a window is part of the one before";
    EXPECT_EQ(work.windows.back().begin, (times == 209 ? 20 : 19) * kSecond);
    EXPECT_EQ(work.windows.back().end, times * 100 * kMs);
    EXPECT_EQ(work.units[0].count, static_cast<std::uint64_t>(times));
  }
}

TEST(WorkUnits, ProcessesOfABuildAreOneProgramWhateverTheirTitlesTell) {
  Recorded r;
  auto make = r.thread(7, 7, "make", "make");
  r.serve(make, 10, 99 * kMs, 0, kMs, "wait4");
  for (int i = 0; i < 10; ++i) {
    auto compiler = r.thread(100 + i, 100 + i, "cc1: " + std::to_string(i) + ".c", "cc1", i * 95 * kMs + 10 * kMs);
    r.does(compiler, "oncpu", 80 * kMs);
  }
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.units[0].kind, model::UnitKind::process);
  EXPECT_EQ(work.units[0].process, "cc1");
  EXPECT_EQ(work.units[0].count, 10U);
}

TEST(WorkUnits, OfThreadsThatCallNearlyAlikeThoseOfOneNameAnswer) {
  Recorded r;
  for (std::int64_t pid = 7; pid < 10; ++pid) {
    auto backend = r.thread(pid, pid, "postgres: bench", pid == 9 ? "launcher" : "postgres");
    r.serve(backend, 100, 5 * kMs, kMs, 4 * kMs);
    r.calls(backend, kSecond, "recvfrom", pid == 7 ? 4900 : 4500);
    r.calls(backend, kSecond, "sendto", pid == 7 ? 2750 : 2400);
    r.calls(backend, kSecond, "epoll_wait", pid == 7 ? 2150 : 1500);
  }
  auto silent = r.thread(10, 10, "postgres: bench", "postgres");
  r.serve(silent, 100, 5 * kMs, kMs, 4 * kMs);
  const model::WorkUnit unit = r.find().units.front();
  EXPECT_EQ(unit.threads, 2U);
  EXPECT_EQ(unit.count, 2750U + 2400U);
}

}  // namespace
}  // namespace culprit::cycles
