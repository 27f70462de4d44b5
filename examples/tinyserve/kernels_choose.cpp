#include "kernels.h"

namespace tinyserve {

#ifdef TINYSERVE_X86_SETS
namespace x86_v4 {
extern const Kernels kKernels;
}
namespace x86_v3 {
extern const Kernels kKernels;
}
#endif
namespace generic {
extern const Kernels kKernels;
}

const Kernels& kernels() {
#ifdef TINYSERVE_X86_SETS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return x86_v4::kKernels;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return x86_v3::kKernels;
#endif
  return generic::kKernels;
}

}  // namespace tinyserve
