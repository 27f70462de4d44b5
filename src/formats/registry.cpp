#include "formats/registry.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "formats/convert_report.h"
#include "formats/kernel_text/launch_log.h"
#include "formats/kernel_text/summary_table.h"
#include "formats/kineto/reader.h"
#include "formats/kineto/writer.h"
#include "formats/ncu_csv/ncu_csv.h"
#include "formats/nsys_sqlite/reader.h"
#include "formats/perfetto/copy.h"
#include "formats/perfetto/export.h"
#include "formats/perfetto/reader.h"

namespace culprit::formats {

namespace {

/// What other programs or libraries open by its name cannot be a stream.
Status require_file(const Input& input, std::string_view what) {
  if (!input.named_file())
    return input_error(fmt::format("is {}, which cannot be read from a pipe", what), input.path(), "name the file");
  if (input.compression() != Compression::none)
    return input_error(fmt::format("is {} in compressed form", what), input.path(), "decompress it first");
  return {};
}

// ---- traces

constexpr std::string_view kDatabase = "an SQLite database";
constexpr std::string_view kNsysReport = "an Nsight Systems report";
constexpr std::string_view kNcuReport = "an Nsight Compute report";

bool is_database(std::string_view start, std::string_view) { return nsys_sqlite::looks_like(start); }
bool is_perfetto(std::string_view start, std::string_view) { return perfetto::looks_like(start); }
bool is_json(std::string_view start, std::string_view) { return kineto::looks_like_json(start); }
bool is_nsys_report(std::string_view, std::string_view path) {
  return path.ends_with(".nsys-rep") || path.ends_with(".qdrep");
}

Result<Trace> read_json(Input input, const ReadOptions& options) {
  return kineto::read(std::move(input), {.workers = options.workers, .progress = options.progress});
}

Result<Trace> read_perfetto(Input input, const ReadOptions& options) {
  return perfetto::read(std::move(input), Expansion(options.max_expansion), options.progress);
}

Result<Trace> read_database(Input input, const ReadOptions& options) {
  if (Status status = require_file(input, kDatabase); !status) return status.error();
  return nsys_sqlite::read(input.path(), Expansion(options.max_expansion), options.progress, options.stop);
}

Result<Trace> read_nsys_report(Input input, const ReadOptions& options) {
  if (Status status = require_file(input, kNsysReport); !status) return status.error();
  const auto report = convert_report(
      input.path(), {{"nsys", "export", "--type", "sqlite", "--output", "OUTPUT", "INPUT"}, "report.sqlite"});
  if (!report) return report.error();
  auto trace = nsys_sqlite::read(report->file(), Expansion(options.max_expansion), options.progress, options.stop);
  if (trace) trace->ranks.front().path = input.path();
  return trace;
}

// ---- kernels without a timeline

bool is_ncu_report(std::string_view start, std::string_view) { return start.starts_with(std::string_view("NVR\0", 4)); }
bool is_ncu_csv(std::string_view start, std::string_view) { return ncu_csv::looks_like(start); }
bool is_launch_log(std::string_view start, std::string_view) { return kernel_text::looks_like_launch_log(start); }
bool is_summary_table(std::string_view start, std::string_view) { return kernel_text::looks_like_summary_table(start); }

using Parse = Result<KernelData> (*)(std::string_view text, std::string_view file);

Result<KernelData> parse_launch_log(std::string_view text, std::string_view file) {
  auto log = kernel_text::parse_launch_log(text, file);
  if (!log) return log.error();
  return KernelData(std::move(*log));
}

Result<KernelData> parse_summary_table(std::string_view text, std::string_view file) {
  auto summaries = kernel_text::parse_summary_tables(text, file);
  if (!summaries) return summaries.error();
  return KernelData(std::move(*summaries));
}

Result<KernelData> parse_ncu_csv(std::string_view text, std::string_view file) {
  auto data = ncu_csv::parse(text, file);
  if (!data) return data.error();
  if (data->is_summary) return KernelData(std::move(data->summaries));
  return KernelData(std::move(data->log));
}

/// Parses the whole text, which the user knows as `file`. Damage of its compression is counted.
Result<KernelData> read_text(Input& input, std::string_view file, Parse parse) {
  const auto text = read_all(input);
  if (!text) return text.error();
  auto data = parse(*text, file);
  if (!data || input.damage().empty()) return data;
  auto* log = std::get_if<model::KernelLog>(&*data);
  model::InputReport& report = log != nullptr ? log->inputs.front() : std::get<model::KernelSummaries>(*data).input;
  ++report.bad_rows;
  report.first.insert(report.first.begin(), {0, std::string(input.damage()), "copy the file again"});
  return data;
}

template <Parse parse>
Result<KernelData> read_text(Input input, const ReadOptions&) {
  return read_text(input, input.path(), parse);
}

Result<KernelData> read_ncu_report(Input input, const ReadOptions&) {
  if (Status status = require_file(input, kNcuReport); !status) return status.error();
  const auto report =
      convert_report(input.path(), {{"ncu", "--import", "INPUT", "--csv", "--page", "raw"}, "report.csv"});
  if (!report) return report.error();
  auto converted = Input::open(report->file());
  if (!converted) return converted.error();
  return read_text(*converted, input.path(), parse_ncu_csv);
}

// Tables stand before JSON: program output in front of them may begin with a bracket.
constexpr std::array<Format, 8> kFormats = {{
    {kDatabase, "an SQLite export of Nsight Systems", is_database, read_database, nullptr},
    {"a Perfetto trace", "a recording or another Perfetto trace", is_perfetto, read_perfetto, nullptr},
    {kNcuReport, "", is_ncu_report, nullptr, read_ncu_report},
    {"Nsight Compute CSV", "Nsight Compute CSV", is_ncu_csv, nullptr, read_text<parse_ncu_csv>},
    {"a kernel launch log", "a kernel launch log", is_launch_log, nullptr, read_text<parse_launch_log>},
    {"a profiler table", "a profiler's table", is_summary_table, nullptr, read_text<parse_summary_table>},
    {"a JSON trace", "a JSON trace of the PyTorch profiler (plain, .gz or .zst)", is_json, read_json, nullptr},
    {kNsysReport, "", is_nsys_report, read_nsys_report, nullptr},
}};

}  // namespace

const Format* detect(std::string_view start, std::string_view path) {
  for (const Format& format : kFormats)
    if (format.recognizes(start, path)) return &format;
  return nullptr;
}

std::string expected_formats() {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats)
    if (!format.expected.empty()) names.push_back(format.expected);
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("expected {}, or {}", fmt::join(names, ", "), last);
}

