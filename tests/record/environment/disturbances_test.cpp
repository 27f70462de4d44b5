#include "record/environment/disturbances.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "support/temp_file.h"

namespace culprit::record {
namespace {

std::string state_of(pid_t injector) { return "culprit undo 1\nboot\n" + std::to_string(injector) + " 17\n1 2\n"; }

TEST(Disturbances, FaultsOfLivingInjectorsAreNamed) {
  const test::TempDir folder;
  static_cast<void>(folder.file("cgroup_throttle-4711x1.undo", state_of(getpid())));
  static_cast<void>(folder.file("disk-1.undo", state_of(1 << 29)));
  static_cast<void>(folder.file("cpu-2.undo", "damaged"));
  static_cast<void>(folder.file("readme-1.txt", state_of(getpid())));
  EXPECT_THAT(running_faults({folder.path(), folder.path("none")}), testing::ElementsAre("cgroup_throttle"));
}

}  // namespace
}  // namespace culprit::record
