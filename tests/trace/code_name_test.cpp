#include "trace/code_name.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

TEST(CodeName, CodeWithoutANameIsSummedUpByFile) {
  EXPECT_EQ(file_of_unnamed("libgomp.so.1+0x1de62"), "libgomp.so.1");
  EXPECT_EQ(file_of_unnamed("a+0x1+0x2"), "a+0x1");
}

TEST(CodeName, NamesAreLeftAlone) {
  for (const char* name : {"main", "", "operator+", "f+0x", "f+0xyz", "+0x12", "[unknown]"})
    EXPECT_FALSE(file_of_unnamed(name)) << name;
}

TEST(CodeName, FunctionsOfPythonLoseTheirLine) {
  EXPECT_EQ(python_function("forward (vllm/model.py:12)"), "forward (vllm/model.py)");
  EXPECT_EQ(python_function("<lambda> (a (b).py:3)"), "<lambda> (a (b).py)");
  EXPECT_EQ(python_function("_find (<frozen importlib._bootstrap>:1176)"), "_find (<frozen importlib._bootstrap>)");
  EXPECT_EQ(python_function("main (vllm:8)"), "main (vllm)") << "a script";
  EXPECT_EQ(python_function("py::forward:/app/model.py"), "forward (model.py)");
  EXPECT_EQ(python_function("py::forward:/venv/lib/python3.12/site-packages/vllm/model.py"), "forward (vllm/model.py)")
      << "as the stacks of the interpreter have it";
  EXPECT_EQ(python_function("py::<module>:<string>"), "<module> (<string>)");
}

TEST(CodeName, OtherCodeIsNoFunctionOfPython) {
  for (const char* name : {"", "main", "f (x.c:1)", "f (lib/x.so.1:1)", "f (:1)", "f (node:internal:9:5)", "f (x.py)",
                           "f (x.py:)", "f (x.py:1a)", "f (x.py:1) const", "py::", "py::f", "py:::x",
                           "std::function<void (int)>::operator()", ":1)", " (:1)"})
    EXPECT_FALSE(python_function(name)) << name;
}

}  // namespace
}  // namespace culprit
