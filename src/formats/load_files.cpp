#include "formats/load_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/text.h"
#include "formats/io/input.h"

namespace culprit::formats {

namespace {

/// By the names of its columns: sums of each cycle, of which nothing but a comparison can be made.
bool is_table_of_cycles(std::string_view start) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8
  if (start.starts_with(kMark)) start.remove_prefix(kMark.size());
  const std::string header = fmt::format(",{},", trim(start.substr(0, start.find('\n'))));
  return std::ranges::all_of(std::array{",cycle,", ",pid,", ",beta_pct,", ",function_name,"},
                             [&](const char* column) { return header.find(column) != std::string::npos; });
}

Result<KernelData> load_file(const std::string& path, Wanted wanted, const ReadOptions& options) {
  auto input = Input::open(path, options.stop);
  if (!input) return input.error();
  input->limit(Expansion(options.max_expansion));
  const std::string name = input->path();
  const Format* format = detect(input->peek(kDetectBytes), path);
  if (format == nullptr && input->peek(1).empty() && !input->damage().empty())
    return input_error(std::string(input->damage()), name, "copy the file again");
  if (format == nullptr && is_table_of_cycles(input->peek(kDetectBytes)))
    return input_error("is a profile table: it holds sums of each cycle, and neither a timeline nor kernels", name,
                       "two of them are compared by: culprit diff BASE.csv CAND.csv");
  if (format == nullptr) return input_error("unrecognized format", name, expected_formats());
  if (format->read_trace != nullptr) {
    auto trace = format->read_trace(std::move(*input), options);
    if (!trace) return std::move(trace).error();
    return KernelData(std::move(*trace));
  }
  if (wanted == Wanted::trace)
    return input_error(fmt::format("is {}: it holds kernels but no timeline", format->name), name,
                       fmt::format("give a trace, or look at it with: culprit kernels {}", path));
  return format->read_kernels(std::move(*input), options);
}

/// One file is one rank: nothing may come in twice, whatever its names. Sums up the sizes, 0 when one is not known.
Result<std::uint64_t> distinct_files(const std::vector<std::string>& paths) {
  std::map<std::pair<dev_t, ino_t>, const std::string*> seen;
  std::uint64_t bytes = 0;
  bool known = true;
  for (const std::string& path : paths) {
    struct stat status {};
    // What cannot be looked at is reported by who opens it.
    if ((path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status)) != 0) continue;
    const auto [it, fresh] = seen.try_emplace({status.st_dev, status.st_ino}, &path);
    if (!fresh)
      return usage_error(*it->second == path ? fmt::format("'{}' is named twice", path)
                                             : fmt::format("'{}' and '{}' are the same file", *it->second, path),
                         "every file is one rank of the run: name it once");
    known = known && S_ISREG(status.st_mode);
    if (known) bytes += static_cast<std::uint64_t>(status.st_size);
  }
  return known ? bytes : 0;
}

}  // namespace

Result<std::vector<KernelData>> load_files(const std::vector<std::string>& paths, Wanted wanted,
                                           const LoadOptions& options) {
  if (paths.empty()) return usage_error("no file given", "name one or more files");
  const auto total = distinct_files(paths);
  if (!total) return total.error();
  const unsigned threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  const auto files = static_cast<unsigned>(paths.size());
  const unsigned at_once = std::min(threads, files);

  std::vector<std::optional<Result<KernelData>>> results(files);
  std::vector<std::uint64_t> done(files, 0);
  std::mutex mutex;
  std::atomic<unsigned> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (unsigned i = next++; i < files && !failed; i = next++) {
      ReadOptions read{
          .workers = std::max(1U, threads / at_once), .max_expansion = options.max_expansion, .stop = options.stop};
      if (options.progress)
        read.progress = [&, i](std::uint64_t bytes) {
          const std::lock_guard lock(mutex);
          done[i] = bytes;
          options.progress(std::accumulate(done.begin(), done.end(), std::uint64_t{0}), *total);
        };
      try {
        results[i] = load_file(paths[i], wanted, read);
      } catch (const std::bad_alloc&) {
        results[i] = input_error("needs more memory than there is", paths[i], "load fewer files, or a shorter trace");
      }
      if (!results[i]->ok()) failed = true;
    }
  };
  {
    std::vector<std::jthread> pool;
    try {
      for (unsigned t = 1; t < at_once; ++t) pool.emplace_back(work);
    } catch (const std::system_error&) {
      // As many as the machine gives.
    }
    work();
  }
  std::vector<KernelData> loaded;
  loaded.reserve(files);
  for (auto& result : results)
    if (result && !result->ok()) return std::move(*result).error();
  for (auto& result : results) loaded.push_back(std::move(*result).value());
  return loaded;
}

}  // namespace culprit::formats
