// Names of code and of system calls.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <span>
#include <string>

#include "record/bpf/symbols.h"
#include "record/bpf/syscall_name.h"

extern "C" __attribute__((noinline)) int culprit_test_marked_function(int value) {
  asm volatile("");
  return value + 1;
}

namespace culprit::record::bpf {
namespace {

std::string folded(Symbols& symbols, std::int64_t pid, std::span<const std::uint64_t> frames) {
  CodeStack stack;
  symbols.append_user(pid, frames, 1, stack);
  symbols.name_all();
  return bpf::folded(stack);
}

std::uint64_t address_of(int (*function)(int)) { return reinterpret_cast<std::uint64_t>(function); }

TEST(SyscallName, NumbersOfThisMachine) {
  EXPECT_EQ(syscall_name(SYS_read), "read");
  EXPECT_EQ(syscall_name(SYS_futex), "futex");
  EXPECT_EQ(syscall_name(SYS_clone3), "clone3");
  EXPECT_EQ(syscall_name(100000), "syscall_100000");
  EXPECT_EQ(syscall_name(-1), "syscall_-1");
}

TEST(Symbols, NamesAFunctionOfThisProgram) {
  Symbols symbols;
  const std::uint64_t frames[] = {address_of(&culprit_test_marked_function) + 1};
  EXPECT_EQ(folded(symbols, getpid(), frames), "culprit_test_marked_function");
}

TEST(Symbols, OutermostStandsFirst) {
  Symbols symbols;
  const std::uint64_t frames[] = {address_of(&culprit_test_marked_function),
                                  reinterpret_cast<std::uint64_t>(&::getppid) + 2};
  const std::string text = folded(symbols, getpid(), frames);
  EXPECT_NE(text.find(";culprit_test_marked_function"), std::string::npos) << text;
}

TEST(Symbols, OutsideEveryFileIsUnknown) {
  Symbols symbols;
  int on_stack = 0;
  const std::uint64_t frames[] = {8, reinterpret_cast<std::uint64_t>(&on_stack), ~std::uint64_t{0}};
  EXPECT_EQ(folded(symbols, getpid(), frames), "[unknown];[unknown];[unknown]");
}

TEST(Symbols, AProcessThatIsGoneIsUnknown) {
  Symbols symbols;
  const std::uint64_t frames[] = {0x401000};
  EXPECT_EQ(folded(symbols, 0x7ffffff0, frames), "[unknown]");
  symbols.forget(0x7ffffff0);
}

/// A child that runs this program's code until it is ended.
pid_t start_child() {
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  return child;
}

void end_child(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Symbols, AProcessThatEndsBeforeItsCodeIsNamedHasItsNames) {
  const pid_t child = start_child();
  ASSERT_GT(child, 0);
  Symbols symbols;
  const std::uint64_t frames[] = {address_of(&culprit_test_marked_function)};
  CodeStack stack;
  symbols.append_user(child, frames, 1, stack);
  symbols.forget(child);
  end_child(child);
  EXPECT_FALSE(is_named(stack));
  symbols.name_all();
  EXPECT_TRUE(is_named(stack));
  EXPECT_EQ(bpf::folded(stack), "culprit_test_marked_function");
}

TEST(Symbols, AreNamedTogetherALittleLater) {
  Symbols symbols;
  const std::uint64_t frames[] = {address_of(&culprit_test_marked_function)};
  CodeStack stack;
  symbols.append_user(getpid(), frames, 1'000'000'000, stack);
  symbols.name_when_due(1'001'000'000);
  EXPECT_FALSE(is_named(stack));
  symbols.name_when_due(2'000'000'000);
  EXPECT_TRUE(is_named(stack));
  CodeStack again;
  symbols.append_user(getpid(), frames, 2'000'000'001, again);
  EXPECT_TRUE(is_named(again)) << "what is known needs no waiting";
}

TEST(Symbols, OneFileOfManyProcessesIsReadThroughOnce) {
  Symbols symbols;
  const std::uint64_t frames[] = {address_of(&culprit_test_marked_function)};
  EXPECT_EQ(folded(symbols, getpid(), frames), "culprit_test_marked_function");
  const pid_t child = start_child();
  ASSERT_GT(child, 0);
  CodeStack stack;
  symbols.append_user(child, frames, 1, stack);
  end_child(child);
  EXPECT_TRUE(is_named(stack));
}

TEST(Symbols, FunctionsOfTheKernelAreAskedForOnceAndTheirAddressesKept) {
  int asked = 0;
  Symbols symbols([&](std::uint64_t address) {
    ++asked;
    return std::string(address == 0xffffffff81000100 ? "vfs_read" : "");
  });
  const std::uint64_t frames[] = {0xffffffff81000100, 0xffffffff81000200};
  CodeStack stack;
  symbols.append_kernel(frames, stack);
  symbols.append_kernel(frames, stack);
  EXPECT_EQ(bpf::folded(stack), "[kernel];vfs_read;[kernel];vfs_read");
  EXPECT_EQ(asked, 2);
  for (const auto& code : stack) EXPECT_EQ(code->address, 0U);
}

TEST(Symbols, NoFramesNoText) {
  Symbols symbols;
  EXPECT_EQ(folded(symbols, getpid(), {}), "");
}

}  // namespace
}  // namespace culprit::record::bpf
