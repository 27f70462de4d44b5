// Filters as the kernel runs them, and which of the agent's calls they let pass.
#include "record/inject/seccomp.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <vector>

namespace culprit::record::inject {
namespace {

using Filter = std::vector<sock_filter>;

constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;

sock_filter step(int code, std::uint32_t k, std::uint8_t jt = 0, std::uint8_t jf = 0) {
  return {static_cast<std::uint16_t>(code), jt, jf, k};
}
sock_filter load(std::size_t offset) { return step(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
sock_filter answer(std::uint32_t value) { return step(BPF_RET | BPF_K, value); }
constexpr std::size_t kNumber = offsetof(seccomp_data, nr);

seccomp_data call(int number, std::uint64_t first = 0) {
  seccomp_data data{};
  data.nr = number;
  data.arch = 0xc000003e;
  data.args[0] = first;
  return data;
}

TEST(RunFilter, AnswersByNumber) {
  const Filter filter = {load(kNumber), step(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 1), answer(SECCOMP_RET_ERRNO | EPERM),
                         answer(SECCOMP_RET_ALLOW)};
  EXPECT_EQ(run_filter(filter, call(7)), SECCOMP_RET_ERRNO | EPERM);
  EXPECT_EQ(run_filter(filter, call(8)), SECCOMP_RET_ALLOW);
}

TEST(RunFilter, LooksAtArgumentsAndCalculates) {
  const std::size_t low = offsetof(seccomp_data, args);
  const auto masked = [&](std::uint32_t mask) {
    return Filter{load(low),
                  step(BPF_ALU | BPF_AND | BPF_K, mask),
                  step(BPF_MISC | BPF_TAX, 0),
                  step(BPF_STX, 3),
                  step(BPF_LD | BPF_IMM, 0),
                  step(BPF_LD | BPF_MEM, 3),
                  step(BPF_JMP | BPF_JGT | BPF_K, 0, 0, 1),
                  answer(1),
                  answer(2)};
  };
  EXPECT_EQ(run_filter(masked(0x7e020000), call(56, 0x3d0f00)), 2u) << "a thread is no new namespace";
  EXPECT_EQ(run_filter(masked(0x7e020000), call(56, 0x10000000)), 1u);
  EXPECT_EQ(run_filter(Filter{step(BPF_LD | BPF_IMM, 5), step(BPF_MISC | BPF_TAX, 0), step(BPF_LD | BPF_IMM, 7),
                              step(BPF_ALU | BPF_SUB | BPF_X, 0), step(BPF_ALU | BPF_LSH | BPF_K, 4),
                              step(BPF_RET | BPF_A, 0)},
                       call(0)),
            32u);
}

TEST(RunFilter, JumpsGoForward) {
  EXPECT_EQ(run_filter(Filter{step(BPF_JMP | BPF_JA, 1), answer(1), answer(2)}, call(0)), 2u);
}

TEST(RunFilter, WhatTheKernelWouldNotTakeKills) {
  EXPECT_EQ(run_filter({}, call(0)), kKill);
  for (const Filter& wrong :
       {Filter{load(1), answer(1)}, Filter{load(64), answer(1)}, Filter{load(0xfffffffc), answer(1)},
        Filter{step(BPF_ALU | BPF_DIV | BPF_K, 0), answer(1)}, Filter{step(BPF_ALU | BPF_LSH | BPF_K, 32), answer(1)},
        Filter{step(BPF_ST, 16), answer(1)}, Filter{step(BPF_LD | BPF_MEM, 16), answer(1)},
        Filter{step(BPF_LD | BPF_W | BPF_IND, 0), answer(1)}, Filter{step(BPF_JMP | BPF_JA, 0xffffffff), answer(1)},
        Filter{load(kNumber)}})
    EXPECT_EQ(run_filter(wrong, call(0)), kKill);
}

#if defined(__x86_64__)

Filter all_but(int number, std::uint32_t value) {
  return {load(kNumber), step(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1), answer(value),
          answer(SECCOMP_RET_ALLOW)};
}

TEST(ForbiddenCall, IsNamed) {
  EXPECT_EQ(forbidden_call({}), "");
  const std::vector<Filter> fine = {all_but(SYS_ptrace, kKill), all_but(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS)};
  EXPECT_EQ(forbidden_call(fine), "");
  const std::vector<Filter> kills = {all_but(SYS_ptrace, kKill), all_but(SYS_memfd_create, SECCOMP_RET_ERRNO | EPERM)};
  EXPECT_EQ(forbidden_call(kills), "memfd_create");
  const std::vector<Filter> clone3 = {all_but(SYS_clone3, SECCOMP_RET_ERRNO | EPERM)};
  EXPECT_EQ(forbidden_call(clone3), "clone3") << "the C library tries another way only when it is unknown";
}

TEST(ForbiddenCall, AFilterOfAnotherArchitectureLetsNothingPass) {
  const std::vector<Filter> other = {{load(offsetof(seccomp_data, arch)),
                                      step(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_AARCH64, 0, 1),
                                      answer(SECCOMP_RET_ALLOW), answer(kKill)}};
  EXPECT_EQ(forbidden_call(other), "memfd_create");
}

#endif

}  // namespace
}  // namespace culprit::record::inject
