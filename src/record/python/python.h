// Records chosen functions of Python programs that run already: when they were called, in which thread, and numbers
// among their arguments. An agent is put into the process (record/inject) and taken out of its way again at the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "record/collector/collector.h"
#include "record/python/function_spec.h"

namespace culprit::record::python {

struct PythonOptions {
  std::vector<FunctionSpec> functions;  ///< asked for; those of ready-made sets come by themselves
  bool collections = true;              ///< garbage collections, too
  std::string library;                  ///< the agent; empty: beside the program
};

/// The collector "python". Without functions that were asked for it touches only programs of which it has a ready-made
/// set.
std::unique_ptr<Collector> make_python(PythonOptions options = {});

}  // namespace culprit::record::python
