// What share of the CPUs the program may have, and how many of its own threads want one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "comparison.h"
#include "diagnose/diagnose.h"

namespace culprit::diagnose {
namespace {

using model::Outcome;
using model::RunComparison;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kAffinity = "cpu_contention/affinity";
constexpr const char* kPriority = "cpu_contention/priority";
constexpr const char* kOwn = "cpu_contention/own_threads";

using Fact = std::array<std::string, 2>;

void set_fact(RunComparison& c, const std::string& key, const Fact& value) {
  std::erase_if(c.environment, [&](const model::EnvironmentChange& fact) { return fact.key == key; });
  c.environment.push_back({key, value});
}

/// Steps that wait 5 ms longer for a CPU.
RunComparison queued(std::array<double, 2> share_behind_others) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {1, 6}, {1, 1});
  c.host->behind_others = {share_behind_others[0], share_behind_others[1]};
  return c;
}

RunComparison allowed(const Fact& cpus) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {1, 6}, {1, 1});
  set_fact(c, "env.target.cpus_allowed", cpus);
  return c;
}

TEST(Affinity, OneThatChangedMeanwhile) {
  ASSERT_THAT(causes(allowed({"0-1", "0 / 0-1"})), ElementsAre(kAffinity));
  EXPECT_THAT(diagnose(allowed({"0-1", "0 / 0-1"}))[0].evidence,
              Contains("It may use CPUs 0 or 0-1 (it changed) instead of 0-1"));
  EXPECT_THAT(causes(allowed({"0 / 0-1", "0"})), ElementsAre(kAffinity));
  EXPECT_THAT(causes(allowed({"0 / 0-1", "0-1"})), ElementsAre("unknown")) << "it may use more";
  EXPECT_THAT(causes(allowed({"0 / 1", "0"})), ElementsAre("unknown")) << "others, as many";
  EXPECT_THAT(causes(swapped(allowed({"0-1", "0 / 0-1"}))), ElementsAre("-cpu_contention/affinity"));
}

TEST(Affinity, ListsThatCannotBeReadSayNothing) {
  for (const char* text : {"", "none", "3-1", "0-", "0 / x", "0,,x"})
    EXPECT_THAT(causes(allowed({"0-1", text})), ElementsAre("unknown")) << text;
}

TEST(Affinity, OfAnyTarget) {
  RunComparison c = queued({0.1, 0.1});
  set_fact(c, "env.target2.cpus_allowed", {"0-1", "0"});
  ASSERT_THAT(causes(c), ElementsAre(kAffinity));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains("One of its processes may use CPUs 0 instead of 0-1"));
  set_fact(c, "env.target3.cpus_allowed", {"0", "0-1"});
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "they came in another order";
}

TEST(Affinity, OfATargetThatIsAsTheFirstOneOnOneSide) {
  RunComparison c = queued({0.1, 0.1});
  set_fact(c, "env.target2.cpus_allowed", {"", "0"});
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "nobody says what the first one may use";
  set_fact(c, "env.target.cpus_allowed", {"0-1", "0-3"});
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "two more and one fewer";
  set_fact(c, "env.target.cpus_allowed", {"0-1", "1"});
  EXPECT_THAT(causes(c), ElementsAre(kAffinity));
}

TEST(Affinity, OfAProcessThatOnlyOneSideHasIsNone) {
  RunComparison c = queued({0.8, 0.9});
  set_fact(c, "env.target.cpus_allowed", {"0-3", "4-7"});
  for (const char* cpu : {"1", "2", "3", "4"})
    set_fact(c, std::string("env.target") + cpu + ".cpus_allowed", {"", cpu});
  set_fact(c, "env.target5.sched.nice", {"", "10"});
  EXPECT_THAT(causes(c), ElementsAre(kOthers));
  EXPECT_THAT(causes(swapped(std::move(c))), ElementsAre("-cpu_contention/other_processes"));
}

TEST(Affinity, KeysThatOnlyLookLikeTargets) {
  for (const char* key : {"env.targets.cpus_allowed", "env.target-1.cpus_allowed", "env.target.other_cpus_allowed",
                          "env.targetcpus_allowed", "env.target1.x.cpus_allowed"}) {
    RunComparison c = queued({0.1, 0.1});
    set_fact(c, key, {"0-1", "0"});
    EXPECT_THAT(causes(c), ElementsAre("unknown")) << key;
  }
}

TEST(Affinity, ACpusetThatShrankInsideOneRun) {
  RunComparison c = queued({0.1, 0.1});
  add_counter(c, "cgroup.cpuset.cpus", {2, 1});
  ASSERT_THAT(causes(c), ElementsAre(kAffinity));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("may use 1 instead of 2 CPUs")));
  set_counter(c, "cgroup.cpuset.cpus", {1, 2});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.host->counters.back().value = {2.0, std::nullopt};
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "one side does not tell";
  set_counter(c, "cgroup.cpuset.cpus", {2, 1});
  set_step(c, {10, 14}, {1, 1}, {1, 1});
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "it waits for no CPU";
}

