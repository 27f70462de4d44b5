// Addresses of code to names of functions: of a process from /proc/PID/maps, the symbol tables of the files mapped
// there and the file that its JIT compiler writes; of the kernel by asking it. Names only: no argument, no memory of
// the target is read.
//
// Names of files are looked up for many addresses at once, a little later: reading through a symbol table costs the
// same for one address as for all, and keeping it costs more memory than the rest of a recording. What is needed for
// that is held from the beginning, so that a process that has ended meanwhile has its names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "formats/perfetto/writer.h"

namespace culprit::record::bpf {

/// One place in code that was seen.
struct Code {
  std::string function;  ///< empty: unknown, or not named yet
  std::string_view module;
  std::string_view build_id;
  std::uint64_t address = 0;
  perfetto::CodeFrame::Kind kind = perfetto::CodeFrame::Kind::native;
  bool named = true;  ///< `function` is what it will be
};
using CodeStack = std::vector<std::shared_ptr<const Code>>;

/// All of them are named.
bool is_named(const CodeStack& stack);
perfetto::CodeFrame frame_of(const Code& code);
/// "main;work;read". A frame without a symbol is "libfoo.so+0x1a2b", one outside every file "[unknown]".
std::string folded(const CodeStack& stack);

/// Keeps the names it has given, and the maps of each process; what a process maps later is looked up again at most
/// once a second, and less often where that takes long. Not thread-safe.
class Symbols {
 public:
  /// The name of the kernel's function at an address; empty: unknown.
  using KernelNames = std::function<std::string(std::uint64_t)>;
  explicit Symbols(KernelNames kernel = {});
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  /// Appends the frames of a stack, outermost first. `frames` are innermost first; all but the innermost are return
  /// addresses. What is written into them later, and all views in them, live as long as this object.
  void append_user(std::int64_t pid, std::span<const std::uint64_t> frames, Ns now, CodeStack& to);
  void append_kernel(std::span<const std::uint64_t> frames, CodeStack& to);
  /// Names what waits when it has waited for long enough that this takes at most a two-hundredth of the time.
  void name_when_due(Ns now);
  /// Names all that waits.
  void name_all();
  /// The process is gone or executes another program.
  void forget(std::int64_t pid);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace culprit::record::bpf
