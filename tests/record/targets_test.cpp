#include "record/targets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "support/temp_file.h"

namespace culprit::record {
namespace {

std::string stat_line(std::int64_t pid, std::string_view name, char state, std::int64_t parent, std::int64_t ticks) {
  return fmt::format("{} ({}) {} {} 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 {} 9 9", pid, name, state, parent, ticks);
}

/// A /proc of our own.
struct Proc {
  test::TempDir dir;
  void put(std::int64_t pid, std::int64_t parent, std::int64_t ticks = 100, char state = 'S',
           std::string_view name = "program") {
    std::filesystem::create_directories(dir.path(fmt::format("{}/task/{}", pid, pid)));
    static_cast<void>(dir.file(fmt::format("{}/stat", pid), stat_line(pid, name, state, parent, ticks)));
    static_cast<void>(dir.file(fmt::format("{}/task/{}/comm", pid, pid), std::string(name) + "\n"));
  }
  void remove(std::int64_t pid) { std::filesystem::remove_all(dir.path(std::to_string(pid))); }
};

std::vector<std::int64_t> pids(const std::vector<Target>& targets) {
  std::vector<std::int64_t> all;
  for (const Target& target : targets) all.push_back(target.pid);
  std::ranges::sort(all);
  return all;
}

TEST(ParseStat, NamesMayHoldAnything) {
  const auto stat = parse_stat(stat_line(42, "a) S 9 (b", 'R', 7, 555));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) S 9 (b");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->start_ticks, 555);
}

TEST(ParseStat, ThreadsOfTheKernelAreToldByTheirFlagNotByTheirNumber) {
  EXPECT_FALSE(parse_stat(stat_line(2, "init", 'S', 1, 1))->kernel_thread);
  const auto kernel = parse_stat("9 (rcu) I 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0");
  ASSERT_TRUE(kernel);
  EXPECT_TRUE(kernel->kernel_thread);
  EXPECT_EQ(kernel->start_ticks, 7);
}

TEST(ParseStat, AProcessHasEndedWhenItsLastThreadHas) {
  const auto others_run = parse_stat("9 (a) Z 1 9 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 7 0 0");
  ASSERT_TRUE(others_run);
  EXPECT_EQ(others_run->threads, 2);
  EXPECT_EQ(others_run->start_ticks, 7);
  EXPECT_FALSE(has_ended(*others_run));
  EXPECT_TRUE(has_ended(*parse_stat("9 (a) Z 1 9 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0")));
}

TEST(ParseStat, RefusesNonsense) {
  for (const auto* text : {"", "x", "12", "12 (a", "12 a) S 1", "12 (a) S", "0 (a) S 1", "-3 (a) S 1 2 3", ") ( 1"})
    EXPECT_FALSE(parse_stat(text)) << text;
}

TEST(Targets, DescendantsAreFound) {
  Proc proc;
  proc.put(10, 1);
  proc.put(5, 12);  // a grandchild with a lower pid than its parent
  proc.put(12, 10);
  proc.put(20, 1);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  EXPECT_EQ(pids(targets.list()), (std::vector<std::int64_t>{5, 10, 12}));
  EXPECT_EQ(targets.take_joined().size(), 3u);
  EXPECT_TRUE(targets.take_joined().empty());
}

TEST(Targets, TheWholeMachineIsAllButTheRecorderAndTheKernel) {
  Proc proc;
  proc.put(1, 0);
  proc.put(10, 1);
  proc.put(11, 1, 100, 'Z');
  proc.put(30, 2);
  static_cast<void>(proc.dir.file("30/stat", "30 (rcu) I 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0"));
  proc.put(999, 1);
  Targets targets(proc.dir.path(), 999);
  targets.add_all();
  EXPECT_EQ(pids(targets.list()), (std::vector<std::int64_t>{1, 10}));
  proc.put(50, 7);
  proc.remove(10);
  targets.refresh(true);
  EXPECT_EQ(pids(targets.list()), (std::vector<std::int64_t>{1, 50}));
  EXPECT_FALSE(targets.over());
}

TEST(Targets, AGroupIsFollowedUntilItIsGone) {
  Proc proc;
  for (const std::int64_t pid : {10, 11, 12}) proc.put(pid, 1);
  const test::TempDir group;
  static_cast<void>(group.file("cgroup.procs", ""));
  Targets targets(proc.dir.path(), 999);
  targets.add_group(group.path());
  EXPECT_TRUE(targets.list().empty());
  EXPECT_FALSE(targets.over()) << "somebody may come";
  static_cast<void>(group.file("cgroup.procs", "10\n12\n77\n"));
  targets.refresh(false);
  EXPECT_TRUE(targets.list().empty());
  targets.refresh(true);
  EXPECT_EQ(pids(targets.list()), (std::vector<std::int64_t>{10, 12}));
  std::filesystem::remove_all(group.path());
  EXPECT_FALSE(targets.over());
  proc.remove(10);
  proc.remove(12);
  targets.refresh(true);
  EXPECT_TRUE(targets.over());
}

TEST(Targets, MoreThanTheMostAreLeftOutAndCounted) {
  Proc proc;
  for (const std::int64_t pid : {1, 2, 3, 4, 5}) proc.put(pid, 0);
  Targets targets(proc.dir.path(), 999, 3);
  targets.add_all();
  EXPECT_EQ(targets.list().size(), 3u);
  EXPECT_EQ(targets.left_out(), 2u);
  proc.put(6, 1);
  EXPECT_FALSE(targets.add_child(6));
  EXPECT_EQ(targets.left_out(), 3u);
  Targets named(proc.dir.path(), 999, 1);
  ASSERT_TRUE(named.add(2));
  EXPECT_EQ(named.add(3).error().kind, ErrorKind::usage);
}

TEST(Targets, OneThatEndedIsDroppedAlone) {
  Proc proc;
  for (const std::int64_t pid : {10, 11}) proc.put(pid, 1);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  ASSERT_TRUE(targets.add(11));
  EXPECT_FALSE(targets.drop_if_ended(10));
  EXPECT_TRUE(targets.drop_if_ended(77));
  proc.put(10, 1, 100, 'Z');
  proc.remove(11);
  EXPECT_TRUE(targets.drop_if_ended(10));
  EXPECT_EQ(pids(targets.list()), std::vector<std::int64_t>{11});
  EXPECT_EQ(pids(targets.take_left()), std::vector<std::int64_t>{10});
  EXPECT_FALSE(targets.contains(10));
}

TEST(Targets, ErrorsSayWhat) {
  Proc proc;
  proc.put(10, 1, 100, 'Z');
  proc.put(30, 2);
  static_cast<void>(proc.dir.file("30/stat", "30 (rcu) I 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0"));
  proc.put(999, 1);
  Targets targets(proc.dir.path(), 999);
  EXPECT_EQ(targets.add(4).error().kind, ErrorKind::input);
  EXPECT_EQ(targets.add(10).error().kind, ErrorKind::input);
  EXPECT_EQ(targets.add(30).error().kind, ErrorKind::usage);
  EXPECT_EQ(targets.add(999).error().kind, ErrorKind::usage);
  EXPECT_TRUE(targets.list().empty());
}

TEST(Targets, AThreadIsNoProcess) {
  Proc proc;
  proc.put(10, 1);
  proc.put(12, 1);
  static_cast<void>(proc.dir.file("10/status", "Name:\tx\nTgid:\t10\nPid:\t10\n"));
  static_cast<void>(proc.dir.file("12/status", "Name:\tx\nTgid:\t10\nPid:\t12\n"));
  Targets targets(proc.dir.path(), 999);
  const Status refused = targets.add(12);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::input);
  EXPECT_NE(refused.error().remedy.find("-p 10"), std::string::npos) << refused.error().remedy;
  EXPECT_TRUE(targets.add(10));
}

TEST(Targets, AProcessThatGoesWhileItIsReadIsNoBug) {
  Proc proc;
  proc.put(10, 1);
  std::filesystem::create_directories(proc.dir.path("11/stat"));  // opens, and cannot be read
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  EXPECT_FALSE(targets.stat(11));
  EXPECT_FALSE(targets.add_child(11));
}

TEST(Targets, WhatCannotBeReadHasNotEnded) {
  Proc proc;
  proc.put(10, 1);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  targets.refresh(true);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(pids(targets.list()), std::vector<std::int64_t>{10});
  proc.remove(10);
  targets.refresh(true);
  EXPECT_TRUE(targets.list().empty());
}

TEST(Targets, TheRecorderIsNeverADescendant) {
  Proc proc;
  proc.put(10, 1);
  proc.put(999, 10);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  EXPECT_EQ(pids(targets.list()), std::vector<std::int64_t>{10});
  EXPECT_FALSE(targets.add_child(999));
}

TEST(Targets, OneThatEndsLeaves) {
  Proc proc;
  proc.put(10, 1);
  proc.put(11, 10);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  proc.remove(11);
  targets.refresh(false);
  EXPECT_EQ(pids(targets.take_left()), std::vector<std::int64_t>{11});
  proc.put(10, 1, 100, 'Z');
  targets.refresh(false);
  EXPECT_TRUE(targets.list().empty());
}

TEST(Targets, AReusedPidIsSomebodyElse) {
  Proc proc;
  proc.put(10, 1, 100);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  proc.put(10, 1, 101);  // another process, started later
  targets.refresh(true);
  EXPECT_FALSE(targets.contains(10));
  EXPECT_EQ(pids(targets.take_left()), std::vector<std::int64_t>{10});
}

TEST(Targets, AReusedPidOfADescendantIsFollowedAnew) {
  Proc proc;
  proc.put(10, 1, 100);
  proc.put(11, 10, 200);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  static_cast<void>(targets.take_joined());
  proc.put(11, 10, 300);
  targets.refresh(true);
  EXPECT_TRUE(targets.contains(11));
  EXPECT_EQ(targets.take_left().size(), 1u);
  const auto joined = targets.take_joined();
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined.front().start_ticks, 300);
}

