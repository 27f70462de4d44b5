#include "record/annotate/slow_close.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>

namespace culprit::record::annotate {
namespace {

/// The reading end of a pipe tells when the last writing end is closed.
bool is_closed(int reading, int wait_ms) {
  pollfd entry{reading, POLLIN, 0};
  return poll(&entry, 1, wait_ms) == 1 && (entry.revents & POLLHUP) != 0;
}

TEST(SlowClose, TheHolderKeepsWhatItWasGivenUntilItIsToldToEnd) {
  std::array<int, 2> held{};
  std::array<int, 2> other{};
  ASSERT_EQ(pipe2(held.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(other.data(), O_CLOEXEC), 0);
  EXPECT_THAT(open_descriptors(), testing::IsSupersetOf({held[1], other[1]}));
  std::optional<Holder> holder;
  holder.emplace(std::vector<int>{held[1]});
  close(held[1]);
  close(other[1]);
  EXPECT_TRUE(is_closed(other[0], 10'000)) << "nothing else is held";
  EXPECT_FALSE(is_closed(held[0], 50));
  holder.reset();
  EXPECT_TRUE(is_closed(held[0], 10'000));
  close(held[0]);
  close(other[0]);
}

TEST(SlowClose, AHolderDoesNotHoldItsOwnEnd) {
  std::array<int, 2> held{};
  std::array<int, 2> free_again{};
  ASSERT_EQ(pipe2(held.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(free_again.data(), O_CLOEXEC), 0);
  for (const int fd : free_again) close(fd);
  std::optional<Holder> holder;
  holder.emplace(std::vector<int>{held[1], free_again[0], free_again[1]});
  close(held[1]);
  EXPECT_FALSE(is_closed(held[0], 50));
  holder.reset();
  EXPECT_TRUE(is_closed(held[0], 10'000)) << "it would run for ever, with places in other programs";
  close(held[0]);
}

TEST(SlowClose, TheDescriptorsAreThoseThatStayOpen) {
  const std::vector<int> listed = open_descriptors();
  EXPECT_FALSE(listed.empty());
  for (const int fd : listed) EXPECT_GE(fcntl(fd, F_GETFD), 0) << fd << " was that of the listing itself";
}

}  // namespace
}  // namespace culprit::record::annotate
