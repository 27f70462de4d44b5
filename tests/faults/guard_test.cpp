#include "faults/guard.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "support/child_process.h"

namespace culprit::faults {
namespace {

bool there(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

struct GuardTest : testing::Test {
  test::Folder folder;
  std::string state = folder.path + "/x.undo";
  std::string file = folder.write("f", "");
  Undo step{Undo::Kind::remove_file, {file}};
};

TEST_F(GuardTest, TakesTheStepsWhenAsked) {
  auto guard = Guard::start(state);
  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_TRUE(guard->alive());
  ASSERT_TRUE(guard->add(step));
  EXPECT_TRUE(there(file));
  EXPECT_TRUE(there(state));
  EXPECT_TRUE(guard->undo().empty());
  EXPECT_FALSE(there(file));
  EXPECT_FALSE(there(state));
}

TEST_F(GuardTest, TakesTheStepsWhenTheInjectorIsKilled) {
  test::Child injector([&] {
    auto guard = Guard::start(state);
    if (!guard || !guard->add(step)) _exit(1);
    pause();
  });
  ASSERT_TRUE(
      test::eventually([&] { return !leftovers(folder.path).empty() && !leftovers(folder.path)[0].steps.empty(); }));
  EXPECT_TRUE(there(file));
  injector.end();
  EXPECT_TRUE(test::eventually([&] { return !there(file) && !there(state); }));
}

TEST_F(GuardTest, KillsAnInjectorThatIsSilentAndUndoes) {
  const test::Child injector([&] {
    auto guard = Guard::start(state, 2'000'000'000);
    if (!guard || !guard->add(step)) _exit(1);
    raise(SIGSTOP);
  });
  EXPECT_TRUE(test::eventually([&] { return !there(file) && !there(state); }));
  const auto facts = process_facts(injector.pid);
  EXPECT_TRUE(!facts || facts->state == 'Z');
}

TEST_F(GuardTest, TheInjectorUndoesWhenTheGuardIsKilled) {
  auto guard = Guard::start(state);
  ASSERT_TRUE(guard);
  ASSERT_TRUE(guard->add(step));
  kill(guard->pid(), SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return !guard->alive(); }));
  EXPECT_FALSE(guard->add({Undo::Kind::remove_file, {state}}));
  EXPECT_TRUE(there(file));
  EXPECT_TRUE(guard->undo().empty());
  EXPECT_FALSE(there(file));
  EXPECT_FALSE(there(state));
}

TEST_F(GuardTest, SignalsOfTheTerminalDoNotEndIt) {
  auto guard = Guard::start(state);
  ASSERT_TRUE(guard);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) kill(guard->pid(), number);
  usleep(50'000);
  EXPECT_TRUE(guard->alive());
  EXPECT_NE(getsid(guard->pid()), getsid(0));
}

TEST_F(GuardTest, WithoutAStateFileNothingBegins) { EXPECT_FALSE(Guard::start(folder.path + "/missing/x.undo")); }

TEST_F(GuardTest, WhatCannotBeUndoneIsToldAndKept) {
  auto guard = Guard::start(state);
  ASSERT_TRUE(guard);
  ASSERT_TRUE(guard->add({Undo::Kind::remove_directory, {folder.path}}));
  EXPECT_EQ(guard->undo().size(), 1U);
  EXPECT_TRUE(there(state));
}

}  // namespace
}  // namespace culprit::faults