TEST(Priority, LowerBesideSomebodyWhoWasThereBefore) {
  for (const auto& [key, value] :
       {std::pair("sched.nice", Fact{"0", "15"}), std::pair("sched.policy", Fact{"other", "idle"}),
        std::pair("sched.policy", Fact{"round_robin", "other"}), std::pair("cgroup.cpu.weight", Fact{"100", "10"}),
        std::pair("cgroup.cpu.shares", Fact{"1024", "512"}), std::pair("sched.nice", Fact{"0", "0 / 15"})}) {
    RunComparison c = queued({0.8, 0.9});
    EXPECT_THAT(causes(c), ElementsAre(kOthers)) << "many of which none took much";
    set_fact(c, std::string("env.target.") + key, value);
    EXPECT_THAT(causes(c), ElementsAre(kPriority)) << key;
    EXPECT_NEAR(diagnose(c)[0].impact_ns, 5e6, 1);
    EXPECT_DOUBLE_EQ(diagnose(c)[0].confidence, 0.9);
    EXPECT_THAT(causes(swapped(std::move(c))), ElementsAre("-cpu_contention/priority")) << key;
  }
}

TEST(Priority, BothValuesAreNamed) {
  RunComparison c = queued({0.8, 0.9});
  set_fact(c, "env.target.sched.nice", {"0", "15"});
  set_fact(c, "env.target3.cgroup.cpu.weight", {"100", "20"});
  const auto verdicts = diagnose(c);
  EXPECT_THAT(verdicts[0].evidence, Contains("It runs at nice 15 instead of 0"));
  EXPECT_THAT(verdicts[0].evidence, Contains("The cpu.weight of the control group is 20 instead of 100"));
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("had the CPU for 5.400ms instead of 800.000us")));
}

TEST(Priority, ACompetitorThatGotMoreByItIsNoCauseOfItsOwn) {
  RunComparison c = queued({0.8, 0.9});
  set_fact(c, "env.target.sched.nice", {"0", "15"});
  add_beside(c, "busy", {0.4, 0.9});
  EXPECT_THAT(causes(c), ElementsAre(kPriority));
  c.host->beside[0].value = {0, 0.9};
  EXPECT_THAT(causes(c), ElementsAre(kPriority, kOthers)) << "it came";
  c.environment.clear();
  c.host->beside[0].value = {0.4, 0.9};
  EXPECT_THAT(causes(c), ElementsAre(kOthers));
}

TEST(Priority, ACompetitorThatGrewByFarMoreIsACauseBesideIt) {
  RunComparison c = queued({0.8, 0.9});
  set_fact(c, "env.target.sched.nice", {"0", "2"});
  add_beside(c, "busy", {0.15, 2});
  EXPECT_THAT(causes(c), ElementsAre(kPriority, kOthers));
  c.host->beside[0].value = {0.15, 0.6};
  EXPECT_THAT(causes(c), ElementsAre(kPriority)) << "less than half a CPU";
  c.host->beside[0].value = {1, 2.5};
  EXPECT_THAT(causes(c), ElementsAre(kPriority)) << "not three times as much";
  c.host->beside[0].value = {0.15, 0.5};
  add_beside(c, "busier", {0.15, 0.5});
  EXPECT_THAT(causes(c), ElementsAre(kPriority, kOthers)) << "together";
}

TEST(Priority, OneThatIsHigherOrHardlyLowerIsNone) {
  for (const auto& [key, value] :
       {std::pair("sched.nice", Fact{"15", "0"}), std::pair("sched.nice", Fact{"0", "1"}),
        std::pair("sched.policy", Fact{"batch", "other"}), std::pair("sched.policy", Fact{"other", "new"}),
        std::pair("sched.policy", Fact{"other", "ext"}), std::pair("cgroup.cpu.weight", Fact{"100", "90"}),
        std::pair("cgroup.cpu.weight", Fact{"10", "100"}), std::pair("cgroup.cpu.shares", Fact{"1024", ""}),
        std::pair("sched.nice", Fact{"", "15"})}) {
    RunComparison c = queued({0.8, 0.9});
    set_fact(c, std::string("env.target.") + key, value);
    EXPECT_THAT(causes(c), ElementsAre(kOthers)) << key << value[0] << value[1];
  }
}

