// Threads that wait for a CPU from the begin of a recording on.
#include "record/sched/queued.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "record/collector/agent_name.h"

namespace culprit::record::sched {
namespace {

class QueuedThreads : public testing::Test {
 protected:
  QueuedThreads() { std::filesystem::remove_all(proc_); }

  void put(const std::string& tid, const std::string& name, const std::string& state, const std::string& schedstat) {
    const std::filesystem::path folder = proc_ / "70/task" / tid;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat") << tid + " (" + name + ") " + state + " 1 1 1\n";
    std::ofstream(folder / "schedstat") << schedstat;
  }
  [[nodiscard]] std::vector<QueuedThread> threads(std::size_t most = 100) const {
    auto all = queued_threads(70, most, proc_);
    std::ranges::sort(all, {}, &QueuedThread::tid);
    return all;
  }

  std::filesystem::path proc_ = std::filesystem::path(testing::TempDir()) / ("queued_proc" + std::to_string(getpid()));
};

TEST_F(QueuedThreads, WhoCanRunWithItsNameAndWhatItRan) {
  put("70", "a) S (b", "R", "123 4 5\n");
  put("71", "x", "S", "1 1 1\n");
  put("72", "y", "D", "1 1 1\n");
  put("73", "z", "T", "1 1 1\n");
  put("74", "a) R (b", "S", "1 1 1\n");
  const auto all = threads();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].tid, 70);
  EXPECT_EQ(all[0].tgid, 70);
  EXPECT_EQ(all[0].name, "a) S (b");
  EXPECT_EQ(all[0].run_ns, 123U);
}

TEST_F(QueuedThreads, NeitherTheAgentNorWhatCannotBeRead) {
  put("70", std::string(kAgentName), "R", "1 1 1\n");
  put("71", "x", "R", "none");
  put("x", "y", "R", "1 1 1\n");
  EXPECT_TRUE(threads().empty());
  EXPECT_TRUE(queued_threads(80, 100, proc_).empty());
}

TEST_F(QueuedThreads, NoMoreThanAsked) {
  for (const char* tid : {"70", "71", "72"}) put(tid, "x", "R", "1 1 1\n");
  EXPECT_EQ(threads(2).size(), 2U);
}

TEST_F(QueuedThreads, StillQueuedIsWhoHasNotRunSince) {
  put("70", "x", "R", "123 4 5\n");
  const QueuedThread thread = threads().at(0);
  EXPECT_TRUE(is_still_queued(thread, proc_));
  put("70", "x", "R", "124 4 5\n");
  EXPECT_FALSE(is_still_queued(thread, proc_));
  put("70", "x", "S", "123 4 5\n");
  EXPECT_FALSE(is_still_queued(thread, proc_));
  std::filesystem::remove_all(proc_);
  EXPECT_FALSE(is_still_queued(thread, proc_));
}

}  // namespace
}  // namespace culprit::record::sched
