// What all verbs share: the options that choose where results go and how they look, and loading a run with a progress
// bar.
#pragma once

#include <culprit/load.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "core/error.h"
#include "core/progress.h"
#include "model/table.h"
#include "report/html.h"
#include "report/render.h"
#include "trace/trace.h"

namespace culprit {
class JsonWriter;
}

namespace culprit::cli {

enum class OutputFormat { terminal, markdown, csv, json, html };

/// As given on the command line.
struct OutputOptions {
  std::string format;
  bool json = false;
  bool html = false;
  bool has_html = false;  ///< the verb can write it
  std::string path = "-";
  bool force = false;
};

/// How wide tables may be on a terminal.
struct WidthOptions {
  bool wide = false;
  std::size_t name_width = 0;  ///< 0: not given
};

/// As decided from the options and from where the output goes.
struct Output {
  OutputFormat format = OutputFormat::terminal;
  std::string path = "-";
  bool replace = false;    ///< what is there
  bool color = false;      ///< a terminal, and NO_COLOR is not set
  std::size_t width = 80;  ///< columns of the terminal; 80 where the output goes elsewhere
};

/// Declares --format, --json, -o and --force on a verb.
void add_output_options(Verb& app, OutputOptions& options);
/// The same with --html.
void add_page_options(Verb& app, OutputOptions& options);
/// --html on a verb, and the words for its help.
inline constexpr const char* kHtmlHelp = "short for --format html: one page, which opens from disk";
/// A page on a terminal is of no use to anybody. Errors: so it is, or this program has no page.
Status check_page_target(const std::string& path);
/// Declares --wide and --name-width.
void add_width_options(Verb& app, WidthOptions& options);
/// Tables as wide as the terminal, or as they get with one of these options.
report::TerminalOptions terminal_look(const Output& output, const WidthOptions& options);
/// The tables in the chosen format; `json` writes the whole answer, `page` heads the one of a verb that has pages.
std::string rendered(const Output& output, std::span<const model::Table> tables, const report::TerminalOptions& look,
                     const std::function<std::string()>& json, const report::HtmlPage& page = {});
/// Lines of `text` broken between words to at most `width` columns; what follows a break begins with `indent` spaces. A
/// word that is wider is cut, as names in tables are.
std::string broken_lines(std::string_view text, std::size_t width, std::size_t indent = 0);
/// How files are loaded, as given on the command line.
struct LoadChoice {
  unsigned threads = 0;  ///< 0: all cores
  std::size_t max_expansion = kUsualExpansion;
};

/// Declares FILE… and how they are loaded.
void add_input_options(Verb& app, std::vector<std::string>& files, LoadChoice& choice);
/// Declares --threads and --max-expansion.
void add_load_options(Verb& app, LoadChoice& choice);
/// Options for loading that report to `progress`, which must live as long.
LoadOptions load_options(const LoadChoice& choice, Progress& progress);
/// The end of a verb's help: an example, and what the exit codes mean.
std::string help_footer(std::string_view example);

/// Without --format the end of PATH decides (.md, .csv, .json, .html), else it is the terminal format. Errors: the
/// output is one of `inputs`, the options contradict each other, or there can be no page.
Result<Output> resolve_output(const OutputOptions& options, std::span<const std::string> inputs);

/// Declares --force, the same for every verb that writes a file.
void add_force_option(Verb& app, bool& force);
/// Error when `path` is the same file as one of `inputs`, or exists and `force` is not given; see core/output_file.h.
/// For the begin of a verb, before the work.
Status refuse_overwriting(const std::string& path, std::span<const std::string> inputs, bool force);

/// Writes to the file (complete or not at all) or to standard output; a reader that has gone away is no error.
Status write_output(const Output& output, std::string_view text);
Status write_report(const std::string& path, std::string_view text, bool replace);

/// Loads the files as one run; shows progress on a terminal.
Result<Run> load_with_progress(const std::vector<std::string>& files, const LoadChoice& choice);

/// "3 data loss, 12 warning, 1 info: ...", or nothing when nothing was lost or repaired.
std::optional<std::string> loss_note(const Losses& losses);

/// Opens the object of a JSON answer: the members "culprit", which is the version, and "files".
void begin_answer(JsonWriter& json, const std::vector<std::string>& files);
/// The member "losses".
void write_losses(JsonWriter& json, const Losses& losses);

}  // namespace culprit::cli
