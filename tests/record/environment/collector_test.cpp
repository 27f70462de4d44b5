// The two collectors with a real writer: what stands in the file afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "formats/io/input.h"
#include "formats/perfetto/reader.h"
#include "record/environment/environment.h"
#include "support/temp_file.h"

namespace culprit::record {
namespace {

TEST(EnvironmentCollector, WritesFactsOfTheMachineAndOfThisProcess) {
  test::TempDir folder;
  auto writer = perfetto::Writer::create(folder.path("run.pftrace"));
  ASSERT_TRUE(writer.ok()) << to_string(writer.error());
  const std::vector<Target> targets = {{getpid(), 0}};
  Session session{*writer, Preset::deep, targets, 0};
  auto collector = make_environment_collector();
  EXPECT_EQ(collector->name(), "environment");
  ASSERT_TRUE(collector->start(session).ok());
  const std::uint64_t after_start = collector->stats().events;
  EXPECT_GT(after_start, 20u);
  collector->poll(session, 1);
  collector->poll(session, 1 + 1'000'000'000);
  EXPECT_LT(collector->stats().events, after_start + 5) << "what has not changed is not written again";
  collector->stop(session, 2'000'000'000);
  collector->stop(session, 2'000'000'000);
  ASSERT_TRUE(writer->close().ok());
  bool targets_seen = false;
  for (const Sight& sight : collector->sights())
    targets_seen = targets_seen || (sight.available && sight.what.find("targets") != std::string::npos);
  EXPECT_TRUE(targets_seen);
}

TEST(EnvironmentCollector, TellsHowManyTargetsItLookedAt) {
  test::TempDir folder;
  auto writer = perfetto::Writer::create(folder.path("run.pftrace"));
  ASSERT_TRUE(writer.ok());
  const std::vector<Target> targets = {{getpid(), 0}, {getppid(), 0}, {1 << 29, 0}};
  Session session{*writer, Preset::watch, targets, 0};
  auto collector = make_environment_collector();
  ASSERT_TRUE(collector->start(session).ok());
  collector->target_left({getppid(), 0});
  collector->stop(session, 1);
  ASSERT_TRUE(writer->close().ok());
  auto input = formats::Input::open(folder.path("run.pftrace"));
  ASSERT_TRUE(input.ok());
  const auto trace = perfetto::read(std::move(*input));
  ASSERT_TRUE(trace.ok());
  EXPECT_THAT(trace->ranks.front().metadata, testing::Contains(testing::Pair("env.targets", "2")));
}

TEST(EnvironmentCollector, AFaultOfOursAtWorkIsAFact) {
  test::TempDir folder;
  static_cast<void>(folder.file("disk-1.undo", "culprit undo 1\nboot\n" + std::to_string(getpid()) + " 17\n1 2\n"));
  auto writer = perfetto::Writer::create(folder.path("run.pftrace"));
  ASSERT_TRUE(writer.ok());
  const std::vector<Target> targets;
  Session session{*writer, Preset::watch, targets, 0};
  EnvironmentOptions options;
  options.root = folder.path();
  options.fault_folders = {folder.path()};
  auto collector = make_environment_collector(options);
  ASSERT_TRUE(collector->start(session).ok());
  const std::uint64_t before = collector->stats().events;
  for (const Ns now : {1'000'000'000, 1'100'000'000, 2'000'000'000}) collector->poll(session, now);
  EXPECT_EQ(collector->stats().events, before + 1) << "once";
}

TEST(EnvironmentCollector, ATargetThatDoesNotExistIsNoError) {
  test::TempDir folder;
  auto writer = perfetto::Writer::create(folder.path("run.pftrace"));
  ASSERT_TRUE(writer.ok());
  const std::vector<Target> targets = {{1 << 29, 0}};
  Session session{*writer, Preset::watch, targets, 0};
  EnvironmentOptions options;
  options.root = folder.path();
  auto collector = make_environment_collector(options);
  ASSERT_TRUE(collector->start(session).ok());
  collector->target_left({1 << 29, 0});
  collector->poll(session, 1);
  collector->stop(session, 2);
  EXPECT_EQ(collector->stats().events, 0u);
  EXPECT_FALSE(collector->sights().front().available);
}

}  // namespace
}  // namespace culprit::record