TEST(Priority, ThatWasNotFeltOrBesideNobodyIsNone) {
  RunComparison c = queued({0.8, 0.2});
  set_fact(c, "env.target.sched.nice", {"0", "15"});
  EXPECT_THAT(causes(c), Not(Contains(kPriority))) << "its own threads had the CPUs";
  set_step(c, {10, 15}, {1, 1}, {1, 1});
  c.host->behind_others = {0.8, 0.9};
  EXPECT_THAT(causes(c), Not(Contains(kPriority))) << "it waits for no CPU";
  set_step(c, {10, 10}, {1, 6}, {1, 1});
  c.host->behind_others = {};
  ASSERT_THAT(causes(c), ElementsAre(kPriority));
  EXPECT_DOUBLE_EQ(diagnose(c)[0].confidence, 0.6);
  EXPECT_THAT(diagnose(c)[0].against, Contains(HasSubstr("was not recorded")));
}

/// Twelve threads instead of two, of which three more wait for a CPU at once.
RunComparison crowded() {
  RunComparison c = queued({0.1, 0.05});
  add_state(c, "runnable", {6, 60});
  add_counter(c, "process.threads", {2, 12});
  return c;
}

TEST(OwnThreads, MoreThanItHasCpus) {
  RunComparison c = crowded();
  c.off_cpu.per = "step";
  c.off_cpu.rivals.push_back({"server", "", {6e6, 55e6}, {9, 90}});
  auto verdicts = diagnose(c);
  ASSERT_THAT(causes(c), ElementsAre(kOwn));
  EXPECT_NEAR(verdicts[0].impact_ns, 5e6, 1);
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.7);
  EXPECT_THAT(verdicts[0].evidence,
              Contains("Its processes have 12 instead of 2 threads, of which 3.53 instead of 0.5 waited for a CPU at "
                       "once"));
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("server had the CPUs, for 55.000ms instead of")));
  EXPECT_THAT(verdicts[0].against, Contains(HasSubstr("More clients at once")));
  set_fact(c, "env.target.variable.OMP_NUM_THREADS", {"2", "12"});
  verdicts = diagnose(c);
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.9);
  EXPECT_THAT(verdicts[0].evidence, Contains("The variable OMP_NUM_THREADS is 12 instead of 2"));
  EXPECT_THAT(verdicts[0].against, IsEmpty());
  EXPECT_THAT(causes(swapped(std::move(c))), ElementsAre("-cpu_contention/own_threads"));
}

TEST(OwnThreads, WhoseStepsWaitForThoseWithoutACpu) {
  RunComparison c = crowded();
  set_step(c, {10, 10}, {1, 1.2}, {1, 7});
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "for something else";
  add_state(c, "blocked in futex", {1, 40});
  ASSERT_THAT(causes(c), ElementsAre(kOwn));
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 6.2e6, 1);
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("waited 6.000ms longer in futex")));
}

TEST(OwnThreads, WhoseStepsSpinForThoseWithoutACpu) {
  RunComparison c = crowded();
  set_step(c, {10, 15}, {1, 1.2}, {1, 1});
  ASSERT_THAT(causes(c), ElementsAre(kOwn));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("ran 5.000ms longer meanwhile")));
}

TEST(OwnThreads, AsManyAsBeforeAreNotTooMany) {
  RunComparison c = crowded();
  for (const std::array<double, 2> threads :
       {std::array{12.0, 12.5}, std::array{12.0, 12.0}, std::array{12.0, 4.0}, std::array{40.0, 42.0}}) {
    set_counter(c, "process.threads", threads);
    EXPECT_THAT(causes(c), ElementsAre("unknown")) << threads[1];
  }
  std::erase_if(c.host->counters, [](const model::HostChange& counter) { return counter.what == "process.threads"; });
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "nobody counted them";
}

TEST(OwnThreads, ThatSleepAreNotTooMany) {
  RunComparison c = crowded();
  c.host->states.back().value[1] = 10e6;
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.host->states.back().value[1] = 60e6;
  set_counter(c, "process.threads", {2, 4});
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "more wait than it has more";
}

