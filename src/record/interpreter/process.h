// A process that executes Python: which version, and where its threads begin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "record/bpf/symbols.h"
#include "record/interpreter/layout.h"

namespace culprit::record::interpreter {

enum class Kind : std::uint8_t {
  none,     ///< executes something else
  unready,  ///< has not begun yet
  unknown,  ///< a version of which the layout is not known
  python,
};

struct Interpreter {
  Kind kind = Kind::none;
  std::string version;
  const Layout* layout = nullptr;
  std::uint64_t threads = 0;    ///< address of the pointer to the first thread
  std::uint64_t code_type = 0;  ///< address of the type of code
};

/// Looks at what the process has mapped.
Interpreter interpreter_of(std::int64_t pid);

/// Names of the code of one process, each read once: "Scheduler.run (sglang/scheduler.py:812)", the file without the
/// folder it was installed in, and the line where the function begins.
class CodeNames {
 public:
  CodeNames(std::int64_t pid, const Layout& layout, std::uint64_t code_type);
  /// Code whose memory is another function's by now gets that one's name; "[python]": none stands there.
  std::shared_ptr<const bpf::Code> find(std::uint64_t code);

 private:
  struct Known {
    std::uint64_t name = 0;
    std::uint64_t file = 0;
    std::int32_t line = 0;
    std::shared_ptr<const bpf::Code> code;
  };
  std::int64_t pid_;
  const Layout* layout_;
  std::uint64_t code_type_;
  std::shared_ptr<const bpf::Code> unreadable_;
  std::unordered_map<std::uint64_t, Known> known_;
};

/// A Python string of a process as UTF-8, at most 200 characters of it, without what would break a line or a stack.
/// Empty: none is there.
std::string string_at(std::int64_t pid, const Layout& layout, std::uint64_t address);

}  // namespace culprit::record::interpreter
