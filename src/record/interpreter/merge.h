// Functions of Python between the native ones: where the interpreter's evaluating function stands in a native stack
// stand the functions that it evaluated.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "record/bpf/symbols.h"

namespace culprit::record::interpreter {

/// The functions of Python that a thread was in, innermost first.
struct PythonStack {
  struct Frame {
    std::shared_ptr<const bpf::Code> code;
    bool enters = false;  ///< the evaluating function was called for it
  };
  std::vector<Frame> frames;
  bool cut = false;  ///< there are more
};

/// Both in one stack, outermost first; `native` has its names. Calls of the evaluating function are counted from the
/// innermost one, because the callers of native code are not always found; what then has no place comes first. The
/// interpreter's own functions between and around those of Python are left out, but where it calls no function of
/// Python any more: what it does then is the answer. Of a stack that was cut the first is
/// "[truncated]".
bpf::CodeStack merged(const bpf::CodeStack& native, const PythonStack& python);

}  // namespace culprit::record::interpreter
