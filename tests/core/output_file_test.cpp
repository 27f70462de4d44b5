#include "core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace culprit {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kSomebody = 65534;

struct OutputFileTest : testing::Test {
  fs::path dir;
  mode_t umask_before = 0;
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "culprit-output-XXXXXX").string();
    dir = mkdtemp(pattern.data());
    umask_before = umask(022);
  }
  void TearDown() override {
    umask(umask_before);
    fs::remove_all(dir);
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (dir / name).string(); }
  static std::string text_of(const fs::path& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  void put(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    std::ofstream(at(name)) << text;
    ASSERT_EQ(chmod(at(name).c_str(), mode), 0);
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777U;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir)) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  static Status save(const std::string& path, const OutputPolicy& policy, std::string_view text = "new") {
    auto file = OutputFile::create(path, policy);
    if (!file) return file.error();
    if (Status status = file->write(text); !status) return status;
    return file->commit();
  }
};

using Names = std::vector<std::string>;

TEST_F(OutputFileTest, AFileGetsItsNameWhenItIsComplete) {
  auto file = OutputFile::create(at("a"), {});
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("hello").ok());
  EXPECT_FALSE(fs::exists(at("a")));
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(text_of(at("a")), "hello");
  EXPECT_EQ(names(), Names{"a"});
  EXPECT_TRUE(file->commit().ok());
}

TEST_F(OutputFileTest, NewFilesHaveTheModeThatWasAskedForNarrowedByTheUmask) {
  ASSERT_TRUE(save(at("report"), {kReportMode, false}).ok());
  EXPECT_EQ(mode_of(at("report")), 0644U);
  ASSERT_TRUE(save(at("recording"), {kPrivateMode, false}).ok());
  EXPECT_EQ(mode_of(at("recording")), 0600U);
  umask(077);
  ASSERT_TRUE(save(at("careful"), {kReportMode, false}).ok());
  EXPECT_EQ(mode_of(at("careful")), 0600U);
}

TEST_F(OutputFileTest, AnExistingFileIsRefusedAndKept) {
  put("a", "old");
  const Status refused = save(at("a"), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_NE(refused.error().remedy.find("--force"), std::string::npos);
  EXPECT_FALSE(OutputFile::check(at("a"), false).ok());
  EXPECT_TRUE(OutputFile::check(at("a"), true).ok());
  EXPECT_TRUE(OutputFile::check(at("b"), false).ok());
  EXPECT_EQ(text_of(at("a")), "old");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(OutputFileTest, AFileThatAppearsMeanwhileIsRefusedAndKept) {
  auto file = OutputFile::create(at("a"), {});
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("new").ok());
  put("a", "theirs");
  const Status status = file->commit();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
  EXPECT_EQ(text_of(at("a")), "theirs");
}

TEST_F(OutputFileTest, AReplacedFileKeepsItsPermissions) {
  for (const mode_t mode : {0600U, 0640U, 0664U, 0444U}) {
    put("a", "old", mode);
    for (const mode_t wanted : {kReportMode, kPrivateMode}) {
      ASSERT_TRUE(save(at("a"), {wanted, true}).ok());
      EXPECT_EQ(mode_of(at("a")), mode);
    }
    EXPECT_EQ(text_of(at("a")), "new");
    fs::remove(at("a"));
  }
}

TEST_F(OutputFileTest, AFileIsNeverMoreOpenThanTheOneItReplacesWhileItIsWritten) {
  put("a", "old", 0600);
  auto file = OutputFile::create(at("a"), {kReportMode, true});
  ASSERT_TRUE(file.ok());
  for (const std::string& name : names()) EXPECT_EQ(mode_of(at(name)), 0600U) << name;
}

TEST_F(OutputFileTest, SpecialPermissionBitsAreNotKept) {
  put("a", "old", 04755);
  ASSERT_TRUE(save(at("a"), {kReportMode, true}).ok());
  EXPECT_EQ(mode_of(at("a")), 0755U);
}

TEST_F(OutputFileTest, AFileOfAnotherUserGivesItsReplacementNoPermissionOfItsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a file of another user";
  put("open", "old", 0666);
  put("closed", "old", 0600);
  for (const char* name : {"open", "closed"}) ASSERT_EQ(chown(at(name).c_str(), kSomebody, kSomebody), 0);
  ASSERT_TRUE(save(at("open"), {kPrivateMode, true}).ok());
  EXPECT_EQ(mode_of(at("open")), 0600U);
  ASSERT_TRUE(save(at("closed"), {kReportMode, true}).ok());
  EXPECT_EQ(mode_of(at("closed")), 0600U);
  struct stat status {};
  ASSERT_EQ(stat(at("open").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0U);
}

TEST_F(OutputFileTest, WithoutCommitTheOldFileStays) {
  put("a", "old");
  {
    auto file = OutputFile::create(at("a"), {kReportMode, true});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("new").ok());
  }
  EXPECT_EQ(text_of(at("a")), "old");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(OutputFileTest, WhatALinkNamesStaysUntouched) {
  put("victim", "precious", 0600);
  fs::create_symlink(at("victim"), at("soft"));
  fs::create_hard_link(at("victim"), at("hard"));
  fs::create_symlink(at("nothing"), at("dangling"));
  for (const char* name : {"soft", "hard", "dangling"}) {
    EXPECT_EQ(save(at(name), {}).error().kind, ErrorKind::usage) << name;
    ASSERT_TRUE(save(at(name), {kReportMode, true}).ok()) << name;
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(at(name)))) << name;
    EXPECT_EQ(text_of(at(name)), "new") << name;
    EXPECT_EQ(text_of(at("victim")), "precious") << name;
  }
  EXPECT_EQ(names(), (Names{"dangling", "hard", "soft", "victim"}));
}