namespace {

const std::array<Writer, 2>& writers() {
  static const std::array<Writer, 2> kWriters = {
      Writer{"Chrome / Kineto JSON", {".json", ".json.gz"}, false, kineto::save_trace, nullptr, nullptr},
      Writer{"a Perfetto trace",
             {".perfetto-trace", ".pftrace"},
             true,
             [](const Trace& trace, std::uint16_t, const std::string& path, bool replace) {
               return perfetto::save_trace(trace, path, replace);
             },
             is_perfetto,
             [](Input input, const ReadOptions& options, const std::string& path, bool replace) {
               return perfetto::copy_trace(std::move(input), Expansion(options.max_expansion), path, replace,
                                           options.progress);
             }}};
  return kWriters;
}

}  // namespace

const Writer* writer_of(std::string_view path) {
  const auto names = [&](const Writer& writer) {
    return std::ranges::any_of(writer.ends, [&](std::string_view end) { return path.ends_with(end); });
  };
  const auto found = std::ranges::find_if(writers(), names);
  return found == writers().end() ? nullptr : &*found;
}

const Writer& usual_writer() { return writers().front(); }

std::string written_names() {
  std::string text;
  for (const Writer& writer : writers())
    for (const std::string_view end : writer.ends) {
      const bool last = &writer == &writers().back() && end == writer.ends.back();
      text += fmt::format("{}{}", text.empty() ? "" : last ? " or " : ", ", end);
    }
  return text;
}

}  // namespace culprit::formats
