#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "cycles/make_recorded.h"
#include "cycles/work_units.h"
#include "stats/log_buckets.h"

namespace culprit::cycles {
namespace {

/// Requests, of a server that reads and writes once for each.
void serve_a_thousand(Recorded& r) {
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 100, 5 * kMs, kMs, 4 * kMs);
  r.calls(server, kSecond, "read", 1000);
  r.calls(server, kSecond, "write", 1000);
}

TEST(WorkUnits, HowLongAnswersTookIsSeenAtTheConnections) {
  Recorded r;
  serve_a_thousand(r);
  r.answers(7, "port 80", "answer", stats::log_bucket_of(3 * kMs), 1000);
  r.answers(7, "port 9", "answer", stats::log_bucket_of(kMs), 10);
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.latency_kind, model::LatencyKind::answer);
  EXPECT_EQ(work.port, "port 80");
  EXPECT_TRUE(work.latencies.empty());
  ASSERT_EQ(work.answers.size(), stats::kLogBuckets);
  EXPECT_EQ(work.answers[stats::log_bucket_of(3 * kMs)], 1000U);
  EXPECT_EQ(work.units.front().kind, model::UnitKind::request) << "nothing says that requests belong together";
}

TEST(WorkUnits, HowLargeAnAnswerIsInTheMean) {
  Recorded r;
  serve_a_thousand(r);
  r.answers(7, "port 80", "answer", stats::log_bucket_of(3 * kMs), 1000);
  Trace trace = r.trace();
  EXPECT_EQ(find_work_units(trace).answer_bytes, 0) << "older recordings do not tell";
  trace.durations[0].bytes = 612'000;
  EXPECT_EQ(find_work_units(trace).answer_bytes, 612);
}

TEST(WorkUnits, NoAnswerTookLongerThanTheRecording) {
  Recorded r;
  serve_a_thousand(r);
  r.answers(7, "port 80", "answer", stats::log_bucket_of(3 * kMs), 1000);
  r.answers(7, "port 80", "answer", stats::kLogBuckets - 1, 1);
  const model::WorkUnits work = r.find();
  EXPECT_EQ(work.answers[stats::log_bucket_of(3 * kMs)], 1000U);
  EXPECT_NEAR(*stats::log_bucket_mean(work.answers), 3e6, 3e5);
}

TEST(WorkUnits, AnswersOverUnixSocketsAreThoseOfWhoHasNoPort) {
  const auto work_of = [](std::uint64_t on_port) {
    Recorded r;
    serve_a_thousand(r);
    r.answers(7, "Unix sockets", "answer", stats::log_bucket_of(kMs), 3000);
    if (on_port > 0) r.answers(7, "port 80", "answer", stats::log_bucket_of(3 * kMs), on_port);
    return r.find();
  };
  EXPECT_EQ(work_of(0).port, "Unix sockets");
  EXPECT_EQ(work_of(0).answers[stats::log_bucket_of(kMs)], 3000U);
  EXPECT_EQ(work_of(1000).port, "port 80") << "its own processes talk to one another";
  EXPECT_EQ(work_of(3).port, "Unix sockets") << "hardly anybody asks there";
}

TEST(WorkUnits, AFewOfManyAnswersOverUnixSocketsBeginConnections) {
  Recorded r;
  serve_a_thousand(r);
  r.answers(7, "Unix sockets", "answer", stats::log_bucket_of(kMs), 20);
  EXPECT_EQ(r.find().latency_kind, model::LatencyKind::wake_to_wait);
}

/// What a server answered in each of two windows by the counters of ports and of Unix sockets, where calls tell little.
std::vector<double> answered_in(std::uint64_t on_port, std::uint64_t over_unix) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 200, 5 * kMs, kMs, 4 * kMs);
  for (const Ns second : {1, 2}) r.calls(server, second * kSecond, "read", 40);
  r.fact("syscalls.counted_share", "0.125");
  r.fact("syscalls.count_error", "0.0300");
  for (const auto& [counter, port, count] : {std::tuple("answers", "port 80", on_port),
                                             std::tuple("answers over Unix sockets", "Unix sockets", over_unix)}) {
    if (count > 0) r.answers(7, port, "answer", stats::log_bucket_of(kMs), count);
    for (const Ns second : {0, 1, 2})
      r.counted(counter, 7, second * kSecond, static_cast<double>(count) * static_cast<double>(second) / 2);
  }
  const model::WorkUnit unit = r.find().units.front();
  EXPECT_EQ(unit.receive, "answers");
  return unit.per_window;
}

