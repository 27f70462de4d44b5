#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/json_writer.h"
#include "core/text.h"
#include "cycles/find.h"
#include "library/measure.h"
#include "library/run_data.h"
#include "model/table_rows.h"
#include "report/cycles_report.h"
#include "report/render.h"
#include "report/work_report.h"
#include "trace/rank_numbers.h"

namespace culprit::cli {

namespace {

struct CyclesOptions {
  std::vector<std::string> files;
  LoadChoice load;
  std::string anchor;
  std::string phase;
  unsigned skip = 0;
  std::int64_t limit = -1;  ///< -1: what suits the format
  bool all = false;
  WidthOptions width;
  OutputOptions output;
};

std::string json_of(const CyclesOptions& options, const Trace& trace, const cycles::Found& found,
                    const model::Table& table) {
  std::string text;
  JsonWriter json(text);
  begin_answer(json, options.files);
  report::write_cycles(json, found.cycles);
  if (found.work) report::write_work(json, *found.work);
  write_losses(json, trace.losses);
  report::write_tables(json, {&table, 1});
  json.end_object();
  json.finish();
  return text;
}

/// 0 is all.
std::size_t rows_shown(const CyclesOptions& options, OutputFormat format) {
  constexpr std::size_t kOneScreen = 30;
  if (options.all) return 0;
  if (options.limit >= 0) return static_cast<std::size_t>(options.limit);
  return format == OutputFormat::terminal ? kOneScreen : 0;
}

Result<int> run_cycles(const CyclesOptions& options) {
  const auto output = resolve_output(options.output, options.files);
  if (!output) return output.error();
  const auto run = load_with_progress(options.files, options.load);
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  const auto found = library::find(*run, {options.anchor, options.phase, options.skip});
  if (!found) return found.error();

  const model::Cycles& cycles = found->cycles;
  // Of a recording of a program that marks no steps: what its cycles are made of.
  constexpr std::size_t kShort = 8;
  const bool brief = output->format == OutputFormat::terminal && !options.all;
  std::vector<model::Table> tables =
      found->work ? report::work_tables(*found->work, brief ? kShort : 0) : std::vector<model::Table>();
  model::Table table = report::cycles_table(cycles, rank_numbers(trace));
  if (auto note = loss_note(trace.losses)) table.notes.push_back(std::move(*note));
  const std::size_t limit = rows_shown(options, output->format);
  if (limit > 0 && table.rows.size() > limit) {
    table.notes.insert(table.notes.begin(),
                       fmt::format("{} more rows; --all shows them", format_count(table.rows.size() - limit)));
    table.rows.resize(limit);
  }
  const report::TerminalOptions look = terminal_look(*output, options.width);
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  std::string text;
  switch (output->format) {
    case OutputFormat::terminal:
      if (found->work)
        text = "The program marks no steps. Its units of work:\n\n" + report::render_terminal(tables, look) + "\n";
      text += broken_lines(report::cycles_heading(cycles), look.width != 0 ? look.width : kNoLimit, 2);
      if (cycles.cycles.empty()) break;
      text += "\n";
      model::drop_empty_columns(table);
      text += report::render_terminal({&table, 1}, look);
      text += report::period_plot(report::period_distributions(cycles)) +
              broken_lines(report::left_out_of_periods(cycles), look.width != 0 ? look.width : kNoLimit, 2);
      break;
    case OutputFormat::markdown:
      table.notes.insert(table.notes.begin(), report::cycles_heading(cycles));
      tables.push_back(table);
      text = report::render_markdown(tables);
      if (const std::string plot = report::period_plot(report::period_distributions(cycles)); !plot.empty())
        text += "\n```text" + plot + report::left_out_of_periods(cycles) + "```\n";
      break;
    case OutputFormat::csv:
      tables.push_back(table);
      text = report::render_csv(tables);
      break;
    case OutputFormat::json:
      text = json_of(options, trace, *found, table);
      break;
    case OutputFormat::html: {
      const std::string heading = report::cycles_heading(cycles);
      const auto lines = split_lines(heading);
      if (const std::string left = report::left_out_of_periods(cycles); !left.empty()) table.notes.push_back(left);
      tables.insert(tables.begin(), table);
      text = rendered(
          *output, tables, look, {},
          {"cycles", CULPRIT_VERSION, options.files, {lines.begin(), lines.end()}, report::drawn_cycles(cycles)});
      break;
    }
  }
  if (Status status = write_output(*output, text); !status) return status.error();
  // As everywhere that cycles are asked for; the answer says why there are none.
  return cycles.cycles.empty() ? static_cast<int>(ErrorKind::input) : kFine;
}

}  // namespace

void add_cycles(CommandLine& app, Invocation& invocation) {
  auto* verb =
      app.add_subcommand("cycles", "steps of a run: begin, period, phase, device busy and idle, and how found");
  auto options = std::make_shared<CyclesOptions>();
  add_input_options(*verb, options->files, options->load);
  verb->add_option("--anchor", options->anchor, "marker or function that begins every cycle (default: found)")
      ->type_name("NAME");
  verb->add_option("--phase", options->phase, "only cycles of a phase: prefill, decode, mixed, train_step, other")
      ->check(one_of({"prefill", "decode", "mixed", "train_step", "other"}));
  verb->add_option("--limit", options->limit, "rows; 0 shows all (default: 30 for the terminal, else all)")
      ->check(in_range(0, 1e9))
      ->type_name("N");
  verb->add_flag("--all", options->all, "all rows");
  verb->add_option("--skip", options->skip, "leave out the first N cycles of every rank")
      ->check(in_range(0, 1e9))
      ->type_name("N");
  add_width_options(*verb, options->width);
  add_page_options(*verb, options->output);
  verb->footer(help_footer("culprit cycles rank0.json.gz rank1.json.gz --phase decode --skip 3"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_cycles(*options); }; });
}

}  // namespace culprit::cli