TEST(OwnThreads, ThatNothingWasFeltOfAreNone) {
  RunComparison c = crowded();
  set_step(c, {10, 10}, {1, 1.3}, {1, 1});
  c.outcome = Outcome::no_change;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(OwnThreads, BesideACompetitorAreNot) {
  RunComparison c = crowded();
  add_beside(c, "busy", {0, 0.9});
  EXPECT_THAT(causes(c), ElementsAre(kOthers)) << "a server starts a thread for each that waits";
  set_fact(c, "env.target.option.workers", {"2", "12"});
  EXPECT_THAT(causes(c), ElementsAre(kOwn, kOthers)) << "more wait than it took CPUs";
  EXPECT_THAT(diagnose(c)[0].against, Contains(HasSubstr("took 0.9 CPUs more, too")));
  c.host->beside[0].value = {0, 1.8};
  EXPECT_THAT(causes(c), ElementsAre(kOthers));
  c.environment.clear();
  c.host->beside.clear();
  c.host->behind_others = {0.1, 0.8};
  EXPECT_THAT(causes(c), Not(Contains(kOwn))) << "others had the CPUs";
  c.host->behind_others = {};
  EXPECT_THAT(causes(c), Not(Contains(kOwn))) << "nobody knows who had them";
}

TEST(OwnThreads, BesideOthersThatTookALittleMore) {
  RunComparison c = crowded();
  add_beside(c, "cron", {0, 0.2});
  EXPECT_THAT(causes(c), ElementsAre(kOwn)) << "it did not wait for them";
  c.host->behind_others = {0.1, 0.4};
  EXPECT_THAT(causes(c), Not(Contains(kOwn)));
}

TEST(OwnThreads, OnFewerCpusOrWithALowerPriorityAreNot) {
  RunComparison c = crowded();
  set_fact(c, "env.target.cpus_allowed", {"0-7", "0"});
  EXPECT_THAT(causes(c), ElementsAre(kAffinity));
  c.environment.clear();
  set_fact(c, "env.target.sched.nice", {"0", "15"});
  EXPECT_THAT(causes(c), Not(Contains(kOwn)));
  c.environment.clear();
  set_counter(c, "host.cpu.frequency", {3e9, 2e9});
  EXPECT_THAT(causes(c), Not(Contains(kOwn)));
  set_counter(c, "host.cpu.frequency", {3e9, 3e9});
  set_counter(c, "host.cpu.steal", {0, 0.2});
  EXPECT_THAT(causes(c), Not(Contains(kOwn)));
}

TEST(OwnThreads, UseTheSameQuotaUpSooner) {
  RunComparison c = crowded();
  add_counter(c, "cgroup.cpu.throttled_time", {0, 4e8});
  ASSERT_THAT(causes(c), ElementsAre(kOwn));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("A CPU quota held the group of the program back for 400")));
  set_fact(c, "env.target.cgroup.cpu.quota", {"2.000", "1.000"});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/throttled"));
  c.environment.clear();
  set_counter(c, "cgroup.cpu.quota", {2, 1});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/throttled"));
}

TEST(OwnThreads, OneMoreIsNotWhyAQuotaIsMet) {
  RunComparison c = crowded();
  set_counter(c, "process.threads", {10, 11});
  c.host->states.back().value[1] = 22e6;
  EXPECT_THAT(causes(c), ElementsAre(kOwn)) << "without a quota";
  add_counter(c, "cgroup.cpu.throttled_time", {0, 4e8});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/throttled"));
  set_fact(c, "env.target.variable.OMP_NUM_THREADS", {"10", "11"});
  EXPECT_THAT(causes(c), ElementsAre(kOwn));
}

TEST(OwnThreads, OfStepsThatComputeMoreOnAFullMachineAreNotTooMany) {
  RunComparison c = crowded();
  set_step(c, {10, 13}, {1, 6}, {1, 1});
  EXPECT_THAT(causes(c), ElementsAre(kOwn));
  set_step(c, {10, 16}, {1, 6}, {1, 1});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  set_fact(c, "env.target.variable.OMP_NUM_THREADS", {"2", "12"});
  EXPECT_THAT(causes(c), Contains(kOwn));
}

TEST(OwnThreads, OneForEachClientAreMoreLoad) {
  RunComparison c = crowded();
  c.host->answered_per_second = {10, 20};
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.host->answered_per_second = {10, 8};
  EXPECT_THAT(causes(c), ElementsAre(kOwn));
  add_counter(c, "target.tcp.connections", {2, 12});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.host->counters.pop_back();
  c.cycle_times[0].other_share = 0.8;
  c.cycle_times[0].all_ns = {12e6, 40e6};
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "steps work on something else";
  c.cycle_times[0].all_ns = {12e6, 18e6};
  EXPECT_THAT(causes(c), ElementsAre(kOwn)) << "those of like work take as much longer";
}

/// A program without steps: 100 units a second, then 60.
RunComparison units() {
  RunComparison c = comparison();
  c.host->behind_others = {0.1, 0.05};
  add_counter(c, "process.threads", {2, 12});
  model::WorkComparison& work = c.work.emplace();
  work.throughput = {"throughput", "1/s", {100, 60}, -0.4};
  work.worked = {"worked", "ns", {12e6, 62e6}, 4};
  work.parts = {{"on CPU", "ns", {10e6, 10e6}}, {"runnable, in the run queue", "ns", {1e6, 51e6}}};
  return c;
}

TEST(OwnThreads, OfAProgramWithoutSteps) {
  EXPECT_THAT(causes(units()), ElementsAre(kOwn));
  RunComparison c = units();
  c.work->throughput.value = {100, 100};
  c.work->throughput.change = 0;
  c.outcome = Outcome::no_change;
  EXPECT_THAT(causes(c), IsEmpty()) << "more at once, and as much gets done";
}

}  // namespace
}  // namespace culprit::diagnose
