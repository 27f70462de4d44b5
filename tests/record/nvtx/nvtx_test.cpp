// From a program with NVTX through the injected library, its rings and the collector into a file.
#include "record/nvtx/nvtx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "record/collector/step_name.h"
#include "record/nvtx/recorded.h"

namespace culprit::record::nvtx {
namespace {

using test::RecordedSlice;
using test::Recording;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string built(const std::string& name) { return std::string(CULPRIT_BINARY_DIR) + "/" + name; }

std::unique_ptr<Collector> collector(const test::TempDir& folder, std::size_t most_rings = 4096) {
  return make_nvtx({.library = built("libculprit_nvtx.so"), .folder_parent = folder.path(), .most_rings = most_rings});
}

class Client : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(built(GetParam())))
      GTEST_SKIP() << GetParam()
                   << " was not built: NVIDIA's NVTX headers are not here (scripts/nvtx-headers gets them)";
  }
  [[nodiscard]] std::string program() const { return built(GetParam()); }
  test::TempDir folder_;
  test::Recorded recorded_{collector(folder_)};
};

TEST_P(Client, RangesNestOnTheirThread) {
  ASSERT_TRUE(recorded_.start().ok());
  ASSERT_EQ(recorded_.run({program(), "everything"}), 0);
  const Recording recording = recorded_.finish();
  const auto outer = recording.named("step[DECODE bs=2 toks=2]");
  const auto inner = recording.named("layer 0");
  ASSERT_THAT(outer, SizeIs(1));
  ASSERT_THAT(inner, SizeIs(3));
  EXPECT_EQ(outer[0].category, "nvtx");
  EXPECT_EQ(outer[0].track, "");
  EXPECT_EQ(outer[0].depth, 0U);
  EXPECT_EQ(inner[1].depth, 1U);
  EXPECT_GE(inner[1].begin, outer[0].begin);
  EXPECT_LE(inner[1].end, outer[0].end);
  EXPECT_GE(inner[1].end - inner[1].begin, 2'000'000U) << "the program sleeps 2 ms inside";
  EXPECT_LT(inner[1].end - inner[1].begin, 500'000'000U);
}

TEST_P(Client, CountsStepsForTheRecorder) {
  ASSERT_TRUE(recorded_.start().ok());
  recorded_.run({program(), "everything"});
  EXPECT_EQ(recorded_.session().steps, 3U);
}

TEST_P(Client, MarksAreInstants) {
  ASSERT_TRUE(recorded_.start().ok());
  recorded_.run({program(), "everything"});
  const auto marks = recorded_.finish().named("a mark");
  ASSERT_THAT(marks, SizeIs(1));
  EXPECT_TRUE(marks[0].is_instant);
}

TEST_P(Client, OverlappingRangesGetLanes) {
  ASSERT_TRUE(recorded_.start().ok());
  recorded_.run({program(), "everything"});
  const Recording recording = recorded_.finish();
  const auto first = recording.named("first");
  const auto second = recording.named("second");
  ASSERT_THAT(first, SizeIs(1));
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_LT(first[0].begin, second[0].begin);
  EXPECT_LT(second[0].begin, first[0].end);
  EXPECT_LT(first[0].end, second[0].end);
  EXPECT_EQ(first[0].depth, 0U);
  EXPECT_EQ(second[0].depth, 0U) << "a lane of its own";
}

TEST_P(Client, DomainsNestByThemselvesAndKeepAttributes) {
  ASSERT_TRUE(recorded_.start().ok());
  recorded_.run({program(), "everything"});
  const Recording recording = recorded_.finish();
  const auto in_domain = recording.named("a registered string");
  ASSERT_THAT(in_domain, SizeIs(1));
  EXPECT_EQ(in_domain[0].track, "NVTX my domain");
  EXPECT_EQ(in_domain[0].arguments.at("category"), "loading");
  EXPECT_EQ(in_domain[0].arguments.at("payload"), "-42");
  const auto in_default = recording.named("inside the default domain");
  ASSERT_THAT(in_default, SizeIs(1));
  EXPECT_EQ(in_default[0].track, "");
  EXPECT_LT(in_default[0].begin, in_domain[0].end);
  EXPECT_LT(in_domain[0].end, in_default[0].end);
}

TEST_P(Client, TextsAreKeptUpToABound) {
  ASSERT_TRUE(recorded_.start().ok());
  recorded_.run({program(), "everything"});
  const Recording recording = recorded_.finish();
  EXPECT_THAT(recording.named("wide \u00fc \u20ac"), SizeIs(1));
  EXPECT_THAT(recording.named("(unnamed)"), SizeIs(1));
  const auto longer = recording.named(std::string(240, 'x'));
  ASSERT_THAT(longer, SizeIs(1));
  EXPECT_EQ(longer[0].arguments.at("truncated"), "1");
}

