#include "cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/options.h"
#include "core/display_width.h"
#include "core/json_writer.h"
#include "core/output_file.h"
#include "core/progress.h"
#include "core/text.h"
#include "core/units.h"

namespace culprit::cli {

namespace {

void add_target_options(Verb& app, OutputOptions& options) {
  app.add_option("-o,--output", options.path, "write to PATH instead of standard output ('-')")->type_name("PATH");
  add_force_option(app, options.force);
}

}  // namespace

void add_output_options(Verb& app, OutputOptions& options) {
  app.add_option("--format", options.format, "terminal, markdown, csv or json (default: by the end of PATH)")
      ->check(one_of({"terminal", "markdown", "md", "csv", "json"}));
  app.add_flag("--json", options.json, "short for --format json");
  add_target_options(app, options);
}

void add_page_options(Verb& app, OutputOptions& options) {
  options.has_html = true;
  app.add_option("--format", options.format, "terminal, markdown, csv, json or html (default: by the end of PATH)")
      ->check(one_of({"terminal", "markdown", "md", "csv", "json", "html"}));
  app.add_flag("--json", options.json, "short for --format json");
  app.add_flag("--html", options.html, kHtmlHelp);
  add_target_options(app, options);
}

Status check_page_target(const std::string& path) {
  if ((path.empty() || path == "-") && isatty(STDOUT_FILENO) != 0)
    return usage_error("a page of HTML is nothing for a terminal", "-o report.html");
  return report::html_is_there();
}

void add_force_option(Verb& app, bool& force) { app.add_flag("--force", force, "overwrite a file that exists"); }

void add_width_options(Verb& app, WidthOptions& options) {
  app.add_flag("--wide", options.wide, "terminal: all columns, names up to 100 columns, however wide that gets");
  app.add_option("--name-width", options.name_width, "terminal: the same with names up to N columns")
      ->check(in_range(8, 1e6))
      ->type_name("N");
}

report::TerminalOptions terminal_look(const Output& output, const WidthOptions& options) {
  report::TerminalOptions look;
  look.color = output.color;
  if (options.name_width != 0)
    look.name_width = options.name_width;
  else if (!options.wide)
    look.width = output.width;
  return look;
}

std::string rendered(const Output& output, std::span<const model::Table> tables, const report::TerminalOptions& look,
                     const std::function<std::string()>& json, const report::HtmlPage& page) {
  switch (output.format) {
    case OutputFormat::terminal:
      return report::render_terminal(tables, look);
    case OutputFormat::markdown:
      return report::render_markdown(tables);
    case OutputFormat::csv:
      return report::render_csv(tables);
    case OutputFormat::html:
      if (auto text = report::tables_html(page, tables)) return std::move(*text);
      break;
    case OutputFormat::json:
      break;
  }
  return json();
}

std::string broken_lines(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::string_view words = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    std::string lead(line.size() - words.size(), ' ');
    // Every line has the room of the narrower ones, so that an indent does not make them too wide.
    const std::size_t taken = std::max(lead.size(), indent);
    for (const std::string& part : wrap(words, width > taken ? width - taken : 1)) {
      out += shorten(lead + part, width) + '\n';
      lead.assign(indent, ' ');
    }
  }
  return out;
}

void add_input_options(Verb& app, std::vector<std::string>& files, LoadChoice& choice) {
  app.add_option("FILE", files, "traces of one run, one per rank; plain, .gz or .zst; '-' is standard input")
      ->required()
      ->type_name("");
  add_load_options(app, choice);
}

void add_load_options(Verb& app, LoadChoice& choice) {
  app.add_option("--threads", choice.threads, "threads that load (default: all cores)")
      ->check(in_range(0, 1024))
      ->type_name("N");
  app.add_option("--max-expansion", choice.max_expansion,
                 "times its size that a file may become when it is read; 0 is no limit (default: 200)")
      ->check(in_range(0, 1e9))
      ->type_name("N");
}

std::string help_footer(std::string_view example) {
  return fmt::format(
      "Example:\n  {}\n\nExit codes:\n  0  fine\n  2  bad usage\n  3  bad input\n  4  missing permission or device",
      example);
}

