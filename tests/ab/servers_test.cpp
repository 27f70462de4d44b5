#include "ab/servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "ab/printed.h"
#include "core/file.h"
#include "core/text.h"
#include "support/child_process.h"

namespace culprit::ab {
namespace {

using testing::ElementsAre;

TEST(SplitCommand, IsThatOfAShellThatReplacesNothing) {
  EXPECT_THAT(*split_command("wrk -d 60 http://127.0.0.1:{port}/"),
              ElementsAre("wrk", "-d", "60", "http://127.0.0.1:{port}/"));
  EXPECT_THAT(*split_command(R"(  a 'b c'  "d \" e"f\ g '' $HOME)"), ElementsAre("a", "b c", "d \" ef g", "", "$HOME"));
  EXPECT_FALSE(split_command("a 'b"));
  EXPECT_FALSE(split_command("  "));
}

TEST(WithPort, ReplacesEveryPlace) {
  EXPECT_THAT(with_port({"--port", "{port}", "x{port}y{port}", "{por}"}, 81),
              ElementsAre("--port", "81", "x81y81", "{por}"));
}

class RunningServersTest : public testing::Test {
 protected:
  RunningServersTest() { std::filesystem::create_directories(folder_); }
  ~RunningServersTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = testing::TempDir() + "servers-" + std::to_string(getpid());
};

TEST_F(RunningServersTest, AreReadyWhenTheyAnswerAndEndWithTheirClients) {
  Servers servers;
  for (auto& command : servers.commands) command = {"python3", "-m", "http.server", "{port}", "--bind", "127.0.0.1"};
  servers.ready = "http://127.0.0.1:{port}/";
  servers.warm_up = 100'000'000;
  servers.load = {"sh", "-c", "echo load {port}; exec sleep 100"};
  servers.folder = folder_;
  std::vector<pid_t> pids;
  {
    const auto running = RunningServers::start(servers, -1);
    ASSERT_TRUE(running) << to_string(running.error());
    for (std::size_t side = 0; side < 2; ++side) {
      ASSERT_EQ(running->clients(side).size(), 1U);
      pids.push_back(running->server(side));
      pids.push_back(running->clients(side)[0]);
    }
    for (const pid_t pid : pids) EXPECT_TRUE(faults::process_facts(pid));
    EXPECT_TRUE(test::eventually([&] {
      const auto text = read_file(folder_ + "/baseline-load.txt");
      return text && text->starts_with("load ");
    }));
  }
  for (const pid_t pid : pids) EXPECT_FALSE(faults::process_facts(pid)) << pid;
  EXPECT_THAT(*read_file(folder_ + "/baseline-load.txt"), testing::StartsWith("load "));
}

TEST_F(RunningServersTest, WhatAWrongPathAnswersIsSaid) {
  Servers servers;
  for (auto& command : servers.commands) command = {"python3", "-m", "http.server", "{port}", "--bind", "127.0.0.1"};
  servers.ready = "http://127.0.0.1:{port}/no-such-page";
  servers.folder = folder_;
  std::string said;
  // Two of them start at once; where that takes longer it is their silence that is told.
  for (const Ns patience : {3, 12, 48}) {
    servers.patience = patience * 1'000'000'000;
    const auto running = RunningServers::start(servers, -1);
    ASSERT_FALSE(running);
    said = to_string(running.error());
    if (said.find("404") != std::string::npos) break;
  }
  EXPECT_THAT(said, testing::ContainsRegex("no-such-page: the baseline is not ready after [0-9]+ s: status 404"));
}

TEST_F(RunningServersTest, WhereTheUserSeesToTheLoadItsPortsAreSaid) {
  Servers servers;
  for (auto& command : servers.commands) command = {"python3", "-m", "http.server", "{port}", "--bind", "127.0.0.1"};
  servers.folder = folder_;
  std::vector<std::string> told;
  servers.told = [&](const std::string& line) { told.push_back(line); };
  const auto running = RunningServers::start(servers, -1);
  ASSERT_TRUE(running) << to_string(running.error());
  EXPECT_THAT(
      told,
      ElementsAre(testing::ContainsRegex("no --load: .*port [0-9]+ of the baseline .*port [0-9]+ of the candidate")));
}

/// Once the file has it.
pid_t pid_in(const std::string& file) {
  for (int i = 0; i < 2000; ++i) {
    const auto text = read_file(file);
    if (const auto pid = text && text->ends_with('\n') ? parse_number<pid_t>(trim(*text)) : std::nullopt) return *pid;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return -1;
}

TEST_F(RunningServersTest, WorkersEndWithThemWhetherOrNotTheirLauncherLives) {
  Servers servers;
  servers.serve = false;
  servers.warm_up = 10'000'000;
  const std::string go = folder_ + "/go";
  servers.commands = {
      {{"sh", "-c", "sleep 1000 & echo $! > " + folder_ + "/lives; wait; true"},
       {"sh", "-c", "sleep 1000 & echo $! > " + folder_ + "/left; while test ! -e " + go + "; do sleep 0.01; done"}}};
  servers.folder = folder_;
  std::vector<faults::ProcessId> workers;
  {
    const auto running = RunningServers::start(servers, -1);
    ASSERT_TRUE(running) << to_string(running.error());
    for (const char* const name : {"/lives", "/left"}) {
      const auto facts = faults::process_facts(pid_in(folder_ + name));
      ASSERT_TRUE(facts) << name;
      workers.push_back(facts->id);
    }
    std::ofstream(go).put(10);
    for (int i = 0; i < 2000 && faults::process_facts(running->server(1))->state != 'Z'; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (const faults::ProcessId& worker : workers) {
    const auto facts = faults::process_facts(worker.pid);
    EXPECT_TRUE(!facts || facts->id != worker || facts->state == 'Z') << worker.pid;
  }
}

TEST_F(RunningServersTest, OneThatEndsBeforeItIsReadyIsAnErrorWithWhatItPrinted) {
  Servers servers;
  servers.commands = {{{"sh", "-c", "echo no such model >&2; exit 7"}, {"sleep", "100"}}};
  servers.folder = folder_;
  std::string printed;
  servers.printed = [&](const std::string& lines) { printed = lines; };
  const auto running = RunningServers::start(servers, -1);
  ASSERT_FALSE(running);
  EXPECT_EQ(running.error().what, "the baseline ended with exit code 7 before it was ready");
  EXPECT_EQ(printed, "no such model");
}

TEST_F(RunningServersTest, ClientsThatEndWhileTheyWarmUpAreAnErrorWithWhatTheyPrinted) {
  Servers servers;
  for (auto& command : servers.commands) command = {"python3", "-m", "http.server", "{port}", "--bind", "127.0.0.1"};
  servers.load = {"sh", "-c", "echo no such model; exit 0"};
  servers.folder = folder_;
  std::string printed;
  servers.printed = [&](const std::string& lines) { printed = lines; };
  const auto running = RunningServers::start(servers, -1);
  ASSERT_FALSE(running);
  EXPECT_EQ(running.error().what, "the clients of the baseline ended with exit code 0 before anything was measured");
  EXPECT_EQ(printed, "no such model");
}

TEST_F(RunningServersTest, OneThatFailsLaterIsToldWithWhatItPrinted) {
  Servers servers;
  servers.serve = false;
  servers.warm_up = 10'000'000;
  const std::string go = folder_ + "/go";
  servers.commands = {
      {{"sleep", "100"}, {"sh", "-c", "while test ! -e " + go + "; do sleep 0.01; done; echo out of memory; exit 9"}}};
  servers.folder = folder_;
  std::string printed;
  servers.printed = [&](const std::string& lines) { printed = lines; };
  const auto running = RunningServers::start(servers, -1);
  ASSERT_TRUE(running) << to_string(running.error());
  EXPECT_TRUE(running->failure(servers));
  EXPECT_EQ(printed, "");
  std::ofstream(go).put(10);
  Status status;
  for (int i = 0; i < 100 && status; ++i) status = running->failure(servers);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "the candidate ended with exit code 9 while it was compared");
  EXPECT_EQ(printed, "out of memory");
}

TEST_F(RunningServersTest, OneThatIsNeverReadyIsGivenUp) {
  Servers servers;
  servers.commands = {{{"sleep", "100"}, {"sleep", "100"}}};
  servers.folder = folder_;
  servers.patience = 300'000'000;
  const auto running = RunningServers::start(servers, -1);
  ASSERT_FALSE(running);
  EXPECT_THAT(running.error().what, testing::StartsWith("the baseline is not ready after"));
}

TEST_F(RunningServersTest, OneThatCannotBeStartedIsAnError) {
  Servers servers;
  servers.commands = {{{"/no/such/program"}, {"sleep", "100"}}};
  servers.folder = folder_;
  const auto running = RunningServers::start(servers, -1);
  ASSERT_FALSE(running);
  EXPECT_EQ(running.error().kind, ErrorKind::usage);
}

TEST(LastLines, AreTheLastTenWithoutEmptyOnes) {
  const std::string path = testing::TempDir() + "printed-" + std::to_string(getpid());
  std::string text;
  for (int i = 1; i <= 12; ++i) text += "line " + std::to_string(i) + "\n";
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs((text + "\n\n").c_str(), file);
  std::fclose(file);
  EXPECT_THAT(last_lines(path), testing::StartsWith("line 3\n"));
  EXPECT_THAT(last_lines(path), testing::EndsWith("line 12"));
  EXPECT_EQ(last_lines(path + "-absent"), "");
  std::filesystem::remove(path);
}

TEST(LastLines, AreThoseOfAFileOfAnySize) {
  const std::string path = testing::TempDir() + "printed-large-" + std::to_string(getpid());
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fseek(file, 65L << 20, SEEK_SET);
  std::fputs("cut off\nout of memory\n", file);
  std::fclose(file);
  EXPECT_EQ(last_lines(path), "out of memory");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace culprit::ab
