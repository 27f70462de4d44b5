#include "compare/bursts.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace culprit::compare {
namespace {

/// Twenty stretches with steps of 20 ms, give or take a twentieth, while others have a tenth of a CPU.
model::HostEvidence quiet() {
  model::HostEvidence side;
  for (std::size_t i = 0; i < 20; ++i)
    side.stretches.push_back({0.1, 20, 20 * (19e6 + 1e6 * static_cast<double>(i * 7 % 3))});
  return side;
}

/// In every third of them they have one and a half, and steps take so long.
model::HostEvidence visited(double step_ns, double cpus = 1.5) {
  model::HostEvidence side = quiet();
  for (std::size_t i = 0; i < side.stretches.size(); i += 3)
    side.stretches[i] = {cpus, 10, 10 * (step_ns + 1e4 * static_cast<double>(i))};
  return side;
}

TEST(Bursts, StepsThatAreSlowJustWhileOthersAreThereAreTheirDoing) {
  const auto found = bursts_of(quiet(), visited(50e6));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->side, 1U);
  EXPECT_NEAR(found->of_time, 0.35, 1e-9);
  EXPECT_NEAR(found->of_steps, 70.0 / (70 + 260), 1e-9);
  EXPECT_NEAR(found->cpus[0], 0.1, 1e-9);
  EXPECT_NEAR(found->cpus[1], 1.5, 1e-9);
  EXPECT_NEAR(found->step_ns[0], 20e6, 1e6);
  EXPECT_NEAR(found->step_ns[1], 50e6, 0.2e6);
}

TEST(Bursts, TheBaselineMayHaveThem) {
  const auto found = bursts_of(visited(50e6), quiet());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->side, 0U);
}

TEST(Bursts, TheSameHasNone) { EXPECT_FALSE(bursts_of(quiet(), quiet())); }

TEST(Bursts, WhoMakesNothingSlowerIsNone) { EXPECT_FALSE(bursts_of(quiet(), visited(20.5e6))); }

TEST(Bursts, WhoTakesNoMoreThanOnTheOtherSideIsNone) {
  EXPECT_FALSE(bursts_of(quiet(), visited(50e6, 0.35)));
  EXPECT_FALSE(bursts_of(visited(20e6), visited(50e6)));
}

TEST(Bursts, WhoIsThereAllTheTimeDoesNotComeAndGo) {
  model::HostEvidence side = quiet();
  for (model::Stretch& stretch : side.stretches) stretch = {1.5, 10, 5e8};
  EXPECT_FALSE(bursts_of(quiet(), side));
}

TEST(Bursts, AFewStretchesTellNothing) {
  model::HostEvidence side = visited(50e6);
  side.stretches.resize(6);
  EXPECT_FALSE(bursts_of(quiet(), side)) << "two of six";
}

TEST(Bursts, OnesWithoutStepsDoNotCount) {
  model::HostEvidence side = quiet();
  for (std::size_t i = 0; i < side.stretches.size(); i += 3) side.stretches[i] = {1.5, 0, 0};
  EXPECT_FALSE(bursts_of(quiet(), side));
}

}  // namespace
}  // namespace culprit::compare
