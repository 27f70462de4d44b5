#include "profile/exposed.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using testing_support::TraceMaker;

TEST(ExposedTimes, ComputeHidesCommunicationHidesCopyHidesFill) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 1), "gpu_memset", "Memset (Device)", 0, 100);
  maker.gpu(maker.stream(0, 2), "gpu_memcpy", "Memcpy DtoD (Device -> Device)", 10, 80);
  maker.gpu(maker.stream(0, 3), "kernel", "ncclDevKernel_AllReduce_Sum", 20, 60);
  maker.gpu(maker.stream(0, 4), "kernel", "gemm", 30, 40);
  EXPECT_EQ(exposed_times(maker.trace()), (std::vector<Ns>{20, 20, 20, 40}));
}

TEST(ExposedTimes, TheOneThatBeganFirstOwnsTheTime) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 9), "kernel", "a", 0, 50);
  maker.gpu(maker.stream(0, 1), "kernel", "b", 10, 60);
  EXPECT_EQ(exposed_times(maker.trace()), (std::vector<Ns>{50, 20}));
}

TEST(ExposedTimes, TiesGoToTheLowerStreamThenTheLowerRow) {
  TraceMaker maker;
  const TrackId high = maker.stream(0, 9);
  const TrackId low = maker.stream(0, 1);
  maker.gpu(high, "kernel", "a", 0, 50);
  maker.gpu(low, "kernel", "b", 0, 50);
  maker.gpu(low, "kernel", "c", 0, 60);
  EXPECT_EQ(exposed_times(maker.trace()), (std::vector<Ns>{0, 50, 10}));
}

TEST(ExposedTimes, DevicesAndRanksAreApart) {
  TraceMaker maker;
  const std::uint16_t second = maker.rank(1);
  maker.gpu(maker.stream(0, 1), "kernel", "a", 0, 50);
  maker.gpu(maker.stream(1, 1), "kernel", "a", 0, 50);
  maker.gpu(maker.stream(0, 1, second), "kernel", "a", 0, 50);
  EXPECT_EQ(exposed_times(maker.trace()), (std::vector<Ns>{50, 50, 50}));
}

TEST(ExposedTimes, NothingTakesNoTime) {
  TraceMaker maker;
  EXPECT_TRUE(exposed_times(maker.trace()).empty());
  maker.gpu(maker.stream(0, 1), "kernel", "a", 5, 0);
  maker.gpu(maker.stream(0, 1), "kernel", "b", 5, 10);
  EXPECT_EQ(exposed_times(maker.trace()), (std::vector<Ns>{0, 10}));
}

TEST(ExposedTimes, SumsToTheBusyTimeOfADevice) {
  TraceMaker maker;
  std::uint64_t random = 7;
  const auto next = [&](std::uint64_t below) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<Ns>((random >> 33) % below);
  };
  std::vector<bool> busy(3000, false);
  const char* const kCategories[] = {"kernel", "gpu_memcpy", "gpu_memset"};
  for (int i = 0; i < 200; ++i) {
    const Ns begin = next(2800);
    const Ns duration = next(100);
    maker.gpu(maker.stream(0, static_cast<std::int32_t>(next(5))), kCategories[next(3)], "x", begin, duration);
    std::fill_n(busy.begin() + begin, duration, true);
  }
  const std::vector<Ns> exposed = exposed_times(maker.trace());
  EXPECT_EQ(std::accumulate(exposed.begin(), exposed.end(), Ns{0}), std::count(busy.begin(), busy.end(), true));
  for (std::size_t g = 0; g < exposed.size(); ++g)
    EXPECT_LE(exposed[g], maker.trace().slices[maker.trace().gpu[g].slice].duration);
}

}  // namespace
}  // namespace culprit::profile
