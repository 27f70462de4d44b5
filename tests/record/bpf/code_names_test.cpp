// Names of code from what programs and the kernel tell of themselves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "record/bpf/elf_module.h"
#include "record/bpf/jit_map.h"
#include "record/bpf/kernel_symbols.h"
#include "support/temp_file.h"

namespace culprit::record::bpf {
namespace {

TEST(FunctionTable, AnAddressBelongsToWhoHoldsIt) {
  FunctionTable table;
  table.add(0x200, 0x10, "second");
  table.add(0x100, 0x80, "first");
  table.add(0x110, 0x10, "inner");
  table.sort();
  EXPECT_EQ(table.find(0xff), "");
  EXPECT_EQ(table.find(0x100), "first");
  EXPECT_EQ(table.find(0x11f), "inner");
  EXPECT_EQ(table.find(0x17f), "first");
  EXPECT_EQ(table.find(0x180), "");
  EXPECT_EQ(table.find(0x180, false), "inner");
  EXPECT_EQ(table.find(0x20f), "second");
}

TEST(ReadableSymbol, IsDemangledWithoutParameters) {
  EXPECT_EQ(readable_symbol("_ZN2at6native6addmm_ERKNS_6TensorE"), "at::native::addmm_");
  EXPECT_EQ(readable_symbol("main"), "main");
  EXPECT_EQ(readable_symbol("a;b\nc"), "a:b c");
  EXPECT_EQ(readable_symbol(std::string(5000, 'x')).size(), 160U);
}

TEST(JitMap, LinesAreStartSizeAndName) {
  JitMap map;
  const std::string text =
      "7f0010 20 py::work:/srv/app.py\n"
      "0x7f0040 0x8 LazyCompile:~render x.js:3\n"
      "7f0050 0 nothing\n"
      "nonsense\n"
      "7f0060 zz bad size\n"
      "7f0070 10 half";
  EXPECT_EQ(map.take(text), text.rfind('\n') + 1);
  EXPECT_EQ(map.find(0x7f0010), "py::work:/srv/app.py");
  EXPECT_EQ(map.find(0x7f002f), "py::work:/srv/app.py");
  EXPECT_EQ(map.find(0x7f0047), "LazyCompile:~render x.js:3");
  EXPECT_EQ(map.find(0x7f0050), "");
  EXPECT_EQ(map.find(0x7f0070), "");
}

/// A process as /proc shows it, with a root of its own.
class JitMapFile : public testing::Test {
 protected:
  void process(const std::string& inner) {
    const std::string of = folder_.path() + "/77";
    ASSERT_EQ(system(("mkdir -p " + of + "/root/tmp").c_str()), 0);
    (void)folder_.file("77/status", "Name:\tprog\nNSpid:\t77\t" + inner + "\n");
  }
  void map(const std::string& name, const std::string& text) { (void)folder_.file("77/root/tmp/" + name, text); }

  culprit::test::TempDir folder_;
  JitMap jit_;
};

TEST_F(JitMapFile, IsNamedByTheNumberInTheProcesssOwnNamespace) {
  process("5");
  map("perf-77.map", "1000 10 outside\n");
  map("perf-5.map", "1000 10 inside\n");
  jit_.read(77, folder_.path());
  EXPECT_EQ(jit_.find(0x1000), "inside");
}

TEST_F(JitMapFile, WhatIsAddedIsReadOnce) {
  process("5");
  map("perf-5.map", "1000 10 first\n20");
  jit_.read(77, folder_.path());
  EXPECT_EQ(jit_.find(0x1000), "first");
  map("perf-5.map", "1000 10 first\n2000 10 second\n");
  jit_.read(77, folder_.path());
  EXPECT_EQ(jit_.find(0x1008), "first");
  EXPECT_EQ(jit_.find(0x2000), "second");
}

TEST_F(JitMapFile, OfSomebodyElseIsNotBelieved) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  process("5");
  map("perf-5.map", "1000 10 spoofed\n");
  ASSERT_EQ(chown((folder_.path() + "/77/root/tmp/perf-5.map").c_str(), 65534, 65534), 0);
  jit_.read(77, folder_.path());
  EXPECT_EQ(jit_.find(0x1000), "");
}

TEST_F(JitMapFile, ALinkIsNotFollowed) {
  process("5");
  map("other", "1000 10 elsewhere\n");
  ASSERT_EQ(symlink("other", (folder_.path() + "/77/root/tmp/perf-5.map").c_str()), 0);
  jit_.read(77, folder_.path());
  EXPECT_EQ(jit_.find(0x1000), "");
}

TEST(KernelSymbols, FunctionsReachToTheNext) {
  const culprit::test::TempDir dir;
  KernelSymbols symbols;
  symbols.read(dir.file("kallsyms",
                        "ffffffff81000000 T _text\n"
                        "ffffffff81000100 t vfs_read\n"
                        "ffffffff81000180 D no_function\n"
                        "ffffffff81000200 W weak_one\t[module]\n"
                        "nonsense\n"));
  EXPECT_EQ(symbols.find(0xffffffff81000050), "_text");
  EXPECT_EQ(symbols.find(0xffffffff810001ff), "vfs_read");
  EXPECT_EQ(symbols.find(0xffffffff81000300), "weak_one");
  EXPECT_EQ(symbols.find(0x1000), "");
}

TEST(KernelSymbols, HiddenAddressesNameNothing) {
  const culprit::test::TempDir dir;
  KernelSymbols symbols;
  symbols.read(dir.file("kallsyms", "0000000000000000 T _text\n0000000000000000 t vfs_read\n"));
  EXPECT_TRUE(symbols.empty());
  EXPECT_EQ(symbols.find(0xffffffff81000050), "");
}

}  // namespace
}  // namespace culprit::record::bpf
