// Addresses of user code to names of functions, from /proc/PID/maps and the symbol tables of the files mapped there.
// Names only: no argument, no memory of the target is read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/units.h"

namespace culprit::record::bpf {

/// Keeps the symbol tables it has read, and the maps of each process; what a process maps later is looked up again at
/// most once a second. Not thread-safe.
class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  /// "main;work;read": outermost first. A frame without a symbol is "libfoo.so+0x1a2b", one outside every file
  /// "[unknown]". `frames` are innermost first; all but the innermost are return addresses.
  std::string folded(std::int64_t pid, std::span<const std::uint64_t> frames, Ns now);
  /// The process is gone or executes another program.
  void forget(std::int64_t pid);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace culprit::record::bpf
