// What a file is, by its content. Names decide only for reports in formats that no one has described.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::formats {

enum class Format : std::uint8_t {
  unknown,
  kineto,         ///< Chrome JSON
  nsys_sqlite,    ///< Nsight Systems, exported to SQLite
  ncu_csv,        ///< Nsight Compute CSV
  launch_log,     ///< text: one line per kernel launch
  summary_table,  ///< text: a profiler's table with one row per name
  nsys_report,    ///< Nsight Systems' own file
  perfetto,       ///< Perfetto protobuf: recordings
  ncu_report,     ///< Nsight Compute's own file
};

/// Names a format to people: "Nsight Compute CSV".
std::string_view to_string(Format format);

/// How much of a file detect() wants to see: program output may stand before a table.
inline constexpr std::size_t kDetectBytes = std::size_t{256} << 10;

/// The format of a text that begins with `start`; `path` decides only for Nsight Systems' reports.
Format detect(std::string_view start, std::string_view path);

/// What a file of unknown format should have been, for error messages.
std::string_view known_formats();

}  // namespace culprit::formats
