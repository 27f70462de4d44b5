// Runs the program, ends it in every way there is, and looks whether the machine is as before.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "core/file.h"
#include "faults/cgroup.h"
#include "faults/guard.h"
#include "faults/process.h"
#include "support/child_process.h"

namespace culprit::faults {
namespace {

using nlohmann::json;

/// A target with a child and a grandchild that are born and die, all of them busy.
void busy_family() {
  if (fork() == 0) {
    while (true) {
      const pid_t child = fork();
      if (child != 0) {
        waitpid(child, nullptr, 0);
        continue;
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      while (std::chrono::steady_clock::now() < end) {
      }
      _exit(0);
    }
  }
  while (true) {
  }
}

struct Inject : testing::Test {
  test::Folder runtime;  ///< state files
  test::Folder work;     ///< files of the fault, and stand-ins for programs
  std::string answer = work.path + "/answer.json";
  pid_t program = -1;

  void start(std::vector<std::string> arguments, const std::string& path_first = "") {
    arguments.insert(arguments.begin(), {std::string(CULPRIT_BINARY_DIR) + "/culprit", "inject"});
    arguments.insert(arguments.end(), {"--json", "-o", answer});
    unlink((work.path + "/log").c_str());  // what an earlier run said must not be taken for this one
    unlink(answer.c_str());
    program = fork();
    if (program != 0) return;
    setpgid(0, 0);
    setenv("XDG_RUNTIME_DIR", runtime.path.c_str(), 1);
    if (!path_first.empty()) setenv("PATH", (path_first + ":/usr/bin:/bin").c_str(), 1);
    const int log = open((work.path + "/log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log, STDERR_FILENO);
    std::vector<char*> raw;
    for (std::string& argument : arguments) raw.push_back(argument.data());
    raw.push_back(nullptr);
    execv(raw[0], raw.data());
    _exit(126);
  }
  int wait() {
    int status = 0;
    waitpid(program, &status, 0);
    program = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(std::vector<std::string> arguments, const std::string& path_first = "") {
    start(std::move(arguments), path_first);
    return wait();
  }
  json result() const { return json::parse(read_beginning(answer).value_or("null")); }
  std::string log() const { return read_beginning(work.path + "/log").value_or(""); }
  std::string states() const { return runtime.path + "/culprit"; }
  bool acting() const { return log().find("injecting") != std::string::npos; }
  void TearDown() override {
    if (program > 0) {
      kill(program, SIGKILL);
      wait();
    }
    EXPECT_TRUE(test::eventually([&] { return runtime.entries("/culprit").empty(); })) << "a state file is left";
  }
};

/// Faults that change something outside of the injector, and the proof that nothing is left.
struct Lasting {
  std::string name;
  bool changed_back(const test::Folder& work, pid_t target, const std::string& origin) const {
    if (name == "disk") {
      for (const std::string& entry : work.entries())
        if (entry.starts_with("culprit-fault")) return false;
      return true;
    }
    for (const ProcessId& process : process_tree(process_facts(target)->id)) {
      const auto facts = process_facts(process.pid);
      if (facts && facts->state == 'T') return false;
      const auto group = cpu_cgroup_of(process.pid);
      if (group && group->folder() != origin) return false;
    }
    if (name != "cgroup-throttle") return true;
    for (const auto& entry : std::filesystem::directory_iterator(origin))
      if (entry.path().filename().string().starts_with("culprit-fault")) return false;
    return true;
  }
};

/// While it lives, no other process that has one changes the cgroup of this program.
class CgroupTurn {
 public:
  CgroupTurn() : folder_(open(cpu_cgroup_of(getpid())->folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    EXPECT_EQ(flock(folder_, LOCK_EX), 0);
  }
  ~CgroupTurn() {
    flock(folder_, LOCK_UN);  // children have it, too
    close(folder_);
  }
  CgroupTurn(const CgroupTurn&) = delete;
  CgroupTurn& operator=(const CgroupTurn&) = delete;

 private:
  int folder_;
};

bool no_quota_here() { return geteuid() != 0 || !cpu_cgroup_of(getpid()); }

struct KillTest : Inject, testing::WithParamInterface<std::string> {
  std::optional<CgroupTurn> turn;
  void SetUp() override {
    if (GetParam() != "cgroup-throttle") return;
    if (no_quota_here()) GTEST_SKIP() << GetParam() << " needs root and a cgroup with the CPU controller";
    turn.emplace();
  }
  std::vector<std::string> arguments(pid_t target) const {
    return {GetParam(), "--severity",           "0.6",    "--duration", "20s",
            "--target", std::to_string(target), "--path", work.path};
  }
  void expect_restored(pid_t target, const std::string& origin, const std::string& when) {
    const Lasting fault{GetParam()};
    EXPECT_TRUE(test::eventually([&] { return fault.changed_back(work, target, origin); })) << when;
    // And it stays so: nobody is left who changes it again.
    usleep(150'000);
    EXPECT_TRUE(fault.changed_back(work, target, origin)) << when;
    EXPECT_TRUE(test::eventually([&] { return runtime.entries("/culprit").empty(); })) << when;
  }
  std::string origin_of(pid_t target) const {
    const auto group = cpu_cgroup_of(target);
    return group ? group->folder() : std::string();
  }
};

TEST_P(KillTest, SigkillAtRandomPointsRestoresTheMachine) {
  std::mt19937 random(std::random_device{}());
  int acted = 0;
  for (int round = 0; round < 8; ++round) {
    const test::Child target(busy_family);
    const std::string origin = origin_of(target.pid);
    start(arguments(target.pid));
    // Half of them while it starts, half while it acts.
    if (round % 2 == 1) {
      ASSERT_TRUE(test::eventually([&] { return acting(); })) << log();
    }
    const auto wait_us = std::uniform_int_distribution<unsigned>(0, round % 2 == 1 ? 300'000 : 60'000)(random);
    usleep(wait_us);
    acted += acting() ? 1 : 0;
    kill(program, SIGKILL);
    EXPECT_EQ(wait(), 128 + SIGKILL);
    expect_restored(target.pid, origin, fmt::format("round {}, killed after {} us", round, wait_us));
  }
  EXPECT_GE(acted, 4);
}

TEST_P(KillTest, SignalsEndItEarlyWithAReport) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGTSTP}) {
    const test::Child target(busy_family);
    const std::string origin = origin_of(target.pid);
    start(arguments(target.pid));
    ASSERT_TRUE(test::eventually([&] { return acting(); })) << log();
    usleep(120'000);
    kill(program, number);
    EXPECT_EQ(wait(), 0) << log();
    EXPECT_EQ(result()["ended_by"], "signal");
    expect_restored(target.pid, origin, fmt::format("signal {}", number));
  }
}

TEST_P(KillTest, WithoutItsGuardItStopsAndRestores) {
  const test::Child target(busy_family);
  const std::string origin = origin_of(target.pid);
  start(arguments(target.pid));
  ASSERT_TRUE(test::eventually([&] { return acting() && !leftovers(states()).empty(); })) << log();
  kill(leftovers(states())[0].guard.pid, SIGKILL);
  EXPECT_EQ(wait(), 4);
  EXPECT_EQ(result()["ended_by"], "guard_lost");
  expect_restored(target.pid, origin, "guard killed");
}

TEST_P(KillTest, WhenBothAreKilledUndoRestores) {
  const test::Child target(busy_family);
  const std::string origin = origin_of(target.pid);
  start(arguments(target.pid));
  ASSERT_TRUE(test::eventually([&] { return acting() && !leftovers(states()).empty(); })) << log();
  const pid_t guard = leftovers(states())[0].guard.pid;
  kill(guard, SIGSTOP);  // else it could act between the two
  kill(program, SIGKILL);
  EXPECT_EQ(wait(), 128 + SIGKILL);
  kill(guard, SIGKILL);
  ASSERT_TRUE(test::eventually([&] { return !leftovers(states())[0].in_use(); }));
  EXPECT_FALSE(leftovers(states())[0].steps.empty());
  EXPECT_EQ(run({"--undo"}), 0) << log();
  expect_restored(target.pid, origin, "--undo");
}

TEST_P(KillTest, EndsWhenTheTargetEnds) {
  test::Child target(busy_family);
  start(arguments(target.pid));
  ASSERT_TRUE(test::eventually([&] { return acting(); })) << log();
  target.end();
  EXPECT_EQ(wait(), 0) << log();
  EXPECT_EQ(result()["ended_by"], "target_ended");
  EXPECT_TRUE(result()["not_restored"].empty());
}

INSTANTIATE_TEST_SUITE_P(Faults, KillTest, testing::Values("cgroup-throttle", "disk", "pause"), [](const auto& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
});

TEST_F(Inject, CpuTakesTimeForItsDuration) {
  ASSERT_EQ(run({"cpu", "--severity", "1", "--duration", "700ms"}), 0) << log();
  const json report = result();
  EXPECT_EQ(report["cause"], "cpu_contention");
  EXPECT_EQ(report["ended_by"], "duration");
  EXPECT_GT(report["achieved"]["spins"], 0);
  EXPECT_GT(report["achieved"]["cpu_ns"], 50'000'000);
  const auto lasted = report["end_monotonic_ns"].get<Ns>() - report["begin_monotonic_ns"].get<Ns>();
  EXPECT_GE(lasted, 700'000'000);
  EXPECT_NEAR(static_cast<double>(report["end_unix_ns"].get<Ns>() - report["begin_unix_ns"].get<Ns>()),
              static_cast<double>(lasted), 50e6);
}

TEST_F(Inject, CpuStaysOnTheCpusOfTheTarget) {
  const test::Child target([] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
    while (true) {
    }
  });
  ASSERT_TRUE(test::eventually([&] { return allowed_cpus(target.pid) == std::vector<int>{0}; }));
  ASSERT_EQ(run({"cpu", "--severity", "1", "--duration", "300ms", "--target", std::to_string(target.pid)}), 0) << log();
  EXPECT_EQ(result()["achieved"]["threads"], 1);
  EXPECT_THAT(result()["what"].get<std::string>(), testing::HasSubstr("on CPU 0:"));
}

TEST_F(Inject, MemoryBandwidthMovesBytes) {
  const int code = run({"memory-bandwidth", "--severity", "1", "--duration", "500ms"});
  if (code == 4) GTEST_SKIP() << log();
  ASSERT_EQ(code, 0) << log();
  EXPECT_GT(result()["achieved"]["bytes_per_s"], 10e6);
}

TEST_F(Inject, DiskCountsItsFsyncs) {
  ASSERT_EQ(run({"disk", "--severity", "1", "--duration", "500ms", "--path", work.path}), 0) << log();
  EXPECT_GT(result()["achieved"]["fsyncs"], 0);
  EXPECT_EQ(result()["achieved"]["bytes"], result()["achieved"]["fsyncs"].get<std::int64_t>() * (4 << 20));
  EXPECT_EQ(run({"disk", "--duration", "1s", "--path", "/dev/shm"}), 4);
  EXPECT_EQ(run({"disk", "--duration", "1s", "--path", "/nothing/here"}), 4);
}

TEST_F(Inject, PauseStopsForItsShare) {
  const test::Child target(busy_family);
  ASSERT_EQ(run({"pause", "--severity", "0.5", "--duration", "2s", "--target", std::to_string(target.pid)}), 0)
      << log();
  const json achieved = result()["achieved"];
  EXPECT_GE(achieved["pulses"], 5);
  EXPECT_GT(achieved["stopped_ns"], 300'000'000);
  EXPECT_NE(process_facts(target.pid)->state, 'T');
}

TEST_F(Inject, PauseLeavesDescendantsOfOtherUsersAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const test::Child target([] {
    if (fork() == 0) {
      if (setuid(65534) != 0) _exit(1);
      while (true) pause();
    }
    busy_family();
  });
  const auto target_option = std::to_string(target.pid);
  ASSERT_TRUE(test::eventually([&] { return process_tree(process_facts(target.pid)->id).size() >= 3; }));
  ASSERT_EQ(run({"pause", "--severity", "0.5", "--duration", "500ms", "--target", target_option}), 0) << log();
  EXPECT_EQ(result()["achieved"]["left_out_processes"], 1);
  ASSERT_EQ(run({"pause", "--severity", "0.5", "--duration", "500ms", "--target", target_option, "--any-user"}), 0)
      << log();
  EXPECT_EQ(result()["achieved"]["left_out_processes"], 0);
}

TEST_F(Inject, PauseRefusesAStoppedTarget) {
  const test::Child target;
  kill(target.pid, SIGSTOP);
  ASSERT_TRUE(test::eventually([&] { return process_facts(target.pid)->state == 'T'; }));
  EXPECT_EQ(run({"pause", "--duration", "1s", "--target", std::to_string(target.pid)}), 4);
  EXPECT_EQ(process_facts(target.pid)->state, 'T');
}

TEST_F(Inject, AQuotaThrottlesAndCountsIt) {
  if (no_quota_here()) GTEST_SKIP() << "needs root and a cgroup with the CPU controller";
  const CgroupTurn turn;
  const test::Child target(busy_family);
  ASSERT_EQ(
      run({"cgroup-throttle", "--severity", "0.9", "--duration", "1500ms", "--target", std::to_string(target.pid)}), 0)
      << log();
  EXPECT_GE(result()["achieved"]["throttled_periods"], 3);
  EXPECT_GT(result()["achieved"]["throttled_ns"], 0);
}

TEST_F(Inject, GilIsHeldByACooperatingProgramAndGivenBackOnSigkill) {
  if (access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/python3";
  const std::string script = work.write("server.py", R"(
import sys, time
sys.path.insert(0, sys.argv[1])
import gil_fault
gil_fault.start()
print('ready', file=open(sys.argv[2], 'w'), flush=True)
while True:
    sum(range(1000))
)");
  const std::string ready = work.path + "/ready";
  const test::Child target([&] {
    const std::string module = std::string(CULPRIT_SOURCE_DIR) + "/examples/tinyserve";
    execl("/usr/bin/python3", "python3", "-B", script.c_str(), module.c_str(), ready.c_str(), nullptr);
    _exit(126);
  });
  ASSERT_TRUE(test::eventually([&] { return read_beginning(ready).value_or("").starts_with("ready"); }));
  const std::string pid = std::to_string(target.pid);
  ASSERT_EQ(run({"gil", "--severity", "0.6", "--duration", "1s", "--target", pid}), 0) << log();
  EXPECT_GT(result()["achieved"]["holds"], 2);
  EXPECT_GT(result()["achieved"]["held_cpu_ns"], 50'000'000);
  start({"gil", "--severity", "1", "--duration", "20s", "--target", pid});
  usleep(500'000);
  kill(program, SIGKILL);
  wait();
  // It answers again, so its thread has left the fault.
  EXPECT_EQ(run({"gil", "--severity", "0.5", "--duration", "300ms", "--target", pid}), 0) << log();
}

TEST_F(Inject, GilRefusesAProgramThatDoesNotCooperate) {
  const test::Child target;
  EXPECT_EQ(run({"gil", "--duration", "1s", "--target", std::to_string(target.pid)}), 4);
  EXPECT_THAT(log(), testing::HasSubstr("gil_fault"));
}

/// A stand-in for tc that keeps one queue in a file; the real one is tested where the kernel has netem.
constexpr const char* kFakeTc = R"(#!/bin/sh
state=$(dirname "$0")/queue
echo "$@" >>"$(dirname "$0")/calls"
case "$*" in
  *show*) cat "$state" ;;
  *"dev lo root handle c0de: netem delay 1ms"*) ;;
  *add*) echo "qdisc netem c0de: root refcnt 2" >"$state" ;;
  *"del dev lo root handle c0de:"*) echo "qdisc noqueue 0: root refcnt 2" >"$state" ;;
  *) exit 1 ;;
esac
)";

struct NetworkFault : Inject {
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    chmod(work.write("bin/tc", kFakeTc).c_str(), 0755);
    work.write("bin/queue", "qdisc noqueue 0: root refcnt 2\n");
  }
  std::string queue() const { return read_beginning(work.path + "/bin/queue").value_or(""); }
};

