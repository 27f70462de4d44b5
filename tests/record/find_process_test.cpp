#include "record/find_process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/fake_machine.h"

namespace culprit::record {
namespace {

using Pids = std::vector<std::int64_t>;

constexpr std::int64_t kOwn = 900;

/// A /proc with the recorder, its shell, and what a test adds.
struct FindProcess : testing::Test {
  test::FakeMachine machine;
  void SetUp() override {
    put(1, 0, "systemd", "/sbin/init", "systemd");
    put(800, 1, "bash", "-bash", "bash");
    put(kOwn, 800, "culprit", "culprit", "culprit");
  }
  void put(long pid, long parent, const std::string& comm, const std::string& title, const std::string& program) {
    machine.process(pid, comm, 0, 0, 0, 0, 0, parent);
    const std::string folder = fmt::format("/proc/{}/", pid);
    machine.put(folder + "comm", comm + "\n");
    machine.put(folder + "cmdline", title + '\0');
    std::filesystem::create_symlink("/usr/bin/" + program, machine.root() + folder + "exe");
  }
  [[nodiscard]] std::vector<FoundProcess> all() const { return list_processes(machine.root() + "/proc", kOwn); }
  static Pids pids(const std::vector<FoundProcess>& processes) {
    Pids found;
    for (const FoundProcess& process : processes) found.push_back(process.pid);
    return found;
  }
  [[nodiscard]] Pids matched(const std::string& name) const { return pids(match_processes(all(), name)); }
  [[nodiscard]] Pids roots(const std::string& name) const { return pids(eldest(match_processes(all(), name), all())); }
  [[nodiscard]] bool family(const std::string& name) const {
    return is_family(eldest(match_processes(all(), name), all()));
  }
};

TEST_F(FindProcess, AnyOfItsNamesWillDo) {
  put(10, 1, "redis-server", "/usr/bin/redis-server *:6379", "redis-check-rdb");
  put(20, 1, "VLLM::EngineCor", "VLLM::EngineCore", "python3.11");
  EXPECT_EQ(matched("redis-server"), Pids{10});
  EXPECT_EQ(matched("redis-check-rdb"), Pids{10});
  EXPECT_EQ(matched("VLLM::EngineCore"), Pids{20});
  EXPECT_EQ(matched("VLLM::EngineCor"), Pids{20});
  EXPECT_EQ(matched("python3.11"), Pids{20});
}

TEST_F(FindProcess, AnExactNameBeatsOneThatOnlyBeginsSo) {
  put(10, 1, "redis", "redis", "redis");
  put(20, 1, "redis-server", "redis-server", "redis-server");
  EXPECT_EQ(matched("redis"), Pids{10});
  EXPECT_EQ(matched("redis-"), Pids{20});
  EXPECT_EQ(matched("edis"), (Pids{10, 20}));
  EXPECT_EQ(matched("SERVER"), Pids{20});
}

TEST_F(FindProcess, NeitherTheRecorderNorWhoStartedItIsMeant) {
  put(30, 1, "bash", "bash", "bash");
  EXPECT_EQ(matched("bash"), Pids{30});
  EXPECT_EQ(matched("culprit"), Pids{});
  EXPECT_EQ(matched("systemd"), Pids{});
}

TEST_F(FindProcess, NobodyIsCalledByNothing) {
  EXPECT_EQ(matched(""), Pids{});
  EXPECT_EQ(matched("nonexistent"), Pids{});
}

TEST_F(FindProcess, ThreadsOfTheKernelAndZombiesAreNotMeant) {
  put(40, 1, "sleep", "", "sleep");
  machine.put("/proc/40/stat", "40 (sleep) Z 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0");
  put(50, 2, "rcu_gp", "", "");
  machine.put("/proc/50/stat", "50 (rcu_gp) I 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0");
  EXPECT_EQ(matched("sleep"), Pids{});
  EXPECT_EQ(matched("rcu_gp"), Pids{});
}

TEST_F(FindProcess, AParentAndItsWorkersAreAFamily) {
  put(60, 1, "postgres", "/usr/bin/postgres", "postgres");
  put(61, 60, "postgres", "postgres: checkpointer", "postgres");
  put(62, 60, "sh", "sh", "dash");
  put(63, 62, "postgres", "postgres: archiver", "postgres");
  EXPECT_EQ(matched("postgres"), (Pids{60, 61, 63}));
  EXPECT_EQ(roots("postgres"), Pids{60});
  EXPECT_TRUE(family("postgres"));
  EXPECT_EQ(matched("postgres: checkpointer"), Pids{61});
  EXPECT_EQ(matched("checkpointer"), Pids{61});
}

TEST_F(FindProcess, SiblingsAreAFamilyButNotTheOrphansOfTheFirstProcess) {
  put(70, 1, "make", "make", "make");
  put(71, 70, "cc1", "cc1", "cc1");
  put(72, 70, "cc1", "cc1", "cc1");
  put(81, 1, "redis-server", "redis-server", "redis-server");
  put(82, 1, "redis-server", "redis-server", "redis-server");
  put(91, 70, "worker", "worker", "worker");
  put(92, 81, "worker", "worker", "worker");
  EXPECT_TRUE(family("cc1"));
  EXPECT_EQ(roots("cc1"), (Pids{71, 72}));
  EXPECT_FALSE(family("redis-server"));
  EXPECT_FALSE(family("worker"));
  EXPECT_FALSE(family("nonexistent"));
}

TEST_F(FindProcess, ARingOfParentsEnds) {
  put(10, 11, "a", "a", "a");
  put(11, 10, "a", "a", "a");
  EXPECT_EQ(matched("a"), (Pids{10, 11}));
  EXPECT_FALSE(family("a"));
}

}  // namespace
}  // namespace culprit::record
