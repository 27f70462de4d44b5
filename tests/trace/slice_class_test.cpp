#include <gtest/gtest.h>

#include <set>
#include <string>

#include "trace/trace.h"

namespace culprit {
namespace {

TEST(SliceClasses, BothGenerationsOfKinetoMeanTheSame) {
  for (const auto& [old_name, new_name] : {std::pair("Kernel", "kernel"),
                                           {"Memcpy", "gpu_memcpy"},
                                           {"Memset", "gpu_memset"},
                                           {"Runtime", "cuda_runtime"},
                                           {"Operator", "cpu_op"},
                                           {"Python", "python_function"}})
    EXPECT_EQ(classify_category(old_name), classify_category(new_name)) << old_name;
  EXPECT_EQ(classify_category("Operator"), SliceClass::cpu_op);
}

TEST(SliceClasses, DashesSpacesAndCapitalsDoNotMatter) {
  EXPECT_EQ(classify_category("CUDA-Profiler Range"), SliceClass::counter_range);
  EXPECT_EQ(classify_category("GPU_User_Annotation"), SliceClass::gpu_annotation);
}

TEST(SliceClasses, UnknownWordsAreOther) {
  for (const char* name : {"", "Kernelx", "kernel ", "my category", "\xff"})
    EXPECT_EQ(classify_category(name), SliceClass::other) << name;
}

TEST(SliceClasses, EachHasAName) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kSliceClasses; ++i) names.emplace(to_string(static_cast<SliceClass>(i)));
  EXPECT_EQ(names.size(), kSliceClasses);
}

}  // namespace
}  // namespace culprit
