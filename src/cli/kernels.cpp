#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "core/progress.h"
#include "formats/kernel_text/launch_log.h"
#include "formats/kernel_text/summary_table.h"
#include "kernels/align_logs.h"
#include "kernels/blocks.h"
#include "kernels/classes.h"
#include "kernels/fusion.h"
#include "kernels/launch_gaps.h"
#include "kernels/launch_tables.h"
#include "library/kernels.h"
#include "model/table_rows.h"
#include "report/kernels_plot.h"
#include "report/render.h"

namespace culprit::cli {

namespace {

const std::vector<std::string> kSections = {"names",    "classes",   "distribution", "blocks",
                                            "unstable", "positions", "fusion",       "launches"};
constexpr std::size_t kRowsOnTerminal = 25;
constexpr std::size_t kCandidatesOnTerminal = 10;
constexpr std::size_t kLaunchesOnPage = 10'000;

struct KernelsOptions {
  std::vector<std::string> files;
  std::vector<std::string> against;
  LoadChoice load;
  bool log = false;
  bool all = false;
  std::vector<std::string> show;
  std::int64_t limit = -1;  ///< -1: what suits the format
  double low = 33;
  double high = 67;
  double tolerance = 5;
  double launch_us = 5;
  std::string svg;
  WidthOptions width;
  OutputOptions output;
};

Result<formats::KernelData> load(const std::vector<std::string>& files, const LoadChoice& choice) {
  Progress progress("loading", progress_sink_of_stderr());
  return library::load_kernel_data(files, load_options(choice, progress));
}

std::vector<std::string> input_notes(const model::KernelLog& log) {
  std::vector<std::string> notes = log.notes;
  for (const model::InputReport& input : log.inputs) {
    if (input.bad_rows + input.bad_cells == 0) continue;
    std::string first;
    if (!input.first.empty())
      first = fmt::format("; first in line {}: {}", input.first.front().line, input.first.front().what);
    notes.push_back(fmt::format("{}: {} rows read, {} rows and {} cells invalid{}", input.file, input.rows,
                                input.bad_rows, input.bad_cells, first));
  }
  return notes;
}

/// Keeps the first `limit` rows, 0 = all, and says how many more there are.
void cut_rows(model::Table& table, std::size_t limit) {
  if (limit == 0 || table.rows.size() <= limit) return;
  table.notes.insert(table.notes.begin(),
                     fmt::format("{} more rows; --all shows them", format_count(table.rows.size() - limit)));
  table.rows.resize(limit);
}

std::size_t limit_of(const KernelsOptions& options, const Output& output, std::size_t usual) {
  if (options.limit >= 0) return static_cast<std::size_t>(options.limit);
  if (options.all) return 0;
  return output.format == OutputFormat::terminal ? usual : 0;
}

std::vector<model::Table> analyse(const KernelsOptions& options, const Output& output, const model::KernelLog& log,
                                  const model::UseReport& use) {
  std::set<std::string> show(options.show.begin(), options.show.end());
  if (show.empty()) show = {"names", "classes", "distribution", "blocks", "unstable", "fusion", "launches"};
  const double low = options.low / 100;
  std::vector<model::Table> tables;
  if (show.contains("names"))
    tables.push_back(kernels::name_table(log, {limit_of(options, output, kRowsOnTerminal), low}));
  if (show.contains("classes")) {
    tables.push_back(kernels::class_table(use));
    if (use.axis != model::ComputeAxis::none) tables.push_back(kernels::bin_table(use));
  }
  if (show.contains("distribution") && output.format != OutputFormat::terminal && !use.histograms.empty())
    tables.push_back(kernels::histogram_table(use));
  if (show.contains("blocks") || show.contains("positions") || show.contains("unstable") || show.contains("fusion")) {
    const kernels::LaunchIds ids = kernels::launch_ids(log);
    std::vector<model::Lane> lanes = kernels::lanes_of(log);
    const model::FusionReport fusion =
        show.contains("fusion") ? kernels::fusion_report(log, lanes, {low}) : model::FusionReport();
    std::vector<model::LaneBlocks> blocks;
    blocks.reserve(lanes.size());
    for (model::Lane& lane : lanes) blocks.push_back(kernels::find_blocks(log, std::move(lane), ids, {}));
    if (show.contains("blocks")) {
      tables.push_back(kernels::block_table(log, blocks));
      cut_rows(tables.back(), limit_of(options, output, kRowsOnTerminal));
    }
    if (show.contains("positions"))
      tables.push_back(kernels::position_table(log, blocks, false));
    else if (show.contains("unstable")) {
      tables.push_back(kernels::position_table(log, blocks, true));
      model::Table& table = tables.back();
      const std::size_t limit = limit_of(options, output, kCandidatesOnTerminal);
      if (limit > 0 && table.rows.size() > limit) {
        table.notes.push_back(fmt::format("{} more; '--show positions' has all", table.rows.size() - limit));
        table.rows.resize(limit);
      }
      if (table.rows.empty()) tables.pop_back();
    }
    if (show.contains("fusion"))
      tables.push_back(kernels::fusion_table(log, fusion, blocks, limit_of(options, output, kCandidatesOnTerminal)));
  }
  if (show.contains("launches")) {
    const auto cost = static_cast<Ns>(options.launch_us * 1e3);
    const model::LaunchReport launches = kernels::launch_report(log, {cost});
    tables.push_back(kernels::gap_table(log, launches));
    if (!launches.stretches.empty()) tables.push_back(kernels::stretch_table(log, launches));
  }
  return tables;
}

std::string render(const KernelsOptions& options, const Output& output, std::span<const model::Table> tables) {
  return rendered(output, tables, terminal_look(output, options.width),
                  [&] {
                    std::string text;
                    JsonWriter json(text);
                    begin_answer(json, options.files);
                    json.member("against", options.against);
                    report::write_tables(json, tables);
                    json.end_object();
                    json.finish();
                    return text;
                  },
                  {"kernels", CULPRIT_VERSION, options.files});
}

model::Table summary_rows(const model::KernelSummary& summary) {
  using model::ColumnType;
  using model::number_cell;
  using model::SummaryRow;
  model::Table table = model::make_table<SummaryRow>(
      summary.caption, "summary",
      {{{"Name", "name", ColumnType::name}, &SummaryRow::name},
       {{"Self device", "self_device_ns", ColumnType::time},
        [](const SummaryRow& row) { return number_cell(row.self_device_ns); }},
       {{"Share", "share", ColumnType::percent, 2}, [](const SummaryRow& row) { return number_cell(row.share); }},
       {{"Average", "average_device_ns", ColumnType::time},
        [](const SummaryRow& row) { return number_cell(row.average_device_ns); }},
       {{"Calls", "calls", ColumnType::number, 0}, [](const SummaryRow& row) { return number_cell(row.calls); }}},
      summary.rows);
  if (summary.device_total.known)
    table.notes.push_back(fmt::format("Total behind the percentages: {} to {}",
                                      format_duration(summary.device_total.low),
                                      format_duration(summary.device_total.high)));
  if (summary.cut)
    table.notes.push_back(fmt::format("The table is cut: {} to {} are in rows that it does not show",
                                      format_duration(summary.missing_low_ns),
                                      format_duration(summary.missing_high_ns)));
  return table;
}

/// A summary has no launches: it is shown as it is, with what its percentages give away.
std::string render_summaries(const KernelsOptions& options, const Output& output,
                             const model::KernelSummaries& summaries) {
  std::vector<model::Table> tables;
  tables.reserve(summaries.tables.size());
  for (const model::KernelSummary& summary : summaries.tables) tables.push_back(summary_rows(summary));
  if (output.format != OutputFormat::terminal) return render(options, output, tables);
  std::string text = formats::kernel_text::write_summary_tables(summaries);
  for (const model::Table& table : tables)
    for (const std::string& note : table.notes)
      text +=
          fmt::format("{}{}{}\n", escape_terminal(table.title), table.title.empty() ? "" : ": ", escape_terminal(note));
  return text;
}

Result<model::KernelLog> log_of(Result<formats::KernelData> data, const std::vector<std::string>& files) {
  if (!data) return data.error();
  return library::launches_of(std::move(*data), files.front());
}

Result<std::string> compare(const KernelsOptions& options, const Output& output, const model::KernelLog& a) {
  const auto b = log_of(load(options.against, options.load), options.against);
  if (!b) return b.error();
  const model::LogComparison comparison = kernels::compare_logs(a, *b, {options.tolerance / 100, options.low / 100});
  std::vector<model::Table> tables = {kernels::name_change_table(comparison, options.all)};
  if (!comparison.positions.empty()) tables.push_back(kernels::position_change_table(comparison));
  if (options.limit >= 0 || !options.all)
    for (model::Table& table : tables) cut_rows(table, limit_of(options, output, kRowsOnTerminal));
  for (const model::KernelLog* log : {&a, &*b})
    for (std::string& note : input_notes(*log)) tables.front().notes.push_back(std::move(note));
  return render(options, output, tables);
}

Result<int> run_kernels(const KernelsOptions& options) {
  const auto output = resolve_output(options.output, options.files);
  if (!output) return output.error();
  if (Status status = refuse_overwriting(output->path, options.against, output->replace); !status)
    return status.error();
  if (options.low > options.high) return usage_error("--low is above --high");
  if (!options.svg.empty())
    if (Status status = refuse_overwriting(options.svg, options.files, output->replace); !status) return status.error();

  auto data = load(options.files, options.load);
  if (!data) return data.error();
  std::string text;
  if (const auto* summaries = std::get_if<model::KernelSummaries>(&*data); summaries && options.against.empty()) {
    if (options.log || !options.svg.empty())
      return usage_error("a summary table has no launches", "leave out --log and --svg");
    text = render_summaries(options, *output, *summaries);
  } else {
    const auto log = log_of(std::move(data), options.files);
    if (!log) return log.error();
    const model::UseReport use = kernels::use_report(*log, {options.low / 100, options.high / 100});
    if (!options.against.empty()) {
      auto compared = compare(options, *output, *log);
      if (!compared) return compared.error();
      text = std::move(*compared);
    } else if (options.log && output->format == OutputFormat::terminal) {
      text = formats::kernel_text::write_launch_log(*log);
    } else if (options.log) {
      const std::vector<model::Table> tables = {kernels::launch_table(*log)};
      text = render(options, *output, tables);
    } else {
      std::vector<model::Table> tables = analyse(options, *output, *log, use);
      if (!tables.empty())
        for (std::string& note : input_notes(*log)) tables.front().notes.push_back(std::move(note));
      if (output->format == OutputFormat::html) {  // the page draws a point for each launch
        tables.push_back(kernels::launch_table(*log));
        cut_rows(tables.back(), kLaunchesOnPage);
      }
      text = render(options, *output, tables);
      const bool plot = options.show.empty() || std::ranges::find(options.show, "distribution") != options.show.end();
      if (plot && output->format == OutputFormat::terminal) text += "\n" + report::use_plot(use);
    }
    if (!options.svg.empty()) {
      if (use.histograms.empty())
        return input_error("no launch has a utilisation", options.files.front(), "leave out --svg");
      if (Status status = write_report(options.svg, report::use_svg(use), output->replace); !status)
        return status.error();
    }
  }
  if (Status status = write_output(*output, text); !status) return status.error();
  return kFine;
}

}  // namespace

void add_kernels(CommandLine& app, Invocation& invocation) {
  auto* verb = app.add_subcommand(
      "kernels", "kernels of one run: use of the device, repeated blocks, fusion candidates, launch gaps");
  auto options = std::make_shared<KernelsOptions>();
  add_input_options(*verb, options->files, options->load);
  verb->add_option("--vs", options->against, "compare with this run: what became slower, faster, new, gone per call")
      ->type_name("FILE");
  verb->add_flag("--all", options->all, "all rows; with --vs: also kernels that did not change");
  verb->add_option("--tolerance", options->tolerance, "with --vs: percent by which medians may differ (default: 5)")
      ->check(in_range(0, 1000))
      ->type_name("PERCENT");
  verb->add_flag("--log", options->log, "one line per launch: Kernel | Latency Tensor DRAM (and SM where known)");
  verb->add_option("--show", options->show,
                   "parts, by comma: names, classes, distribution, blocks, unstable, positions, fusion, launches "
                   "(default: all but positions)")
      ->delimiter(',')
      ->check(one_of(kSections));
  verb->add_option("--limit", options->limit,
                   "rows per table; 0 shows all (default: 25 or 10 for the terminal, else all)")
      ->check(in_range(0, 1e12))
      ->type_name("N");
  verb->add_option("--low", options->low, "percent of use below which compute or DRAM is low (default: 33)")
      ->check(in_range(0, 100))
      ->type_name("PERCENT");
  verb->add_option("--high", options->high, "percent of use from which it is high (default: 67)")
      ->check(in_range(0, 100))
      ->type_name("PERCENT");
  verb->add_option("--launch-cost", options->launch_us, "microseconds that one launch costs the host (default: 5)")
      ->check(in_range(0, 1e6))
      ->type_name("US");
  verb->add_option("--svg", options->svg, "write the distribution of use as SVG")->type_name("PATH");
  add_width_options(*verb, options->width);
  add_page_options(*verb, options->output);
  verb->footer(help_footer("culprit kernels step.txt --show blocks,fusion"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_kernels(*options); }; });
}

}  // namespace culprit::cli
