// Names of code that a process made itself, from the file that it writes for profilers: /tmp/perf-PID.map, a line
// "START SIZE NAME" for each function, in hexadecimal. Python (-X perf), V8, the JVM with an agent and others write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "record/bpf/function_table.h"

namespace culprit::record::bpf {

class JitMap {
 public:
  /// Reads what the process has added since the last time. Files of somebody else than the process's user or root are
  /// not believed. `proc` is /proc.
  void read(std::int64_t pid, const std::string& proc = "/proc");
  /// Takes whole lines of `text`; gives the number of bytes that it took. Lines of no such form are skipped.
  std::size_t take(std::string_view text);
  /// Empty: unknown.
  [[nodiscard]] std::string_view find(std::uint64_t address) const { return functions_.find(address); }

 private:
  FunctionTable functions_;
  std::uint64_t taken_ = 0;  // bytes of the file
  std::string identity_;     // of the file
};

}  // namespace culprit::record::bpf
