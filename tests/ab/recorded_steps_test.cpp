#include "ab/recorded_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "support/temp_file.h"

namespace culprit::ab {
namespace {

using ::testing::HasSubstr;

/// Steps of 1 ms, each of which copies 1000 bytes, and its number, to the device; every 10th not. A counter with a
/// sample every ms, which is 4 from the begin, then 8 from 50 ms on, and not written again as long as it stays.
std::string trace() {
  std::string events;
  for (int step = 0; step < 100; ++step) {
    const std::string begin = std::to_string(step * 1000);
    const std::string at = std::to_string(step * 1000 + 100);
    const std::string id = std::to_string(step + 1);
    events += R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" + std::to_string(step) +
              R"(","pid":1,"tid":1,"ts":)" + begin + R"(,"dur":990},)";
    events += R"({"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":1,"tid":1,"ts":)" + at +
              R"(,"dur":5,"args":{"correlation":)" + id + "}},";
    if (step % 10 != 9)
      events += R"({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,"ts":)" + at +
                R"(,"dur":50,"args":{"device":0,"stream":7,"correlation":)" + id + R"(,"bytes":)" +
                std::to_string(1000 + step) + "}},";
  }
  for (const auto& [at, value] : {std::pair(0, 4), std::pair(1000, 4), std::pair(2000, 4), std::pair(3000, 4),
                                  std::pair(50000, 8), std::pair(51000, 8), std::pair(99000, 8)})
    events += R"({"ph":"C","name":"queue.length","pid":1,"ts":)" + std::to_string(at) + R"(,"args":{"value":)" +
              std::to_string(value) + "}},";
  events.pop_back();
  return R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}";
}

class RecordedSteps : public ::testing::Test {
 protected:
  test::TempDir folder_;
  std::string file_ = folder_.file("steps.json", trace());
};

TEST_F(RecordedSteps, BytesAreThoseOfCopiesOfTheName) {
  const auto found = steps_of(file_, {Quantity::Kind::bytes, "Memcpy*"});
  ASSERT_TRUE(found) << to_string(found.error());
  ASSERT_GE(found->steps.size(), 85U);
  EXPECT_LE(found->steps.size(), 90U) << "steps without any are left out";
  const double first = found->steps.front().value;
  EXPECT_DOUBLE_EQ(found->steps[1].value, first + 1);
  EXPECT_GE(first, 1000);
  const auto none = steps_of(file_, {Quantity::Kind::bytes, "cudaMemcpy*"});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->steps.empty()) << "the call that asks for a copy moves nothing itself";
}

TEST_F(RecordedSteps, FunctionIsTheTimeOfTheNameInEachStep) {
  const auto found = steps_of(file_, {Quantity::Kind::function, "cudaMemcpyAsync"});
  ASSERT_TRUE(found) << to_string(found.error());
  ASSERT_GE(found->steps.size(), 90U);
  for (const Step& step : found->steps) EXPECT_DOUBLE_EQ(step.value, 5000);
  const auto none = steps_of(file_, {Quantity::Kind::function, "cudaMemcpy"});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->steps.empty()) << "a name is a whole one";
  EXPECT_THAT(none->without, ::testing::MatchesRegex("time in cudaMemcpy per step: none of 9[0-9] steps has any"));
}

TEST(RecordedSystemCalls, AreNotCountedByThoseThatTakeLong) {
  std::string events;
  for (int step = 0; step < 100; ++step) {
    const std::string begin = std::to_string(step * 1000);
    events += R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" + std::to_string(step) +
              R"(","pid":1,"tid":1,"ts":)" + begin + R"(,"dur":990},)";
    if (step % 2 == 0)
      events += R"({"ph":"X","cat":"syscall","name":"fsync","pid":1,"tid":1,"ts":)" + begin + R"(,"dur":500},)";
  }
  events.pop_back();
  const test::TempDir folder;
  const std::string file = folder.file("calls.json", R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}");
  const auto found = steps_of(file, {Quantity::Kind::calls, "fsync"});
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_TRUE(found->steps.empty());
  EXPECT_THAT(found->without, HasSubstr("steps has any, since of system calls only long ones"));
}

