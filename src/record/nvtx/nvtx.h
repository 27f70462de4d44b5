// Records what programs say of themselves by NVTX: ranges, marks, names. A started program loads Culprit's library
// because its environment says so; no CUDA and no GPU is needed. Programs that run already cannot be told any more.
#pragma once

#include <memory>
#include <string>

#include "record/collector/collector.h"

namespace culprit::record::nvtx {

struct NvtxOptions {
  std::string library;        ///< for NVTX_INJECTION64_PATH; empty: the installed one
  std::string folder_parent;  ///< empty: RingFolder's choice
  std::size_t most_rings =
      4096;  ///< threads that are read at a time; never more than half of the files that may be open
};

/// The collector "nvtx".
std::unique_ptr<Collector> make_nvtx(const NvtxOptions& options = {});

}  // namespace culprit::record::nvtx
