// The door to everything that says how long kernels took: launch logs from any format, summary tables from text.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/error.h"
#include "formats/load.h"
#include "model/kernel_log.h"
#include "trace/trace.h"

namespace culprit::formats {

/// Launches of one capture from its files: the text log (`Kernel | Latency Tensor DRAM`), Nsight Compute CSV, or any
/// trace (Kineto JSON, Nsight Systems SQLite), whose kernels come in order of begin. Several files are one capture
/// (ranks); their launches follow each other file by file, except for traces, which are merged.
/// Errors: as load_run(); a summary table is refused, it has no launches.
Result<model::KernelLog> load_kernel_log(const std::vector<std::string>& paths, const LoadOptions& options);

/// Kernels of a trace in order of begin (then device, stream, row), with the counters that the trace holds for them.
model::KernelLog kernel_log_of(const Trace& trace);

/// The summary tables of a text file. Errors: no such table, unreadable file.
Result<model::KernelSummaries> load_kernel_summaries(const std::string& path);

/// A file of kernel data as whatever it holds.
using KernelData = std::variant<model::KernelLog, model::KernelSummaries>;
/// One file by its content: tables with one row per name as summaries, anything else as a log.
Result<KernelData> load_kernel_data(const std::vector<std::string>& paths, const LoadOptions& options);

}  // namespace culprit::formats
