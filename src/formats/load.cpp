#include "formats/load.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "formats/convert_report.h"
#include "formats/io/input.h"
#include "formats/kineto/reader.h"
#include "formats/nsys_sqlite/reader.h"
#include "formats/perfetto/reader.h"
#include "formats/registry.h"
#include "trace/builder.h"

namespace culprit::formats {

namespace {

using Progress = std::function<void(std::uint64_t)>;

/// Files of kernels without a timeline are no trace.
Error no_trace(Format format, const std::string& path) {
  return input_error(fmt::format("is a {}: it holds kernels but no timeline", to_string(format)), path,
                     "give a trace, or look at it with: culprit kernels FILE");
}

Result<Trace> load_database(const Input& input, const std::string& path, const Progress& progress) {
  if (path == "-") return input_error("an SQLite database cannot come from a pipe", path, "name the file");
  if (input.compression() != Compression::none)
    return input_error("is a compressed SQLite database", path, "decompress it first");
  return nsys_sqlite::read(path, progress);
}

Result<Trace> load_file(const std::string& path, unsigned workers, const Progress& progress) {
  auto input = Input::open(path);
  if (!input) return input.error();
  // JSON is told by its first bytes; only what could be a table needs a longer look.
  const std::string_view start = input->peek(std::size_t{4} << 10);
  Format format = detect(start, path);
  if (format == Format::unknown || format == Format::kineto) format = detect(input->peek(kDetectBytes), path);
  switch (format) {
    case Format::kineto:
      return kineto::read(std::move(*input), {.workers = workers, .progress = progress});
    case Format::perfetto:
      return culprit::perfetto::read(std::move(*input), progress);
    case Format::nsys_sqlite:
      return load_database(*input, path, progress);
    case Format::nsys_report: {
      auto report = convert_report(path, format);
      if (!report) return report.error();
      auto trace = nsys_sqlite::read(report->file(), progress);
      if (trace) trace->ranks.front().path = path;
      return trace;
    }
    case Format::ncu_csv:
    case Format::ncu_report:
    case Format::launch_log:
    case Format::summary_table:
      return no_trace(format, path);
    case Format::unknown:
      break;
  }
  if (input->peek(1).empty() && !input->damage().empty())
    return input_error(std::string(input->damage()), path, "copy the file again");
  return input_error("is of no known format", path, std::string(known_formats()));
}

}  // namespace

Result<Trace> load_run(const std::vector<std::string>& paths, const LoadOptions& options) {
  if (paths.empty()) return usage_error("no file given", "name one or more traces");
  std::set<std::string_view> seen;
  for (const std::string& path : paths)
    if (!seen.insert(path).second)
      return usage_error(path + " is named twice", "every file is one rank of the run: name it once");
  const unsigned threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  const auto files = static_cast<unsigned>(paths.size());
  const unsigned at_once = std::min(threads, files);
  const unsigned workers = std::max(1U, threads / at_once);

  std::vector<std::optional<Result<Trace>>> results(files);
  std::vector<std::uint64_t> done(files, 0);
  std::mutex mutex;
  std::uint64_t total = 0;
  for (const std::string& path : paths)
    if (auto input = path == "-" ? Result<Input>(Error{}) : Input::open(path)) total += input->file_bytes();
  std::atomic<unsigned> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (unsigned i = next++; i < files && !failed; i = next++) {
      results[i] = load_file(paths[i], workers, [&, i](std::uint64_t bytes) {
        if (!options.progress) return;
        const std::lock_guard lock(mutex);
        done[i] = bytes;
        std::uint64_t sum = 0;
        for (std::uint64_t d : done) sum += d;
        options.progress(sum, total);
      });
      if (!results[i]->ok()) failed = true;
    }
  };
  if (at_once == 1) {
    work();
  } else {
    std::vector<std::jthread> pool;
    for (unsigned t = 0; t < at_once; ++t) pool.emplace_back(work);
  }
  std::vector<Trace> traces;
  traces.reserve(results.size());
  for (auto& result : results)
    if (result && !result->ok()) return std::move(*result).error();
  for (auto& result : results) traces.push_back(std::move(*result).value());
  return merge(std::move(traces));
}

}  // namespace culprit::formats
