#include "ab/device_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "record/collector/collector.h"

namespace culprit::ab {
namespace {

namespace fs = std::filesystem;

constexpr Ns kLong = 60'000'000'000;

bool at_once() { return true; }

/// A device that is at work for the first looks.
struct Queue {
  int looks = 0;
  int busy = 0;  ///< of them

  DeviceWork view(bool by_time) {
    const bool works = looks++ < busy;
    if (!by_time) return {works ? 4U : 0U, 0};
    return {0, static_cast<std::uint64_t>(works ? looks : busy)};
  }
};

TEST(Drain, LastsUntilADeviceHasNothingToDoForSomeLooks) {
  for (const bool by_time : {false, true}) {
    Queue queue{0, 20};
    const Drained drained = drain([&] { return queue.view(by_time); }, kLong, at_once);
    EXPECT_FALSE(drained.late);
    EXPECT_GT(queue.looks, 20 + 1);
    EXPECT_LT(queue.looks, 20 + 6);
  }
}

TEST(Drain, AMomentBetweenTwoKernelsIsNotTheEnd) {
  int looks = 0;
  const auto view = [&] {
    ++looks;
    return DeviceWork{looks < 10 && looks % 2 == 0 ? 1U : 0U, 0};
  };
  EXPECT_FALSE(drain(view, kLong, at_once).late);
  EXPECT_GT(looks, 10);
}

TEST(Drain, EndsAtTheLimit) {
  Queue endless{0, 1'000'000'000};
  const Ns limit = 2'000'000;
  const Ns begin = record::monotonic_now();
  const Drained drained = drain([&] { return endless.view(false); }, limit, at_once);
  EXPECT_TRUE(drained.late);
  EXPECT_GE(drained.waited, limit);
  EXPECT_GE(record::monotonic_now() - begin, limit);
}

TEST(Drain, EndsWhereNobodyWantsToWait) {
  Queue endless{0, 1'000'000'000};
  EXPECT_FALSE(drain([&] { return endless.view(false); }, kLong, [] { return false; }).late);
  EXPECT_EQ(endless.looks, 1);
}

TEST(Drain, WithoutAViewNobodyWaits) {
  const Drained drained = drain({}, kLong, [] {
    ADD_FAILURE();
    return true;
  });
  EXPECT_FALSE(drained.late);
  EXPECT_EQ(drained.waited, 0);
}

/// A machine with processes that have devices open.
class DeviceSightTest : public testing::Test {
 protected:
  ~DeviceSightTest() override { fs::remove_all(root_); }

  void put(const std::string& file, const std::string& text) const {
    const fs::path path = fs::path(root_) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void open(int process, int number, const std::string& device) const {
    const fs::path folder = fs::path(root_) / "proc" / std::to_string(process) / "fd";
    fs::create_directories(folder);
    fs::create_symlink(device, folder / std::to_string(number));
  }
  [[nodiscard]] DeviceSight sight(const std::vector<pid_t>& processes, bool first_namespace = true) const {
    return device_sight(processes, {root_, first_namespace});
  }

  std::string root_ = testing::TempDir() + "device-sight-" + std::to_string(getpid());
};

TEST_F(DeviceSightTest, OfNoDeviceThereIsNothingToSee) {
  open(7, 3, "/dev/null");
  const DeviceSight seen = sight({7, 8});
  EXPECT_FALSE(seen.hidden);
  EXPECT_FALSE(seen.view);
  EXPECT_FALSE(are_seen({seen, seen}));
}

TEST_F(DeviceSightTest, TimeOfEnginesIsThatOfAllProcesses) {
  const auto put_engines = [&](const std::string& render, const std::string& copies) {
    put("proc/7/fdinfo/5", "pos:\t0\ndrm-driver:\ti915\ndrm-engine-render:\t" + render +
                               " ns\ndrm-engine-copy:\t20 ns\ndrm-engine-capacity-copy:\t900\n");
    put("proc/8/fdinfo/6", "drm-driver:\txe\ndrm-cycles-ccs:\t" + copies + "\ndrm-total-cycles-ccs:\t99999\n");
  };
  put_engines("1000", "300");
  open(7, 5, "/dev/dri/renderD128");
  open(8, 6, "/dev/dri/card0");
  const DeviceSight seen = sight({7, 8});
  ASSERT_TRUE(seen.view);
  EXPECT_TRUE(are_seen({seen, {}}));
  EXPECT_EQ(seen.view().worked, 1000U + 20 + 300);
  put_engines("4000", "301");
  EXPECT_EQ(seen.view().worked, 4000U + 20 + 301);
  EXPECT_EQ(seen.view().occupied, 0U);
}

TEST_F(DeviceSightTest, OccupiedAreTheComputeUnitsOfAllDevices) {
  open(7, 4, "/dev/kfd");
  open(7, 5, "/dev/dri/renderD128");
  put("proc/7/fdinfo/5", "drm-driver:\tamdgpu\ndrm-engine-gfx:\t77 ns\n");
  const std::string folder = "sys/class/kfd/kfd/proc/7/";
  put(folder + "stats_100/cu_occupancy", "30\n");
  put(folder + "stats_200/cu_occupancy", "12\n");
  const DeviceSight seen = sight({7});
  ASSERT_TRUE(seen.view);
  EXPECT_EQ(seen.view().occupied, 42U);
  EXPECT_EQ(seen.view().worked, 0U) << "tells nothing of compute";
  put(folder + "stats_100/cu_occupancy", "0\n");
  put(folder + "stats_200/cu_occupancy", "0\n");
  EXPECT_EQ(seen.view().occupied, 0U);
  EXPECT_TRUE(sight({7}, false).hidden) << "the driver knows it by another number";
  fs::remove(fs::path(root_) / folder / "stats_200/cu_occupancy");
  EXPECT_TRUE(sight({7}).hidden);
}

TEST_F(DeviceSightTest, OfCudaAndOfSilentDriversNothingIsShown) {
  open(7, 5, "/dev/dri/renderD128");
  put("proc/7/fdinfo/5", "drm-engine-render:\t1000 ns\n");
  open(8, 3, "/dev/nvidia0");
  EXPECT_TRUE(sight({7, 8}).hidden);
  EXPECT_FALSE(sight({7, 8}).view);
  EXPECT_FALSE(are_seen({sight({7}), sight({8})}));
  open(9, 3, "/dev/dri/renderD129");
  put("proc/9/fdinfo/3", "drm-driver:\tother\n");
  EXPECT_TRUE(sight({9}).hidden);
}

}  // namespace
}  // namespace culprit::ab
