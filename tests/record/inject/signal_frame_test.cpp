#include "record/inject/signal_frame.h"

#include <gtest/gtest.h>

#include "record/inject/safe_point.h"

#if defined(__x86_64__)

#include <asm/unistd.h>
#include <linux/futex.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <vector>

namespace culprit::record::inject {
namespace {

constexpr auto kNone = static_cast<unsigned long long>(-1);

user_regs_struct at(unsigned long long rip, long call, long result) {
  user_regs_struct r{};
  r.rip = rip;
  r.orig_rax = static_cast<unsigned long long>(call);
  r.rax = static_cast<unsigned long long>(result);
  return r;
}

TEST(GoingOn, AnInterruptedCallIsBegunAgain) {
  for (const long result : {-512L, -513L, -514L}) {
    const user_regs_struct on = going_on(at(100, __NR_read, result), false);
    EXPECT_EQ(on.rip, 98u) << result;
    EXPECT_EQ(on.rax, static_cast<unsigned long long>(__NR_read));
    EXPECT_EQ(on.orig_rax, kNone);
  }
  EXPECT_EQ(going_on(at(100, __NR_nanosleep, -516), false).rax, static_cast<unsigned long long>(__NR_restart_syscall));
}

TEST(GoingOn, EpollIsInterruptedByTheStopOrByASignal) {
  EXPECT_EQ(going_on(at(100, __NR_epoll_wait, -EINTR), true).rip, 98u);
  EXPECT_EQ(going_on(at(100, __NR_epoll_wait, -EINTR), false).rip, 100u);
}

TEST(GoingOn, ADescriptorIsNotClosedASecondTime) {
  for (const long call : {__NR_close, __NR_connect}) EXPECT_EQ(going_on(at(100, call, -EINTR), true).rip, 100u) << call;
}

TEST(GoingOn, WhatHasEndedOrWasNoCallStays) {
  EXPECT_EQ(going_on(at(100, __NR_read, 5), true).rip, 100u);
  EXPECT_EQ(going_on(at(100, __NR_read, 5), true).rax, 5u);
  EXPECT_EQ(going_on(at(100, -1, 77), true).rax, 77u);
}

std::vector<Mapping> code() {
  return {{0x1000, 0x2000, 0, "/usr/bin/python3", ""},
          {0x3000, 0x4000, 0, "/lib/x86_64-linux-gnu/libc.so.6", ""},
          {0x5000, 0x6000, 0, "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", ""},
          {0x7000, 0x8000, 0, "[vdso]", ""}};
}

TEST(SafePoint, RunningCodeOfTheProgramIsSafeAndOfTheCLibraryNot) {
  EXPECT_TRUE(is_safe(at(0x1100, -1, 0), code()));
  EXPECT_FALSE(is_safe(at(0x3100, -1, 0), code()));
  EXPECT_FALSE(is_safe(at(0x5100, -1, 0), code()));
  EXPECT_FALSE(is_safe(at(0x7100, -1, 0), code()));
  EXPECT_FALSE(is_safe(at(0x9000, -1, 0), code())) << "code of nobody";
}

TEST(SafePoint, WaitingIsSafeAndWhatTheAllocatorCallsIsNot) {
  for (const long call : {__NR_epoll_wait, __NR_poll, __NR_nanosleep, __NR_recvfrom, __NR_read})
    EXPECT_TRUE(is_safe(at(0x3100, call, -512), code())) << call;
  for (const long call :
       {__NR_brk, __NR_mmap, __NR_munmap, __NR_mprotect, __NR_madvise, __NR_mremap, __NR_clone3, __NR_execve})
    EXPECT_FALSE(is_safe(at(0x3100, call, 0), code())) << call;
  EXPECT_FALSE(is_safe(at(0x5100, __NR_read, 0), code())) << "the loader reads a library";
}

TEST(SafePoint, AHandlerHasInterruptedWhatNobodyKnows) {
  std::vector<std::uint64_t> stack(64, 7);
  EXPECT_FALSE(is_in_handler(stack, 0x3500));
  stack[5] = 0x3500;
  EXPECT_FALSE(is_in_handler(stack, 0x3500)) << "no frame stands behind it";
  stack[6] = 7;
  stack[5 + 24] = 0x002b000000000033;
  EXPECT_TRUE(is_in_handler(stack, 0x3500));
  EXPECT_FALSE(is_in_handler(std::span(stack).first(20), 0x3500)) << "it is cut";
}

TEST(SafePoint, AnAllocatorOfTheProgramsOwnIsGuarded) {
  std::vector<std::uint64_t> stack(512, 0);
  Process process;
  process.code = code();
  const auto begin = reinterpret_cast<std::uint64_t>(stack.data());
  process.writable = {{begin, begin + stack.size() * sizeof(std::uint64_t)}};
  user_regs_struct running = at(0x1100, -1, 0);
  user_regs_struct waiting = at(0x3100, __NR_nanosleep, -512);
  running.rsp = waiting.rsp = begin;
  EXPECT_TRUE(is_safe_now(getpid(), running, process));
  EXPECT_TRUE(is_safe_now(getpid(), waiting, process));
  process.has_own_allocator = true;
  EXPECT_FALSE(is_safe_now(getpid(), running, process));
  EXPECT_TRUE(is_safe_now(getpid(), waiting, process));
  process.has_own_allocator = false;
  process.allocators = {{0x1000, 0x1800}};
  EXPECT_FALSE(is_safe_now(getpid(), running, process));
  process.allocators = {{0x6500, 0x6600}};
  EXPECT_TRUE(is_safe_now(getpid(), running, process));
  stack[10] = 0x6510;
  EXPECT_FALSE(is_safe_now(getpid(), running, process)) << "it was called from there";
  EXPECT_FALSE(is_safe_now(getpid(), waiting, process));
}

TEST(SafePoint, ALockOfTheCLibraryIsNoCondition) {
  user_regs_struct r = at(0x3100, __NR_futex, -512);
  r.rsi = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
  EXPECT_TRUE(is_safe(r, code()));
  r.rsi = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
  EXPECT_FALSE(is_safe(r, code()));
}

}  // namespace
}  // namespace culprit::record::inject

#endif
