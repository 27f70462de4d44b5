// What a library of a process offers by name, and where its bytes lie: read from the file before the process is
// stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/collector/mappings.h"

namespace culprit::record {

struct ElfExports {
  struct Segment {
    std::uint64_t offset = 0;
    std::uint64_t address = 0;  ///< relative to where the file is loaded
    std::uint64_t size = 0;     ///< in the file
    bool executable = false;
  };
  struct Symbol {
    std::string name;
    std::uint64_t address = 0;
  };
  int machine = 0;  ///< EM_X86_64, ...
  std::vector<Segment> segments;
  std::vector<Symbol> symbols;    ///< those asked for, that are defined
  std::string build_id;           ///< bytes
  std::uint64_t build_id_at = 0;  ///< address of these bytes; 0: not loaded

  [[nodiscard]] std::optional<std::uint64_t> address_of(std::string_view name) const;
  /// Place in the file of an address; nothing when it is in no segment.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address) const;
};

/// The dynamic symbols of the ELF file `file` that have one of `names`; machine 0 when it is none.
ElfExports read_exports(const std::string& file, std::span<const std::string_view> names);

/// Where `pattern` first stands in the executable code of the file; nothing when it does not.
std::optional<std::uint64_t> find_code(const std::string& file, const ElfExports& elf,
                                       std::span<const std::uint8_t> pattern);

/// Where the file of a mapping is loaded; nothing when the mapping is none of its code.
std::optional<std::uint64_t> load_base(const Mapping& mapping, const ElfExports& elf);

}  // namespace culprit::record