TEST_F(NetworkFault, AQueueIsAddedAndRemoved) {
  ASSERT_EQ(run({"network", "--severity", "0.5", "--duration", "200ms"}, work.path + "/bin"), 0) << log();
  EXPECT_THAT(read_beginning(work.path + "/bin/calls").value_or(""),
              testing::HasSubstr("netem delay 50.000ms loss 2.500%"));
  EXPECT_THAT(queue(), testing::StartsWith("qdisc noqueue 0:"));
}

TEST_F(NetworkFault, AQueueIsRemovedAfterSigkill) {
  start({"network", "--duration", "20s"}, work.path + "/bin");
  ASSERT_TRUE(test::eventually([&] { return acting(); })) << log();
  EXPECT_THAT(queue(), testing::StartsWith("qdisc netem"));
  kill(program, SIGKILL);
  wait();
  EXPECT_TRUE(test::eventually([&] { return queue().starts_with("qdisc noqueue"); }));
}

TEST_F(NetworkFault, SomebodyElsesQueueIsLeftAlone) {
  work.write("bin/queue", "qdisc fq 8001: root refcnt 2\n");
  EXPECT_EQ(run({"network", "--duration", "1s"}, work.path + "/bin"), 4);
  EXPECT_THAT(queue(), testing::StartsWith("qdisc fq 8001:"));
}

