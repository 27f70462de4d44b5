#include "record/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "record/signals.h"
#include "support/temp_file.h"

namespace culprit::record {
namespace {

int wait_for(Command& command) {
  for (int i = 0; i < 2000; ++i) {
    if (const auto status = command.ended()) return exit_code_of(*status);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return -1;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Command, WaitsUntilItIsTold) {
  const test::TempDir dir;
  auto command = Command::prepare({"sh", "-c", "echo ran > " + dir.path("out") + "; exit 5"}, {});
  ASSERT_TRUE(command);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(command->ended());
  EXPECT_FALSE(std::filesystem::exists(dir.path("out")));
  ASSERT_TRUE(command->go());
  EXPECT_EQ(wait_for(*command), 5);
  EXPECT_EQ(text_of(dir.path("out")), "ran\n");
}

TEST(Command, ItsStandardErrorMayBeAnotherFile) {
  const test::TempDir dir;
  const int file = open(dir.path("said").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  auto command = Command::prepare({"sh", "-c", "echo said >&2"}, {}, file);
  close(file);
  ASSERT_TRUE(command);
  ASSERT_TRUE(command->go());
  EXPECT_EQ(wait_for(*command), 0);
  EXPECT_EQ(text_of(dir.path("said")), "said\n");
}

TEST(Command, ItKeepsItsStandardOutputWhereItsStandardErrorGoesThere) {
  auto command = Command::prepare({"sh", "-c", ": <&0 && : >&1 && : >&2"}, {}, STDOUT_FILENO);
  ASSERT_TRUE(command);
  ASSERT_TRUE(command->go());
  EXPECT_EQ(wait_for(*command), 0);
}

TEST(Command, NohupHolds) {
  const test::TempDir dir;
  const auto before = std::signal(SIGHUP, SIG_IGN);
  auto command = Command::prepare({"sh", "-c", "kill -HUP $$; echo lives > " + dir.path("out")}, {});
  ASSERT_TRUE(command);
  ASSERT_TRUE(command->go());
  EXPECT_EQ(wait_for(*command), 0);
  EXPECT_EQ(text_of(dir.path("out")), "lives\n");

  const auto signals = StopSignals::take();
  ASSERT_TRUE(signals);
  kill(getpid(), SIGHUP);
  kill(getpid(), SIGTERM);
  EXPECT_EQ(take_signal(signals->fd()).number, SIGTERM);
  EXPECT_EQ(take_signal(signals->fd()).number, 0);
  static_cast<void>(std::signal(SIGHUP, before));
}

TEST(Command, OneThatIsNeverToldNeverRuns) {
  const test::TempDir dir;
  {
    const auto command = Command::prepare({"touch", dir.path("out")}, {});
    ASSERT_TRUE(command);
  }
  EXPECT_FALSE(std::filesystem::exists(dir.path("out")));
}

TEST(Command, VariablesAreAddedAndReplaced) {
  const test::TempDir dir;
  ::setenv("CULPRIT_TEST_OLD", "before", 1);
  auto command = Command::prepare({"sh", "-c", "echo $CULPRIT_TEST_OLD $CULPRIT_TEST_NEW $HOME > " + dir.path("out")},
                                  {"CULPRIT_TEST_OLD=after", "CULPRIT_TEST_NEW=new"});
  ASSERT_TRUE(command);
  ASSERT_TRUE(command->go());
  EXPECT_EQ(wait_for(*command), 0);
  const char* home = std::getenv("HOME");
  EXPECT_EQ(text_of(dir.path("out")), std::string("after new ") + (home != nullptr ? home : "") + "\n");
  ::unsetenv("CULPRIT_TEST_OLD");
}

TEST(Command, AProgramThatDoesNotExistIsAnError) {
  auto command = Command::prepare({"/nonexistent/program"}, {});
  ASSERT_TRUE(command);
  const Status status = command->go();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
  EXPECT_NE(status.error().what.find("/nonexistent/program"), std::string::npos);
}

TEST(Command, NothingIsAnError) { EXPECT_FALSE(Command::prepare({}, {})); }

TEST(Command, ItGetsTheSignalsOfAnOrdinaryProgram) {
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  auto command = Command::prepare({"sleep", "100"}, {});
  ASSERT_TRUE(command);
  ASSERT_TRUE(command->go());
  command->signal(SIGTERM);
  EXPECT_EQ(wait_for(*command), 128 + SIGTERM);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(ExitCode, OfCodesAndSignals) {
  EXPECT_EQ(exit_code_of(0), 0);
  EXPECT_EQ(exit_code_of(7 << 8), 7);
  EXPECT_EQ(exit_code_of(SIGKILL), 137);
}

}  // namespace
}  // namespace culprit::record
