// The one door to all formats: what a file is, is decided from its content.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/registry.h"
#include "trace/trace.h"

namespace culprit::formats {

struct LoadOptions {
  unsigned threads = 0;  ///< 0 = all cores
  /// Called from the loading threads, one call at a time: bytes of the files taken so far, and in all (0 = unknown).
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress{};
  /// How many times its size a file may become when it is read (formats/io/expansion.h); 0: no limit.
  std::uint64_t max_expansion = Expansion::kUsualTimes;
  std::stop_token stop{};  ///< when it is requested loading ends soon, with the error cancelled
};

/// Loads one run from its files (one per rank, in the order given; recordings of the same seconds are joined with the
/// traces, trace/join.h). "-" is standard input; any file may be a pipe where
/// its format can be read from one. Errors name the file, and the first bad file ends the load; one file under two
/// names is an error of usage.
Result<Trace> load_run(const std::vector<std::string>& paths, const LoadOptions& options);

/// Copies a file that is in the writer's own format already, so that nothing is lost that only other programs read.
/// True when it did; false, and nothing is written, when the file is in another format or cannot be opened twice (a
/// pipe). Errors: the file cannot be read, the output cannot be written.
Result<bool> copy_file(const std::string& from, const Writer& writer, const std::string& path, bool replace,
                       const LoadOptions& options);

/// Loads what the files of one capture tell of kernels: traces are merged as by load_run(), launch logs follow each
/// other file by file, summary tables are listed one after another. Errors: as load_run(); files of different kinds.
Result<KernelData> load_kernel_data(const std::vector<std::string>& paths, const LoadOptions& options);

}  // namespace culprit::formats
