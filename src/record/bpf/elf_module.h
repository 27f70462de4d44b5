// The functions of one file of code, as its symbol table names them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::record::bpf {

/// A name for people: demangled, without parameters, without the separator of folded stacks.
std::string readable_symbol(std::string_view symbol);

/// Names by address: those of one symbol table, text beside it.
class FunctionTable {
 public:
  /// `name` is copied.
  void add(std::uint64_t address, std::uint64_t size, std::string_view name);
  /// After the last add().
  void sort();
  /// As the table has it; empty: none holds the address. With `sizes_known` false a function ends where the next
  /// begins.
  [[nodiscard]] std::string_view find(std::uint64_t address, bool sizes_known = true) const;
  [[nodiscard]] bool empty() const { return functions_.empty(); }
  [[nodiscard]] std::size_t size() const { return functions_.size(); }

 private:
  struct Function {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint32_t name = 0;  // offset in names_
  };
  std::vector<Function> functions_;  // by address
  std::string names_;                // each ends with a zero
};

struct ElfModule {
  struct Segment {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t address = 0;
  };
  std::string path;      ///< as the process sees it
  std::string build_id;  ///< bytes
  std::vector<Segment> segments;
  FunctionTable functions;

  /// The last part of the path.
  [[nodiscard]] std::string_view label() const;
  [[nodiscard]] std::uint64_t address_of(std::uint64_t file_offset) const;
};

/// What the ELF file `file` tells; without functions when it is none. `path` is what the process calls it.
ElfModule read_elf_module(const std::string& file, std::string path);

}  // namespace culprit::record::bpf
