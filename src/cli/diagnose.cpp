// `culprit diagnose`: what one run says of itself.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <utility>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "library/diagnose.h"
#include "library/run_data.h"
#include "model/run_picture.h"
#include "report/diagnosis_report.h"
#include "report/html.h"
#include "report/render.h"

namespace culprit::cli {

namespace {

struct DiagnoseChoice {
  std::vector<std::string> files;
  LoadChoice load;
  std::string anchor;
  WidthOptions width;
  OutputOptions output;
};

Result<int> run_diagnose(const DiagnoseChoice& options) {
  const auto output = resolve_output(options.output, options.files);
  if (!output) return output.error();
  const auto run = load_with_progress(options.files, options.load);
  if (!run) return run.error();
  const bool is_page = output->format == OutputFormat::html;
  model::RunPicture picture;
  const auto diagnosis = library::diagnose(*run, {.anchor = options.anchor}, is_page ? &picture : nullptr);
  if (!diagnosis) return diagnosis.error();
  std::vector<model::Table> tables = {report::step_parts_table(*diagnosis)};
  if (auto note = loss_note(run->data().trace.losses)) tables.front().notes.push_back(std::move(*note));
  if (!diagnosis->phases.empty()) tables.push_back(report::phases_table(*diagnosis));
  const report::TerminalOptions look = terminal_look(*output, options.width);
  std::string text;
  switch (output->format) {
    case OutputFormat::terminal:
      for (const std::string& line : report::diagnosis_lines(*diagnosis)) {
        const std::size_t indent = line.starts_with("  ") ? 2 : 0;
        const std::string broken = broken_lines(
            escape_terminal(line), look.width != 0 ? look.width : std::numeric_limits<std::size_t>::max(), indent + 2);
        text += broken;
        if (!broken.ends_with('\n')) text += "\n";
      }
      if (!tables.front().rows.empty()) text += "\n" + report::render_terminal(tables, look);
      break;
    case OutputFormat::markdown:
      for (const std::string& line : report::diagnosis_lines(*diagnosis)) {
        const bool inner = line.starts_with("  ");
        text += fmt::format("{}- {}\n", inner ? "  " : "", escape_markdown(line.substr(inner ? 2 : 0)));
      }
      if (!tables.front().rows.empty()) text += "\n" + report::render_markdown(tables);
      break;
    case OutputFormat::csv:
      text = report::render_csv(tables);
      break;
    case OutputFormat::json: {
      JsonWriter json(text);
      begin_answer(json, options.files);
      report::write_diagnosis(json, *diagnosis);
      write_losses(json, run->data().trace.losses);
      report::write_tables(json, tables);
      json.end_object();
      json.finish();
      break;
    }
    case OutputFormat::html: {
      report::HtmlPage page{"diagnose", CULPRIT_VERSION, options.files, report::diagnosis_lines(*diagnosis)};
      page.verdicts = diagnosis->verdicts;
      if (diagnosis->change)
        for (const model::Verdict& verdict : diagnosis->change->comparison.verdicts) page.verdicts.push_back(verdict);
      page.pictures.push_back(std::move(picture));
      text = rendered(*output, tables, look, {}, page);
      break;
    }
  }
  if (Status status = write_output(*output, text); !status) return status.error();
  return kFine;
}

}  // namespace

void add_diagnose(CommandLine& app, Invocation& invocation) {
  auto* verb =
      app.add_subcommand("diagnose", "what one run says of itself: ranks, devices, phases and its own parts compared");
  auto options = std::make_shared<DiagnoseChoice>();
  add_input_options(*verb, options->files, options->load);
  verb->add_option("--anchor", options->anchor, "marker or function that begins every cycle (default: found)")
      ->type_name("NAME");
  add_width_options(*verb, options->width);
  add_page_options(*verb, options->output);
  verb->footer(help_footer("culprit diagnose rank*.json.gz\n  culprit diagnose server.pftrace --json"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_diagnose(*options); }; });
}

}  // namespace culprit::cli
