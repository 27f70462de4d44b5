#include "ab/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>

namespace culprit::ab {
namespace {

class CommandsTest : public testing::Test {
 protected:
  CommandsTest() {
    std::filesystem::create_directories(folder_);
    commands_.warm_up = 0;
    question_.recorded = false;
    question_.folder = folder_;
  }
  ~CommandsTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_ = testing::TempDir() + "commands-" + std::to_string(getpid());
  Commands commands_;
  Question question_;
};

TEST_F(CommandsTest, ARunThatDoesNotEndIsEndedWithTheBudgetAndNamed) {
  commands_.commands = {{{"true"}, {"sleep", "1000"}}};
  commands_.patience = 2'000'000'000;
  question_.budget = 100'000'000;
  question_.pairs = 3;
  const auto found = alternate(commands_, question_, -1);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->found.end, model::AlternationEnd::budget);
  EXPECT_EQ(found->found.outcome, model::Outcome::inconclusive);
  EXPECT_THAT(found->found.notes, testing::ElementsAre(testing::StartsWith("A run of the candidate had not ended")));
}

TEST_F(CommandsTest, ArgumentsThatNameWhatIsHereAreFoundOnce) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  std::filesystem::create_directory("data");
  commands_.commands = {{{"data", "--in", "data", folder_, "none"}, {"sh", "data", "-c", ""}}};
  EXPECT_THAT(relative_files(commands_), testing::ElementsAre("data"));
  std::filesystem::current_path(before);
}

TEST_F(CommandsTest, OneThatEndsBeforeItBeginsIsInterruptedWhereTheUserWantsToStop) {
  commands_.commands = {{{"/no/such/program"}, {"/no/such/program"}}};
  const auto refused = alternate(commands_, question_, -1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  std::array<int, 2> stop{};
  ASSERT_EQ(pipe(stop.data()), 0);
  ASSERT_EQ(write(stop[1], "x", 1), 1);
  const auto found = alternate(commands_, question_, stop[0]);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->found.end, model::AlternationEnd::interrupted);
  for (const int end : stop) close(end);
}

}  // namespace
}  // namespace culprit::ab
