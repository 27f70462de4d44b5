// What waiting for answers says of a program that answers fewer requests.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "compare/make_server.h"

namespace culprit::compare {
namespace {

TEST(WaitedFor, RequestsThatWaitForABackendInsideAreNoLackOfDemand) {
  const model::Recording fast = answering({.rate = 4000}, 150e3);
  model::Recording slow = answering({.rate = 1000}, 900e3);
  slow.work->calls = {{"recvfrom", 12'000, 9e9}};
  const model::WorkComparison c = compare_work({&fast, 1}, {&slow, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_EQ(c.waits_in, "recvfrom");
  EXPECT_NE(c.reading.find("for their answers"), std::string::npos) << c.reading;
  const model::WorkComparison back = compare_work({&slow, 1}, {&fast, 1});
  EXPECT_EQ(back.outcome, model::Outcome::improvement);
  EXPECT_EQ(back.waits_in, "recvfrom");
}

/// Of which one in so many requests waited longer.
model::Recording answering_some_late(const Server& server, double answer_ns, std::uint64_t one_in, double late_ns) {
  model::Recording r = answering(server, answer_ns);
  const std::uint64_t late = r.work->units[0].count / one_in;
  r.work->answers[stats::log_bucket_of(static_cast<std::uint64_t>(answer_ns))] -= late;
  r.work->answers[stats::log_bucket_of(static_cast<std::uint64_t>(late_ns))] += late;
  return r;
}

TEST(WaitedFor, AFewRequestsThatWaitVeryLongHoldUpWhoSentThem) {
  // Four clients: one request in a hundred meets a lock.
  const model::Recording fast = answering({.rate = 4000}, 1e6);
  const model::Recording slow = answering_some_late({.rate = 2000}, 1e6, 100, 100e6);
  const model::WorkComparison c = compare_work({&fast, 1}, {&slow, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_EQ(c.waits_in, "");
  EXPECT_NEAR(c.waited[1] / c.waited[0], 2, 0.1);
  EXPECT_NE(c.reading.find("for their answers in the mean"), std::string::npos) << c.reading;
  EXPECT_EQ(compare_work({&slow, 1}, {&fast, 1}).outcome, model::Outcome::improvement);
}

TEST(WaitedFor, OneWhoWaitsForSomethingToHappenIsNoLockOfTheOthers) {
  const model::Recording busy = answering({.rate = 4000}, 150e3);
  const model::Recording calm = answering_some_late({.rate = 2000}, 150e3, 1000, 1e9);
  const model::WorkComparison c = compare_work({&busy, 1}, {&calm, 1});
  EXPECT_EQ(c.outcome, model::Outcome::inconclusive) << c.reading;
  EXPECT_EQ(c.waited[1], 0);
}

TEST(WaitedFor, WorkThatGrewAsMuchIsNotToldForAWaitThatIsFortyTimesAsLong) {
  const model::Recording fast = answering({.rate = 259, .on_cpu = 117e3, .run_queue = 100e3}, 10e6);
  model::Recording slow = answering({.rate = 170, .on_cpu = 153e3, .run_queue = 139e3}, 18e6);
  slow.work->calls = {{"recvfrom", 4080, 36e9}};
  const model::WorkComparison c = compare_work({&fast, 1}, {&slow, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_EQ(c.waits_in, "recvfrom") << c.reading;
  EXPECT_EQ(compare_work({&slow, 1}, {&fast, 1}).waits_in, "recvfrom");
}

TEST(WaitedFor, WhoRanBesideIsNotToBlameForALongerWaitInside) {
  model::Recording fast = answering({.rate = 400, .run_queue = 61e3}, 5e6);
  model::Recording slow = answering({.rate = 200, .run_queue = 72e3}, 10e6);
  slow.work->calls = {{"recvfrom", 2'400, 24e9}};
  fast.work->others = {{"build", 0.6}};
  slow.work->others = {{"build", 1.2}};
  const model::WorkComparison c = compare_work({&fast, 1}, {&slow, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_EQ(c.waits_in, "recvfrom") << c.reading;
  // Where it took the last of the CPUs, who is waited for may have lacked them.
  model::HostCounter& busy = slow.host.counters.emplace_back();
  busy.name = "host.cpu.busy";
  busy.mean = 0.99;
  EXPECT_EQ(compare_work({&fast, 1}, {&slow, 1}).waits_in, "");
}

TEST(WaitedFor, RequestsThatWaitForTheWorkOfOthersWaitForWork) {
  // One thread and 50 clients: each answer waits for the work of all.
  const model::Recording fast = answering({.rate = 8000, .on_cpu = 100e3, .run_queue = 20e3}, 50 * 125e3);
  model::Recording slow = answering({.rate = 4000, .on_cpu = 200e3, .run_queue = 40e3}, 50 * 250e3);
  slow.work->calls = {{"read", 48'000, 1e9}};
  const model::WorkComparison c = compare_work({&fast, 1}, {&slow, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_EQ(c.waits_in, "");
}

TEST(WaitedFor, RequestsThatComeTogetherWaitForTheWorkOfAll) {
  // One thread of a key-value store and fifty clients. What floods the disk lets both of them run by turns, so that all
  // requests are there at once, or none is.
  const model::Recording fast = answering({.rate = 46'150, .on_cpu = 16.3e3, .run_queue = 2.4e3}, 26e3);
  model::Recording slow = answering({.rate = 18'410, .on_cpu = 20.8e3, .run_queue = 18.1e3}, 697e3);
  slow.work->others = {{"hdd", 0.8}};
  model::HostCounter& busy = slow.host.counters.emplace_back();
  busy.name = "host.cpu.busy";
  busy.mean = 0.89;
  const model::WorkComparison c = compare_work({&fast, 1}, {&slow, 1});
  EXPECT_EQ(c.outcome, model::Outcome::regression);
  EXPECT_EQ(c.waited[1], 0) << c.reading;
  // It worked for hardly longer than before: they waited for something else.
  slow = answering({.rate = 18'410, .on_cpu = 18.3e3, .run_queue = 6.4e3}, 697e3);
  slow.work->others = {{"hdd", 0.8}};
  EXPECT_GT(compare_work({&fast, 1}, {&slow, 1}).waited[1], 0);
  // Many threads that work at once fill less.
  slow = answering({.rate = 18'410, .on_cpu = 140e3, .run_queue = 40e3}, 7e6);
  const model::Recording pool = answering({.rate = 46'150, .on_cpu = 120e3, .run_queue = 35e3}, 260e3);
  slow.work->others = {{"hdd", 0.8}};
  EXPECT_GT(compare_work({&pool, 1}, {&slow, 1}).waited[1], 0);
}

TEST(WaitedFor, AnswersThatTakeHardlyLongerTellThatLessWasAsked) {
  const model::Recording busy = answering({.rate = 4000, .run_queue = 20e3}, 150e3);
  for (const double answer : {150e3, 200e3}) {
    // Its own work says neither yes nor no.
    const model::Recording calm = answering({.rate = 500, .run_queue = 110e3}, answer);
    const model::WorkComparison c = compare_work({&busy, 1}, {&calm, 1});
    EXPECT_EQ(c.outcome, model::Outcome::no_change) << answer;
    EXPECT_NE(c.reading.find("each answer took hardly longer"), std::string::npos) << c.reading;
  }
  EXPECT_EQ(compare({.rate = 4000, .run_queue = 20e3}, {.rate = 500, .run_queue = 110e3}).outcome,
            model::Outcome::inconclusive)
      << "without answers";
  const model::Recording between = answering({.rate = 500}, 320e3);
  EXPECT_EQ(compare_work({&busy, 1}, {&between, 1}).outcome, model::Outcome::inconclusive);
}

TEST(WaitedFor, WhoIsAskedByFewerAtOnceWorksLongerForEach) {
  // Fifty clients, of which many are answered in one turn; and one, for whom it wakes up each time.
  model::Recording many = answering({.rate = 8000, .on_cpu = 10e3, .run_queue = 2e3}, 600e3);
  model::Recording one = answering({.rate = 1000, .on_cpu = 45e3, .run_queue = 30e3}, 700e3);
  const model::WorkComparison c = compare_work({&many, 1}, {&one, 1});
  EXPECT_EQ(c.outcome, model::Outcome::no_change);
  EXPECT_NE(c.reading.find("0.69 instead of 5 were being answered at a time"), std::string::npos) << c.reading;
  EXPECT_EQ(compare_work({&one, 1}, {&many, 1}).outcome, model::Outcome::no_change);
  for (model::Recording* recording : {&many, &one}) recording->work->port = "Unix sockets";
  EXPECT_EQ(compare_work({&many, 1}, {&one, 1}).outcome, model::Outcome::regression) << "only the first part is timed";
  for (model::Recording* recording : {&many, &one}) recording->work->answer_bytes = 100;
  EXPECT_EQ(compare_work({&many, 1}, {&one, 1}).outcome, model::Outcome::no_change);
}

TEST(WaitedFor, OtherAnswersAreOfOtherRequests) {
  model::Recording small = answering({.rate = 4000}, 1e6);
  model::Recording large = answering({.rate = 2000, .on_cpu = 200e3, .run_queue = 40e3}, 2e6);
  EXPECT_EQ(compare_work({&small, 1}, {&large, 1}).outcome, model::Outcome::regression) << "nobody knows";
  small.work->answer_bytes = 60;
  large.work->answer_bytes = 20'000;
  const model::WorkComparison c = compare_work({&small, 1}, {&large, 1});
  EXPECT_EQ(c.outcome, model::Outcome::inconclusive);
  EXPECT_TRUE(c.other_answers);
  EXPECT_NE(c.why.find("an answer is of 19.53 KiB instead of 60 B: other requests"), std::string::npos) << c.why;
  EXPECT_TRUE(compare_work({&large, 1}, {&small, 1}).other_answers);
  large.work->answer_bytes = 30;
  EXPECT_TRUE(compare_work({&small, 1}, {&large, 1}).other_answers) << "smaller ones, too";
  large.work->answer_bytes = 70;
  EXPECT_EQ(compare_work({&small, 1}, {&large, 1}).outcome, model::Outcome::regression);
}

TEST(WaitedFor, AsMuchWorkWithAnswersThatTakeTwiceAsLongIsNotCalledTheSame) {
  const model::Recording fast = answering({.rate = 1000}, 150e3);
  const model::Recording same = answering({.rate = 1000}, 200e3);
  const model::Recording slow = answering({.rate = 1000}, 400e3);
  const WorkOptions sure{.between = 0.001};
  EXPECT_EQ(compare_work({&fast, 1}, {&same, 1}, sure).outcome, model::Outcome::no_change);
  const model::WorkComparison c = compare_work({&fast, 1}, {&slow, 1}, sure);
  EXPECT_EQ(c.outcome, model::Outcome::inconclusive);
  EXPECT_NE(c.why.find("answers took"), std::string::npos) << c.why;
}

}  // namespace
}  // namespace culprit::compare