TEST(Targets, ANewChildIsFoundOnlyWhenLookedFor) {
  Proc proc;
  proc.put(10, 1);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  proc.put(50, 10);
  targets.refresh(false);
  EXPECT_FALSE(targets.contains(50));
  targets.refresh(true);
  EXPECT_TRUE(targets.contains(50));
}

TEST(Targets, WhoDescendsFromNoTargetIsLookedAtAgainNowAndThen) {
  Proc proc;
  proc.put(10, 1);
  proc.put(20, 1);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  proc.put(20, 10);  // an orphan that the target took in
  proc.put(30, 10);
  targets.refresh(true);
  EXPECT_EQ(pids(targets.list()), (std::vector<std::int64_t>{10, 30})) << "it is known, whoever is new is found";
  for (int i = 0; i < 16; ++i) targets.refresh(true);
  EXPECT_EQ(pids(targets.list()), (std::vector<std::int64_t>{10, 20, 30}));
  ASSERT_TRUE(targets.add(10));
  proc.put(40, 50);
  targets.refresh(true);
  proc.put(50, 1);
  ASSERT_TRUE(targets.add(50)) << "asked for later, with who descends from it";
  EXPECT_EQ(pids(targets.list()), (std::vector<std::int64_t>{10, 20, 30, 40, 50}));
}

