// What profile tables are taken for.
#include "library/table_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace culprit::library {
namespace {

struct Row {
  std::string function;
  std::string device;
  std::string kind;
  double us = 0;
};

/// Twelve cycles of 10 ms of one process, which differ a little, in which these ran, ten calls each.
deepdive::Profile table(const std::vector<Row>& rows, double cycle_us = 10000) {
  deepdive::Profile profile;
  profile.texts.intern("");
  profile.processes.push_back({1, profile.texts.intern("host")});
  for (std::uint32_t c = 0; c < 12; ++c) {
    const double near = 1 + 0.002 * (c % 3);
    profile.cycles.push_back({c, profile.texts.intern("step"), c * cycle_us, cycle_us * near});
    for (const Row& row : rows) {
      deepdive::FunctionUse use;
      use.cycle = c;
      use.function = use.short_name = profile.texts.intern(row.function);
      use.device = profile.texts.intern(row.device);
      use.kind = profile.texts.intern(row.kind);
      use.count = 10;
      use.duration_us = row.us * near;
      profile.functions.push_back(use);
    }
  }
  return profile;
}

/// Without what devices did in the cycles before this one: the recorder of devices began late.
deepdive::Profile with_late_devices(deepdive::Profile profile, std::uint32_t first) {
  std::erase_if(profile.functions, [&](const deepdive::FunctionUse& use) {
    return profile.texts[use.device] != "Host" && use.cycle < first;
  });
  return profile;
}

std::vector<std::string> causes(const deepdive::Profile& base, const deepdive::Profile& candidate,
                                bool anchors_differ = false) {
  deepdive::ProcessPair pair;
  pair.base_pid = pair.candidate_pid = 1;
  std::vector<std::string> names;
  for (const auto& v : comparison_of_tables(base, candidate, pair, anchors_differ, 0.03).verdicts)
    names.push_back(v.cause + (v.detail.empty() ? "" : "/" + v.detail) + (v.where.empty() ? "" : " in " + v.where));
  return names;
}

TEST(TableVerdicts, TheOnlyDeviceOfEachSideIsTheSame) {
  const std::vector<Row> on_7 = {{"gemm", "GPU 7", "gpu_compute", 2000}, {"norm", "GPU 7", "gpu_compute", 1000}};
  const std::vector<Row> on_0 = {{"gemm", "GPU 0", "gpu_compute", 6000}, {"norm", "GPU 0", "gpu_compute", 1000}};
  EXPECT_THAT(causes(table(on_7), table(on_0, 14000)), testing::ElementsAre("kernel_regression in gemm"));
  EXPECT_THAT(
      causes(table(on_7), table({{"gemm", "GPU 0", "gpu_compute", 2000}, {"norm", "GPU 0", "gpu_compute", 1000}})),
      testing::IsEmpty());
}

TEST(TableVerdicts, CyclesWithoutItsRowsTellNothingOfADevice) {
  const Row host = {"oncpu", "Host", "oncpu", 9000};
  const std::vector<Row> before = {
      host, {"gemm", "GPU 0", "gpu_compute", 2000}, {"norm", "GPU 0", "gpu_compute", 1000}};
  const std::vector<Row> after = {host, {"gemm", "GPU 0", "gpu_compute", 6000}, {"norm", "GPU 0", "gpu_compute", 1000}};
  for (const std::uint32_t late : {3U, 7U})
    EXPECT_THAT(causes(with_late_devices(table(before), late), with_late_devices(table(after, 14000), late)),
                testing::ElementsAre("kernel_regression in gemm"))
        << late;
  deepdive::ProcessPair pair;
  pair.base_pid = pair.candidate_pid = 1;
  const auto result = comparison_of_tables(table(before), with_late_devices(table(before), 6), pair, false, 0.03);
  for (const model::FunctionFinding& f : result.functions)
    EXPECT_NEAR(f.time_ns[1], f.time_ns[0], 0.001 * f.time_ns[0]) << result.texts[f.function];
  EXPECT_THAT(causes(table(before), with_late_devices(table(before), 6)), testing::IsEmpty());
}

/// What is said of the devices' time, or nothing.
std::string device_time(const deepdive::Profile& base, const deepdive::Profile& candidate,
                        bool anchors_differ = false) {
  deepdive::ProcessPair pair;
  pair.base_pid = pair.candidate_pid = 1;
  for (const std::string& note : comparison_of_tables(base, candidate, pair, anchors_differ, 0.03).notes)
    if (note.starts_with("GPU time")) return note;
  return {};
}

TEST(TableVerdicts, WhatDevicesDidPerStepIsTold) {
  const Row host = {"oncpu", "Host", "oncpu", 9000};
  const auto of = [&](double gemm_us) {
    return std::vector<Row>{host, {"gemm", "GPU 0", "gpu_compute", gemm_us}, {"copy", "GPU 0", "gpu_memcpy_h2d", 1000}};
  };
  EXPECT_EQ(device_time(table(of(2000)), table(of(2030), 14000)),
            "GPU time per step unchanged: 3.006ms -> 3.036ms (+1.0 %)");
  EXPECT_EQ(device_time(with_late_devices(table(of(2000)), 6), with_late_devices(table(of(5000), 14000), 3)),
            "GPU time per step: 3.006ms -> 6.012ms (+100.0 %)");
  EXPECT_EQ(device_time(table(of(2000)), table({host})), "") << "devices of one side alone";
  EXPECT_EQ(device_time(table(of(2000)), table(of(2000)), true), "") << "a step is another thing";
}

TEST(TableVerdicts, FewCyclesTellOfAKernelOnlyWhereTheyLieFarApart) {
  const auto late = [](double gemm_us, double cycle_us) {
    return with_late_devices(
        table({{"gemm", "GPU 0", "gpu_compute", gemm_us}, {"norm", "GPU 0", "gpu_compute", 1000}}, cycle_us), 7);
  };
  EXPECT_THAT(causes(late(2000, 10000), late(6000, 14000)), testing::ElementsAre("kernel_regression in gemm"));
  EXPECT_THAT(causes(late(2000, 10000), late(2600, 14000)), testing::ElementsAre("unknown"));
}

TEST(TableVerdicts, AKernelWhoseCallsTakeAnotherTimeHasChangedWhereItsCyclesAreUnlike) {
  const auto status = [](double times) {
    std::array<deepdive::Profile, 2> sides;
    for (std::size_t s = 0; s < 2; ++s) {
      sides[s] = table({{"gemm", "GPU 0", "gpu_compute", s == 0 ? 2000 : 2000 * times}});
      for (deepdive::FunctionUse& use : sides[s].functions)
        if (use.cycle % 7 == 1) {  // a tenth of the calls
          use.count = 1;
          use.duration_us /= 10;
        }
    }
    deepdive::ProcessPair pair;
    pair.base_pid = pair.candidate_pid = 1;
    const auto result = comparison_of_tables(sides[0], sides[1], pair, false, 0.03);
    EXPECT_EQ(result.functions.size(), 1U);
    return std::pair(result.functions[0].status, result.functions[0].rests_on);
  };
  EXPECT_EQ(status(1.3), std::pair(model::FunctionStatus::changed, model::RestsOn::per_call));
  EXPECT_EQ(status(1 / 1.3), std::pair(model::FunctionStatus::changed, model::RestsOn::per_call));
  for (const double little : {1.004, 1.01, 1.04})
    EXPECT_EQ(status(little).first, model::FunctionStatus::unknown) << "surely, and by too little";
  EXPECT_EQ(status(1).first, model::FunctionStatus::unknown);
}

TEST(TableVerdicts, AFunctionOfTheProgramThatMakesInputIsNamed) {
  const auto with = [](double loader_us, double forward_us, double cycle_us) {
    return table({{"oncpu", "Host", "oncpu", 9000},
                  {"runq", "Host", "runq", 100},
                  {"_BaseDataLoaderIter.__next__", "Host", "python", loader_us},
                  {"forward", "Host", "python", forward_us},
                  {"cudaStreamSynchronize", "Host", "cpu_sync", forward_us}},
                 cycle_us);
  };
  EXPECT_THAT(causes(with(300, 5000, 10000), with(4300, 5000, 14000)),
              testing::ElementsAre("host_bound/data_input in _BaseDataLoaderIter.__next__"));
  EXPECT_THAT(causes(with(300, 5000, 10000), with(300, 5000, 14000)), testing::ElementsAre("unknown"));
}

TEST(TableVerdicts, AWaitingRankIsNoSlowKernel) {
  const std::string reduce = "void sglang::cross_device_reduce_2stage<half, 4>(sglang::RankData*, int)";
  const std::vector<Row> before = {{"gemm", "GPU 0", "gpu_compute", 2000}, {reduce, "GPU 0", "gpu_compute", 1000}};
  const std::vector<Row> after = {{"gemm", "GPU 0", "gpu_compute", 2000}, {reduce, "GPU 0", "gpu_compute", 5000}};
  EXPECT_THAT(causes(table(before), table(after, 14000)), testing::ElementsAre("unknown"));
}

TEST(TableVerdicts, BytesOfLinksAreAHundredTimesAsMany) {
  const auto with = [](double reduce_us, double cycle_us, double hundredths) {
    deepdive::Profile profile =
        table({{"gemm", "GPU 0", "gpu_compute", 2000},
               {"void vllm::cross_device_reduce_1stage<half, 2>()", "GPU 0", "gpu_compute", reduce_us}},
              cycle_us);
    for (std::uint32_t use = 0; use < profile.functions.size(); ++use) {
      deepdive::ResourceUse resource;
      resource.use = use;
      resource.metric = profile.texts.intern("gpu_link_transmit");
      resource.mu_pct = hundredths;
      profile.resources.push_back(resource);
    }
    return profile;
  };
  EXPECT_THAT(causes(with(1000, 10000, 0), with(5000, 14000, 1e12)),
              testing::ElementsAre("interconnect_contention/nvlink in GPU 0"));
  // A megabyte a second.
  EXPECT_THAT(causes(with(1000, 10000, 0), with(5000, 14000, 1e8)), testing::ElementsAre("unknown"));
}

TEST(TableVerdicts, CopiesThatTakeLongerAreTheLink) {
  const std::vector<Row> before = {{"gemm", "GPU 0", "gpu_compute", 2000},
                                   {"Memcpy HtoD", "GPU 0", "gpu_memcpy_h2d", 1000}};
  const std::vector<Row> after = {{"gemm", "GPU 0", "gpu_compute", 2000},
                                  {"Memcpy HtoD", "GPU 0", "gpu_memcpy_h2d", 5000}};
  EXPECT_THAT(causes(table(before), table(after, 14000)),
              testing::ElementsAre("interconnect_contention/pcie in GPU 0"));
}

TEST(TableVerdicts, WhereACycleIsAnotherThingNoKernelIsNew) {
  const std::vector<Row> steps = {{"gemm", "GPU 0", "gpu_compute", 2000}, {"sample", "GPU 0", "gpu_compute", 1000}};
  const std::vector<Row> layers = {{"gemm", "GPU 0", "gpu_compute", 60}};
  EXPECT_THAT(causes(table(steps), table(layers, 300), true), testing::IsEmpty());
  EXPECT_THAT(causes(table(layers, 300), table(steps), true), testing::IsEmpty());
}

TEST(TableVerdicts, WhereNothingIsCommonNoFunctionIsNewOrGone) {
  const Row host = {"oncpu", "Host", "oncpu", 9000};
  const Row copy = {"copy", "GPU 0", "gpu_memcpy_h2d", 1000};
  const auto compared = [](const std::vector<Row>& base, const std::vector<Row>& candidate) {
    deepdive::ProcessPair pair;
    pair.base_pid = pair.candidate_pid = 1;
    return comparison_of_tables(table(base), table(candidate), pair, false, 0.03);
  };
  const auto one_sided = [](const model::RunComparison& result) {
    return std::ranges::count_if(result.functions, [](const model::FunctionFinding& f) {
      return f.status == model::FunctionStatus::added || f.status == model::FunctionStatus::gone;
    });
  };
  const auto is_said = testing::Contains(testing::HasSubstr("no function in common"));
  const Row gemm = {"gemm", "GPU 0", "gpu_compute", 2000};
  const Row other = {"conv", "GPU 0", "gpu_compute", 2000};
  const auto unlike = compared({host, gemm}, {host, other});
  EXPECT_THAT(unlike.notes, is_said);
  EXPECT_EQ(one_sided(unlike), 0);
  const auto alike = compared({host, gemm, copy}, {host, other, copy});
  EXPECT_THAT(alike.notes, testing::Not(is_said));
  EXPECT_EQ(one_sided(alike), 2);
  EXPECT_THAT(compared({host}, {host}).notes, testing::Not(is_said)) << "threads alone";
}

TEST(TableVerdicts, WhereACycleIsAnotherThingACopyIsOfOtherBytes) {
  const Row gemm = {"gemm", "GPU 0", "gpu_compute", 2000};
  const std::vector<Row> few = {gemm, {"Memcpy HtoD", "GPU 0", "gpu_memcpy_h2d", 1000}};
  const std::vector<Row> many = {gemm, {"Memcpy HtoD", "GPU 0", "gpu_memcpy_h2d", 5000}};
  EXPECT_THAT(causes(table(few), table(many), true), testing::IsEmpty());
}

/// With a mean of the clock of the CPUs, in percent of the highest.
deepdive::Profile with_clock(deepdive::Profile profile, double percent) {
  for (std::uint32_t use = 0; use < profile.functions.size(); ++use) {
    deepdive::ResourceUse resource;
    resource.use = use;
    resource.metric = profile.texts.intern("cpu_frequency");
    resource.mu_pct = percent;
    profile.resources.push_back(resource);
  }
  return profile;
}

model::RunComparison compared(const deepdive::Profile& base, const deepdive::Profile& candidate) {
  deepdive::ProcessPair pair;
  pair.base_pid = pair.candidate_pid = 1;
  return comparison_of_tables(base, candidate, pair, false, 0.03);
}

TEST(TableVerdicts, ACounterMovedByAQuarterAndCausesRestOnLess) {
  const auto at = [](double on_cpu_us, double cycle_us, double percent) {
    return with_clock(table({{"oncpu", "Host", "oncpu", on_cpu_us}, {"runq", "Host", "runq", 100}}, cycle_us), percent);
  };
  const deepdive::Profile base = at(9000, 10000, 87.5);
  EXPECT_THAT(compared(base, at(9000, 10000, 87.49)).host->counters, testing::IsEmpty());
  EXPECT_THAT(compared(base, at(9000, 10000, 66)).host->counters, testing::IsEmpty());
  for (const double far : {65.0, 120.0}) {
    const model::RunComparison moved = compared(base, at(9000, 10000, far));
    ASSERT_EQ(moved.host->counters.size(), 1U) << far;
    EXPECT_EQ(moved.host->counters.front().what, "host.cpu.frequency");
    EXPECT_NEAR(moved.host->counters.front().value[1].value_or(0), far, 1e-9);
  }
  const model::RunComparison slower = compared(base, at(13000, 14000, 77));
  EXPECT_THAT(slower.host->counters, testing::IsEmpty());
  ASSERT_EQ(slower.verdicts.size(), 1U);
  EXPECT_EQ(slower.verdicts.front().cause, "cpu_frequency_drop");
}

TEST(TableVerdicts, CallsThatHardlyDifferHaveNoRow) {
  const auto with = [](double read_us, double write_us, double close_us) {
    return table({{"oncpu", "Host", "oncpu", 5000},
                  {"close", "Host", "disk_read_and_write", close_us},
                  {"read", "Host", "disk_read_and_write", read_us},
                  {"write", "Host", "disk_read_and_write", write_us}});
  };
  // Half a percent of a cycle is 50 us.
  const model::RunComparison result = compared(with(2, 1000, 200), with(40, 1500, 100));
  std::vector<std::string> rows;
  for (const model::HostChange& state : result.host->states) rows.push_back(state.what);
  EXPECT_THAT(rows, testing::ElementsAre("period", "blocked in write", "blocked in close")) << "the largest first";
}

TEST(TableVerdicts, TheCyclesOfATableAreGiven) {
  const std::vector<Row> rows = {{"oncpu", "Host", "oncpu", 9000}};
  const model::RunComparison result = compared(table(rows), table(rows));
  for (const model::ComparedSide& side : result.sides) EXPECT_EQ(side.period_confidence, 1);
}

}  // namespace
}  // namespace culprit::library
