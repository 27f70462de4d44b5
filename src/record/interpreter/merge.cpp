#include "record/interpreter/merge.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "record/interpreter/layout.h"

namespace culprit::record::interpreter {

namespace {

/// Found by frame pointers where there are none: no code at all.
bool is_nothing(const bpf::Code& code) { return code.function.empty() && code.module.empty(); }

bool evaluates(const bpf::Code& code) {
  return std::string_view(code.function).starts_with("_PyEval_EvalFrameDefault");
}

/// Stands for callers that a stack has no room for.
std::shared_ptr<const bpf::Code> truncated() {
  auto code = std::make_shared<bpf::Code>();
  code->function = "[truncated]";
  code->kind = perfetto::CodeFrame::Kind::interpreted;
  return code;
}

}  // namespace

bpf::CodeStack merged(const bpf::CodeStack& native, const PythonStack& python) {
  if (python.frames.empty()) return native;
  // Programs that name their functions for profilers have them in the native stack already.
  if (std::ranges::any_of(native,
                          [](const auto& code) { return std::string_view(code->function).starts_with("py::"); }))
    return native;
  bpf::CodeStack reversed;  // innermost first
  std::size_t next = 0;     // of the functions of Python
  bool innermost = true;    // no function of Python so far
  std::size_t calls_end = 0;
  const auto take_call = [&] {
    while (next < python.frames.size()) {
      const auto& frame = python.frames[next++];
      reversed.push_back(frame.code);
      if (frame.enters) break;
    }
  };
  for (std::size_t i = native.size(); i-- > 0;) {
    if (evaluates(*native[i])) {
      take_call();
      innermost = false;
      calls_end = reversed.size();
    } else if (!is_nothing(*native[i]) && (innermost || !version_in(native[i]->module))) {
      reversed.push_back(native[i]);
    }
  }
  if (calls_end == 0) calls_end = reversed.size();
  bpf::CodeStack rest;
  for (; next < python.frames.size(); ++next) rest.push_back(python.frames[next].code);
  reversed.insert(reversed.begin() + static_cast<std::ptrdiff_t>(calls_end), rest.begin(), rest.end());
  if (python.cut) reversed.push_back(truncated());
  std::ranges::reverse(reversed);
  return reversed;
}

}  // namespace culprit::record::interpreter
