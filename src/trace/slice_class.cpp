// The table of category names: both generations of Kineto, HIP, MTIA, NVTX imports.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "trace/trace.h"

namespace culprit {

namespace {
using enum SliceClass;
// Lower case, with '-' and ' ' as '_'.
constexpr std::pair<std::string_view, SliceClass> kCategories[] = {
    {"kernel", kernel},
    {"concurrent_kernel", kernel},
    {"mtia_ccp_events", kernel},
    {"gpu_op", kernel},
    {"memcpy", memcpy},
    {"gpu_memcpy", memcpy},
    {"gpu_memory_copy", memcpy},
    {"memset", memset},
    {"gpu_memset", memset},
    {"runtime", runtime},
    {"cuda_runtime", runtime},
    {"hip_runtime", runtime},
    {"privateuse1_runtime", runtime},
    {"xpu_runtime", runtime},
    {"mtia_runtime", runtime},
    {"glow_runtime", runtime},
    {"driver", driver},
    {"cuda_driver", driver},
    {"hip_driver", driver},
    {"privateuse1_driver", driver},
    {"cpu_op", cpu_op},
    {"operator", cpu_op},
    {"user_annotation", annotation},
    {"annotation", annotation},
    {"cpu_instant_event", annotation},
    {"nvtx", annotation},
    {"annotate", annotation},
    {"gpu_user_annotation", gpu_annotation},
    {"mtia_workloadd", other},
    {"python", python},
    {"python_function", python},
    {"cuda_sync", gpu_sync},
    {"synchronization", gpu_sync},
    {"overhead", overhead},
    {"cuda_profiler_range", counter_range},
    {"sched", os_sched},
    {"syscall", syscall},
    {"syscalls", syscall},
    {"blocked", syscall},
    {"block_io", syscall},
    {"request", syscall},  // waits of requests, not work of a thread
    {"cat_cpu", os_sched},
    {"cat_disk", syscall},
    {"cuda_graph_launch", kernel},
    {"os_runtime", syscall},
    {"profiler_overhead", overhead},
};
}  // namespace

SliceClass classify_category(std::string_view category) {
  std::string folded(category);
  std::ranges::transform(folded, folded.begin(), [](char c) {
    if (c == '-' || c == ' ') return '_';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto* it =
      std::ranges::find(kCategories, std::string_view(folded), &std::pair<std::string_view, SliceClass>::first);
  return it == std::end(kCategories) ? other : it->second;
}

std::string_view to_string(SliceClass c) {
  constexpr std::array<std::string_view, kSliceClasses> kNames = {
      "other",          "kernel", "memcpy",   "memset",   "runtime",       "driver",   "cpu_op", "annotation",
      "gpu_annotation", "python", "gpu_sync", "overhead", "counter_range", "os_sched", "syscall"};
  return kNames[static_cast<std::size_t>(c)];
}

}  // namespace culprit
