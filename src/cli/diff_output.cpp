#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/diff.h"
#include "cli/output.h"
#include "core/escape.h"
#include "core/output_file.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

/// Writes the files of a directory; says which.
Status write_directory(const DiffOptions& options, const DiffReport& report) {
  const fs::path directory = options.output;
  const std::string& format = options.format;
  std::vector<std::pair<fs::path, std::string>> files;
  for (const DiffPart& part : report.parts) {
    if (format.empty() || format == "md") files.emplace_back(directory / (part.name + ".md"), part.markdown());
    if (format.empty() || format == "csv") files.emplace_back(directory / (part.name + ".csv"), part.csv());
  }
  if (report.tables && (format.empty() || format == "csv"))
    for (report::CsvFile& table : report.tables())
      files.emplace_back(directory / (table.name + ".csv"), std::move(table.text));
  if (format == "json") files.emplace_back(directory / report.json_name, report.json());
  if (format == "html")
    for (const DiffPart& part : report.parts) {
      auto page = part.html();
      if (!page) return page.error();
      files.emplace_back(directory / (part.name + ".html"), std::move(*page));
    }
  std::error_code code;
  fs::create_directories(directory, code);
  if (code || !fs::is_directory(directory))
    return environment_error("the directory cannot be created", directory.string(), "choose another one with -o");
  for (const auto& [path, text] : files)
    if (Status status = refuse_overwriting(path.string(), {}, options.force); !status) return status;
  std::string said = options.json ? report.json() : report.terminal(true);
  for (const auto& [path, text] : files) {
    if (Status status = write_report(path.string(), text, options.force); !status) return status;
    if (!options.json) said += fmt::format("Written: {}\n", escape_terminal(path.string()));
  }
  return write_report("-", said, false);
}

}  // namespace

std::string report_text(const DiffOptions& options, const DiffReport& report) {
  if (options.json || options.format == "json") return report.json();
  if (options.format == "html") {
    auto page = report.parts.front().html();
    return page ? std::move(*page) : std::string();
  }
  if (options.format.empty() || options.format == "terminal") return report.terminal(false);
  std::string text;
  for (const DiffPart& part : report.parts) text += options.format == "csv" ? part.csv() : part.markdown();
  return text;
}

bool is_file_target(const DiffOptions& options) {
  const std::string& path = options.output;
  std::error_code code;
  return (path.ends_with(".md") || path.ends_with(".csv") || path.ends_with(".json") || path.ends_with(".html")) &&
         !fs::is_directory(path, code);
}

Status deliver(const DiffOptions& options, const DiffReport& report) {
  if (options.format == "html") {
    std::error_code code;
    const bool may_be_directory =
        !options.output.empty() && !is_file_target(options) && !OutputFile::is_stream(options.output);
    if (may_be_directory && (report.parts.size() > 1 || fs::is_directory(options.output, code)))
      return write_directory(options, report);
    if (report.parts.size() > 1)
      return usage_error(fmt::format("{} comparisons do not fit into one page", report.parts.size()),
                         "give a directory with -o: it gets a page for each");
    const auto page = report.parts.front().html();
    if (!page) return page.error();
    return write_report(options.output.empty() ? "-" : options.output, *page, options.force);
  }
  if (options.output.empty() || (!is_file_target(options) && OutputFile::is_stream(options.output)))
    return write_report(options.output.empty() ? "-" : options.output, report_text(options, report), options.force);
  if (options.format == "terminal") return usage_error("--format terminal writes no files", "leave out -o");
  if (!is_file_target(options)) return write_directory(options, report);
  if (options.format == "csv" && report.parts.size() > 1)
    return usage_error(fmt::format("{} tables do not fit into one CSV file", report.parts.size()),
                       "give a directory with -o, or a name that ends in .md or .json");
  return write_report(options.output, report_text(options, report), options.force);
}

}  // namespace culprit::cli
