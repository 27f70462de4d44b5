#include "record/collector/process_name.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/fake_machine.h"

namespace culprit::record {
namespace {

using namespace std::string_literals;

ProcessNames named(const std::string& comm, const std::string& cmdline) {
  ProcessNames names;
  names.comm = comm;
  parse_title(cmdline, names);
  return names;
}

TEST(ProcessName, APlainProgramIsShownByItsComm) {
  EXPECT_EQ(shown_name(named("python3", "/usr/bin/python3\0serve.py\0--api-key\0SECRET\0"s)), "python3");
  EXPECT_EQ(shown_name(named("bash", "-bash\0"s)), "bash");
  EXPECT_EQ(shown_name(named("program", "/opt/My: App/program\0"s)), "program");
}

TEST(ProcessName, TitlesThatProgramsWroteAreShown) {
  EXPECT_EQ(shown_name(named("postgres", "postgres: checkpointer \0\0\0\0"s)), "postgres: checkpointer");
  EXPECT_EQ(shown_name(named("redis-server", "redis-server *:6379\0"s)), "redis-server *:6379");
  EXPECT_EQ(shown_name(named("python3", "sglang::scheduler\0\0\0"s)), "sglang::scheduler");
}

TEST(ProcessName, WhatTheKernelCutIsWhole) {
  EXPECT_EQ(shown_name(named("VLLM::EngineCor", "VLLM::EngineCore_DP0\0\0"s)), "VLLM::EngineCore_DP0");
  EXPECT_EQ(shown_name(named("stress-ng-matri", "/usr/bin/stress-ng-matrix\0--cpu\0"s)), "stress-ng-matrix");
  EXPECT_EQ(shown_name(named("stress-ng-matri", "other\0"s)), "stress-ng-matri");
}

TEST(ProcessName, ACommandLineInATitleIsNotShown) {
  EXPECT_EQ(shown_name(named("nginx", "nginx: master process /usr/sbin/nginx -g daemon off;\0"s)),
            "nginx: master process");
  EXPECT_EQ(shown_name(named("tool", "tool: --token SECRET\0"s)), "tool:");
}

TEST(ProcessName, NothingToReadIsNoName) {
  EXPECT_EQ(shown_name(named("", "")), "");
  EXPECT_EQ(shown_name(named("kworker", "")), "kworker");
  EXPECT_EQ(shown_name(read_process_names("/nonexistent", 1)), "");
}

TEST(ProcessName, IsReadFromProc) {
  const test::FakeMachine machine;
  machine.put("/proc/7/comm", "redis-server\n");
  machine.put("/proc/7/cmdline", "/usr/bin/redis-server *:6379\0"s);
  std::filesystem::create_symlink("/usr/bin/redis-check-rdb (deleted)", machine.root() + "/proc/7/exe");
  const ProcessNames names = read_process_names(machine.root() + "/proc", 7);
  EXPECT_EQ(names.comm, "redis-server");
  EXPECT_EQ(names.program, "redis-check-rdb");
  EXPECT_EQ(short_title(names), "redis-server *:6379");
  EXPECT_EQ(shown_name(names), "redis-server");
}

}  // namespace
}  // namespace culprit::record
