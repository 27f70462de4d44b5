// One file of code: where its parts lie in memory, and the names of functions at given addresses. Its symbol table is
// read through and never kept: that of a large library has hundreds of thousands of names, of which a recording sees a
// few hundred.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::record::bpf {

/// A name for people: demangled, without parameters, without the separator of folded stacks.
std::string readable_symbol(std::string_view symbol);

struct ElfModule {
  struct Segment {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t address = 0;
  };
  std::string path;      ///< as the process sees it
  std::string build_id;  ///< bytes
  std::vector<Segment> segments;

  [[nodiscard]] std::uint64_t address_of(std::uint64_t file_offset) const;
};

/// What the headers of the ELF file `file` tell; without segments when it is none. `path` is what the process calls it.
ElfModule read_elf_module(const std::string& file, std::string path);

/// The symbols of the functions of the ELF file `file` that hold the `addresses` (sorted, as ElfModule::address_of()
/// gives them), in their order; empty where none does. Of functions within one another the innermost, of names of one
/// function the last.
std::vector<std::string> function_symbols(const std::string& file, std::span<const std::uint64_t> addresses);

}  // namespace culprit::record::bpf
