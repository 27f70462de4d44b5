// Where the versions of CPython keep what a stack needs: offsets in their structures, as their headers declare them
// (builds for release; they do not change within a version such as 3.12). x86-64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bpf/records.h"

namespace culprit::record::interpreter {

/// Which frames the evaluating C function was called for; the others run in the call of their caller.
enum class Entries : std::uint8_t {
  each,  ///< all (until 3.10)
  flag,  ///< those that say so (3.11)
  shim,  ///< those in front of a frame that is no function's (from 3.12)
};

/// The owner of a frame that is no function's.
constexpr std::uint8_t kShim = 3;

/// Offsets in bytes.
struct Layout {
  std::string_view version;
  std::uint32_t main_interpreter = 0;  ///< in _PyRuntime: the pointer to it
  std::uint32_t threads = 0;           ///< in it: the pointer to the first thread
  culprit_python frames{};             ///< without addresses
  Entries entries = Entries::each;
  std::uint32_t code_line = 0;
  std::uint32_t code_file = 0;
  std::uint32_t code_name = 0;      ///< "Class.method" where the version has that, else "method"
  std::uint32_t ascii_bytes = 0;    ///< of the head of a string of ASCII
  std::uint32_t compact_bytes = 0;  ///< of another one
};

/// nullptr: a version that is not known.
const Layout* layout_of(std::string_view version);

/// "3.12" of libpython3.12.so.1.0 and python3.12; nothing of other files, of debug builds ("3.12d") and of those
/// without the lock ("3.13t"), which lay out memory differently.
std::optional<std::string> version_in(std::string_view file);

}  // namespace culprit::record::interpreter
