#include "record/doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "support/fake_machine.h"

namespace culprit::record {
namespace {

using test::FakeMachine;
using testing::HasSubstr;

constexpr std::uint64_t kBpfAndPerfmon = (std::uint64_t{1} << 39) | (std::uint64_t{1} << 38);

struct Doctor : testing::Test {
  FakeMachine machine;
  Attempts attempts;
  Doctor() {
    attempts.uid = 1000;
    attempts.capabilities = kBpfAndPerfmon;
    attempts.program = "/usr/bin/culprit";
    attempts.folder = "/data";
    attempts.folder_free = std::uint64_t{100} << 30;
    attempts.locked_memory = 8 << 20;
    machine.put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
  }
  Check check(const std::string& key) const {
    const auto checks = machine_checks(machine.root(), attempts);
    const auto found = std::ranges::find(checks, key, &Check::key);
    if (found == checks.end()) {
      ADD_FAILURE() << "no check " << key;
      return {};
    }
    return *found;
  }
  CheckState state(const std::string& key) const { return check(key).state; }
};

TEST_F(Doctor, EveryCheckThatIsNotOkSaysWhyAndWhatToDo) {
  attempts = Attempts{};
  attempts.load_program = EPERM;
  attempts.open_perf = EACCES;
  attempts.first_pid_namespace = false;
  attempts.write_folder = EROFS;
  const auto checks = machine_checks(machine.root(), attempts);
  EXPECT_GT(checks.size(), 18u);
  for (const Check& c : checks) {
    EXPECT_FALSE(c.found.empty()) << c.key;
    EXPECT_EQ(c.remedy.empty(), c.state == CheckState::ok) << c.key;
  }
}

TEST_F(Doctor, WhoMayNotComeFirstIsToldHow) {
  EXPECT_EQ(state("permissions.realtime"), CheckState::limited);
  EXPECT_THAT(check("permissions.realtime").remedy, HasSubstr("cap_sys_nice+ep /usr/bin/culprit"));
  attempts.promptness = Promptness::realtime;
  EXPECT_EQ(state("permissions.realtime"), CheckState::ok);
}

TEST_F(Doctor, OldKernelsAreLimited) {
  EXPECT_EQ(state("kernel.version"), CheckState::ok);
  for (const char* old : {"5.10.0-8", "4.18.0-372.el8", "5.14.21"}) {
    machine.put("/proc/sys/kernel/osrelease", old);
    EXPECT_EQ(state("kernel.version"), CheckState::limited) << old;
  }
  machine.put("/proc/sys/kernel/osrelease", "5.15");
  EXPECT_EQ(state("kernel.version"), CheckState::ok);
  machine.put("/proc/sys/kernel/osrelease", "garbage");
  EXPECT_EQ(state("kernel.version"), CheckState::limited);
}

TEST_F(Doctor, TypesOfTheKernel) {
  EXPECT_EQ(state("kernel.btf"), CheckState::missing);
  machine.put("/sys/kernel/btf/vmlinux", "\x9f\xeb\x01\x01 and more");
  EXPECT_EQ(state("kernel.btf"), CheckState::ok);
}

TEST_F(Doctor, OnlyConfidentialityForbidsPrograms) {
  machine.put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  EXPECT_EQ(state("kernel.lockdown"), CheckState::ok);
  machine.put("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  EXPECT_EQ(state("kernel.lockdown"), CheckState::missing);
}

TEST_F(Doctor, MissingCapabilitiesNameTheCommand) {
  EXPECT_EQ(state("permissions.capabilities"), CheckState::ok);
  attempts.capabilities = std::uint64_t{1} << 39;
  EXPECT_THAT(check("permissions.capabilities").found, HasSubstr("without CAP_PERFMON"));
  attempts.capabilities = 0;
  attempts.load_program = EPERM;
  EXPECT_EQ(check("permissions.ebpf").remedy, "sudo setcap cap_bpf,cap_perfmon+ep /usr/bin/culprit");
  EXPECT_EQ(state("permissions.ebpf"), CheckState::missing);
}

TEST_F(Doctor, ARefusedProgramDespiteAllPrivilegesPointsAtTheContainer) {
  attempts.load_program = EPERM;
  EXPECT_THAT(check("permissions.ebpf").found, HasSubstr("seccomp"));
}

TEST_F(Doctor, YamaScopes) {
  EXPECT_EQ(state("permissions.ptrace"), CheckState::ok);
  for (const auto& [scope, expected] : {std::pair{"0", CheckState::ok},
                                        {"1", CheckState::limited},
                                        {"2", CheckState::limited},
                                        {"3", CheckState::missing}}) {
    machine.put("/proc/sys/kernel/yama/ptrace_scope", scope);
    EXPECT_EQ(state("permissions.ptrace"), expected) << scope;
  }
  attempts.capabilities |= std::uint64_t{1} << 19;
  machine.put("/proc/sys/kernel/yama/ptrace_scope", "1");
  EXPECT_EQ(state("permissions.ptrace"), CheckState::ok);
}

TEST_F(Doctor, LockedMemoryMattersOnOldKernelsOnly) {
  EXPECT_EQ(state("permissions.locked_memory"), CheckState::ok);
  machine.put("/proc/sys/kernel/osrelease", "5.10.0");
  EXPECT_EQ(state("permissions.locked_memory"), CheckState::limited);
  attempts.locked_memory = UINT64_MAX;
  EXPECT_EQ(state("permissions.locked_memory"), CheckState::ok);
}

TEST_F(Doctor, StealAndClock) {
  machine.put("/proc/stat", "cpu  100 0 0 880 0 0 0 20 0 0\n");
  EXPECT_EQ(state("machine.steal"), CheckState::limited);
  machine.put("/proc/stat", "cpu  100 0 0 899 0 0 0 1 0 0\n");
  EXPECT_EQ(state("machine.steal"), CheckState::ok);
  machine.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  EXPECT_EQ(state("machine.clock"), CheckState::limited);
  machine.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n");
  EXPECT_EQ(state("machine.clock"), CheckState::ok);
}

TEST_F(Doctor, RoomForTheRecording) {
  EXPECT_EQ(state("output.folder"), CheckState::ok);
  attempts.folder_free = 500 << 20;
  EXPECT_EQ(state("output.folder"), CheckState::limited);
  attempts.folder_free = 1 << 20;
  EXPECT_EQ(state("output.folder"), CheckState::missing);
  attempts.write_folder = EROFS;
  EXPECT_THAT(check("output.folder").found, HasSubstr("Read-only"));
}

TEST_F(Doctor, LibrariesAndTools) {
  EXPECT_EQ(state("gpu.cupti"), CheckState::missing);
  EXPECT_EQ(state("tools.nsys"), CheckState::limited);
  attempts.cupti = "libcupti.so.12";
  attempts.nsys = "/opt/nsys";
  EXPECT_EQ(state("gpu.cupti"), CheckState::ok);
  EXPECT_EQ(state("tools.nsys"), CheckState::ok);
}

TEST_F(Doctor, AProcessThatDoesNotExist) {
  const auto checks = process_checks(machine.root(), attempts, 42);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].state, CheckState::missing);
}

TEST_F(Doctor, AProcessOfAnotherUser) {
  machine.put("/proc/42/status", "Name:\tserve\nState:\tS (sleeping)\nUid:\t7\t7\t7\t7\nThreads:\t3\nNSpid:\t42\t1\n");
  const auto checks = process_checks(machine.root(), attempts, 42);
  const auto find = [&](const char* key) { return *std::ranges::find(checks, key, &Check::key); };
  EXPECT_EQ(find("process.exists").found, "42 (serve), 3 threads");
  EXPECT_EQ(find("process.owner").state, CheckState::limited);
  EXPECT_THAT(find("process.owner").remedy, HasSubstr("sudo -u '#7' culprit record -p 42"));
  EXPECT_EQ(find("process.readable").state, CheckState::limited);
  EXPECT_THAT(find("process.container").found, HasSubstr("1 pid namespaces deep"));
}

TEST_F(Doctor, AZombieAndTheFirstProcess) {
  machine.put("/proc/42/status", "Name:\tx\nState:\tZ (zombie)\nUid:\t1000\n");
  EXPECT_EQ(process_checks(machine.root(), attempts, 42)[0].state, CheckState::missing);
  machine.put("/proc/1/status", "Name:\tinit\nState:\tS\nUid:\t0\n");
  EXPECT_EQ(process_checks(machine.root(), attempts, 1)[0].state, CheckState::limited);
}

TEST_F(Doctor, APythonProgramWithCuda) {
  machine.put("/proc/42/status", "Name:\tpython3\nState:\tR\nUid:\t1000\t1000\t1000\t1000\nThreads:\t1\n");
  machine.put("/proc/42/environ", "A=1");
  machine.put("/proc/42/maps",
              "1-2 r-xp 0 0:0 1 /usr/lib/libcuda.so.550\n2-3 r-xp 0 0:0 1 /usr/lib/libpython3.11.so.1.0\n");
  const auto checks = process_checks(machine.root(), attempts, 42);
  for (const char* key : {"process.owner", "process.readable", "process.python", "process.cuda"})
    EXPECT_EQ(std::ranges::find(checks, key, &Check::key)->state, CheckState::ok) << key;
}

TEST_F(Doctor, ThisMachineAnswers) {
  const Attempts real = make_attempts();
  EXPECT_EQ(real.uid, geteuid());
  EXPECT_EQ(real.program, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_GT(real.folder_free, 0u);
  const auto checks = process_checks({}, real, getpid());
  EXPECT_EQ(checks[0].state, CheckState::ok);
  EXPECT_EQ(std::ranges::find(checks, "process.owner", &Check::key)->state, CheckState::ok);
}

}  // namespace
}  // namespace culprit::record
