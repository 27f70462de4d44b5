#include "core/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace culprit {
namespace {

namespace fs = std::filesystem;

struct AtomicFileTest : testing::Test {
  fs::path dir = fs::temp_directory_path() / ("culprit_atomic_" + std::to_string(getpid()));
  void SetUp() override { fs::create_directories(dir); }
  void TearDown() override { fs::remove_all(dir); }
  static std::string text_of(const fs::path& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir), fs::directory_iterator()));
  }
};

TEST_F(AtomicFileTest, CommitGivesTheNameAndTheMode) {
  auto file = AtomicFile::create(dir / "a", 0600);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("hello").ok());
  EXPECT_FALSE(fs::exists(dir / "a"));
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(text_of(dir / "a"), "hello");
  struct stat status {};
  ASSERT_EQ(stat((dir / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(AtomicFileTest, WithoutCommitTheOldFileStays) {
  std::ofstream(dir / "a") << "old";
  {
    auto file = AtomicFile::create(dir / "a", 0600);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("new").ok());
  }
  EXPECT_EQ(text_of(dir / "a"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFileTest, ErrorsAreReturned) {
  EXPECT_EQ(AtomicFile::create(dir / "no" / "a", 0600).error().kind, ErrorKind::environment);
  EXPECT_EQ(AtomicFile::create(dir, 0600).error().kind, ErrorKind::usage);
}

TEST_F(AtomicFileTest, SpecialFilesAreWrittenDirectly) {
  auto file = AtomicFile::create("/dev/null", 0600);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->write("x").ok());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace culprit
