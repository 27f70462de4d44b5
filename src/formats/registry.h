// All formats that files of a run can have: what tells them, and how they are read. The one place that names them.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "formats/io/expansion.h"
#include "formats/io/input.h"
#include "model/kernel_log.h"
#include "trace/trace.h"

namespace culprit::formats {

struct ReadOptions {
  unsigned workers = 1;
  std::function<void(std::uint64_t)> progress{};  ///< gets bytes of the file
  std::uint64_t max_expansion = Expansion::kUsualTimes;
  std::stop_token stop{};
};

/// What a file tells of kernels: a timeline of everything, one row per launch, or one row per name.
using KernelData = std::variant<Trace, model::KernelLog, model::KernelSummaries>;

/// One format. It has one of the two readers.
struct Format {
  std::string_view name;      ///< for people, with its article: "an SQLite database"
  std::string_view expected;  ///< what to give instead of something unrecognized
  bool (*recognizes)(std::string_view start, std::string_view path) = nullptr;
  Result<Trace> (*read_trace)(Input input, const ReadOptions& options) = nullptr;
  Result<KernelData> (*read_kernels)(Input input, const ReadOptions& options) = nullptr;  ///< there is no timeline
};

/// How much of a file detect() wants to see: program output may stand before a table.
inline constexpr std::size_t kDetectBytes = std::size_t{256} << 10;

/// The format of a text that begins with `start`, or null; `path` decides only for reports that nobody has described.
const Format* detect(std::string_view start, std::string_view path);

/// A format that traces are written in.
struct Writer {
  std::string_view what;               ///< for people: "a Perfetto trace"
  std::vector<std::string_view> ends;  ///< of the names of its files
  bool holds_ranks = false;            ///< one file holds a whole run; else one rank
  /// Writes one rank, or the whole run where the file holds ranks; `replace`: what is there.
  Status (*save)(const Trace& trace, std::uint16_t rank, const std::string& path, bool replace) = nullptr;
  /// What is read in this format, and copies such a file as it is but for damage. Null: it is read and written anew.
  bool (*recognizes)(std::string_view start, std::string_view path) = nullptr;
  Status (*copy)(Input input, const ReadOptions& options, const std::string& path, bool replace) = nullptr;
};

/// How a file of this name is written, or null.
const Writer* writer_of(std::string_view path);
/// How one rank is written where no name says: to a stream, to a file of a directory.
const Writer& usual_writer();
/// The ends of names that say a format, for error messages.
std::string written_names();

/// What a file of unrecognized format should have been, for error messages.
std::string expected_formats();

}  // namespace culprit::formats
