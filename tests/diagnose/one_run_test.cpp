#include "recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "diagnose/step_parts.h"

namespace culprit::diagnose {
namespace {

using model::Recording;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Kernels of four ranks; those of the last take so many times longer, with so many times the threads.
Recording four_ranks(double times, double threads = 1) {
  Recording made = run(10, 0, 0);
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    add_rank(made, rank);
    for (const char* name : {"gemm", "softmax", "norm"})
      add_use(made, rank, name, "gpu_compute", "GPU 0", rank == 3 ? times : 1, rank == 3 ? 100 * threads : 100);
  }
  return made;
}

TEST(OneRun, HealthyHasNone) {
  EXPECT_THAT(causes(run(9, 0.1, 0.9)), IsEmpty());
  EXPECT_THAT(causes(four_ranks(1)), IsEmpty());
  EXPECT_THAT(causes(Recording()), IsEmpty());
}

TEST(OneRun, AQuotaThatIsFelt) {
  Recording made = run(7, 3, 0);
  made.host.counters.push_back({"cgroup.cpu.throttled_time", "ns/s", 6e8, 10});
  EXPECT_THAT(causes(made), ElementsAre("cpu_contention/throttled"));
  EXPECT_NEAR(diagnose_run(made)[0].share, 0.3, 1e-9);
  made = run(10, 0.1, 0);
  made.host.counters.push_back({"cgroup.cpu.throttled_time", "ns/s", 6e8, 10});
  EXPECT_THAT(causes(made), IsEmpty());
}

TEST(OneRun, OthersOnItsCpus) {
  Recording made = run(6, 4, 0);
  made.host.beside["stress-ng-cpu"] = 1.6;
  EXPECT_THAT(causes(made), ElementsAre("cpu_contention/other_processes"));
  EXPECT_THAT(diagnose_run(made)[0].evidence[0], HasSubstr("stress-ng-cpu"));
  made = run(10, 0.1, 0);
  made.host.beside["client"] = 1.6;
  EXPECT_THAT(causes(made), IsEmpty());
}

TEST(OneRun, StolenTime) {
  Recording made = run(9, 0.1, 0.9);
  add_counter(made, "host.cpu.steal", 0.1);
  ASSERT_THAT(causes(made), ElementsAre("cpu_contention/steal"));
  EXPECT_NEAR(diagnose_run(made)[0].impact_ns, kMs, 1);
  made.host.counters[0].mean = 0.02;
  EXPECT_THAT(causes(made), IsEmpty());
  made.host.counters[0] = {"host.cpu.iowait", "fraction", 0.1, 10};  // nobody wanted these CPUs
  EXPECT_THAT(causes(made), IsEmpty());
}

TEST(OneRun, StoppedAndSyncing) {
  Recording made = run(5, 0, 5);
  add_state(made, "stopped", 5);
  EXPECT_THAT(causes(made), ElementsAre("process_stopped"));
  made = run(5, 0, 5);
  add_state(made, "blocked in fsync", 4);
  EXPECT_THAT(causes(made), ElementsAre("disk_io"));
  made = run(10, 0, 0);
  add_state(made, "blocked in fsync", 4);  // a thread beside the steps
  EXPECT_THAT(causes(made), IsEmpty());
}

TEST(OneRun, AnEndInWhichItMayHang) {
  Recording made = run(10, 0, 0);
  model::LongEnd& end = made.host.long_end.emplace();
  end.thread.recorded = 4e9;
  end.waits_in = "futex";
  EXPECT_THAT(causes(made), ElementsAre("hang/wait"));
  end.for_work = true;
  EXPECT_THAT(causes(made), IsEmpty());
}

/// Of the device of rank 3, whose kernels take longer.
Recording with_a_low_clock() {
  Recording made = four_ranks(1.3);
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    model::ResourceSeries series;
    series.metric = made.profile.texts.intern("GPU clock");
    series.device = made.profile.texts.intern("GPU 0");
    series.rank = rank;
    series.busy_mean = rank == 3 ? 1e9 : 1.4e9;
    made.profile.series.push_back(series);
  }
  return made;
}

