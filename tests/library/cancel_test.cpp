// Long calls end soon when their caller wants it, and tell how far they are.
#include <culprit/compare.h>
#include <culprit/cycles.h>
#include <culprit/events.h>
#include <culprit/kernels.h>
#include <culprit/load.h>
#include <culprit/profile.h>
#include <culprit/top.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stop_token>
#include <string>

#include "library/write_steps.h"
#include "support/temp_file.h"

namespace culprit {
namespace {

using test::StepsFile;

/// Asks for the end when `step` is reported for the `report`th time, and counts the reports that follow.
struct Stopper {
  Stopper(std::string step, int report) : step_(std::move(step)), left_(report) {}
  Task task() {
    Task task;
    task.stop = source_.get_token();
    task.progress = [this](std::string_view step, std::uint64_t, std::uint64_t) {
      if (source_.stop_requested()) ++after;
      if (step == step_ && --left_ == 0) source_.request_stop();
    };
    return task;
  }
  int after = 0;

 private:
  std::string step_;
  int left_;
  std::stop_source source_;
};

template <class T>
void expect_cancelled(const Result<T>& result) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::cancelled);
}

/// One of each.
Run run_with_samples_and_marks() {
  const test::TempDir folder;
  return *load_run({folder.file("events.json", R"({"traceEvents":[
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},
    {"ph":"C","name":"load","pid":1,"ts":0,"args":{"value":1}},
    {"ph":"i","s":"t","name":"mark","pid":1,"tid":1,"ts":0}]})")});
}

TEST(Cancel, WhatWasCancelledBeforehandDoesNothing) {
  const StepsFile file(20, 100);
  std::stop_source source;
  source.request_stop();
  const Task task{source.get_token(), {}};
  expect_cancelled(load_run({file.path()}, {.task = task}));
  expect_cancelled(load_recordings({file.path()}, {.task = task}));
  expect_cancelled(kernels_of({file.path()}, {.task = task}));
  const auto run = load_run({file.path()});
  ASSERT_TRUE(run);
  expect_cancelled(find_cycles(*run, {.task = task}));
  expect_cancelled(profile_run(*run, {.task = task}));
  expect_cancelled(top(*run, {.classes = {"all"}, .task = task}));
  expect_cancelled(kernels_of(*run, task));
  EXPECT_TRUE(slices(*run, task).columns.empty());
  const auto events = run_with_samples_and_marks();
  EXPECT_TRUE(counters(events, task).columns.empty());
  EXPECT_TRUE(markers(events, task).columns.empty());
  EXPECT_EQ(counters(events).rows + markers(events).rows, 2U);
  expect_cancelled(kernel_blocks(*run, task));
  expect_cancelled(fusion_candidates(*run, task));
  const StepsFile other(20, 200);
  expect_cancelled(compare_runs({*run}, {*load_run({other.path()})}, {.task = task}));
}

TEST(Cancel, LoadingEndsWithinAFewPieces) {
  const StepsFile file(40'000, 100);  // 25 MB
  const auto bytes = std::filesystem::file_size(file.path());
  std::stop_source source;
  std::uint64_t last = 0;
  LoadOptions options;
  options.threads = 2;
  options.task.stop = source.get_token();
  options.task.progress = [&](std::string_view step, std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(step, "loading");
    EXPECT_EQ(total, bytes);
    last = done;
    source.request_stop();
  };
  expect_cancelled(load_run({file.path()}, options));
  EXPECT_GT(last, 0U);
  EXPECT_LT(last, bytes / 2);
}

TEST(Cancel, FindingCyclesAndMeasuringEndAtTheNextLook) {
  const StepsFile file(10'000, 100);
  const auto run = load_run({file.path()});
  ASSERT_TRUE(run);
  Stopper finding("finding cycles", 2);
  expect_cancelled(find_cycles(*run, {.task = finding.task()}));
  EXPECT_EQ(finding.after, 0);
  Stopper measuring("measuring", 2);
  expect_cancelled(profile_run(*run, {.task = measuring.task()}));
  EXPECT_EQ(measuring.after, 0);
}

TEST(Cancel, AComparisonEndsOnBothSides) {
  const StepsFile base(10'000, 100);
  const StepsFile candidate(10'000, 200);
  Stopper measuring("measuring", 3);
  expect_cancelled(
      compare_runs({*load_run({base.path()})}, {*load_run({candidate.path()})}, {.task = measuring.task()}));
  EXPECT_LE(measuring.after, 1) << "one report of the other side may be under way";
}

TEST(Cancel, ProgressNeverGoesBackAndAStepNeverExceedsItsWhole) {
  const StepsFile file(10'000, 100);
  const auto run = load_run({file.path()});
  ASSERT_TRUE(run);
  std::map<std::string, std::uint64_t, std::less<>> done_of;
  CycleOptions options;
  options.task.progress = [&](std::string_view step, std::uint64_t done, std::uint64_t total) {
    EXPECT_LE(done, total) << step;
    auto& before = done_of[std::string(step)];
    EXPECT_GE(done, before) << step;
    before = done;
  };
  ASSERT_TRUE(profile_run(*run, options));
  EXPECT_TRUE(done_of.contains("finding cycles"));
  EXPECT_GT(done_of["measuring"], 40'000U);
}

}  // namespace
}  // namespace culprit