/// A stand-in for nvidia-smi with one GPU whose settings are lines of a file.
constexpr const char* kFakeSmi = R"(#!/bin/sh
dir=$(dirname "$0")
case "$*" in
  *query-gpu=index,clocks.max.sm*) echo "0, 1980" ;;
  *query-gpu=index,power.limit*) echo "0, 700.00, 200.00" ;;
  *) echo "$@" >>"$dir/settings" ;;
esac
)";

TEST_F(Inject, GpuSettingsAreMadeAndTakenBack) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  chmod(work.write("bin/nvidia-smi", kFakeSmi).c_str(), 0755);
  ASSERT_EQ(run({"gpu-clock", "--severity", "0.5", "--duration", "100ms"}, work.path + "/bin"), 0) << log();
  ASSERT_EQ(run({"gpu-power", "--severity", "0.5", "--duration", "100ms"}, work.path + "/bin"), 0) << log();
  EXPECT_EQ(read_beginning(work.path + "/bin/settings"),
            "-i 0 --lock-gpu-clocks=0,990\n-i 0 --reset-gpu-clocks\n"
            "-i 0 --power-limit=450.00\n-i 0 --power-limit=700.00\n");
}

TEST_F(Inject, BadRequestsAreRefusedBeforeAnythingHappens) {
  EXPECT_EQ(run({"nonsense"}), 2);
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"pause"}), 2);
  EXPECT_EQ(run({"pause", "--target", "1"}), 2);
  EXPECT_EQ(run({"cpu", "--severity", "0"}), 2);
  EXPECT_EQ(run({"cpu", "--severity", "1.5"}), 2);
  EXPECT_EQ(run({"cpu", "--duration", "soon"}), 2);
  EXPECT_EQ(run({"cpu", "--duration", "-1s"}), 2);
  EXPECT_EQ(run({"cpu", "--target", "4194303"}), 4);
  EXPECT_EQ(run({"cpu", "--target", "2000000000"}), 2);  // no process can have it
  EXPECT_EQ(run({"pause", "--target", std::to_string(getpid())}), 2);
}

TEST_F(Inject, TheListSaysWhyAFaultIsNotPossible) {
  ASSERT_EQ(run({"--list"}), 0) << log();
  for (const json& row : result())
    EXPECT_EQ(row["available"].get<bool>(), row["reason"].get<std::string>().empty()) << row;
  EXPECT_EQ(result().size(), 14U);
}

TEST_F(Inject, UndoWithNothingLeftIsFine) { EXPECT_EQ(run({"--undo"}), 0) << log(); }

}  // namespace
}  // namespace culprit::faults
