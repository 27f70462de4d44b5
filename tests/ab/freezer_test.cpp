#include "ab/freezer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "core/file.h"
#include "core/text.h"

namespace culprit::ab {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

/// A shell whose child counts into a file as fast as it can, and that starts further processes all the time.
class Counting {
 public:
  explicit Counting(const std::string& file) {
    pid_ = fork();
    if (pid_ == 0) {
      const std::string script =
          "(i=0; while :; do i=$((i+1)); echo $i > " + file + "; done) & while :; do sleep 0.01; done";
      execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
      _exit(127);
    }
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting() {
    for (const faults::ProcessId& process : faults::process_tree(id())) {
      kill(process.pid, SIGKILL);
      kill(process.pid, SIGCONT);
    }
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] faults::ProcessId id() const {
    const auto facts = faults::process_facts(pid_);
    return facts ? facts->id : faults::ProcessId{};
  }

 private:
  pid_t pid_ = -1;
};

/// The parameter says whether groups may be used.
class FreezerTest : public testing::TestWithParam<bool> {
 protected:
  FreezerTest() { fs::create_directories(folder_); }
  ~FreezerTest() override { fs::remove_all(folder_); }

  long count() {
    // Between the shell's opening and its writing the file is empty.
    for (int i = 0; i < 1000; ++i) {
      const auto text = read_file(file_);
      if (const auto number = text ? parse_number<long>(trim(*text)) : std::nullopt) return *number;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return last_;
  }
  bool moves() {
    const long before = last_ = count();
    for (int i = 0; i < 500; ++i) {
      std::this_thread::sleep_for(milliseconds(2));
      if (count() != before) return true;
    }
    return false;
  }
  /// What the disk is still busy with gets its time when it is done. Who runs writes every few ms.
  bool stands() {
    for (int i = 0; i < 100; ++i) {
      const auto before = fs::last_write_time(file_);
      std::this_thread::sleep_for(milliseconds(60));
      if (fs::last_write_time(file_) == before) return true;
    }
    return false;
  }

  std::string folder_ = testing::TempDir() + "freezer-" + std::to_string(getpid());
  std::string file_ = folder_ + "/count";
  long last_ = -1;
};

TEST_P(FreezerTest, LetsAllStandStillAndGoOn) {
  const Counting counting(file_);
  ASSERT_TRUE(moves());
  constexpr Ns kLong = 300'000'000'000;  // nobody tells it meanwhile that all is well
  auto guard = faults::Guard::start(folder_ + "/state", kLong);
  ASSERT_TRUE(guard) << to_string(guard.error());
  auto freezer = Freezer::take(counting.id(), "culprit-test-" + std::to_string(getpid()), *guard, GetParam());
  ASSERT_TRUE(freezer) << to_string(freezer.error());
  if (GetParam() && freezer->how() == "SIGSTOP") GTEST_SKIP() << "no freezer of control groups here";
  EXPECT_GE(freezer->processes().size(), 2U);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(freezer->freeze());
    EXPECT_TRUE(stands()) << round;
    ASSERT_TRUE(freezer->thaw());
    EXPECT_TRUE(moves()) << round;
  }
  EXPECT_TRUE(guard->undo().empty());
  EXPECT_TRUE(moves());
  for (const FreezerGroup& group : freezer_groups_of(counting.id().pid))
    EXPECT_EQ(group.folder.find("culprit-test"), std::string::npos) << "it is still in a group of ours";
}

TEST_P(FreezerTest, TheGuardLetsThemGoOn) {
  const Counting counting(file_);
  ASSERT_TRUE(moves());
  const pid_t owner = fork();
  if (owner == 0) {
    auto guard = faults::Guard::start(folder_ + "/state");
    if (!guard) _exit(1);
    auto freezer = Freezer::take(counting.id(), "culprit-test-" + std::to_string(getpid()), *guard, GetParam());
    if (!freezer || !freezer->freeze()) _exit(1);
    fs::create_directory(folder_ + "/frozen");
    pause();
    _exit(0);
  }
  for (int i = 0; i < 2000 && !fs::exists(folder_ + "/frozen"); ++i) std::this_thread::sleep_for(milliseconds(2));
  ASSERT_TRUE(fs::exists(folder_ + "/frozen"));
  EXPECT_TRUE(stands());
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(moves());
  for (int i = 0; i < 1000 && fs::exists(folder_ + "/state"); ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(fs::exists(folder_ + "/state")) << "the guard has not finished";
}

INSTANTIATE_TEST_SUITE_P(Ways, FreezerTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Groups" : "Signals"; });

TEST(Freezer, ASideThatTookItsGroupAlongStandsStillAndLeavesNothingToRestore) {
  const std::string folder = testing::TempDir() + "freezer-gone-" + std::to_string(getpid());
  fs::create_directories(folder);
  std::optional<Counting> counting(std::in_place, folder + "/count");
  auto guard = faults::Guard::start(folder + "/state");
  ASSERT_TRUE(guard) << to_string(guard.error());
  auto freezer = Freezer::take(counting->id(), "culprit-gone-" + std::to_string(getpid()), *guard);
  ASSERT_TRUE(freezer) << to_string(freezer.error());
  std::string group;
  for (const FreezerGroup& one : freezer_groups_of(counting->id().pid))
    if (one.folder.find("culprit-gone") != std::string::npos) group = one.folder;
  counting.reset();
  if (!group.empty()) {
    for (int i = 0; i < 1000 && rmdir(group.c_str()) != 0; ++i) std::this_thread::sleep_for(milliseconds(2));
    ASSERT_FALSE(fs::exists(group));
  }
  EXPECT_TRUE(freezer->over());
  EXPECT_TRUE(freezer->freeze());
  EXPECT_TRUE(freezer->thaw());
  EXPECT_TRUE(guard->undo().empty());
  EXPECT_FALSE(fs::exists(folder + "/state"));
  fs::remove_all(folder);
}

TEST(Freezer, WhoWaitsForAChildOfVforkStandsStillWithIt) {
  const std::string state = testing::TempDir() + "freezer-state-" + std::to_string(getpid());
  const pid_t pid = fork();
  if (pid == 0) {
    // The child has this one's memory until it runs a program of its own.
    if (vfork() == 0)
      for (;;) pause();
    _exit(0);
  }
  const faults::ProcessId id = faults::process_facts(pid)->id;
  for (int i = 0; i < 1000 && faults::process_tree(id).size() < 2; ++i) std::this_thread::sleep_for(milliseconds(2));
  auto guard = faults::Guard::start(state);
  ASSERT_TRUE(guard);
  auto freezer = Freezer::take(id, "culprit-test", *guard, false);
  ASSERT_TRUE(freezer) << to_string(freezer.error());
  ASSERT_EQ(freezer->processes().size(), 2U);
  EXPECT_TRUE(freezer->freeze());
  EXPECT_TRUE(freezer->thaw());
  for (const faults::ProcessId& process : freezer->processes()) kill(process.pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  guard->undo();
}

TEST(Freezer, WhoIsStoppedAlreadyIsRefused) {
  const std::string state = testing::TempDir() + "freezer-state-" + std::to_string(getpid());
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  kill(pid, SIGSTOP);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED);
  auto guard = faults::Guard::start(state);
  ASSERT_TRUE(guard);
  const auto freezer = Freezer::take(faults::process_facts(pid)->id, "culprit-test", *guard);
  ASSERT_FALSE(freezer);
  EXPECT_NE(freezer.error().what.find("stopped already"), std::string::npos);
  guard->undo();
  EXPECT_EQ(faults::process_facts(pid)->state, 'T');  // as it was
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(FreezerGroups, AreThoseOfTheProcess) {
  const fs::path root = testing::TempDir() + "groups-" + std::to_string(getpid());
  fs::create_directories(root / "proc/7");
  fs::create_directories(root / "v1/app");
  fs::create_directories(root / "v2/slice/unit");
  const auto write = [](const fs::path& path, const std::string& text) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
  };
  write(root / "proc/7/cgroup", "5:freezer:/app\n3:cpu,cpuacct:/other\n0::/slice/unit\n");
  write(root / "mounts", "cgroup " + (root / "v1").string() + " cgroup rw,freezer 0 0\ncgroup2 " +
                             (root / "v2").string() + " cgroup2 rw 0 0\n");
  const auto groups = freezer_groups_of(7, {(root / "proc").string(), (root / "mounts").string()});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_TRUE(groups[0].version2);
  EXPECT_EQ(groups[0].file(), (root / "v2/slice/unit/cgroup.freeze").string());
  EXPECT_EQ(groups[1].file(), (root / "v1/app/freezer.state").string());
  write(root / "proc/7/cgroup", "5:freezer:/../outside\n");
  EXPECT_TRUE(freezer_groups_of(7, {(root / "proc").string(), (root / "mounts").string()}).empty());
  fs::remove_all(root);
}

}  // namespace
}  // namespace culprit::ab