TEST_F(OutputFileTest, ALinkThatReplacesTheFileMeanwhileIsNotFollowed) {
  put("victim", "precious");
  auto file = OutputFile::create(at("a"), {kReportMode, true});
  ASSERT_TRUE(file.ok());
  fs::create_symlink(at("victim"), at("a"));
  ASSERT_TRUE(file->write("new").ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(text_of(at("victim")), "precious");
  EXPECT_EQ(text_of(at("a")), "new");
}

TEST_F(OutputFileTest, OnlyWhatWasMadeIsRemoved) {
  {
    auto file = OutputFile::create(at("a"), {});
    ASSERT_TRUE(file.ok());
    ASSERT_EQ(names().size(), 1U);
    const std::string temporary = names().front();
    fs::remove(at(temporary));
    put(temporary, "theirs");
  }
  ASSERT_EQ(names().size(), 1U);
  EXPECT_EQ(text_of(at(names().front())), "theirs");
}

TEST_F(OutputFileTest, TheFolderIsTheOneThatWasOpened) {
  fs::create_directory(at("mine"));
  auto file = OutputFile::create(at("mine/a"), {});
  ASSERT_TRUE(file.ok());
  fs::rename(at("mine"), at("moved"));
  fs::create_directory(at("theirs"));
  fs::create_directory_symlink(at("theirs"), at("mine"));
  ASSERT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::exists(at("moved/a")));
  EXPECT_TRUE(fs::is_empty(at("theirs")));
}

TEST_F(OutputFileTest, APublishedFileGrowsAndStays) {
  {
    auto file = OutputFile::create(at("a"), {kPrivateMode, false});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("one ").ok());
    ASSERT_TRUE(file->publish().ok());
    EXPECT_EQ(text_of(at("a")), "one ");
    ASSERT_TRUE(file->write("two").ok());
    ASSERT_TRUE(file->publish().ok());
    EXPECT_EQ(file->bytes(), 7U);
  }
  EXPECT_EQ(text_of(at("a")), "one two");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(OutputFileTest, CutTakesOffTheEndAndWritingGoesOnThere) {
  auto file = OutputFile::create(at("a"), {});
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("whole torn").ok());
  ASSERT_TRUE(file->cut(6).ok());
  EXPECT_EQ(file->bytes(), 6U);
  ASSERT_TRUE(file->write("again").ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(text_of(at("a")), "whole again");
}

