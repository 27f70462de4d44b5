// What the parts of `culprit diff` share: its options, and a comparison in every form on its way to where the user
// wants it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "core/error.h"
#include "model/comparison.h"
#include "model/run_picture.h"
#include "report/comparison_files.h"

namespace culprit::cli {

struct DiffOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> candidates;  ///< behind --vs
  std::vector<std::string> history;     ///< earlier recordings of the same, each a file or a directory
  std::string anchor;
  LoadChoice load;
  std::string tolerance = "3%";
  std::string fail_on;
  std::string score;  ///< "impact" or "suspicion"
  std::string output;
  std::string format;  ///< "", "terminal", "md", "csv", "json" or "html"
  bool json = false;
  bool html = false;
  bool force = false;
  bool wide = false;
};

/// One comparison of several.
struct DiffPart {
  std::string name;  ///< of its files, without ending
  std::function<std::string()> markdown;
  std::function<std::string()> csv;
  std::function<Result<std::string>()> html;
};

struct DiffReport {
  std::vector<DiffPart> parts;
  std::function<std::vector<report::CsvFile>()> tables;  ///< further CSV files of a directory
  std::string json_name;                                 ///< of the file in a directory
  std::function<std::string()> json;
  std::function<std::string(bool summary)> terminal;  ///< `summary`: beside the files of a directory
};

/// The report in options.format: "json", "csv", "md", else as on a terminal.
std::string report_text(const DiffOptions& options, const DiffReport& report);

/// Writes the report where -o and --format want it.
Status deliver(const DiffOptions& options, const DiffReport& report);

/// -o names one file: by its end, unless it is a directory already.
bool is_file_target(const DiffOptions& options);

/// "3%" and "0.03" alike.
std::optional<double> parse_share(std::string_view text);

/// Why it is no share between 0 and 1, or "".
std::string share_problem(const std::string& text);

/// Neither one directory with both sides nor two tables.
bool begins_with_traces(const DiffOptions& options);

/// Both sides as lists of trace files; directories are replaced by the traces directly in them, by name.
struct DiffSides {
  std::vector<std::string> base;
  std::vector<std::string> candidate;
};
Result<DiffSides> trace_sides(const DiffOptions& options);

/// The options with one word for each thing: the format by the end of -o, "md", "any". Errors: they contradict each
/// other, or a file would be overwritten.
Result<DiffOptions> settled(const DiffOptions& given);

/// The comparison in options.format; "" where this program was built without its page.
std::string comparison_text(const DiffOptions& options, const model::RunComparison& comparison, std::string_view verb,
                            std::span<const model::RunPicture> pictures = {});

/// The exit code that --fail-on asks for; warns on standard error where what is not decided passes. `part`: the name of
/// this comparison among several.
int exit_of(const std::string& fail_on, const model::RunComparison& comparison, std::string_view part = {});

/// Delivers a comparison; gives the exit code that --fail-on asks for.
Result<int> deliver_comparison(const DiffOptions& options, const model::RunComparison& comparison,
                               std::string_view verb, std::span<const model::RunPicture> pictures = {});

/// Compares traces by the impact of every function. Files of one side that carry different rank numbers are the ranks
/// of one run, other files are recordings of the same run again. Gives the exit code.
Result<int> diff_runs(const DiffOptions& options);

/// Compares profile tables, or the tables that the reference tool would make of two traces, by Suspicion Score; with
/// `--score impact` as traces are compared, as far as tables tell it. Gives the exit code.
Result<int> diff_tables(const DiffOptions& options);

}  // namespace culprit::cli
