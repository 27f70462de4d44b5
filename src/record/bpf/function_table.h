// Names of functions by address, all of them kept: for tables that nobody else keeps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::record::bpf {

/// Text stands beside the addresses.
class FunctionTable {
 public:
  /// `name` is copied.
  void add(std::uint64_t address, std::uint64_t size, std::string_view name);
  /// After the last add().
  void sort();
  /// Empty: none holds the address.
  [[nodiscard]] std::string_view find(std::uint64_t address) const;
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

}  // namespace culprit::record::bpf
