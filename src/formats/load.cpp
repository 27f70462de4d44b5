#include "formats/load.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "formats/io/input.h"
#include "formats/kineto/reader.h"
#include "trace/builder.h"

namespace culprit::formats {

namespace {

Result<Trace> load_file(const std::string& path, unsigned workers, const std::function<void(std::uint64_t)>& progress) {
  auto input = Input::open(path);
  if (!input) return input.error();
  const std::string_view start = input->peek(std::size_t{4} << 10);
  if (start.starts_with("SQLite format 3"))
    return input_error("is an SQLite database, which this version cannot read", path, "export a JSON trace");
  if (!kineto::looks_like_json(start)) {
    if (start.empty() && !input->damage().empty())
      return input_error(std::string(input->damage()), path, "copy the file again");
    return input_error("is of no known format", path,
                       "expected a JSON trace of the PyTorch profiler, plain, .gz or .zst");
  }
  return kineto::read(std::move(*input), {.workers = workers, .progress = progress});
}

}  // namespace

Result<Trace> load_run(const std::vector<std::string>& paths, const LoadOptions& options) {
  if (paths.empty()) return usage_error("no file given", "name one or more traces");
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
