#include "record/environment/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/environment/facts.h"
#include "support/fake_machine.h"

namespace culprit::record {
namespace {

using test::FakeMachine;
using testing::ElementsAre;
using testing::Optional;

TEST(Tools, ThoseThatRunAreNamedOnce) {
  FakeMachine machine;
  machine.put("/proc/7/comm", "perf\n");
  machine.put("/proc/8/comm", "perf\n");
  machine.put("/proc/9/comm", "py-spy\n");
  machine.put("/proc/10/comm", "python3\n");
  machine.put("/proc/perf/comm", "strace\n");
  EXPECT_THAT(running_tools(machine.root()), Optional(ElementsAre("perf", "py-spy")));
  EXPECT_EQ(running_tools(machine.root() + "/nowhere"), std::nullopt);
}

TEST(Tools, NamesAreWholeNames) {
  EXPECT_TRUE(is_tool("strace"));
  for (const char* name : {"", "performer", "per", "nginx", "kperf"}) EXPECT_FALSE(is_tool(name)) << name;
}

std::string traced_by(const FakeMachine& machine) {
  for (const Fact& fact : target_facts(machine.root(), 42))
    if (fact.key == "traced_by") return fact.value;
  return "";
}

TEST(Tools, WhoTracesATargetIsNamed) {
  FakeMachine machine;
  machine.put("/proc/42/status", "Name:\tserver\nTracerPid:\t0\n");
  machine.put("/proc/9/comm", "gdb\n");
  EXPECT_EQ(traced_by(machine), "");
  machine.put("/proc/42/status", "Name:\tserver\nTracerPid:\t9\n");
  EXPECT_EQ(traced_by(machine), "gdb");
  machine.put("/proc/42/status", "Name:\tserver\nTracerPid:\t10\n");  // it has ended
  EXPECT_EQ(traced_by(machine), "");
}

}  // namespace
}  // namespace culprit::record