TEST_P(Client, ThreadsCanBeNamed) {
  ASSERT_TRUE(recorded_.start().ok());
  recorded_.run({program(), "everything"});
  const Recording recording = recorded_.finish();
  bool found = false;
  for (const auto& [tid, name] : recording.thread_names) found = found || name == "named by nvtx";
  EXPECT_TRUE(found);
}

TEST_P(Client, EveryThreadHasARingOfItsOwn) {
  ASSERT_TRUE(recorded_.start().ok());
  ASSERT_EQ(recorded_.run({program(), "threads"}), 0);
  EXPECT_EQ(recorded_.collector().stats().dropped, 0U);
  const Recording recording = recorded_.finish();
  std::map<std::int64_t, int> inner;
  for (const RecordedSlice& slice : recording.named("inner")) {
    EXPECT_EQ(slice.depth, 1U);
    EXPECT_GE(slice.end, slice.begin);
    ++inner[slice.tid];
  }
  ASSERT_THAT(inner, SizeIs(4));
  for (const auto& [tid, count] : inner) EXPECT_EQ(count, 500);
  EXPECT_EQ(recording.ends_without_begin, 0U);
}

TEST_P(Client, MoreThreadsThanFilesMayBeOpenAreReadOneAfterTheOther) {
  test::Recorded few{collector(folder_, 1)};
  ASSERT_TRUE(few.start().ok());
  ASSERT_EQ(few.run({program(), "threads"}), 0);
  const Recording recording = few.finish();
  EXPECT_EQ(few.collector().stats().dropped, 0U);
  EXPECT_THAT(recording.named("inner"), SizeIs(2000));
}

TEST_P(Client, ForksAndExecsAreProgramsOfTheirOwn) {
  ASSERT_TRUE(recorded_.start().ok());
  ASSERT_EQ(recorded_.run({program(), "forks"}), 0);
  EXPECT_EQ(recorded_.collector().stats().dropped, 0U);
  const Recording recording = recorded_.finish();
  const auto parent = recording.named("in the parent");
  const auto child = recording.named("in the child");
  const auto exec = recording.named("after exec");
  ASSERT_THAT(parent, SizeIs(2));
  ASSERT_THAT(child, SizeIs(2));
  ASSERT_THAT(exec, SizeIs(2));
  EXPECT_NE(parent[0].pid, child[0].pid);
  EXPECT_EQ(child[0].pid, exec[0].pid);
  ASSERT_THAT(recording.named("before the fork"), SizeIs(1));
  EXPECT_GE(recording.named("before the fork")[0].end, parent[1].end);
  EXPECT_EQ(recording.ends_without_begin, 0U);
}

TEST_P(Client, AForkWhileAnotherThreadHoldsTheLockHangsNobody) {
  ASSERT_TRUE(recorded_.start().ok());
  ASSERT_EQ(recorded_.run({program(), "forks_while_locked", "40"}), 0)
      << "a child that waits for the lock of a thread that it does not have is ended by its alarm";
  const Recording recording = recorded_.finish();
  EXPECT_FALSE(recording.named("in a thread").empty());
  EXPECT_EQ(recording.ends_without_begin, 0U);
}

TEST_P(Client, AFullRingDropsAndCounts) {
  ASSERT_TRUE(recorded_.start().ok());
  const pid_t pid = test::start_program({program(), "flood", "200000"}, recorded_.collector().environment());
  recorded_.add(pid);
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);  // nobody drains meanwhile
  EXPECT_EQ(status, 0) << "the program goes on";
  recorded_.poll();
  const std::uint64_t events = recorded_.collector().stats().events;
  const std::uint64_t dropped = recorded_.collector().stats().dropped;
  EXPECT_GT(events, 4000U);
  EXPECT_EQ(events + dropped, 400'000U) << "every record was written or counted";
  const Recording recording = recorded_.finish();
  EXPECT_EQ(recorded_.collector().stats().dropped, dropped) << "the recorder asks after the end";
  EXPECT_EQ(recording.ends_without_begin, 0U);
  EXPECT_THAT(recording.named("NVTX records lost"), SizeIs(1));
}

TEST_P(Client, NestingSurvivesLosses) {
  ASSERT_TRUE(recorded_.start().ok());
  ASSERT_EQ(recorded_.run({program(), "flood", "3000000"}, std::chrono::milliseconds(2)), 0);
  EXPECT_GT(recorded_.collector().stats().dropped, 0U) << "drains too slowly to see everything";
  const Recording recording = recorded_.finish();
  EXPECT_EQ(recording.ends_without_begin, 0U);
  for (const RecordedSlice& slice : recording.named("step flood")) ASSERT_EQ(slice.depth, 0U);
}

