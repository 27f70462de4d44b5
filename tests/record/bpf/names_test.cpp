// Names of code and of system calls.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "record/bpf/symbols.h"
#include "record/bpf/syscall_name.h"

extern "C" __attribute__((noinline)) int culprit_test_marked_function(int value) {
  asm volatile("");
  return value + 1;
}

namespace culprit::record::bpf {
namespace {

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
  EXPECT_EQ(symbols.folded(getpid(), frames, 1), "culprit_test_marked_function");
}

TEST(Symbols, OutermostStandsFirst) {
  Symbols symbols;
  const std::uint64_t frames[] = {address_of(&culprit_test_marked_function),
                                  reinterpret_cast<std::uint64_t>(&::getppid) + 2};
  const std::string text = symbols.folded(getpid(), frames, 1);
  EXPECT_NE(text.find(";culprit_test_marked_function"), std::string::npos) << text;
}

TEST(Symbols, OutsideEveryFileIsUnknown) {
  Symbols symbols;
  int on_stack = 0;
  const std::uint64_t frames[] = {8, reinterpret_cast<std::uint64_t>(&on_stack), ~std::uint64_t{0}};
  EXPECT_EQ(symbols.folded(getpid(), frames, 1), "[unknown];[unknown];[unknown]");
}

TEST(Symbols, AProcessThatIsGoneIsUnknown) {
  Symbols symbols;
  const std::uint64_t frames[] = {0x401000};
  EXPECT_EQ(symbols.folded(0x7ffffff0, frames, 1), "[unknown]");
  symbols.forget(0x7ffffff0);
}

TEST(Symbols, NoFramesNoText) {
  Symbols symbols;
  EXPECT_EQ(symbols.folded(getpid(), {}, 1), "");
}

}  // namespace
}  // namespace culprit::record::bpf
