#include "core/python_path.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

TEST(PythonPath, LeavesOutWhereThingsAreInstalled) {
  EXPECT_EQ(short_python_path("/srv/venv/lib/python3.12/site-packages/sglang/srt/scheduler.py"),
            "sglang/srt/scheduler.py");
  EXPECT_EQ(short_python_path("/usr/lib/python3/dist-packages/yaml/loader.py"), "yaml/loader.py");
  EXPECT_EQ(short_python_path("/usr/lib/python3.11/json/decoder.py"), "json/decoder.py");
  EXPECT_EQ(short_python_path("/home/somebody/work/app.py"), "app.py");
  EXPECT_EQ(short_python_path("<frozen importlib._bootstrap>"), "<frozen importlib._bootstrap>");
  EXPECT_EQ(short_python_path(""), "");
}

}  // namespace
}  // namespace culprit