TEST(WorkUnits, AnswersAreCountedInWindowsAsTheyAreAltogether) {
  using testing::DoubleNear;
  using testing::ElementsAre;
  EXPECT_THAT(answered_in(1000, 0), ElementsAre(DoubleNear(500, 1), DoubleNear(500, 1)));
  EXPECT_THAT(answered_in(0, 3000), ElementsAre(DoubleNear(1500, 1), DoubleNear(1500, 1)));
  EXPECT_THAT(answered_in(1000, 3000), ElementsAre(DoubleNear(500, 1), DoubleNear(500, 1))) << "part of answering";
  EXPECT_THAT(answered_in(10, 3000), ElementsAre(DoubleNear(1505, 1), DoubleNear(1505, 1))) << "hardly anybody";
}

TEST(WorkUnits, AProxyReceivesAndSendsTwiceForEachOfItsRequests) {
  const auto requests_of = [](std::uint64_t answers) {
    Recorded r;
    auto proxy = r.thread(7, 7, "proxy", "proxy");
    r.serve(proxy, 200, 5 * kMs, kMs, 4 * kMs, "recvfrom");
    for (const Ns second : {1, 2}) {
      r.calls(proxy, second * kSecond, "recvfrom", 1000);
      r.calls(proxy, second * kSecond, "sendto", 1000);
    }
    r.answers(7, "port 80", "answer", stats::log_bucket_of(3 * kMs), answers);
    return r.find().units.front();
  };
  EXPECT_EQ(requests_of(995).count, 1000U);
  EXPECT_EQ(requests_of(995).per_window, (std::vector<double>{500, 500}));
  EXPECT_NE(requests_of(995).reason.find("2 times for each answer"), std::string::npos);
  EXPECT_EQ(requests_of(1500).count, 2000U) << "some came otherwise than by TCP";
  EXPECT_EQ(requests_of(2000).count, 2000U);
  EXPECT_EQ(requests_of(0).count, 2000U);
}

/// A server whose calls were counted in windows, as `sends` of them; 1000 answers were seen.
model::WorkUnit sampled(std::uint64_t sends) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 200, 5 * kMs, kMs, 4 * kMs);
  for (const Ns second : {1, 2}) {
    r.calls(server, second * kSecond, "read", sends / 2);
    r.calls(server, second * kSecond, "write", sends / 2);
  }
  r.answers(7, "port 80", "answer", stats::log_bucket_of(3 * kMs), 1000);
  r.fact("syscalls.counted_share", "0.125");
  r.fact("syscalls.count_error", "0.0300");
  return r.find().units.front();
}

TEST(WorkUnits, WhereCallsAreEstimatesTheAnswersAreTheNumberOfRequests) {
  const model::WorkUnit unit = sampled(1100);
  EXPECT_EQ(unit.count, 1000U);
  EXPECT_EQ(unit.count_error, std::nullopt);
  ASSERT_EQ(unit.per_window.size(), 2U);
  EXPECT_NEAR(unit.per_window[0], 500, 1e-9);
}

TEST(WorkUnits, CallsOfWildEstimatesPairThoughWindowsCutThemApart) {
  for (const std::string_view error : {"0.04", "0.96"}) {
    Recorded r;
    auto server = r.thread(7, 7, "server", "server");
    r.serve(server, 200, 5 * kMs, kMs, 4 * kMs);
    r.calls(server, kSecond, "read", 17577);
    r.calls(server, kSecond, "write", 16616);
    r.fact("syscalls.counted_share", "0.14");
    r.fact("syscalls.count_error", std::string(error));
    const model::WorkUnit unit = r.find().units.front();
    EXPECT_EQ(unit.kind == model::UnitKind::request, error == "0.96");
  }
}

TEST(WorkUnits, TurnsOfAnEventLoopThatWereCountedInWindowsAreEstimates) {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 200, 5 * kMs, kMs, 4 * kMs);
  r.calls(server, kSecond, "epoll_wait", 400);
  EXPECT_FALSE(r.find().units.front().count_error);
  r = Recorded();
  server = r.thread(7, 7, "server", "server");
  r.serve(server, 200, 5 * kMs, kMs, 4 * kMs);
  r.calls(server, kSecond, "epoll_wait", 400);
  r.fact("syscalls.counted_share", "0.14");
  r.fact("syscalls.count_error", "0.25");
  const model::WorkUnit unit = r.find().units.front();
  EXPECT_EQ(unit.kind, model::UnitKind::iteration);
  EXPECT_EQ(unit.count_error, 0.25);
}

TEST(WorkUnits, EstimatesThatAnswersDoNotConfirmSayHowSureTheyAre) {
  const model::WorkUnit unit = sampled(4000);
  EXPECT_EQ(unit.count, 4000U);
  EXPECT_EQ(unit.count_error, 0.03);
}