TEST_F(RecordedSteps, KernelsCountInTheStepThatTheyBeginIn) {
  const auto found = steps_of(file_, {Quantity::Kind::function, "Memcpy*"});
  ASSERT_TRUE(found) << to_string(found.error());
  ASSERT_GE(found->steps.size(), 85U);
  EXPECT_LE(found->steps.size(), 90U) << "steps without any are left out";
  for (const Step& step : found->steps) EXPECT_DOUBLE_EQ(step.value, 50'000);
}

TEST_F(RecordedSteps, CallsAreCounted) {
  const auto both = steps_of(file_, {Quantity::Kind::calls, "*emcpy*"});
  ASSERT_TRUE(both) << to_string(both.error());
  ASSERT_GE(both->steps.size(), 90U);
  const auto with_copy =
      static_cast<std::size_t>(std::ranges::count_if(both->steps, [](const Step& step) { return step.value == 2; }));
  EXPECT_GE(with_copy, 85U);
  EXPECT_LE(with_copy, 90U);
  for (const Step& step : both->steps) EXPECT_TRUE(step.value == 1 || step.value == 2) << step.value;
}

TEST_F(RecordedSteps, OfACounterAreTheStretchesInWhichItHeld) {
  const auto found = steps_of(file_, {Quantity::Kind::counter, "queue.length"});
  ASSERT_TRUE(found) << to_string(found.error());
  ASSERT_EQ(found->steps.size(), 100U) << "a value that holds for long is as many stretches as samples would be";
  EXPECT_EQ(found->steps.front().end - found->steps.front().begin, 1'000'000);
  EXPECT_NEAR(mean_value(found->steps), (50 * 4 + 49.99 * 8) / 99.99, 1e-9) << "the last value holds until the end";
}

TEST_F(RecordedSteps, ACounterThatIsNoneSaysWhichThereAre) {
  const auto found = steps_of(file_, {Quantity::Kind::counter, "queue"});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->steps.empty());
  EXPECT_THAT(found->how, HasSubstr("no counter 'queue' is recorded (there are queue.length)"));
  EXPECT_EQ(found->meant, "");
}

TEST(RecordedCounter, TheBeginOfANameIsWhatIsUsed) {
  const auto counter = [](const std::string& name, int value) {
    std::string events;
    for (int at = 0; at < 5000; at += 1000)
      events += R"({"ph":"C","name":")" + name + R"(","pid":1,"ts":)" + std::to_string(at) + R"(,"args":{"value":)" +
                std::to_string(value) + "}},";
    return events;
  };
  const auto trace_of = [](std::string events) {
    events.pop_back();
    return R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}";
  };
  const test::TempDir folder;
  const std::string work = R"({"ph":"X","cat":"cpu_op","name":"work","pid":1,"tid":1,"ts":0,"dur":5000},)";
  const std::string events = work + counter("host.cpu.used", 3) + counter("host.cpu.steal", 7);
  const std::string file = folder.file("used.json", trace_of(events));
  const auto found = steps_of(file, {Quantity::Kind::counter, "host.cpu"});
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->meant, "host.cpu.used");
  EXPECT_DOUBLE_EQ(mean_value(found->steps), 3);
  const auto whole = steps_of(file, {Quantity::Kind::counter, "host.cpu.used"});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->meant, "");
  EXPECT_EQ(whole->steps.size(), found->steps.size());
  // One that is called so comes first.
  const std::string other = folder.file("both.json", trace_of(events + counter("host.cpu", 9)));
  const auto exact = steps_of(other, {Quantity::Kind::counter, "host.cpu"});
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->meant, "");
  EXPECT_DOUBLE_EQ(mean_value(exact->steps), 9);
  const auto none = steps_of(file, {Quantity::Kind::counter, "host.c"});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->steps.empty()) << "a name is cut at its dots";
}

}  // namespace
}  // namespace culprit::ab
