// Addresses of code to names of functions: of a process from /proc/PID/maps, the symbol tables of the files mapped
// there and the file that its JIT compiler writes; of the kernel from /proc/kallsyms. Names only: no argument, no
// memory of the target is read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "formats/perfetto/writer.h"

namespace culprit::record::bpf {

/// Keeps the symbol tables it has read, and the maps of each process; what a process maps later is looked up again at
/// most once a second. Not thread-safe.
class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  /// Of a user address; valid until the next call of forget(). `now` decides whether maps are read again.
  perfetto::CodeFrame user(std::int64_t pid, std::uint64_t address, Ns now);
  perfetto::CodeFrame kernel(std::uint64_t address);
  /// Appends the frames of a stack, outermost first. `frames` are innermost first; all but the innermost are return
  /// addresses.
  void append_user(std::int64_t pid, std::span<const std::uint64_t> frames, Ns now,
                   std::vector<perfetto::CodeFrame>& to);
  void append_kernel(std::span<const std::uint64_t> frames, std::vector<perfetto::CodeFrame>& to);

  /// "main;work;read": outermost first. A frame without a symbol is "libfoo.so+0x1a2b", one outside every file
  /// "[unknown]".
  std::string folded(std::int64_t pid, std::span<const std::uint64_t> frames, Ns now);
  /// The process is gone or executes another program.
  void forget(std::int64_t pid);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace culprit::record::bpf
