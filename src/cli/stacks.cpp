#include "cli/stacks.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/cli.h"
#include "core/json_writer.h"
#include "core/units.h"
#include "report/flame_graph.h"
#include "report/render.h"
#include "summary/stack_summary.h"
#include "trace/sampling_rate.h"

namespace culprit::cli {

namespace {

constexpr std::size_t kUsualRows = 25;

std::string title_of(const StackOptions& options, const model::StackTree& tree) {
  const model::StackTree::Node& all = tree.nodes.front();
  const std::string what = options.kind == "on-cpu" ? "On CPU" : "Blocked";
  const std::string samples =
      fmt::format("{} {}", format_count(all.total_samples), options.kind == "on-cpu" ? "samples" : "intervals");
  return tree.timed ? fmt::format("{}: {} in {}", what, format_duration(all.total_time), samples)
                    : fmt::format("{}: {}", what, samples);
}

void add_notes(model::Table& table, const model::StackTree& tree, const StackOptions& options,
               const StackTableChoice& choice) {
  if (tree.nodes.front().total_samples == 0)
    table.notes.push_back(!choice.filter.empty() && tree.filtered > 0
                              ? fmt::format("No stack holds a name that matches '{}'", choice.filter)
                              : fmt::format("This trace holds no {} stacks", options.kind));
  else if (tree.filtered > 0)
    table.notes.push_back(fmt::format("{} without '{}' are left out", format_count(tree.filtered), choice.filter));
  if (tree.without_stack > 0)
    table.notes.push_back(fmt::format("{} without a stack are [no stack]", format_count(tree.without_stack)));
}

std::string json_of(const StackTableChoice& choice, const StackOptions& options, const Trace& trace,
                    const model::StackTree& tree, const model::Table& table) {
  std::string text;
  JsonWriter json(text);
  begin_answer(json, choice.files);
  json.member("stacks", options.kind);
  json.member("filter", choice.filter);
  json.member("samples", tree.nodes.front().total_samples);
  if (tree.timed) json.member("time_ns", tree.nodes.front().total_time);
  if (const auto rates = sampling_rates(trace); rates && options.kind == "on-cpu") {
    json.begin_object("rate_hz");
    json.member("asked", rates->asked);
    json.member("mean", rates->mean);
    json.member("lowest", rates->lowest);
    json.end_object();
  }
  write_losses(json, trace.losses);
  report::write_tables(json, std::span(&table, 1));
  json.end_object();
  json.finish();
  return text;
}

}  // namespace

void add_stack_options(Verb& verb, StackOptions& options) {
  verb.add_option("--stacks", options.kind,
                  "functions by call stacks: on-cpu (sampled while threads ran) or off-cpu (where they were blocked); "
                  "with -o FILE.svg a flame graph")
      ->type_name("KIND")
      ->check(one_of({"on-cpu", "off-cpu"}));
  verb.add_flag("--folded", options.folded,
                "with --stacks: a line 'process;thread;function;... N' for each stack, as flame graph tools take it; N "
                "is samples (one that stands for k times as long as others counts as k), off-cpu microseconds");
}

Result<int> show_stacks(const Trace& trace, const StackOptions& options, const StackTableChoice& choice,
                        const Output& output, bool format_given) {
  summary::StackQuery query;
  query.kind = options.kind == "on-cpu" ? StackSample::Kind::on_cpu : StackSample::Kind::off_cpu;
  query.filter = choice.filter;
  const model::StackTree tree = summary::stack_tree(trace, query);
  const bool graph = !format_given && output.path.ends_with(".svg");
  const bool none = tree.nodes.front().total_samples == 0;
  if (none && (graph || options.folded))
    return input_error(fmt::format("holds no {} stacks{}", options.kind, tree.filtered > 0 ? " of this name" : ""),
                       choice.files.front(), "record with 'culprit record --preset deep'");
  std::string text;
  if (graph) {
    text = report::flame_graph(tree, {.title = title_of(options, tree)});
  } else if (options.folded) {
    text = summary::folded_stacks(tree, query.kind == StackSample::Kind::off_cpu);
  } else {
    summary::StackTableOptions wanted;
    wanted.by_total = choice.sort == "total";
    wanted.by_name = choice.sort == "name";
    wanted.reverse = choice.reverse;
    if (choice.limit >= 0)
      wanted.limit = static_cast<std::size_t>(choice.limit);
    else
      wanted.limit = output.format == OutputFormat::terminal ? kUsualRows : 0;
    model::Table table = summary::stack_table(tree, wanted);
    table.title = title_of(options, tree);
    add_notes(table, tree, options, choice);
    if (const auto rates = sampling_rates(trace); rates && was_lowered(*rates) && options.kind == "on-cpu")
      table.notes.push_back("Samples: " + to_string(*rates) + "; each counts for the time it stands for");
    if (auto note = loss_note(trace.losses)) table.notes.push_back(std::move(*note));
    text = rendered(output, {&table, 1}, terminal_look(output, choice.width),
                    [&] { return json_of(choice, options, trace, tree, table); });
  }
  if (Status status = write_output(output, text); !status) return status.error();
  return kFine;
}

}  // namespace culprit::cli