TEST_P(Client, TheProgramOutlivesItsRecorder) {
  ASSERT_TRUE(recorded_.start().ok());
  int to_client[2];
  int from_client[2];
  ASSERT_EQ(pipe(to_client), 0);
  ASSERT_EQ(pipe(from_client), 0);
  const std::vector<std::string> environment = recorded_.collector().environment();
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(to_client[0], 0);
    dup2(from_client[1], 1);
    for (const int fd : {to_client[0], to_client[1], from_client[0], from_client[1]}) close(fd);
    for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
    execl(program().c_str(), program().c_str(), "until_closed", nullptr);
    _exit(127);
  }
  close(to_client[0]);
  close(from_client[1]);
  char text[64] = {};
  ASSERT_GT(read(from_client[0], text, sizeof text), 0);  // "ready"
  recorded_.add(pid);
  recorded_.poll();
  EXPECT_THAT(recorded_.finish().named("step 0"), SizeIs(1));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "the folder is gone";
  for (int i = 0; i < 3; ++i) ASSERT_EQ(write(to_client[1], "x", 1), 1);  // floods a ring nobody reads
  close(to_client[1]);
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  close(from_client[0]);
}

TEST_P(Client, RunsWithoutAFolder) {
  const pid_t pid =
      test::start_program({program(), "everything"},
                          {"NVTX_INJECTION64_PATH=" + built("libculprit_nvtx.so"), "CULPRIT_NVTX_DIR=/nowhere/at/all"});
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Headers, Client, ::testing::Values("nvtx_test_client", "nvtx3_test_client"),
                         [](const auto& info) {
                           return std::string(info.param) == "nvtx_test_client" ? "own" : "nvidia";
                         });

TEST(Nvtx, SaysWhenAnotherToolIsThere) {
  setenv("NVTX_INJECTION64_PATH", "/opt/other/libtool.so", 1);
  test::TempDir folder;
  test::Recorded recorded(collector(folder));
  unsetenv("NVTX_INJECTION64_PATH");
  const Status started = recorded.start();
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().what, ::testing::HasSubstr("another tool"));
  EXPECT_THAT(recorded.collector().environment(), IsEmpty());
  const std::vector<Sight> sights = recorded.collector().sights();
  ASSERT_THAT(sights, SizeIs(1));
  EXPECT_FALSE(sights[0].available);
  EXPECT_THAT(sights[0].why, ::testing::HasSubstr("/opt/other/libtool.so"));
}

TEST(Nvtx, TheFolderIsPrivate) {
  test::TempDir folder;
  test::Recorded recorded(collector(folder));
  struct stat status {};
  const std::string variable = recorded.collector().environment().at(1);
  ASSERT_EQ(stat(variable.substr(variable.find('=') + 1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST(Nvtx, LeftoversOfDeadRecordersAreRemoved) {
  test::TempDir folder;
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  const std::string left = folder.path("culprit-nvtx-" + std::to_string(dead) + "-abcdef");
  std::filesystem::create_directory(left);
  std::ofstream(left + "/1-1-1.ring") << "x";
  const std::string alive = folder.path("culprit-nvtx-" + std::to_string(getppid()) + "-abcdef");
  std::filesystem::create_directory(alive);
  std::filesystem::create_directory(folder.path("something-else"));
  test::Recorded recorded(collector(folder));
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(alive));
  EXPECT_TRUE(std::filesystem::exists(folder.path("something-else")));
}

TEST(Nvtx, GarbageInTheFolderIsCountedAndRemoved) {
  test::TempDir folder;
  test::Recorded recorded(collector(folder));
  ASSERT_TRUE(recorded.start().ok());
  recorded.add(getpid());
  const std::string variable = recorded.collector().environment().at(1);
  const std::string rings = variable.substr(variable.find('=') + 1);
  const std::string mine = rings + "/" + std::to_string(getpid()) + "-";
  std::ofstream(rings + "/nonsense.ring") << "x";
  ASSERT_EQ(mkfifo((mine + "1-1.ring").c_str(), 0600), 0);
  ASSERT_EQ(symlink("/dev/zero", (mine + "2-1.ring").c_str()), 0);
  std::ofstream(mine + "3-1.ring") << std::string(300'000, '\xff');
  std::ofstream(mine + "4-1.ring") << std::string(300'000, '\0');  // a ring that never gets ready
  std::ofstream(rings + "/1-1-1.ring") << "of a process that is not recorded";
  for (int i = 0; i < 50; ++i) recorded.poll();
  EXPECT_TRUE(std::filesystem::is_empty(rings));
  EXPECT_EQ(recorded.collector().stats().dropped, 6U);
  EXPECT_EQ(recorded.collector().stats().events, 0U);
  EXPECT_THAT(recorded.finish().slices, IsEmpty());
}

TEST(StepName, KnowsMarkersOfSteps) {
  for (const char* name : {"step[DECODE bs=4 toks=4]", "step 7", "ProfilerStep#3", "iteration 12", "Train Step",
                           "execute_128_context_1(sq64)_generation_0", "Scheduler.run_batch", "STEP"})
    EXPECT_TRUE(is_step_name(name)) << name;
  for (const char* name : {"", "layer 3", "stepping", "footstep", "Optimizer.step", "attention", "aliter"})
    EXPECT_FALSE(is_step_name(name)) << name;
}

}  // namespace
}  // namespace culprit::record::nvtx