/// Another process that writes a file until it is told to end; it gave the file its name when `published`.
struct Writer {
  pid_t pid = -1;
  std::array<int, 2> end{-1, -1};
  explicit Writer(const std::string& path, bool published) {
    std::array<int, 2> begun{};
    EXPECT_EQ(pipe(begun.data()) + pipe(end.data()), 0);
    pid = fork();
    if (pid == 0) {
      close(end[1]);
      auto file = OutputFile::create(path, {kPrivateMode, true});
      const bool fine = file.ok() && file->write("theirs").ok() && (!published || file->publish().ok());
      char byte = fine ? 'y' : 'n';
      static_cast<void>(::write(begun[1], &byte, 1));
      static_cast<void>(::read(end[0], &byte, 1));
      _exit(0);  // as if it was killed: what has no name yet stays
    }
    char byte = 'n';
    EXPECT_EQ(::read(begun[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
    for (const int fd : {begun[0], begun[1], end[0]}) close(fd);
  }
  void die() {
    close(std::exchange(end[1], -1));
    waitpid(pid, nullptr, 0);
  }
  ~Writer() {
    if (end[1] >= 0) die();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
};

TEST_F(OutputFileTest, AFileThatSomebodyStillWritesIsNotReplaced) {
  for (const bool published : {false, true}) {
    put("a", "old");
    Writer other(at("a"), published);
    const Names before = names();
    const Status refused = save(at("a"), {kPrivateMode, true});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    EXPECT_NE(refused.error().what.find(fmt::format("is being written by process {}", other.pid)), std::string::npos)
        << refused.error().what;
    EXPECT_EQ(names(), before);
    EXPECT_EQ(text_of(at("a")), published ? "theirs" : "old");
    other.die();
    EXPECT_TRUE(save(at("a"), {kPrivateMode, true}).ok());
    EXPECT_EQ(text_of(at("a")), "new");
    EXPECT_EQ(names(), Names{"a"}) << "nor is anything of the dead left";
  }
}

TEST_F(OutputFileTest, AFileThatSomebodyPublishedMeanwhileIsNotReplaced) {
  auto file = OutputFile::create(at("a"), {kPrivateMode, true});
  ASSERT_TRUE(file.ok());
  const std::string temporary = names().front();
  fs::rename(at(temporary), at("hidden"));  // the other does not see it
  Writer other(at("a"), true);
  fs::rename(at("hidden"), at(temporary));
  const Status refused = file->commit();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what.find("is being written"), std::string::npos) << refused.error().what;
  EXPECT_EQ(text_of(at("a")), "theirs");
}

TEST_F(OutputFileTest, OnlyOwnRegularFilesOfTheDeadAreRemoved) {
  constexpr int kNobody = 4'194'305;  // above all process ids
  const auto left = [&](std::string_view name, std::string_view tail = ".0.tmp") {
    return fmt::format("{}.{}{}", name, kNobody, tail);
  };
  put(left("a"), "stale");
  put(fmt::format("a.{}.0.tmp", getppid()), "of somebody alive");
  put("a.tmp", "x");
  put("a.12.tmp", "x");
  put(left("a", ".x.tmp"), "x");
  put(left("b"), "of another name");
  put("precious", "x");
  fs::create_symlink("precious", at(left("a", ".1.tmp")));
  fs::create_directory(at(left("a", ".2.tmp")));
  ASSERT_EQ(mkfifo(at(left("a", ".3.tmp")).c_str(), 0600), 0);
  Names kept = names();
  std::erase(kept, left("a"));
  if (geteuid() == 0) {
    put(left("a", ".4.tmp"), "of another user");
    ASSERT_EQ(chown(at(left("a", ".4.tmp")).c_str(), kSomebody, kSomebody), 0);
    kept.push_back(left("a", ".4.tmp"));
  }
  kept.emplace_back("a");
  std::ranges::sort(kept);
  ASSERT_TRUE(save(at("a"), {}).ok());
  EXPECT_EQ(names(), kept);
}

TEST_F(OutputFileTest, ErrorsAreReturned) {
  EXPECT_EQ(OutputFile::create(at("no/a"), {}).error().kind, ErrorKind::environment);
  EXPECT_EQ(OutputFile::create(dir, {}).error().kind, ErrorKind::usage);
  EXPECT_EQ(OutputFile::create(dir, {kReportMode, true}).error().kind, ErrorKind::usage);
  EXPECT_FALSE(OutputFile::create(dir.string() + "/", {kReportMode, true}).ok());
  EXPECT_FALSE(OutputFile::create("", {}).ok());
  put("file", "");
  EXPECT_FALSE(OutputFile::create(at("file/a"), {}).ok());
  EXPECT_FALSE(OutputFile::create("/dev/fd/987", {})->write("x").ok());
}

TEST_F(OutputFileTest, ASocketIsRefused) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = at("socket");
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(OutputFile::create(path, {kReportMode, true}).error().kind, ErrorKind::usage);
  EXPECT_TRUE(fs::is_socket(path));
  close(fd);
}

TEST_F(OutputFileTest, DevicesAreWrittenAsTheyAreAndStay) {
  for (const bool replace : {false, true}) {
    auto file = OutputFile::create("/dev/null", {kPrivateMode, replace});
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(file->write("x").ok());
    EXPECT_TRUE(file->cut(0).ok());
    EXPECT_TRUE(file->commit().ok());
    EXPECT_EQ(save("/dev/full", {kPrivateMode, replace}).error().kind, ErrorKind::environment);
  }
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(OutputFileTest, APipeIsWrittenAndStays) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(OutputFile::is_stream(at("pipe")));
  EXPECT_TRUE(OutputFile::check(at("pipe"), false).ok());
  std::string got;
  std::thread reader([&] { got = text_of(at("pipe")); });
  EXPECT_TRUE(save(at("pipe"), {}).ok());
  reader.join();
  EXPECT_EQ(got, "new");
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

TEST_F(OutputFileTest, AReaderThatGoesAwayIsNoError) {
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  auto file = OutputFile::create("/dev/fd/" + std::to_string(ends[1]), {});
  ASSERT_TRUE(file.ok());
  close(ends[0]);
  EXPECT_TRUE(file->write("x").ok());
  EXPECT_TRUE(file->closed());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_NE(fcntl(ends[1], F_GETFD), -1) << "not its to close";
  close(ends[1]);
}

TEST_F(OutputFileTest, APipeThatAnotherUserPutIntoASharedFolderIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a pipe of another user";
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0666), 0);
  ASSERT_EQ(chown(at("pipe").c_str(), kSomebody, kSomebody), 0);
  ASSERT_EQ(chmod(dir.c_str(), 01777), 0);
  EXPECT_EQ(OutputFile::create(at("pipe"), {kPrivateMode, true}).error().kind, ErrorKind::environment);
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

TEST_F(OutputFileTest, OwnDescriptorsAreWrittenWhereTheyStand) {
  const int fd = open(at("log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(fd, "before ", 7), 7);
  for (const char* folder : {"/dev/fd/", "/proc/self/fd/"}) {
    const std::string path = folder + std::to_string(fd);
    EXPECT_TRUE(OutputFile::is_stream(path));
    EXPECT_TRUE(save(path, {}, "one ").ok());
  }
  EXPECT_EQ(text_of(at("log")), "before one one ");
  close(fd);
}

TEST_F(OutputFileTest, LongNamesFit) {
  const std::string name(255, 'x');
  ASSERT_TRUE(save(at(name), {}).ok());
  EXPECT_EQ(names(), Names{name});
}

}  // namespace
}  // namespace culprit