TEST(OneRun, ADeviceSlowerThanTheOthers) {
  EXPECT_THAT(causes(four_ranks(1.3)), ElementsAre("gpu_contention/unknown in GPU 0 of rank 3"));
  EXPECT_THAT(causes(four_ranks(1.02)), IsEmpty());
  EXPECT_THAT(causes(four_ranks(1.3, 1.3)), IsEmpty()) << "it does more";
  Recording made = with_a_low_clock();
  EXPECT_THAT(causes(made), ElementsAre("gpu_clock_drop/unknown in GPU 0 of rank 3"));
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    model::ResourceSeries series;
    series.metric = made.profile.texts.intern("gpu_temp");
    series.device = made.profile.texts.intern("GPU 0");
    series.rank = rank;
    series.busy_mean = rank == 3 ? 91 : 70;
    made.profile.series.push_back(series);
  }
  EXPECT_THAT(causes(made), ElementsAre("gpu_clock_drop/throttle_thermal in GPU 0 of rank 3"));
  made.profile.series[4].busy_mean = made.profile.series[5].busy_mean = 90;
  made.profile.series[6].busy_mean = 90;
  EXPECT_THAT(causes(made), ElementsAre("gpu_clock_drop/unknown in GPU 0 of rank 3")) << "all are as hot";
}

TEST(OneRun, MemoryThatIsShort) {
  for (const auto& [counter, detail] :
       {std::pair("host.swap.in", "swap"), std::pair("host.memory.reclaim.stalls", "reclaim"),
        std::pair("target.faults.major", "major_faults")}) {
    Recording made = run(5, 0, 5);
    made.host.counters.push_back({counter, "count/s", 5e6, 10});
    EXPECT_THAT(causes(made), IsEmpty()) << "nobody waits for pages";
    add_state(made, "blocked in page_fault", 4);
    EXPECT_THAT(causes(made), ElementsAre(std::string("host_memory_pressure/") + detail));
  }
}

TEST(OneRun, TheRankThatHoldsTheOthersUp) {
  Recording made = four_ranks(1.3);
  for (std::int32_t rank = 0; rank < 4; ++rank)
    made.collectives.push_back({.rank = rank, .cycles = 1, .calls = 4, .held_up_ns = rank == 3 ? 2 * kMs : 1e4});
  EXPECT_THAT(causes(made), ElementsAre("straggler/gpu_contention in rank 3"));
  for (auto& rank : made.collectives) rank.held_up_ns = kMs;  // in turns
  EXPECT_THAT(causes(made), testing::Not(testing::Contains(HasSubstr("straggler"))));
}

TEST(OneRun, InputAndGarbageAreNoneWhileTheDeviceWorks) {
  const char* loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  for (const char* name : {loader, "gc generation 2"}) {
    for (const double busy : {2.0, 9.9}) {
      Recording made = run(10, 0, 0);
      add_rank(made, 0);
      add_use(made, 0, "gemm", "gpu_compute", "GPU 0", busy);
      add_use(made, 0, name, "python", "Host", 5);
      EXPECT_EQ(causes(made).size(), busy < 5 ? 1U : 0U) << name << ' ' << busy;
    }
  }
}

/// Against the first cause.
std::vector<std::string> against(const Recording& made) {
  const auto verdicts = diagnose_run(made);
  return verdicts.empty() ? std::vector<std::string>{"no cause"} : verdicts.front().against;
}

TEST(OneRun, WhatSpeaksAgainstAQuotaOrTheHypervisor) {
  Recording made = run(7, 3, 0);
  add_counter(made, "cgroup.cpu.throttled_time", 6e8);
  EXPECT_THAT(against(made), ElementsAre(HasSubstr("There is no baseline")));
  made.host.beside["stress-ng-cpu"] = 0.4;
  EXPECT_THAT(against(made), ElementsAre("Programs beside it took 0.4 CPUs, too"));
  made = run(9, 0.1, 0.9);
  add_counter(made, "host.cpu.steal", 0.1);
  EXPECT_THAT(against(made), ElementsAre(HasSubstr("all CPUs of the machine")));
}

