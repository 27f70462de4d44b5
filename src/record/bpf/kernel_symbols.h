// Names of the kernel's functions, from /proc/kallsyms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "record/bpf/elf_module.h"

namespace culprit::record::bpf {

class KernelSymbols {
 public:
  /// Reads the table: some 200,000 names. Without CAP_SYSLOG the kernel hides the addresses, and nothing has a name.
  void read(const std::string& path = "/proc/kallsyms");
  /// Empty: unknown.
  [[nodiscard]] std::string_view find(std::uint64_t address) const { return functions_.find(address, false); }
  [[nodiscard]] bool empty() const { return functions_.empty(); }

 private:
  FunctionTable functions_;
};

}  // namespace culprit::record::bpf
