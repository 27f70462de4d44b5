// Chains of this very process, held against those of the C library, which reads the same tables.
#include "record/samples/unwind.h"

#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace culprit::record::samples {
namespace {

#ifdef __x86_64__

using ::testing::ElementsAre;
using ::testing::SizeIs;

/// What a sample would hold of this thread, and what the C library says its callers are.
struct Snapshot {
  std::array<std::uint64_t, 17> registers{};
  std::vector<std::uint8_t> stack;
  std::vector<std::uint64_t> expected;
};

__attribute__((noinline, no_sanitize("address"))) void take(Snapshot& snapshot, std::size_t bytes) {
  auto& r = snapshot.registers;
  asm volatile(
      "mov %%rbx, 24(%0)\n mov %%rbp, 48(%0)\n mov %%rsp, 56(%0)\n mov %%r12, 96(%0)\n mov %%r13, 104(%0)\n"
      "mov %%r14, 112(%0)\n mov %%r15, 120(%0)\n lea 0(%%rip), %%rax\n mov %%rax, 128(%0)\n"
      :
      : "r"(r.data())
      : "rax", "memory");
  const auto* from = reinterpret_cast<const volatile std::uint8_t*>(r[7]);
  for (std::size_t i = 0; i < bytes; ++i) snapshot.stack[i] = from[i];
  std::array<void*, 64> callers{};
  const int count = backtrace(callers.data(), static_cast<int>(callers.size()));
  for (int i = 1; i < count; ++i)
    snapshot.expected.push_back(reinterpret_cast<std::uint64_t>(callers[static_cast<std::size_t>(i)]));
}

__attribute__((noinline)) void called(int depth, Snapshot& snapshot, std::size_t bytes) {
  if (depth == 0)
    take(snapshot, bytes);
  else
    called(depth - 1, snapshot, bytes);
  asm volatile("");  // no tail call
}

Snapshot snapshot_of(int depth, std::size_t bytes = 2048) {
  Snapshot snapshot;
  snapshot.stack.resize(bytes);
  called(depth, snapshot, bytes);
  return snapshot;
}

std::vector<std::uint64_t> chain_of(Unwinder& unwinder, const Snapshot& snapshot, std::size_t most = 64) {
  return unwinder.chain({getpid(), snapshot.registers, snapshot.stack}, 1, most);
}

TEST(Unwinder, FindsTheCallersThatTheCLibraryFinds) {
  const Snapshot snapshot = snapshot_of(5);
  Unwinder unwinder;
  const std::vector<std::uint64_t> chain = chain_of(unwinder, snapshot);
  ASSERT_GT(chain.size(), 6U);
  EXPECT_EQ(chain.front(), snapshot.registers[16]);
  const auto callers = std::span(chain).subspan(1);
  // Sanitizers stand before the C library, and so in its list.
  const auto first = std::ranges::find(snapshot.expected, callers.front());
  ASSERT_LE(callers.size(), static_cast<std::size_t>(snapshot.expected.end() - first));
  EXPECT_TRUE(std::ranges::equal(callers, std::span(first, callers.size())));
  EXPECT_EQ(chain_of(unwinder, snapshot), chain) << "the same again";
  EXPECT_EQ(unwinder.by_library(), 0U) << "usual code, usual rules";
}

TEST(Unwinder, EndsWhereTheStackEnds) {
  Unwinder unwinder;
  Snapshot snapshot = snapshot_of(20);
  const std::size_t all = chain_of(unwinder, snapshot).size();
  snapshot.stack.resize(256);
  const std::size_t some = chain_of(unwinder, snapshot).size();
  EXPECT_LT(some, all);
  snapshot.stack.clear();
  EXPECT_LE(chain_of(unwinder, snapshot).size(), some);
  EXPECT_GE(chain_of(unwinder, snapshot).size(), 1U);
}

TEST(Unwinder, GivesNoMoreThanAsked) {
  Unwinder unwinder;
  EXPECT_THAT(chain_of(unwinder, snapshot_of(20), 4), SizeIs(4));
}

TEST(Unwinder, CodeThatIsNowhereIsAChainOfOne) {
  Unwinder unwinder;
  Snapshot snapshot = snapshot_of(1);
  snapshot.registers[16] = 0x10;
  EXPECT_THAT(chain_of(unwinder, snapshot), ElementsAre(0x10));
}

TEST(Unwinder, AProcessThatIsGoneIsAChainOfOne) {
  Unwinder unwinder;
  const Snapshot snapshot = snapshot_of(1);
  EXPECT_THAT(unwinder.chain({-1, snapshot.registers, snapshot.stack}, 1, 64), SizeIs(1));
}

TEST(Unwinder, AnyStackIsSurvived) {
  Unwinder unwinder;
  Snapshot snapshot = snapshot_of(3);
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    for (std::uint8_t& byte : snapshot.stack)
      byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    snapshot.registers[static_cast<std::size_t>(round) % 16] ^= state;
    EXPECT_LE(chain_of(unwinder, snapshot).size(), 64U);
  }
  unwinder.forget(getpid());
  EXPECT_GE(chain_of(unwinder, snapshot_of(3)).size(), 4U);
}

#endif

}  // namespace
}  // namespace culprit::record::samples
