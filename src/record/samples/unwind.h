// Call chains of code that keeps no frame pointers, by the tables that compilers write for exceptions (.eh_frame),
// which nearly all code has. libdw reads the tables; the registers and the bytes of the stack come with the sample, so
// that the thread runs on meanwhile and nothing of its memory is read later.
//
// Files of the target are opened as those for symbols are: below its root, regular ones only, read and not mapped (a
// file that shrinks must not end the recorder).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/units.h"

namespace culprit::record::samples {

/// A thread as a sample found it.
struct ThreadState {
  std::int64_t pid = 0;
  std::span<const std::uint64_t> registers;  ///< as DWARF numbers them on x86-64; the last is the instruction pointer
  std::span<const std::uint8_t> stack;       ///< from the stack pointer on
};

/// Keeps the tables of each file that was met, and where each process maps it. Not thread-safe.
class Unwinder {
 public:
  Unwinder();
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  /// Addresses of code, innermost first, at most `most`; all but the first are return addresses. As far as tables and
  /// stack reach: at least the first.
  std::vector<std::uint64_t> chain(const ThreadState& thread, Ns now, std::size_t most);
  /// Chains that did not consist of frames with the usual rules (frame_rules.h), so far.
  [[nodiscard]] std::uint64_t by_library() const { return by_library_; }
  /// The process is gone or executes another program.
  void forget(std::int64_t pid);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::uint64_t by_library_ = 0;
};

}  // namespace culprit::record::samples
