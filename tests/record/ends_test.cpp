#include "record/ends.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace culprit::record {
namespace {

/// A process that waits until it is told to end.
class Child {
 public:
  Child() : pid_(fork()) {
    while (pid_ == 0) pause();
  }
  ~Child() { waitpid(pid_, nullptr, 0); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() const {
    kill(pid_, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);  // it stays as a zombie
  }
  [[nodiscard]] Target target() const { return {pid_, 0}; }

 private:
  pid_t pid_;
};

TEST(Ends, NobodyIsFollowedAtFirst) {
  Ends ends;
  EXPECT_FALSE(ends.any());
  EXPECT_FALSE(ends.follows_all());
}

TEST(Ends, TellsWhenOneOfThemEnds) {
  const Child one;
  const Child other;
  Ends ends;
  ends.follow({one.target(), other.target()});
  if (!ends.follows_all()) {
    one.end();
    other.end();
    GTEST_SKIP() << "this kernel has no pidfd_open(2)";
  }
  EXPECT_FALSE(ends.any());
  one.end();
  EXPECT_TRUE(ends.any());
  ends.follow({other.target()});
  EXPECT_FALSE(ends.any()) << "the one that ended is followed no more";
  other.end();
  EXPECT_TRUE(ends.any());
}

TEST(Ends, OneThatIsGoneIsNotFollowed) {
  Target gone;
  {
    const Child child;
    gone = child.target();
    child.end();
  }
  Ends ends;
  ends.follow({gone});
  EXPECT_FALSE(ends.follows_all());
}

}  // namespace
}  // namespace culprit::record
