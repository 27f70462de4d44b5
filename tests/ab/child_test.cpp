#include "ab/child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/file.h"
#include "faults/process.h"
#include "support/temp_file.h"

namespace culprit::ab {
namespace {

TEST(Child, InterruptedItEndsAllThatItsCommandStarted) {
  Work work;
  work.recorded = false;
  work.record.command = {"sh", "-c", "sleep 1000; true"};
  auto child = Child::start(work);
  ASSERT_TRUE(child) << to_string(child.error());
  ASSERT_TRUE(child->wait_until_begun());
  const faults::ProcessId own = faults::process_facts(getpid())->id;
  // Itself, the child, the shell, what that runs.
  std::vector<faults::ProcessId> all;
  for (int i = 0; i < 2000 && all.size() < 4; ++i) {
    all = faults::process_tree(own);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ASSERT_EQ(all.size(), 4U);
  child->interrupt();
  EXPECT_TRUE(child->wait());
  for (const faults::ProcessId& process : all) {
    if (process == own) continue;
    const auto facts = faults::process_facts(process.pid);
    EXPECT_TRUE(!facts || facts->id != process || facts->state == 'Z') << process.pid;
  }
}

TEST(Child, ItsCommandHasADirectoryAndATemporaryOneOfItsOwn) {
  const test::TempDir folder;
  Work work;
  work.recorded = false;
  work.record.command = {"sh", "-c", R"(pwd; echo "$TMPDIR")"};
  work.text = folder.path("printed.txt");
  work.directory = folder.path("directory");
  work.temporary = folder.path("temporary");
  std::filesystem::create_directory(work.directory);
  auto child = Child::start(work);
  ASSERT_TRUE(child) << to_string(child.error());
  EXPECT_TRUE(child->wait());
  const auto printed = read_file(work.text);
  ASSERT_TRUE(printed) << to_string(printed.error());
  EXPECT_EQ(*printed, work.directory + "\n" + work.temporary + "\n");
}

}  // namespace
}  // namespace culprit::ab