Status refuse_overwriting(const std::string& path, std::span<const std::string> inputs, bool force) {
  struct stat target {};
  if (path == "-" || stat(path.c_str(), &target) != 0 || !S_ISREG(target.st_mode))
    return OutputFile::check(path, force);
  for (const std::string& input : inputs) {
    struct stat source {};
    if (stat(input.c_str(), &source) == 0 && source.st_dev == target.st_dev && source.st_ino == target.st_ino)
      return usage_error(fmt::format("the output '{}' is an input file", path), "choose another name");
  }
  return OutputFile::check(path, force);
}

Result<Output> resolve_output(const OutputOptions& options, std::span<const std::string> inputs) {
  Output output;
  output.path = options.path;
  output.replace = options.force;
  std::string format = options.format;
  if (options.json) {
    if (!format.empty() && format != "json") return usage_error(fmt::format("--json contradicts --format {}", format));
    format = "json";
  }
  if (options.html) {
    if (!format.empty() && format != "html") return usage_error(fmt::format("--html contradicts --format {}", format));
    format = "html";
  }
  if (format == "markdown" || format == "md" || (format.empty() && options.path.ends_with(".md")))
    output.format = OutputFormat::markdown;
  else if (format == "csv" || (format.empty() && options.path.ends_with(".csv")))
    output.format = OutputFormat::csv;
  else if (format == "json" || (format.empty() && options.path.ends_with(".json")))
    output.format = OutputFormat::json;
  else if (format == "html" || (format.empty() && options.has_html && options.path.ends_with(".html")))
    output.format = OutputFormat::html;
  if (format.empty() && !options.has_html && options.path.ends_with(".html"))
    return usage_error(fmt::format("'{}': this command makes no page of HTML", options.path),
                       "end the name in .md, .csv or .json, or name another --format");
  if (output.format == OutputFormat::html)
    if (Status status = check_page_target(output.path); !status) return status.error();
  if (Status status = refuse_overwriting(output.path, inputs, options.force); !status) return status.error();
  const char* no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  output.color = output.format == OutputFormat::terminal && output.path == "-" && isatty(STDOUT_FILENO) != 0 &&
                 (no_color == nullptr || *no_color == '\0');
  winsize window{};
  if (output.path == "-" && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col != 0)
    output.width = window.ws_col;
  return output;
}

Status write_output(const Output& output, std::string_view text) {
  return write_report(output.path, text, output.replace);
}

Status write_report(const std::string& path, std::string_view text, bool replace) {
  auto file = OutputFile::create(path, {kReportMode, replace});
  if (!file) return file.error();
  if (Status status = file->write(text); !status) return status;
  return file->commit();
}

LoadOptions load_options(const LoadChoice& choice, Progress& progress) {
  return {.threads = choice.threads,
          .max_expansion = choice.max_expansion,
          .task = {.progress = [&progress](std::string_view, std::uint64_t done, std::uint64_t total) {
            progress.update(done, total);
          }}};
}

Result<Run> load_with_progress(const std::vector<std::string>& files, const LoadChoice& choice) {
  Progress progress("loading", progress_sink_of_stderr());
  return load_run(files, load_options(choice, progress));
}

std::optional<std::string> loss_note(const Losses& losses) {
  if (losses.total() == 0) return std::nullopt;
  std::string text;
  for (const Severity severity : {Severity::data_loss, Severity::warning, Severity::info})
    if (const std::uint64_t n = losses.total(severity); n != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", format_count(n), to_string(severity));
  return "Losses: " + text + "; 'culprit info --show losses' says what and why";
}

void begin_answer(JsonWriter& json, const std::vector<std::string>& files) {
  json.begin_object();
  json.member("culprit", CULPRIT_VERSION);
  json.member("files", files);
}

void write_losses(JsonWriter& json, const Losses& losses) {
  json.begin_array("losses");
  for (std::size_t i = 0; i < Losses::kReasons; ++i) {
    const auto reason = static_cast<LossReason>(i);
    if (losses[reason] == 0) continue;
    const LossInfo& loss = info(reason);
    json.begin_object(JsonForm::line);
    json.member("reason", loss.name);
    json.member("severity", to_string(loss.severity));
    json.member("count", losses[reason]);
    json.end_object();
  }
  json.end_array();
}

}  // namespace culprit::cli
