#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/cycle_choice.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/stacks.h"
#include "core/json_writer.h"
#include "cycles/work_units.h"
#include "formats/registry.h"
#include "library/run_data.h"
#include "report/cycles_report.h"
#include "report/render.h"
#include "report/work_report.h"
#include "summary/function_table.h"
#include "summary/query_names.h"
#include "summary/recorded_tables.h"
#include "trace/call_estimates.h"

namespace culprit::cli {

namespace {

using summary::Pass;
using summary::SortBy;

struct TopOptions {
  std::vector<std::string> files;
  LoadChoice load;
  std::string by = "name";
  std::vector<std::string> classes;  ///< empty: what suits the trace
  std::string sort;                  ///< empty: what suits the grouping
  bool reverse = false;
  std::string filter;
  std::int64_t limit = -1;  ///< -1: what suits the format
  CycleChoice cycles;
  std::string split;
  std::string look = "plain";
  bool stats = false;
  StackOptions stacks;
  WidthOptions width;
  OutputOptions output;
};

using summary::kClassNames;
using summary::kGroupNames;
using summary::kSortNames;

summary::ClassSet classes_of(const TopOptions& options) {
  summary::ClassSet classes = 0;
  for (const std::string& name : options.classes) classes |= kClassNames.at(name);
  return classes;
}

bool only_gpu_work(const TopOptions& options) { return (classes_of(options) & ~summary::kGpuWork) == 0; }

template <class Value>
std::vector<std::string> names_of(const std::map<std::string, Value>& map) {
  std::vector<std::string> names;
  names.reserve(map.size());
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

std::vector<std::string> group_names() {
  std::vector<std::string> names = names_of(kGroupNames);
  names.insert(names.end(), summary::recorded_table_names().begin(), summary::recorded_table_names().end());
  return names;
}

struct Part {
  std::string key;
  std::string title;
  std::uint32_t passes;
};

/// The whole trace, or the two tables of a profiler's forward and forward + backward runs and what belongs to neither.
std::vector<Part> parts_of(const TopOptions& options) {
  if (options.split.empty()) return {{"functions", "", 0}};
  return {{"forward", "forward only:", pass_bit(Pass::forward)},
          {"forward_backward", "forward + backward:", pass_bit(Pass::forward) | pass_bit(Pass::backward)},
          {"optimizer", "optimizer:", pass_bit(Pass::optimizer)},
          {"other", "other (memcpy, data loading, launcher unknown):", pass_bit(Pass::other)}};
}

bool has_backward(const summary::Passes& passes) {
  return std::ranges::find(passes.of_gpu, Pass::backward) != passes.of_gpu.end();
}

summary::FunctionTableOptions table_options(const TopOptions& options, const Output& output) {
  const bool host = !only_gpu_work(options);
  const bool all = std::ranges::find(options.classes, "all") != options.classes.end();
  const bool profiler = output.format == OutputFormat::terminal && options.look == "torch" && !all;
  summary::FunctionTableOptions table;
  if (options.sort.empty())
    table.sort = options.by == "cycle" ? SortBy::name : SortBy::time;
  else
    table.sort = kSortNames.at(options.sort);
  table.reverse = options.reverse;
  if (options.limit >= 0)
    table.limit = static_cast<std::size_t>(options.limit);
  else
    table.limit = output.format == OutputFormat::terminal ? 25 : 0;
  if (profiler) table.columns = options.stats ? summary::Columns::profiler_stats : summary::Columns::profiler;
  table.device = host ? "CPU" : "CUDA";
  table.note_total = output.format == OutputFormat::terminal;
  if (options.by != "name" && options.by != "short-name" && options.by != "raw-name") {
    table.heading = options.by;
    table.heading[0] = static_cast<char>(table.heading[0] - 'a' + 'A');
    table.heading_key = options.by;
  }
  return table;
}

bool needs_cycles(const TopOptions& options) {
  return options.by == "cycle" || options.by == "phase" || options.cycles.filters();
}

/// What to say below a table about cycles and about why it is empty.
void add_notes(model::Table& table, const summary::FunctionSums& sums, const TopOptions& options,
               const std::optional<ChosenCycles>& cycles) {
  if (sums.calls == 0)
    table.notes.push_back(fmt::format("Nothing of class '{}' in {}; 'culprit info' tells what it holds",
                                      fmt::join(options.classes, ","),
                                      options.cycles.filters() ? "these cycles" : "this trace"));
  else if (sums.functions.empty())
    table.notes.push_back(fmt::format("No name matches '{}'", options.filter));
  if (sums.profiler_spans != 0)
    table.notes.push_back(
        fmt::format("Left out: {} of the profiler itself, {}",
                    sums.profiler_spans == 1 ? "1 span" : fmt::format("{} spans", format_count(sums.profiler_spans)),
                    format_duration(sums.profiler_time)));
  if (sums.calls_in_no_cycle != 0)
    table.notes.push_back(fmt::format("Left out because in no cycle: {} calls with {}",
                                      format_count(sums.calls_in_no_cycle), format_duration(sums.self_in_no_cycle)));
  if (cycles) table.notes.insert(table.notes.end(), cycles->notes.begin(), cycles->notes.end());
}

std::string json_of(const TopOptions& options, const Trace& trace, const std::optional<ChosenCycles>& cycles,
                    std::span<const model::Table> tables) {
  std::string text;
  JsonWriter json(text);
  begin_answer(json, options.files);
  json.member("class", fmt::format("{}", fmt::join(options.classes, ",")));
  json.member("by", options.by);
  json.member("filter", options.filter);
  if (cycles) {  // which were chosen, and how they were found
    json.member("cycle", options.cycles.numbers);
    json.member("phase", options.cycles.phase);
    json.begin_object("cycles");
    report::write_cycles(json, cycles->found.cycles);
    json.end_object();
  }
  write_losses(json, trace.losses);
  report::write_tables(json, tables);
  json.end_object();
  json.finish();
  return text;
}

/// What the threads of a recording did: their states under several names would be counted several times.
std::vector<model::Table> state_tables(const TopOptions& options, const Output& output, const Trace& trace,
                                       const model::WorkUnits& work) {
  constexpr std::size_t kRows = 6;
  const std::size_t most = options.limit >= 0                        ? static_cast<std::size_t>(options.limit)
                           : output.format == OutputFormat::terminal ? kRows
                                                                     : 0;
  std::vector<model::Table> tables = report::work_time_tables(work, most);
  if (const auto estimates = call_estimates(trace))
    for (model::Table& table : tables)
      if (table.key == "work_calls")
        table.notes.push_back(
            fmt::format("Counts and totals are estimates: {} (95 %, of all calls together)", to_string(*estimates)));
  return tables;
}

Result<int> show_tables(const TopOptions& options, const Output& output, const Trace& trace,
                        std::vector<model::Table>& tables) {
  if (auto note = loss_note(trace.losses)) tables.back().notes.push_back(std::move(*note));
  std::string text;
  if (output.format == OutputFormat::terminal)
    text = report::render_terminal(tables, terminal_look(output, options.width));
  else if (output.format == OutputFormat::markdown)
    text = report::render_markdown(tables);
  else if (output.format == OutputFormat::csv)
    text = report::render_csv(tables);
  else
    text = json_of(options, trace, std::nullopt, tables);
  if (Status status = write_output(output, text); !status) return status.error();
  return kFine;
}

/// A recording of threads alone.
Result<int> show_work(const TopOptions& options, const Output& output, const Trace& trace,
                      const model::WorkUnits& work) {
  std::vector<model::Table> tables = state_tables(options, output, trace, work);
  return show_tables(options, output, trace, tables);
}

/// A stack is of no cycle, stream or kind.
Status check_stack_options(const TopOptions& options) {
  if (options.stacks.kind.empty()) {
    if (options.stacks.folded) return usage_error("--folded is a form of stacks", "add --stacks on-cpu");
    if (options.sort == "total") return usage_error("--sort total is an order of stacks", "add --stacks on-cpu");
    return {};
  }
  if (needs_cycles(options) || options.by != "name" || !options.classes.empty() || !options.split.empty())
    return usage_error("--stacks groups by function and shows the whole trace",
                       "leave out --by, --class, --split, --cycle and --phase; --filter chooses");
  if (!options.sort.empty() && options.sort != "time" && options.sort != "total" && options.sort != "name")
    return usage_error(fmt::format("stacks have no {}", options.sort), "use --sort time, total or name");
  if (options.stacks.folded && (options.output.json || !options.output.format.empty()))
    return usage_error("--folded is a format of its own", "leave out --format and --json");
  return {};
}

bool is_recorded(const std::string& by) {
  return std::ranges::find(summary::recorded_table_names(), by) != summary::recorded_table_names().end();
}

Status check_recorded_options(const TopOptions& options) {
  if (!is_recorded(options.by)) return {};
  if (!options.classes.empty() || !options.split.empty() || !options.sort.empty() || options.reverse ||
      !options.filter.empty() || options.cycles.filters())
    return usage_error(fmt::format("--by {} shows the whole recording", options.by),
                       "leave out --class, --split, --sort, --reverse, --filter, --cycle and --phase");
  return {};
}

/// What was counted, not sliced.
Result<int> show_recorded(const TopOptions& options, const Output& output, const Trace& trace) {
  constexpr std::size_t kRows = 25;
  const std::size_t most = options.limit >= 0                        ? static_cast<std::size_t>(options.limit)
                           : output.format == OutputFormat::terminal ? kRows
                                                                     : 0;
  const bool for_people = output.format == OutputFormat::terminal || output.format == OutputFormat::markdown;
  std::vector<model::Table> tables = {summary::recorded_table(trace, options.by, most, for_people)};
  return show_tables(options, output, trace, tables);
}

Result<int> run_top(const TopOptions& given) {
  TopOptions options = given;
  const auto output = resolve_output(options.output, options.files);
  if (!output) return output.error();
  if (Status status = check_stack_options(options); !status) return status.error();
  if (Status status = check_recorded_options(options); !status) return status.error();
  if (!options.split.empty() && !only_gpu_work(options))
    return usage_error("--split divides GPU work", "use --class gpu or --class kernels");
  if (!options.cycles.anchor.empty() && !needs_cycles(options))
    return usage_error("--anchor begins cycles, and this table has none",
                       "add --by cycle, --by phase, --cycle or --phase");
  if (const auto numbers = parse_cycle_numbers(options.cycles.numbers); !numbers) return numbers.error();
  const auto run = load_with_progress(options.files, options.load);
  if (!run) return run.error();
  const Trace& trace = run->data().trace;

  if (is_recorded(options.by)) return show_recorded(options, *output, trace);
  if (!options.stacks.kind.empty())
    return show_stacks(trace, options.stacks,
                       {options.files, options.filter, options.sort, options.reverse, options.limit, options.width},
                       *output, options.output.json || !options.output.format.empty());

  // Without GPU work there is only the host to show.
  bool threads_only = false;
  if (options.classes.empty()) {
    const bool host_only = options.split.empty() && trace.gpu.empty();
    options.classes = {host_only ? summary::usual_classes(trace) : "gpu"};
    threads_only = host_only;
  }
  summary::FunctionQuery query;
  query.classes = classes_of(options);
  query.by = kGroupNames.at(options.by);
  query.filter = options.filter;
  std::optional<ChosenCycles> cycles;
  std::optional<model::WorkUnits> work;
  if (threads_only && options.by == "name" && options.filter.empty() && !needs_cycles(options)) {
    work = cycles::find_work_units(trace);
    if (!work->recorded) work.reset();
    if (work && !summary::marks_anything(trace)) return show_work(options, *output, trace, *work);
  }
  if (needs_cycles(options)) {
    auto chosen = choose_cycles(trace, options.cycles);
    if (!chosen) return chosen.error();
    cycles = std::move(*chosen);
    query.cycles = &cycles->found;
    if (options.cycles.filters()) query.kept_cycles = &cycles->kept;
  }
  profile::Nesting nesting;
  if ((query.classes & ~summary::kGpuWork) != 0) {
    nesting = profile::find_nesting(trace);
    query.nesting = &nesting;
  }
  summary::Passes passes;
  if (!options.split.empty()) {
    passes = summary::find_passes(trace);
    if (!passes.known)
      return usage_error(
          "nothing in this trace tells forward from backward GPU work: no autograd operators, no "
          "forward/backward links and no ranges named after a pass around its launches",
          "record CPU operators, or leave out --split");
    query.passes = &passes;
  }

  const summary::FunctionTableOptions base = table_options(options, *output);
  std::vector<model::Table> tables;
  for (const Part& part : parts_of(options)) {
    query.pass_set = part.passes;
    const summary::FunctionSums sums = function_stats(trace, query);
    if (!options.split.empty() && sums.calls == 0 && part.key != "forward") continue;
    if (part.key == "forward_backward" && !has_backward(passes)) {
      tables.back().notes.emplace_back("No GPU work of a backward pass was found");
      continue;
    }
    summary::FunctionTableOptions table = base;
    table.key = part.key;
    table.title = part.title;
    tables.push_back(function_table(sums, table));
    add_notes(tables.back(), sums, options, cycles);
  }
  if (work)  // beside the steps and functions that the program marks
    for (model::Table& table : state_tables(options, *output, trace, *work)) tables.push_back(std::move(table));
  if (auto note = loss_note(trace.losses)) tables.back().notes.push_back(std::move(*note));

  report::TerminalOptions look = terminal_look(*output, options.width);
  if (base.columns != summary::Columns::full) look.look = report::Look::profiler;
  const std::string text = rendered(*output, tables, look, [&] { return json_of(options, trace, cycles, tables); });
  if (Status status = write_output(*output, text); !status) return status.error();
  return kFine;
}

}  // namespace

void add_top(CommandLine& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("top", "time per function: total, share, average, min, median, max, calls");
  auto options = std::make_shared<TopOptions>();
  add_input_options(*verb, options->files, options->load);
  verb->add_option(
          "--by", options->by,
          "rows: name, raw-name, short-name, kind, device, stream, rank, category, cycle, phase (default: name, "
          "without numbers of steps and addresses of objects); of recordings also request (of servers: queue "
          "wait, time to first token), call, thread-call (system calls), disk "
          "(requests), fault (page faults), waker (who woke whom), rival (who ran instead)")
      ->type_name("WHAT")
      ->check(one_of(group_names()));
  verb->add_option("--class", options->classes,
                   "what to count, by comma: gpu (kernels, memcpy, memset), kernels, cpu_op, runtime, python, "
                   "annotation, functions (all but the next two), sched, syscall, all (default: gpu; without GPU work "
                   "functions, and apart from them what the threads did)")
      ->delimiter(',')
      ->check(one_of(names_of(kClassNames)));
  verb->add_option(
          "--sort", options->sort,
          "time, calls, avg, min, median, max, name; with --stacks: time (self), total, name (default: time; with --by "
          "cycle: name, which is the number)")
      ->type_name("COLUMN")
      ->check(one_of(names_of(kSortNames)));
  verb->add_flag("--reverse", options->reverse, "smallest first");
  verb->add_option("--filter", options->filter, "only names that contain TEXT, or match it when it has * or ?")
      ->type_name("TEXT");
  verb->add_option("--limit", options->limit, "rows; 0 shows all (default: 25 for the terminal, else all)")
      ->check(in_range(0, 1e12))
      ->type_name("N");
  add_cycle_choice(*verb, options->cycles);
  verb->add_option("--split", options->split,
                   "fwd-bwd: tables of the forward, the forward and backward pass, and the rest")
      ->check(one_of({"fwd-bwd"}));
  verb->add_option("--look", options->look,
                   "terminal: plain, or torch (the table of PyTorch's profiler, as wide as that is; default: plain)")
      ->check(one_of({"torch", "plain"}));
  verb->add_flag("--stats", options->stats, "terminal, torch: min, median, max and standard deviation too");
  add_stack_options(*verb, options->stacks);
  add_width_options(*verb, options->width);
  add_output_options(*verb, options->output);
  verb->footer(help_footer("culprit top rank0.json.gz --class kernels --by short-name --limit 10"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_top(*options); }; });
}

}  // namespace culprit::cli
