#include "record/environment/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "record/collector/build_id.h"
#include "record/environment/packages.h"
#include "support/fake_machine.h"

namespace culprit::record {
namespace {

using test::FakeMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

std::map<std::string, std::string> as_map(const std::vector<Fact>& facts) {
  std::map<std::string, std::string> map;
  for (const Fact& fact : facts) map[fact.key] = fact.value;
  return map;
}

struct Facts : testing::Test {
  FakeMachine machine;
  void python_target(const std::string& environ) const {
    namespace fs = std::filesystem;
    machine.process(42, "python3", 1);
    machine.put("/opt/v/bin/python3.11", "");
    fs::create_symlink("/opt/v/bin/python3.11", machine.root() + "/proc/42/exe");
    fs::create_directory_symlink(machine.root(), machine.root() + "/proc/42/root");
    machine.put("/proc/42/environ", environ);
    machine.put("/proc/42/maps",
                "7f00-7f01 r-xp 00000000 fe:00 1 /opt/v/lib/libnccl.so.2.21.5\n"
                "7f01-7f02 r--p 00000000 fe:00 1 /opt/v/lib/libnccl.so.2.21.5\n"
                "7f02-7f03 r-xp 00000000 fe:00 1 /opt/v/lib/libunknown.so\n"
                "7f04-7f05 r-xp 00000000 fe:00 1 /gone/libcudart.so.12 (deleted)\n"
                "7f05-7f06 rw-p 00000000 00:00 0 [heap]\n");
    machine.put("/opt/v/lib/libnccl.so.2.21.5", "no ELF");
    for (const char* name : {"torch-2.4.0+cu121.dist-info", "vllm-0.6.3.dist-info", "nvidia_nccl_cu12-2.21.5.dist-info",
                             "my_secret_client-1.0.dist-info", "numpy-1.26.4.dist-info", "numpy", "torch-.dist-info"})
      machine.put(std::string("/opt/v/lib/python3.11/site-packages/") + name + "/METADATA", "");
    machine.put("/proc/42/limits",
                "Limit                     Soft Limit           Hard Limit           Units\n"
                "Max locked memory         8388608              8388608              bytes\n"
                "Max open files            1024                 524288               files\n");
    machine.put("/proc/42/status", "Name:\tpython3\nCpus_allowed_list:\t0-1\nNSpid:\t42\t7\nSeccomp:\t2\n");
    machine.put("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    machine.put("/proc/42/cgroup", "0::/kubepods/pod1\n");
    machine.put("/sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000\n");
    machine.put("/sys/fs/cgroup/kubepods/pod1/memory.current", "1\n");
    machine.put("/sys/fs/cgroup/kubepods/pod1/memory.max", "1073741824\n");
    machine.put("/proc/42/cmdline", std::string("python3\0--api-key\0MARKER-ARGUMENT", 33));
  }
};

TEST_F(Facts, AProgramWithSeveralNamesIsTheOneItWasCalled) {
  machine.put("/proc/43/comm", "redis-server\n");
  machine.put("/proc/43/cmdline", std::string("redis-server *:6379\0", 20));
  std::filesystem::create_symlink("/usr/bin/redis-check-rdb", machine.root() + "/proc/43/exe");
  EXPECT_EQ(as_map(target_facts(machine.root(), 43)).at("program"), "redis-server");
  machine.put("/proc/43/comm", "main\n");
  EXPECT_EQ(as_map(target_facts(machine.root(), 43)).at("program"), "redis-check-rdb");
}

TEST_F(Facts, OfATarget) {
  using namespace std::string_literals;
  python_target("NCCL_DEBUG=INFO\0CUDA_VISIBLE_DEVICES=0,1\0HOME=/root"s);
  const auto facts = as_map(target_facts(machine.root(), 42));
  EXPECT_EQ(facts.at("program"), "python3.11");
  EXPECT_EQ(facts.at("python.version"), "3.11");
  EXPECT_EQ(facts.at("package.torch"), "2.4.0+cu121");
  EXPECT_EQ(facts.at("package.vllm"), "0.6.3");
  EXPECT_EQ(facts.at("package.nvidia-nccl-cu12"), "2.21.5");
  EXPECT_EQ(facts.at("package.numpy"), "1.26.4");
  EXPECT_FALSE(facts.contains("package.my-secret-client"));
  EXPECT_EQ(facts.at("library.libnccl.so.2.21.5"), "loaded");
  EXPECT_FALSE(facts.contains("library.libunknown.so"));
  EXPECT_EQ(facts.at("variable.NCCL_DEBUG"), "INFO");
  EXPECT_EQ(facts.at("variable.CUDA_VISIBLE_DEVICES"), "0,1");
  EXPECT_FALSE(facts.contains("variable.HOME"));
  EXPECT_EQ(facts.at("limit.locked_memory"), "8388608");
  EXPECT_EQ(facts.at("limit.open_files"), "1024");
  EXPECT_EQ(facts.at("cpus_allowed"), "0-1");
  EXPECT_EQ(facts.at("container.pid_namespace_depth"), "2");
  EXPECT_EQ(facts.at("container.kind"), "kubepods");
  EXPECT_EQ(facts.at("cgroup.cpu.quota"), "1.500");
  EXPECT_EQ(facts.at("cgroup.memory.limit_bytes"), "1073741824");
  EXPECT_EQ(facts.at("sched.nice"), "0");
}

TEST_F(Facts, SecretsOfATargetNeverAppear) {
  using namespace std::string_literals;
  python_target(
      "OPENAI_API_KEY=MARKER-1\0VLLM_API_KEY=MARKER-2\0AWS_SECRET_ACCESS_KEY=MARKER-3\0NCCL_TOKEN=MARKER-4\0"
      "HF_TOKEN=MARKER-5\0SGLANG_URL=http://u:MARKER-6@h\0VLLM_X=hf_MARKER7\0HF_HUB_OFFLINE=MARKER-8\0"
      "VIRTUAL_ENV=/MARKER-9\0PROMPT=MARKER-10\0TORCH_LONG="s +
      std::string(300, '/') + "MARKER-11"s);
  std::vector<Fact> facts = target_facts(machine.root(), 42);
  ASSERT_GT(facts.size(), 10u);
  for (const Fact& fact : facts) EXPECT_THAT(fact.key + "=" + fact.value, Not(HasSubstr("MARKER")));
}

TEST_F(Facts, OfAProcessThatIsGone) { EXPECT_TRUE(target_facts(machine.root(), 42).empty()); }

TEST_F(Facts, OfATargetWhoseFilesAreDamaged) {
  machine.put("/proc/42/stat", "42 (x");
  machine.put("/proc/42/limits", "Max locked memory");
  machine.put("/proc/42/maps", std::string("\0\xff/\n/\n/libnccl.so\n", 18));
  machine.put("/proc/42/status", "Cpus_allowed_list\nNSpid:\n:::\n");
  machine.put("/proc/42/environ", std::string(1000, '='));
  const auto facts = as_map(target_facts(machine.root(), 42));
  EXPECT_FALSE(facts.contains("limit.locked_memory"));
  EXPECT_FALSE(facts.contains("sched.nice"));
}

TEST_F(Facts, OfTheHost) {
  machine.put("/proc/sys/kernel/osrelease", "6.1.0-test\n");
  machine.put("/proc/sys/kernel/hostname", "node7\n");
  machine.put("/proc/sys/kernel/perf_event_paranoid", "2\n");
  machine.put("/proc/cmdline", "root=UUID=MARKER ro mitigations=off secret=MARKER isolcpus=2-3 nosmt\n");
  machine.put("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
  machine.put("/proc/cpuinfo",
              "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: EPYC\nphysical id\t: 0\ncore id\t: 0\n"
              "microcode\t: 0x1\nflags\t: fpu avx512f hypervisor\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t: 0\n"
              "microcode\t: 0x2\n\n");
  machine.put("/proc/meminfo", "MemTotal: 1024 kB\nSwapTotal: 0 kB\n");
  machine.put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  machine.put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  machine.put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  machine.put("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n");
  const auto facts = as_map(host_facts(machine.root(), true));
  EXPECT_EQ(facts.at("kernel.release"), "6.1.0-test");
  EXPECT_EQ(facts.at("hostname"), "node7");
  EXPECT_EQ(facts.at("setting.kernel.perf_event_paranoid"), "2");
  EXPECT_EQ(facts.at("kernel.boot.mitigations"), "off");
  EXPECT_EQ(facts.at("kernel.boot.isolcpus"), "2-3");
  EXPECT_EQ(facts.at("kernel.boot.nosmt"), "set");
  EXPECT_EQ(facts.at("distribution"), "Debian GNU/Linux 12");
  EXPECT_EQ(facts.at("cpu.model"), "EPYC");
  EXPECT_EQ(facts.at("cpu.count"), "2");
  EXPECT_EQ(facts.at("cpu.cores"), "1");
  EXPECT_EQ(facts.at("cpu.microcode"), "0x1, 0x2");
  EXPECT_EQ(facts.at("cpu.features"), "avx512f hypervisor");
  EXPECT_EQ(facts.at("cpu.scaling_governor"), "performance, powersave");
  EXPECT_EQ(facts.at("cpu.vulnerability.meltdown"), "Not affected");
  EXPECT_EQ(facts.at("memory.total_bytes"), "1048576");
  EXPECT_EQ(facts.at("memory.transparent_hugepage.enabled"), "madvise");
  for (const auto& [key, value] : facts) EXPECT_THAT(key + "=" + value, Not(HasSubstr("MARKER")));
  EXPECT_FALSE(as_map(host_facts(machine.root(), false)).contains("hostname"));
}

TEST_F(Facts, OfAnEmptyMachine) { EXPECT_TRUE(host_facts(machine.root(), true).empty()); }

TEST_F(Facts, OfNvidiaInProc) {
  machine.put("/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\nGCC version: x\n");
  machine.put("/proc/driver/nvidia/gpus/0000:17:00.0/information",
              "Model: \t\t NVIDIA H100\nIRQ: 1\nGPU UUID: \t GPU-1234\nnonsense\n");
  std::vector<Sight> sights;
  const auto facts = as_map(nvidia_facts(machine.root(), sights));
  EXPECT_THAT(facts.at("gpu.kernel_module"), HasSubstr("550.54.15"));
  EXPECT_EQ(facts.at("gpu0.model"), "NVIDIA H100");
  EXPECT_EQ(facts.at("gpu0.uuid"), "GPU-1234");
  ASSERT_EQ(sights.size(), 1u);
  EXPECT_TRUE(sights[0].available);
}

TEST_F(Facts, NoGpuIsASight) {
  std::vector<Sight> sights;
  EXPECT_TRUE(nvidia_facts(machine.root(), sights).empty());
  ASSERT_EQ(sights.size(), 1u);
  EXPECT_FALSE(sights[0].available);
}

TEST(FactText, ControlCharactersAndLengthAreBounded) {
  std::vector<Fact> facts;
  add_fact(facts, "k", std::string("a\x1b[2J\n\xff") + std::string(2000, 'b'));
  add_fact(facts, "empty", " \n");
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_LE(facts[0].value.size(), 520u);
  for (const char c : facts[0].value) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20);
}

TEST(Packages, FoldersFollowFromProgramAndMaps) {
  EXPECT_THAT(package_folders({"/x/lib/python3.12/site-packages/torch/lib/libtorch.so"}, "/usr/bin/python3.11", ""),
              ElementsAre("/usr/lib/python3.11/dist-packages", "/usr/lib/python3.11/site-packages",
                          "/usr/lib/python3/dist-packages", "/usr/local/lib/python3.11/dist-packages",
                          "/usr/local/lib/python3.11/site-packages", "/x/lib/python3.12/site-packages"));
  EXPECT_TRUE(package_folders({}, "/usr/bin/bash", "/venv").empty());
}

TEST(Packages, VersionsAreReadFromPaths) {
  EXPECT_EQ(python_version({}, "/usr/bin/python3.11"), "3.11");
  EXPECT_EQ(python_version({}, "/root/.pyenv/versions/3.11.7/bin/python3.11"), "3.11.7");
  EXPECT_EQ(python_version({"/usr/lib/libpython3.12.so.1.0"}, "/opt/server"), "3.12");
  EXPECT_EQ(python_version({}, "/usr/bin/bash"), "");
  EXPECT_EQ(python_version({}, "/usr/bin/python3"), "");
}

TEST(Packages, HostileNamesAreLeftOut) {
  EXPECT_THAT(frameworks({"torch-2.0\n\x1b.dist-info", "torch-.dist-info", "-1.dist-info", "torch.dist-info",
                          "Flash_Attn-2.5.8.dist-info", "pyzmq-24.0.1-py3.11.egg-info", "torch-x.dist-info"}),
              ElementsAre(Pair("flash-attn", "2.5.8"), Pair("pyzmq", "24.0.1")));
}

TEST(BuildId, OfThisProgram) {
  const auto id = read_build_id("/proc/self/exe");
  if (!id) GTEST_SKIP() << "this program was linked without a build-id";
  EXPECT_GE(id->size(), 16u);
}

TEST(BuildId, OfTheCLibrary) {
  const auto facts = as_map(target_facts("", getpid()));
  ASSERT_TRUE(facts.contains("library.libc.so.6"));
  EXPECT_THAT(facts.at("library.libc.so.6"), testing::MatchesRegex("build-id [0-9a-f]+"));
}

TEST(BuildId, DamagedFilesHaveNone) {
  test::TempDir folder;
  EXPECT_FALSE(read_build_id(folder.path("missing")));
  EXPECT_FALSE(read_build_id(folder.path()));
  EXPECT_FALSE(read_build_id(folder.file("text", "hello")));
  std::string elf(64, '\0');
  elf.replace(0, 5,
              std::string("\x7f"
                          "ELF\x02"));
  elf[54] = 56;                                // e_phentsize
  elf[56] = elf[57] = '\x7f';                  // e_phnum
  elf.replace(32, 8, std::string(8, '\xff'));  // e_phoff
  EXPECT_FALSE(read_build_id(folder.file("elf", elf)));
}

}  // namespace
}  // namespace culprit::record