/// A server with a thread for each connection, whose calls do not pair; its answers were counted.
Recorded answering() {
  Recorded r;
  auto server = r.thread(7, 7, "server", "server");
  r.serve(server, 200, 5 * kMs, kMs, 4 * kMs);
  for (const Ns second : {1, 2}) {
    r.calls(server, second * kSecond, "recvfrom", 97);
    r.calls(server, second * kSecond, "sendto", 731);
  }
  r.answers(7, "port 80", "answer", stats::log_bucket_of(3 * kMs), 1000);
  for (const auto& [at, count] : {std::pair(0 * kSecond, 0.0), {kSecond, 600.0}, {2 * kSecond, 1000.0}})
    r.counted("answers", 7, at, count);
  return r;
}

TEST(WorkUnits, WithoutCallsThatPairAnswersAreRequests) {
  Recorded r = answering();
  const model::WorkUnit unit = r.find().units.front();
  EXPECT_EQ(unit.kind, model::UnitKind::request);
  EXPECT_EQ(unit_text(unit), "requests of server (answers)");
  EXPECT_EQ(unit.count, 1000U);
  EXPECT_EQ(unit.per_window, (std::vector<double>{600, 400}));
}

TEST(WorkUnits, AnswersComeFirstOnlyWhereCallsAreEstimates) {
  for (const bool estimates : {false, true}) {
    Recorded r = answering();
    auto worker = r.thread(7, 9, "server", "worker");
    r.serve(worker, 200, 5 * kMs, kMs, 4 * kMs);
    for (const Ns second : {1, 2}) {
      r.calls(worker, second * kSecond, "read", 400);
      r.calls(worker, second * kSecond, "write", 400);
    }
    if (estimates) r.fact("syscalls.counted_share", "0.125");
    EXPECT_EQ(r.find().units.front().receive, estimates ? "answers" : "read");
  }
}

TEST(WorkUnits, AnswersComeFirstWhereCallsCouldBeAnyNumber) {
  for (const std::string_view error : {"0.0300", "0.9000"}) {
    Recorded r;
    auto server = r.thread(7, 7, "server", "server");
    r.serve(server, 200, 5 * kMs, kMs, 4 * kMs);
    r.calls(server, kSecond, "recvfrom", 3400);
    r.calls(server, kSecond, "sendto", 3400);
    r.answers(7, "port 80", "answer", stats::log_bucket_of(kMs), 1000);
    for (const auto& [at, count] : {std::pair(0 * kSecond, 0.0), {2 * kSecond, 1000.0}})
      r.counted("answers", 7, at, count);
    r.fact("syscalls.counted_share", "0.125");
    r.fact("syscalls.count_error", std::string(error));
    const model::WorkUnit unit = r.find().units.front();
    EXPECT_EQ(unit.receive, error == "0.9000" ? "answers" : "recvfrom");
    EXPECT_EQ(unit.count, error == "0.9000" ? 1000U : 3400U);
  }
}

/// A backend that answered 7000 statements; of 17 bytes is each 7th answer, `regular` of 1000 times.
model::WorkUnits statements(std::uint64_t regular) {
  Recorded r;
  auto backend = r.thread(7, 7, "postgres: bench", "postgres");
  r.serve(backend, 100, 5 * kMs, kMs, 4 * kMs);
  r.calls(backend, kSecond, "recvfrom", 7003);
  r.calls(backend, kSecond, "sendto", 7001);
  r.answers(7, "port 5432", "answer", 100, 7000);
  r.answers(0, "port 5432", "answer of 17 bytes after others", 7, regular);
  r.answers(0, "port 5432", "answer of 17 bytes after others", 3, 1000 - regular);
  r.answers(0, "port 5432", "answer of 20 bytes after others", 1, 2000);
  r.answers(0, "port 5432", "answer of 20 bytes after others", 2, 1000);
  return r.find();
}

TEST(WorkUnits, RequestsThatComeAgainInTheSameOrderAreATransaction) {
  const model::WorkUnits work = statements(998);
  const model::WorkUnit& unit = work.units.front();
  EXPECT_EQ(unit.kind, model::UnitKind::transaction) << unit.reason;
  EXPECT_EQ(unit.count, 1000U);
  EXPECT_GE(unit.confidence, 0.8);
  EXPECT_EQ(work.units[1].kind, model::UnitKind::request);
  EXPECT_EQ(work.units[1].count, 7001U);
  EXPECT_DOUBLE_EQ(unit.per_window.front(), work.units[1].per_window.front() / 7);
}

TEST(WorkUnits, RequestsInNoOrderAreNoTransaction) {
  EXPECT_EQ(statements(600).units.front().kind, model::UnitKind::request);
}

}  // namespace
}  // namespace culprit::cycles
