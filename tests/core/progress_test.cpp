#include "core/progress.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

using namespace std::chrono_literals;

struct Fixture {
  Progress::Clock::time_point now{};
  std::string shown;
  Progress make() {
    return {"loading", [this](std::string_view text) { shown += text; }, [this] { return now; }};
  }
};

TEST(Progress, SilentInTheFirstSecond) {
  Fixture f;
  {
    Progress progress = f.make();
    f.now += 900ms;
    progress.update(50, 100);
  }
  EXPECT_EQ(f.shown, "");
}

TEST(Progress, ShowsAShareAndClearsItself) {
  Fixture f;
  {
    Progress progress = f.make();
    f.now += 1100ms;
    progress.update(50, 100);
    EXPECT_NE(f.shown.find("50 %"), std::string::npos);
    EXPECT_NE(f.shown.find("[###############...............]"), std::string::npos);
  }
  EXPECT_TRUE(f.shown.ends_with("\r\x1b[K"));
}

TEST(Progress, AtMostTenTimesASecond) {
  Fixture f;
  Progress progress = f.make();
  f.now += 1100ms;
  progress.update(50, 100);
  const std::string first = f.shown;
  f.now += 50ms;
  progress.update(60, 100);
  EXPECT_EQ(f.shown, first);
  f.now += 60ms;
  progress.update(70, 100);
  EXPECT_NE(f.shown, first);
}

TEST(Progress, UnknownEndShowsBytes) {
  Fixture f;
  Progress progress = f.make();
  f.now += 2s;
  progress.update(1536, 0);
  EXPECT_NE(f.shown.find("1.50 KiB"), std::string::npos);
}

TEST(Progress, WithoutASinkNothingHappens) {
  Progress progress("x", {});
  progress.update(1, 2);
}

}  // namespace
}  // namespace culprit
