// `culprit diff` of recordings, as a user runs it: what threads waited for in their steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/units.h"
#include "formats/perfetto/writer.h"
#include "support/program.h"
#include "support/temp_file.h"

namespace culprit::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::run_program;

/// Steps of 50 ms of one thread, in each of which it waits in a lock and then for its CPU.
struct RecordingPlan {
  Ns waits = 10 * kMs;  ///< give or take 2 %
  Ns queued = 2 * kMs;  ///< while a program that is not recorded has the CPU
  std::string_view waker = "loader-1";
  int seed = 0;    ///< of what varies
  int reads = -1;  ///< of 4 KiB and 100 us, by the program itself in each step; -1: nobody looked at disks
};

class DiffRecordings : public testing::Test {
 protected:
  std::string record(std::string_view name, const RecordingPlan& plan) const {
    constexpr int kSteps = 120;
    constexpr Ns kStep = 50 * kMs;
    const std::string path = dir.path(name);
    auto writer = perfetto::Writer::create(path);
    EXPECT_TRUE(writer);
    writer->metadata("record.version", "1");
    writer->metadata("sched.shortest_blocked_ns", "10000");
    writer->process({.pid = 100, .name = "trainer"});
    writer->thread(100, 100, "trainer");
    const perfetto::TrackUuid marks = writer->thread_track(100, 100);
    const perfetto::TrackUuid blocked = writer->named_track("blocked", 100, 100);
    const auto change = [&](Ns at, int from, int to, std::int64_t state) {
      const auto text = [](int tid) { return tid == 100 ? "trainer" : tid == 0 ? "swapper" : "rival-3"; };
      writer->sched_switch({.at = at,
                            .prev_tid = from,
                            .next_tid = to,
                            .prev_state = state,
                            .prev_name = text(from),
                            .next_name = text(to)});
    };
    change(kMs, 0, 100, 0);
    const auto ask = [&](perfetto::TrackUuid track, Ns at, std::int64_t count) {
      writer->instant(track, at, "read", perfetto::kDiskTotals,
                      std::array{perfetto::Argument{"count", count}, perfetto::Argument{"total_ns", count * 100'000},
                                 perfetto::Argument{"bytes", count * 4096}});
    };
    const perfetto::TrackUuid own = writer->named_track("disk vda totals", 100);
    const perfetto::TrackUuid of_others = writer->named_track("disk vda totals");
    for (int i = 0; i < kSteps; ++i) {
      const Ns begin = kStep * (i + 1);
      const Ns waits = plan.waits + plan.waits / 100 * ((i * 7 + plan.seed) % 5 - 2);
      const Ns sleeps = begin + 5 * kMs;
      const Ns woken = sleeps + waits;
      writer->slice(marks, begin, begin + kStep - 1000, "ProfilerStep#" + std::to_string(i), "nvtx");
      if (plan.reads > 0) ask(own, sleeps, plan.reads);
      if (plan.reads >= 0) ask(of_others, sleeps, 7);
      change(sleeps, 100, 0, 1);
      change(woken - 1000, 0, 55, 0);
      writer->sched_waking({.at = woken, .waker_tid = 77, .tid = 100, .name = "trainer"});
      change(woken + plan.queued, 55, 100, 0);
      writer->slice(blocked, sleeps, woken, "blocked:futex", "blocked",
                    std::array{perfetto::Argument{"waker", plan.waker},
                               perfetto::Argument{"stack", std::string_view("main;get (queue.py:12)")}});
    }
    change(kStep * (kSteps + 2), 100, 0, 1);
    EXPECT_TRUE(writer->close());
    return path;
  }

  static json off_cpu(const std::string& base, const std::string& candidate) {
    const auto result = run_program("diff " + base + " " + candidate + " --json");
    EXPECT_EQ(result.code, 0);
    return json::parse(result.output)["off_cpu"];
  }

  const culprit::test::TempDir dir;
};

TEST_F(DiffRecordings, WhatAStepWaitsForAndBehindWhomIsTold) {
  const std::string base = record("base.pftrace", {});
  const std::string slow = record("slow.pftrace", {20 * kMs, 6 * kMs, "server", 1});
  const json found = off_cpu(base, slow);
  EXPECT_EQ(found["per"], "step");
  ASSERT_EQ(found["functions"].size(), 1U) << found;
  const json& function = found["functions"][0];
  EXPECT_EQ(function["name"], "get (queue.py)");
  EXPECT_EQ(function["call"], "futex");
  EXPECT_EQ(function["changed"], "longer");
  EXPECT_NEAR(function["ns_per_unit"][0], 10e6, 0.3e6);
  EXPECT_NEAR(function["ns_per_unit"][1], 20e6, 0.6e6);
  EXPECT_NEAR(function["per_unit"][1], 1, 0.03);
  ASSERT_EQ(found["wakers"].size(), 2U) << found;
  EXPECT_EQ(found["wakers"][0]["name"], "server") << "the largest change of time first";
  EXPECT_EQ(found["wakers"][0]["changed"], "new");
  EXPECT_EQ(found["wakers"][1]["name"], "loader-N");
  EXPECT_EQ(found["wakers"][1]["changed"], "gone");
  ASSERT_EQ(found["rivals"].size(), 1U) << found;
  EXPECT_EQ(found["rivals"][0]["name"], "rival-N");
  EXPECT_NEAR(found["rivals"][0]["ns_per_unit"][0], 2e6, 0.1e6);
  EXPECT_NEAR(found["rivals"][0]["ns_per_unit"][1], 6e6, 0.3e6);
  const std::string pair = "diff " + base + " " + slow;
  EXPECT_THAT(run_program(pair).output, AllOf(HasSubstr("Where threads were blocked"), HasSubstr("get (queue.py)"),
                                              HasSubstr("Who ended waits"), HasSubstr("Who had the CPUs")));
  EXPECT_THAT(run_program(pair + " --format markdown").output, HasSubstr("rival-N"));
}

TEST_F(DiffRecordings, TheSameIsSilent) {
  const json found = off_cpu(record("a.pftrace", {}), record("b.pftrace", {10 * kMs, 2 * kMs, "loader-2", 2}));
  EXPECT_EQ(found["per"], "step");
  EXPECT_THAT(found["functions"], IsEmpty());
  EXPECT_THAT(found["wakers"], IsEmpty());
  EXPECT_THAT(found["rivals"], IsEmpty());
}

TEST_F(DiffRecordings, WhatAStepAsksOfDisksIsTheProgramsOwn) {
  const std::string base = record("few.pftrace", {.reads = 2});
  const std::string pair = "diff " + base + " " + record("many.pftrace", {.seed = 1, .reads = 6});
  const json found = json::parse(run_program(pair + " --json").output)["disk_requests"];
  EXPECT_EQ(found["per"], "step");
  ASSERT_EQ(found["requests"].size(), 1U) << found;
  const json& reads = found["requests"][0];
  EXPECT_EQ(reads["name"], "vda read");
  EXPECT_NEAR(reads["per_unit"][0], 2, 0.1);
  EXPECT_NEAR(reads["per_unit"][1], 6, 0.3);
  EXPECT_NEAR(reads["bytes_per_unit"][1], 6 * 4096, 0.3 * 4096);
  EXPECT_EQ(reads["mean_ns"], json::array({100e3, 100e3}));
  EXPECT_THAT(run_program(pair).output, HasSubstr("Disk requests of the program for one step"));
  EXPECT_THAT(run_program("diff " + record("none.pftrace", {.reads = 0}) + " " +
                          record("other.pftrace", {.seed = 1, .reads = 0}))
                  .output,
              AllOf(HasSubstr("Requests to the disks of the machine"), Not(HasSubstr("Disk requests of the program"))));
}

}  // namespace
}  // namespace culprit::cli