TEST(Targets, AChildStaysWhenItsParentEnds) {
  Proc proc;
  proc.put(10, 1);
  proc.put(11, 10);
  Targets targets(proc.dir.path(), 999);
  ASSERT_TRUE(targets.add(10));
  proc.remove(10);
  proc.put(11, 1);
  targets.refresh(true);
  EXPECT_EQ(pids(targets.list()), std::vector<std::int64_t>{11});
}

TEST(Targets, ThreadsWithNames) {
  Proc proc;
  proc.put(10, 1, 100, 'S', "main thread");
  std::filesystem::create_directories(proc.dir.path("10/task/12"));
  static_cast<void>(proc.dir.file("10/task/12/comm", "worker\n"));
  std::filesystem::create_directories(proc.dir.path("10/task/13"));
  static_cast<void>(proc.dir.file("10/task/13/comm", "culprit-agent\n"));  // the recorder's own
  const Targets targets(proc.dir.path(), 999);
  const auto threads = targets.threads(10);
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0], (std::pair<std::int64_t, std::string>{10, "main thread"}));
  EXPECT_EQ(threads[1], (std::pair<std::int64_t, std::string>{12, "worker"}));
}

TEST(Targets, RealProcesses) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Targets targets;
  EXPECT_TRUE(targets.add(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  targets.refresh(false);
  EXPECT_TRUE(targets.list().empty());
}

}  // namespace
}  // namespace culprit::record
