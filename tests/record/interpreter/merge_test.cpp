// Where functions of Python stand between native ones.
#include "record/interpreter/merge.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace culprit::record::interpreter {
namespace {

constexpr std::string_view kInterpreter = "/usr/bin/python3.12";
constexpr std::string_view kLibrary = "/srv/numbers.so";

bpf::CodeStack native(std::initializer_list<std::pair<std::string_view, std::string_view>> frames) {
  bpf::CodeStack stack;
  for (const auto& [function, module] : frames) {
    auto code = std::make_shared<bpf::Code>();
    code->function = function;
    code->module = module;
    stack.push_back(std::move(code));
  }
  return stack;
}

/// Innermost first; a name that ends with '*' is one the evaluating function was called for.
PythonStack python(std::initializer_list<std::string> names) {
  PythonStack stack;
  for (std::string name : names) {
    const bool enters = name.ends_with('*');
    if (enters) name.pop_back();
    auto code = std::make_shared<bpf::Code>();
    code->function = name;
    stack.frames.push_back({std::move(code), enters});
  }
  return stack;
}

std::string text(const bpf::CodeStack& stack) { return bpf::folded(stack); }

TEST(Merged, EachCallOfTheEvaluatingFunctionIsWhatItEvaluated) {
  const auto stack = native({{"main", kInterpreter},
                             {"_PyEval_EvalFrameDefault", kInterpreter},
                             {"_PyObject_Vectorcall", kInterpreter},
                             {"sort", kLibrary},
                             {"_PyEval_EvalFrameDefault", kInterpreter},
                             {"add", kLibrary}});
  EXPECT_EQ(text(merged(stack, python({"key", "helper*", "run", "<module>*"}))), "<module>;run;sort;helper;key;add");
}

TEST(Merged, WhatTheInterpreterDoesInTheEndStays) {
  const auto stack = native({{"main", kInterpreter},
                             {"_PyEval_EvalFrameDefault", kInterpreter},
                             {"list_sort", kInterpreter},
                             {"memcpy", "/lib/libc.so.6"}});
  EXPECT_EQ(text(merged(stack, python({"run*"}))), "run;list_sort;memcpy");
}

TEST(Merged, CallersThatWereNotFoundComeFirst) {
  const auto cut = native({{"_PyEval_EvalFrameDefault", kInterpreter}, {"add", kLibrary}});
  EXPECT_EQ(text(merged(cut, python({"inner*", "outer*", "<module>*"}))), "<module>;outer;inner;add");
  EXPECT_EQ(text(merged(native({{"select", "/lib/libc.so.6"}}), python({"nap*", "<module>*"}))), "<module>;nap;select");
  EXPECT_EQ(text(merged({}, python({"nap*", "<module>*"}))), "<module>;nap");
}

TEST(Merged, WhatStartedTheThreadStaysFirst) {
  const auto stack =
      native({{"clone3", "/lib/libc.so.6"}, {"_PyEval_EvalFrameDefault", kInterpreter}, {"add", kLibrary}});
  EXPECT_EQ(text(merged(stack, python({"run", "bootstrap*", "more*"}))), "clone3;more;bootstrap;run;add");
}

TEST(Merged, MoreCallsThanFunctionsLeaveNothingOut) {
  const auto stack = native(
      {{"_PyEval_EvalFrameDefault", kInterpreter}, {"sort", kLibrary}, {"_PyEval_EvalFrameDefault", kInterpreter}});
  EXPECT_EQ(text(merged(stack, python({"key*"}))), "sort;key");
}

TEST(Merged, NothingOfPythonChangesNothing) {
  const auto stack = native({{"main", kInterpreter}, {"_PyEval_EvalFrameDefault", kInterpreter}});
  EXPECT_EQ(text(merged(stack, {})), "main;_PyEval_EvalFrameDefault");
}

TEST(Merged, NamesThatTheProgramGivesItselfAreEnough) {
  const auto stack = native({{"_PyEval_EvalFrameDefault", kInterpreter}, {"py::run:/srv/app.py", ""}});
  EXPECT_EQ(text(merged(stack, python({"run*"}))), "_PyEval_EvalFrameDefault;py::run:/srv/app.py");
}

TEST(Merged, AStackThatWasCutSaysSo) {
  PythonStack stack = python({"inner*", "outer*"});
  stack.cut = true;
  EXPECT_EQ(text(merged(native({{"_PyEval_EvalFrameDefault", kInterpreter}}), stack)), "[truncated];outer;inner");
}

TEST(Merged, AddressesOfNoCodeAreLeftOut) {
  EXPECT_EQ(text(merged(native({{"", ""}, {"select", "/lib/libc.so.6"}}), python({"nap*"}))), "nap;select");
}

}  // namespace
}  // namespace culprit::record::interpreter
