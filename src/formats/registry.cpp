#include "formats/registry.h"

#include <array>

#include "formats/kernel_text/launch_log.h"
#include "formats/kernel_text/summary_table.h"
#include "formats/kineto/reader.h"
#include "formats/ncu_csv/ncu_csv.h"
#include "formats/nsys_sqlite/reader.h"
#include "formats/perfetto/reader.h"

namespace culprit::formats {

namespace {

struct Entry {
  Format format;
  std::string_view name;
  bool (*looks_like)(std::string_view start);
};

bool looks_like_ncu_report(std::string_view start) { return start.starts_with(std::string_view("NVR\0", 4)); }

// Tables stand before JSON: program output in front of them may begin with a bracket.
constexpr std::array<Entry, 7> kEntries = {{
    {Format::nsys_sqlite, "SQLite database", nsys_sqlite::looks_like},
    {Format::perfetto, "Perfetto trace", culprit::perfetto::looks_like},
    {Format::ncu_report, "Nsight Compute report", looks_like_ncu_report},
    {Format::ncu_csv, "Nsight Compute CSV", ncu_csv::looks_like},
    {Format::launch_log, "kernel launch log", kernel_text::looks_like_launch_log},
    {Format::summary_table, "profiler table", kernel_text::looks_like_summary_table},
    {Format::kineto, "JSON trace", kineto::looks_like_json},
}};

}  // namespace

std::string_view to_string(Format format) {
  for (const Entry& entry : kEntries)
    if (entry.format == format) return entry.name;
  return format == Format::nsys_report ? "Nsight Systems report" : "unknown";
}

Format detect(std::string_view start, std::string_view path) {
  for (const Entry& entry : kEntries)
    if (entry.looks_like(start)) return entry.format;
  if (path.ends_with(".nsys-rep") || path.ends_with(".qdrep")) return Format::nsys_report;
  return Format::unknown;
}

std::string_view known_formats() {
  return "expected a JSON trace of the PyTorch profiler (plain, .gz or .zst), a recording or another Perfetto trace, "
         "an "
         "SQLite export of Nsight Systems, "
         "Nsight Compute CSV, a kernel launch log or a profiler's table";
}

}  // namespace culprit::formats
