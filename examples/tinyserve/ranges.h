// NVTX ranges: by NVIDIA's headers where they are installed, else by the small client beside this file. Both cost next
// to nothing while nobody listens.
#pragma once

#ifdef TINYSERVE_NVTX3
#include <nvtx3/nvToolsExt.h>
#else
#include "nvtx_client.h"
#endif

namespace tinyserve {

inline void range_push(const char* name) {
#ifdef TINYSERVE_NVTX3
  nvtxRangePushA(name);
#else
  nvtx_client_push(name);
#endif
}
inline void range_pop() {
#ifdef TINYSERVE_NVTX3
  nvtxRangePop();
#else
  nvtx_client_pop();
#endif
}
inline void mark(const char* name) {
#ifdef TINYSERVE_NVTX3
  nvtxMarkA(name);
#else
  nvtx_client_mark(name);
#endif
}

class Range {
 public:
  explicit Range(const char* name) { range_push(name); }
  ~Range() { range_pop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace tinyserve