TEST(OneRun, WhatSpeaksAgainstASignal) {
  Recording made = run(5, 0, 5);
  add_state(made, "stopped", 5);
  EXPECT_THAT(against(made), ElementsAre(HasSubstr("Who sent the signal was not recorded")));
  made = run(9, 0, 1);
  add_state(made, "stopped", 5);  // of other threads
  EXPECT_THAT(against(made), ElementsAre("The thread of the steps was blocked for 1.000ms per step only"));
}

TEST(OneRun, WhatSpeaksAgainstMemoryThatIsShort) {
  for (const auto& [counter, text] : {std::pair("host.swap.in", "for the whole machine"),
                                      std::pair("host.memory.reclaim.stalls", "for the whole machine"),
                                      std::pair("target.faults.major", "read for the first time")}) {
    Recording made = run(5, 0, 5);
    add_counter(made, counter, 5e6);
    add_state(made, "blocked in page_fault", 4);
    EXPECT_THAT(against(made), ElementsAre(HasSubstr(text))) << counter;
  }
}

TEST(OneRun, WhatSpeaksAgainstGarbageAndInput) {
  for (const auto& [name, text] : {std::pair("gc generation 2", "it may always collect as much"),
                                   std::pair("DataLoader.__next__", "What it waited for was not seen")}) {
    Recording made = run(10, 0, 0);
    add_rank(made, 0);
    add_use(made, 0, name, "python", "Host", 5);
    EXPECT_THAT(against(made), ElementsAre(HasSubstr(text))) << name;
  }
}

TEST(OneRun, WhatSpeaksAgainstALateRank) {
  const auto late = [](double times) {
    Recording made = four_ranks(times);
    for (std::int32_t rank = 0; rank < 4; ++rank)
      made.collectives.push_back({.rank = rank, .cycles = 1, .calls = 4, .held_up_ns = rank == 3 ? 2 * kMs : 1e4});
    return made;
  };
  ASSERT_THAT(causes(late(1)), ElementsAre("straggler in rank 3"));
  EXPECT_THAT(against(late(1)), ElementsAre(HasSubstr("No cause of its own was found")));
  EXPECT_THAT(against(late(1.3)), ElementsAre(HasSubstr("No clock was recorded"))) << "those of its own cause";
}

TEST(OneRun, WhatSpeaksAgainstALowClock) {
  Recording made = with_a_low_clock();
  EXPECT_THAT(against(made), ElementsAre("What lowers its clock was not recorded"));
}

TEST(OneRun, PartsOfAPlaceSumToTheStep) {
  Recording made = run(6, 3, 1);
  add_rank(made, 0);
  add_use(made, 0, "gemm", "gpu_compute", "GPU 0", 4);
  double device = 0;
  double thread = 0;
  for (const model::StepPart& part : step_parts(made)) (part.where == "GPU 0" ? device : thread) += part.time_ns;
  EXPECT_NEAR(device, 10 * kMs, 1);
  EXPECT_NEAR(thread, 10 * kMs, 1);
}

/// Of one device in the step of a rank.
void add_window(Recording& made, std::int32_t rank, double ms) {
  model::LedgerWindow window;
  window.cycle = static_cast<std::uint32_t>(rank);
  window.device = 0;
  window.length = static_cast<Ns>(ms * kMs);
  made.profile.ledger.windows.push_back(window);
}

TEST(OneRun, AStepOfADeviceIsItsOwnWhereTheHostRunsAhead) {
  Recording made = run(6, 3, 1);
  add_rank(made, 0);
  add_rank(made, 0);  // a step that is cut: nothing tells how long it was
  add_use(made, 0, "gemm", "gpu_compute", "GPU 0", 10.5);
  add_use(made, 0, "Memset", "gpu_memset", "GPU 0", 0.5);
  add_use(made, 1, "gemm", "gpu_compute", "GPU 0", 10.5);
  add_window(made, 0, 12);
  double time = 0;
  double share = 0;
  for (const model::StepPart& part : step_parts(made)) {
    if (part.where != "GPU 0") continue;
    if (part.what == "idle") {
      EXPECT_NEAR(part.time_ns, kMs, 1);
    }
    time += part.time_ns;
    share += part.share;
  }
  EXPECT_NEAR(time, 12 * kMs, 1);
  EXPECT_NEAR(share, 1, 1e-9);
}

