// Names of code from what programs and the kernel tell of themselves.
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "record/bpf/elf_module.h"
#include "record/bpf/function_table.h"
#include "record/bpf/jit_map.h"
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

/// A file of code that has nothing but symbols.
class SymbolFile : public testing::Test {
 protected:
  void add(std::uint64_t address, std::uint64_t size, const std::string& name, unsigned char type = STT_FUNC) {
    Elf64_Sym symbol{};
    symbol.st_value = address;
    symbol.st_size = size;
    symbol.st_name = static_cast<Elf64_Word>(names_.size());
    symbol.st_info = type;
    symbol.st_shndx = 1;
    symbols_.push_back(symbol);
    names_ += name + '\0';
  }
  /// As `table` (SHT_SYMTAB, SHT_DYNSYM) of a new file.
  std::string write(Elf64_Word table, std::uint64_t claimed_size = 0) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    header.e_shoff = sizeof header;
    Elf64_Shdr sections[3] = {};
    const std::uint64_t bytes = symbols_.size() * sizeof(Elf64_Sym);
    sections[1].sh_type = table;
    sections[1].sh_offset = sizeof header + sizeof sections;
    sections[1].sh_size = claimed_size != 0 ? claimed_size : bytes;
    sections[1].sh_entsize = sizeof(Elf64_Sym);
    sections[1].sh_link = 2;
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = sections[1].sh_offset + bytes;
    sections[2].sh_size = names_.size();
    std::string file(reinterpret_cast<const char*>(&header), sizeof header);
    file.append(reinterpret_cast<const char*>(sections), sizeof sections);
    file.append(reinterpret_cast<const char*>(symbols_.data()), bytes);
    return folder_.file("code.so", file + names_);
  }
  static std::vector<std::string> at(const std::string& file, std::vector<std::uint64_t> addresses) {
    return function_symbols(file, addresses);
  }

 private:
  culprit::test::TempDir folder_;
  std::vector<Elf64_Sym> symbols_;
  std::string names_ = std::string(1, '\0');
};

TEST_F(SymbolFile, TheInnermostFunctionHoldsAnAddressAndTheLastNameOfItCounts) {
  add(0x200, 0x10, "second");
  add(0x100, 0x80, "first");
  add(0x110, 0x10, "alias");
  add(0x110, 0x10, "inner");
  add(0x120, 0, "point");
  add(0x130, 8, "data", STT_OBJECT);
  EXPECT_EQ(at(write(SHT_SYMTAB), {0xff, 0x100, 0x11f, 0x120, 0x121, 0x130, 0x17f, 0x180, 0x20f, 0x210}),
            (std::vector<std::string>{"", "first", "inner", "point", "first", "first", "first", "", "second", ""}));
}

TEST_F(SymbolFile, OfAStrippedFileTheNamesForOthersAreTaken) {
  add(0x100, 0x80, "exported");
  EXPECT_EQ(at(write(SHT_DYNSYM), {0x140}), std::vector<std::string>{"exported"});
}

TEST_F(SymbolFile, MoreSymbolsThanArePiecedTogetherAtOnce) {
  for (std::uint64_t i = 0; i < 20'000; ++i) add(0x1000 + 16 * i, 16, "f" + std::to_string(i));
  EXPECT_EQ(at(write(SHT_SYMTAB), {0x1000, 0x1000 + 16 * 9'999 + 15, 0x1000 + 16 * 19'999}),
            (std::vector<std::string>{"f0", "f9999", "f19999"}));
}

TEST_F(SymbolFile, ATableThatClaimsMoreThanTheFileHasEndsWithIt) {
  add(0x100, 0x80, "first");
  EXPECT_EQ(at(write(SHT_SYMTAB, std::uint64_t{1} << 60), {0x110}), std::vector<std::string>{"first"});
}

TEST_F(SymbolFile, WhereEverySymbolHoldsEveryAddressItEnds) {
  for (int i = 0; i < 40'000; ++i) add(0, ~std::uint64_t{0}, "all");
  std::vector<std::uint64_t> addresses(4'000);
  for (std::size_t i = 0; i < addresses.size(); ++i) addresses[i] = i;
  EXPECT_EQ(at(write(SHT_SYMTAB), addresses).back(), "all");
}

TEST_F(SymbolFile, WhatIsNoFileOfCodeHasNoNames) {
  const std::vector<std::string> none(2);
  EXPECT_EQ(at("/proc/self/status", {1, 2}), none);
  EXPECT_EQ(at("", {1, 2}), none);
  EXPECT_EQ(at("/proc/self/exe", {}), std::vector<std::string>());
}

}  // namespace
}  // namespace culprit::record::bpf