TEST(OneRun, InputOfOneRankIsHeldAgainstItsOwnDevice) {
  const char* loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  const auto made_with = [&](double of_others) {
    Recording made = run(10, 0, 0);
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      add_rank(made, rank);
      add_use(made, rank, "gemm", "gpu_compute", "GPU 0", 5);
      if (rank != 1) add_use(made, rank, "ncclDevKernel_AllReduce", "gpu_comm", "GPU 0", 5);
      add_use(made, rank, loader, "python", "Host", rank == 1 ? 4 : of_others);
    }
    return made;
  };
  Recording made = made_with(0.1);
  ASSERT_EQ(causes(made).size(), 1U);
  model::Verdict verdict = diagnose_run(made)[0];
  EXPECT_EQ(verdict.detail, "data_input");
  EXPECT_EQ(verdict.rank, 1);
  EXPECT_NEAR(verdict.impact_ns, 4 * kMs, 1);
  EXPECT_THAT(verdict.evidence, testing::Contains(HasSubstr("on rank 1")));
  for (std::int32_t rank = 0; rank < 4; ++rank)
    made.collectives.push_back({.rank = rank, .cycles = 1, .calls = 4, .held_up_ns = rank == 1 ? 4 * kMs : 1e4});
  verdict = diagnose_run(made)[0];
  EXPECT_THAT(causes(made), ElementsAre("straggler/host_bound in rank 1"));
  EXPECT_THAT(verdict.evidence, testing::Contains(HasSubstr("waits for its input in enumerate(DataLoader)")));
}

TEST(OneRun, WhatAWorkerLoadsBesideTheStepsIsNoPartOfThem) {
  Recording made = run(10, 0, 0);
  add_rank(made, 0);
  add_use(made, 0, "DataLoader.__next__", "python", "Host", 4);
  add_rank(made, 0);
  add_use(made, 0, "_MapDatasetFetcher.fetch", "python", "Host", 3);
  made.profile.functions.back().process = static_cast<std::uint32_t>(made.profile.processes.size() - 1);
  made.profile.processes.back().pid = 77;
  made.profile.cycles.pop_back();
  for (model::ProfileCycle& cycle : made.profile.cycles) cycle.pid = made.profile.processes.front().pid;
  ASSERT_EQ(causes(made).size(), 1U);
  EXPECT_NEAR(diagnose_run(made)[0].impact_ns, 4 * kMs, 1);
  for (model::ProfileCycle& cycle : made.profile.cycles) cycle.pid = -1;
  EXPECT_NEAR(diagnose_run(made)[0].impact_ns, 7 * kMs, 1) << "nobody knows whose the steps are";
}

TEST(OneRun, InputOfAllRanksIsNoRanks) {
  Recording made = run(10, 0, 0);
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    add_rank(made, rank);
    add_use(made, rank, "gemm", "gpu_compute", "GPU 0", 5);
    add_use(made, rank, "DataLoader.__next__", "python", "Host", 4);
  }
  ASSERT_EQ(causes(made).size(), 1U);
  EXPECT_EQ(diagnose_run(made)[0].rank, -1);
}

TEST(OneRun, WhereNothingRanThreadsThatWaitForEachOtherHang) {
  Recording made;
  made.host.asleep = model::Asleep{"futex (12), epoll_wait (1)", false};
  EXPECT_THAT(causes(made), IsEmpty()) << "idle is no cause";
  made.host.asleep = model::Asleep{"futex (2)", true};
  const auto verdicts = diagnose_run(made);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause + "/" + verdicts[0].detail, "hang/wait");
  EXPECT_EQ(verdicts[0].state, model::VerdictState::latent);
  EXPECT_THAT(verdicts[0].evidence[0], HasSubstr("Every thread waits for another"));
  EXPECT_THAT(verdicts[0].evidence[0], HasSubstr("futex (2)"));
  EXPECT_THAT(verdicts[0].against, ElementsAre(HasSubstr("timer")));
}

}  // namespace
}  // namespace culprit::diagnose
