#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/cli.h"
#include "cli/info_summary.h"
#include "cli/output.h"
#include "cli/recording_tables.h"
#include "core/json_writer.h"
#include "core/units.h"
#include "library/measure.h"
#include "library/run_data.h"
#include "model/table_rows.h"
#include "report/cycles_report.h"
#include "report/host_report.h"
#include "report/render.h"
#include "report/work_report.h"
#include "summary/cycles_info.h"
#include "summary/recorded_tables.h"
#include "summary/trace_info.h"

namespace culprit::cli {

namespace {

using model::ColumnType;
using model::known_cell;
using model::TraceInfo;

struct InfoOptions {
  std::vector<std::string> files;
  LoadChoice load;
  bool no_cycles = false;
  bool all = false;
  std::vector<std::string> show;
  WidthOptions width;
  OutputOptions output;
};

model::Table run_table(const TraceInfo& info) {
  std::vector<model::Fact> facts;
  const auto add = [&](std::string what, std::string value) { facts.push_back({std::move(what), std::move(value)}); };
  const auto times = [](const model::CountAndSum& sum) {
    return fmt::format("{}, {}", format_count(sum.count), format_duration(sum.sum));
  };
  add("duration", format_duration(info.duration));
  add("clock", info.clock);
  add("slices", format_count(info.slices));
  add("instants", format_count(info.instants));
  add("names", format_count(info.names));
  add("processes", format_count(info.processes));
  add("threads", format_count(info.threads));
  add("GPU streams", format_count(info.streams));
  if (info.async_tracks != 0) add("asynchronous tracks", format_count(info.async_tracks));
  add("kernels", fmt::format("{}, {} names", times(info.kernels), format_count(info.unique_kernels)));
  add("memcpy", times(info.memcpy));
  add("memset", times(info.memset));
  const std::uint64_t gpu = info.kernels.count + info.memcpy.count + info.memset.count;
  if (gpu != 0) {
    const double share =
        info.duration > 0 ? static_cast<double>(info.busy_union) / static_cast<double>(info.duration) * 100 : 0;
    add("GPU busy", fmt::format("{} ({:.1f}% of the duration)", format_duration(info.busy_union), share));
    add("GPU work with known launcher", fmt::format("{} of {}", format_count(info.launched), format_count(gpu)));
  }
  if (info.top.count != 0) {
    add("longest kernel in sum", info.top_name);
    add("  its calls, time", times(info.top));
  }
  add("links host to device", format_count(info.flows_host_to_device));
  add("links forward to backward", format_count(info.flows_forward_backward));
  add("links asynchronous, other", format_count(info.flows_async) + ", " + format_count(info.flows_other));
  model::Table table = model::fact_table("Run", "run", facts);
  if (info.slices == 0) table.notes.push_back("This trace holds no slice.");
  return table;
}

model::Table files_table(const TraceInfo& info) {
  using model::RankInfo;
  std::vector<RankInfo> files;
  for (const RankInfo& rank : info.ranks) {
    files.push_back(rank);
    for (const model::JoinedFile& file : rank.recordings) {
      RankInfo& row = files.emplace_back();
      row.path = file.path;
      row.format = file.format;
      row.rank = rank.rank;
      row.input_bytes = file.input_bytes;
      row.text_bytes = file.text_bytes;
      row.events = file.events;
    }
  }
  return model::make_table<RankInfo>(
      "Files", "ranks",
      {{{"File", "path", ColumnType::name}, &RankInfo::path},
       {{"Format", "format"}, format_of},
       {{"Size", "input_bytes", ColumnType::bytes}, &RankInfo::input_bytes},
       {{"Text", "text_bytes", ColumnType::bytes}, &RankInfo::text_bytes},
       {{"Events", "events", ColumnType::count}, &RankInfo::events},
       {{"Rank", "rank", ColumnType::count}, [](const RankInfo& r) { return known_cell(r.rank); }},
       {{"World", "world_size", ColumnType::count}, [](const RankInfo& r) { return known_cell(r.world_size); }},
       {{"Backend", "backend"}, &RankInfo::backend},
       {{"Host", "host"}, &RankInfo::host}},
      files);
}

model::Table devices_table(const TraceInfo& info) {
  using model::DeviceInfo;
  const auto unless_0 = [](std::uint64_t n) { return n != 0 ? model::cell_of(n) : model::Cell(); };
  return model::make_table<DeviceInfo>(
      "Devices", "devices",
      {{{"Rank", "rank", ColumnType::count}, &DeviceInfo::rank},
       {{"Device", "device", ColumnType::count}, &DeviceInfo::device},
       {{"Model", "name", ColumnType::name}, &DeviceInfo::name},
       {{"Memory", "memory_bytes", ColumnType::bytes}, [=](const DeviceInfo& d) { return unless_0(d.memory_bytes); }},
       {{"SMs", "multiprocessors", ColumnType::count},
        [=](const DeviceInfo& d) { return unless_0(static_cast<std::uint64_t>(d.multiprocessors)); }},
       {{"Streams", "streams", ColumnType::count}, &DeviceInfo::streams},
       {{"GPU slices", "gpu_slices", ColumnType::count}, [](const DeviceInfo& d) { return d.gpu_work.count; }},
       {{"Sum", "gpu_sum_ns", ColumnType::time}, [](const DeviceInfo& d) { return d.gpu_work.sum; }},
       {{"Busy", "busy_union_ns", ColumnType::time}, &DeviceInfo::busy_union}},
      info.devices);
}

model::Table categories_table(const TraceInfo& info) {
  using model::CategoryInfo;
  return model::make_table<CategoryInfo>(
      "Categories", "categories",
      {{{"Category", "name", ColumnType::name}, &CategoryInfo::name},
       {{"Read as", "class"}, &CategoryInfo::slice_class},
       {{"Slices", "slices", ColumnType::count}, [](const CategoryInfo& c) { return c.slices.count; }},
       {{"Sum", "sum_ns", ColumnType::time}, [](const CategoryInfo& c) { return c.slices.sum; }}},
      info.categories);
}

model::Table markers_table(const TraceInfo& info) {
  using model::MarkerInfo;
  return model::make_table<MarkerInfo>(
      "Candidates for step markers (digits shown as N)", "markers",
      {{{"Annotation", "pattern", ColumnType::name}, &MarkerInfo::pattern},
       {{"Count", "count", ColumnType::count}, [](const MarkerInfo& m) { return m.slices.count; }},
       {{"Sum", "sum_ns", ColumnType::time}, [](const MarkerInfo& m) { return m.slices.sum; }}},
      info.markers);
}

/// `for_people` gives values as texts with readable units, else they are numbers beside their SI unit.
model::Table counters_table(const TraceInfo& info, bool for_people) {
  using model::CounterInfo;
  const ColumnType type = for_people ? ColumnType::text : ColumnType::number;
  const auto value_of = [=](double CounterInfo::*value) {
    return [=](const CounterInfo& counter) {
      return for_people ? model::Cell(report::readable(counter.*value, counter.unit)) : model::Cell(counter.*value);
    };
  };
  return model::make_table<CounterInfo>("Counters", "counters",
                                        {{{"Counter", "name", ColumnType::name}, &CounterInfo::name},
                                         {{"Samples", "samples", ColumnType::count, 0, true}, &CounterInfo::samples},
                                         {{"Min", "min", type}, value_of(&CounterInfo::min)},
                                         {{"Mean", "mean", type}, value_of(&CounterInfo::mean)},
                                         {{"Max", "max", type}, value_of(&CounterInfo::max)},
                                         {{"Unit", "unit"}, &CounterInfo::unit, model::present_if(!for_people)},
                                         {{"Of", "of", ColumnType::name, 0, true}, &CounterInfo::of}},
                                        info.counters);
}

model::Table cycles_table(const model::CyclesInfo& info) {
  if (info.count == 0) {
    model::Table table = model::fact_table("Cycles", "cycles", {{"count", "0"}});
    table.notes.push_back("No cycles found: " + info.reason);
    return table;
  }
  model::Table table =
      model::fact_table("Cycles", "cycles",
                        {{"count", format_count(info.count)},
                         {"found by", std::string(report::to_string(info.method))},
                         {"anchor", info.anchor},
                         {"confidence that a cycle is one step", fmt::format("{:.0f}%", info.period_confidence * 100)},
                         {"confidence that a step begins there", fmt::format("{:.0f}%", info.phase_confidence * 100)}});
  table.notes.push_back("Reason: " + info.reason);
  table.notes.insert(table.notes.end(), info.notes.begin(), info.notes.end());
  return table;
}

model::Table phases_table(const model::CyclesInfo& info) {
  using model::PhaseInfo;
  const auto of_periods = [](double PhaseInfo::*ns) {
    return [ns](const PhaseInfo& p) { return p.whole_periods != 0 ? model::Cell(p.*ns) : model::Cell(); };
  };
  return model::make_table<PhaseInfo>(
      "Cycles by phase, all ranks together", "cycle_phases",
      {{{"Phase", "phase"}, [](const PhaseInfo& p) { return model::phase_name(p.phase); }},
       {{"Cycles", "cycles", ColumnType::count}, &PhaseInfo::cycles},
       {{"Whole periods", "whole_periods", ColumnType::count}, &PhaseInfo::whole_periods},
       {{"Mean period", "mean_period_ns", ColumnType::time}, of_periods(&PhaseInfo::mean_period)},
       {{"Median period", "median_period_ns", ColumnType::time}, of_periods(&PhaseInfo::median_period)},
       {{"Device busy", "device_busy_share", ColumnType::percent, 1},
        [](const PhaseInfo& p) { return model::share_cell(p.device_busy, p.device_window); }}},
      info.phases);
}

model::Table losses_table(const TraceInfo& info) {
  using model::LossCount;
  model::Table table =
      model::make_table<LossCount>("Losses", "losses",
                                   {{{"Severity", "severity"}, &LossCount::severity},
                                    {{"Count", "count", ColumnType::count}, &LossCount::count},
                                    {{"What", "meaning"}, &LossCount::meaning},
                                    {{"First seen", "first_seen", ColumnType::name}, &LossCount::first_seen},
                                    {{"What to do", "remedy"}, &LossCount::remedy},
                                    {{"Reason", "reason"}, &LossCount::reason}},
                                   info.losses);
  if (info.losses.empty()) table.notes.push_back("none");
  return table;
}

model::Table unread_table(const TraceInfo& info) {
  struct Unread {
    std::string path;
    std::string table;
  };
  std::vector<Unread> unread;
  for (const auto& r : info.ranks)
    for (const std::string& name : r.unread_tables) unread.push_back({r.path, name});
  return model::make_table<Unread>(
      "Tables of the input that were not read", "unread_tables",
      {{{"File", "path", ColumnType::name}, &Unread::path}, {{"Table", "table", ColumnType::name}, &Unread::table}},
      unread);
}

std::vector<model::Table> tables_of(const TraceInfo& info, bool for_people) {
  constexpr std::size_t kThreads = 30;
  std::vector<model::Table> tables = {run_table(info), files_table(info)};
  for (model::Table& table : metadata_tables(info)) tables.push_back(std::move(table));
  for (model::Table& table :
       std::vector{process_sched_table(info), thread_sched_table(info, kThreads), devices_table(info),
                   categories_table(info), markers_table(info), counters_table(info, for_people), unread_table(info)})
    if (!table.rows.empty()) tables.push_back(std::move(table));
  if (info.cycles) {
    tables.push_back(cycles_table(*info.cycles));
    if (info.cycles->count != 0) tables.push_back(phases_table(*info.cycles));
  }
  if (info.work)
    for (model::Table& table : report::work_tables(*info.work, 0)) tables.push_back(std::move(table));
  for (const model::Table& table : info.recorded) tables.push_back(table);
  tables.push_back(losses_table(info));
  return tables;
}

/// What a step waited for.
void write_step(JsonWriter& json, const model::StepTimes& step) {
  json.begin_object("step");
  json.member("thread", step.thread);
  json.member("cycles", step.cycles);
  json.member("period_ns", step.period);
  json.member("on_cpu_ns", step.on_cpu);
  json.member("run_queue_ns", step.run_queue);
  json.member("blocked_ns", step.blocked);
  json.begin_array("beside");
  for (const model::Bystander& other : step.beside) {
    json.begin_object(JsonForm::line);
    json.member("name", other.name);
    json.member("cpus", other.cpus);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

/// The phases, and how the cycles were found.
void write_cycles(JsonWriter& json, const model::CyclesInfo& info) {
  json.begin_object("cycles");
  json.member("method", report::to_string(info.method));
  json.member("anchor", info.anchor);
  json.member("period_confidence", info.period_confidence);
  json.member("phase_confidence", info.phase_confidence);
  json.member("reason", info.reason);
  json.member("notes", info.notes);
  json.member("count", info.count);
  report::write_rows(json, "phases", phases_table(info));
  if (info.step) write_step(json, *info.step);
  json.end_object();
}

void write_peers(JsonWriter& json, std::string_view name, const std::vector<model::PeerInfo>& peers) {
  json.begin_array(name);
  for (const model::PeerInfo& peer : peers) {
    json.begin_object();
    json.member("name", peer.name);
    json.member("tid", peer.tid);
    json.member("count", peer.count);
    json.member("time_ns", peer.time);
    json.end_object();
  }
  json.end_array();
}

/// The table's rows with the lists of peers and reasons whole.
void write_sched_threads(JsonWriter& json, const TraceInfo& info) {
  const model::Table table = thread_sched_table(info, 0, PeersAs::lists);
  json.begin_array("threads");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const model::ThreadSchedInfo& thread = info.sched[i];
    json.begin_object(JsonForm::line);
    report::write_row(json, table, i);
    json.member("process", thread.process);
    json.member("wakeups", thread.wakeups);
    write_peers(json, "woken_by", thread.woken_by);
    write_peers(json, "ran_instead", thread.ran_instead);
    json.begin_array("blocked_in");
    for (const auto& [name, sum] : thread.blocked_in) {
      json.begin_object();
      json.member("name", name);
      json.member("count", sum.count);
      json.member("time_ns", sum.sum);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

std::string json_of(const TraceInfo& info) {
  std::uint64_t input_bytes = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t events = 0;
  for (const auto& rank : info.ranks) {
    input_bytes += rank.input_bytes;
    text_bytes += rank.text_bytes;
    events += rank.events;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("culprit", CULPRIT_VERSION);
  json.member("clock", info.clock);
  json.member("base_ns", info.base_ns);
  json.member("begin_ns", info.begin);
  json.member("duration_ns", info.duration);
  json.member("input_bytes", input_bytes);
  json.member("text_bytes", text_bytes);
  json.member("events", events);
  json.member("slices", info.slices);
  json.member("instants", info.instants);
  json.member("names", info.names);
  json.member("processes", info.processes);
  json.member("threads", info.threads);
  json.member("streams", info.streams);
  json.member("async_tracks", info.async_tracks);
  json.member("kernels", info.kernels.count);
  json.member("unique_names", info.unique_kernels);
  json.member("kernel_sum_ns", info.kernels.sum);
  json.member("busy_union_ns", info.busy_union);
  json.member("memcpy", info.memcpy.count);
  json.member("memcpy_sum_ns", info.memcpy.sum);
  json.member("memset", info.memset.count);
  json.member("memset_sum_ns", info.memset.sum);
  json.member("top_name", info.top_name);
  json.member("top_count", info.top.count);
  json.member("top_sum_ns", info.top.sum);
  json.member("gpu_with_launcher", info.launched);
  json.begin_object("flows", JsonForm::line);
  json.member("host_to_device", info.flows_host_to_device);
  json.member("forward_backward", info.flows_forward_backward);
  json.member("async", info.flows_async);
  json.member("other", info.flows_other);
  json.end_object();
  for (const model::Table& table : {files_table(info), devices_table(info), categories_table(info), markers_table(info),
                                    counters_table(info, false), unread_table(info), losses_table(info)})
    report::write_rows(json, table.key, table);
  json.begin_array("metadata");
  for (const auto& rank : info.ranks) {
    json.begin_object();
    for (const auto& [key, value] : rank.metadata) json.member(key, value);
    json.end_object();
  }
  json.end_array();
  json.begin_object("scheduling");
  report::write_rows(json, "processes", process_sched_table(info));
  write_sched_threads(json, info);
  json.end_object();
  for (const model::Table& table : info.recorded) report::write_rows(json, table.key, table);
  if (info.cycles) write_cycles(json, *info.cycles);
  if (info.work) report::write_work(json, *info.work);
  json.end_object();
  json.finish();
  return text;
}

/// What `--show` calls a table.
std::string_view section_of(const model::Table& table) {
  if (table.key == "ranks") return "files";
  if (table.key == "cycle_phases") return "cycles";
  if (table.key == "unread_tables") return "losses";
  if (table.key == "requests") return "requests";
  if (table.key == "calls" || table.key == "thread_calls") return "calls";
  if (table.key == "page_faults") return "faults";
  if (table.key.starts_with("sched_") || table.key == "wakers" || table.key == "rivals") return "scheduling";
  if (table.key.starts_with("work_") || table.key == "others") return "work";
  for (const std::string_view same :
       {"run", "devices", "categories", "markers", "counters", "cycles", "losses", "disks"})
    if (table.key == same) return same;
  return "facts";
}

std::vector<model::Table> shown(const InfoOptions& options, const TraceInfo& info) {
  if (options.show.empty() && !options.all) return {info_summary(info)};
  std::vector<model::Table> tables = tables_of(info, true);
  if (options.all) return tables;
  std::erase_if(tables, [&](const model::Table& table) {
    return std::ranges::find(options.show, section_of(table)) == options.show.end();
  });
  return tables;
}

Result<int> run_info(const InfoOptions& options) {
  const auto output = resolve_output(options.output, options.files);
  if (!output) return output.error();
  const auto run = load_with_progress(options.files, options.load);
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  TraceInfo info = summary::trace_info(trace);
  const bool for_people = output->format == OutputFormat::terminal || output->format == OutputFormat::markdown;
  for (const std::string& by : summary::recorded_table_names()) {
    constexpr std::size_t kRows = 30;
    model::Table table = summary::recorded_table(trace, by, for_people ? kRows : 0, for_people);
    if (!table.rows.empty()) info.recorded.push_back(std::move(table));
  }
  info.recorded_facts = summary::recorded_facts(trace);
  if (!options.no_cycles) {
    const auto found = library::find(*run, {});
    if (!found) return found.error();
    info.cycles = summary::cycles_info(found->cycles);
    info.work = found->work;
    if (!info.work) info.cycles->step = summary::step_times(trace, found->cycles);
  }
  const std::vector<model::Table> tables =
      output->format == OutputFormat::terminal ? shown(options, info) : tables_of(info, for_people);
  const std::string text =
      rendered(*output, tables, terminal_look(*output, options.width), [&] { return json_of(info); });
  if (Status status = write_output(*output, text); !status) return status.error();
  return kFine;
}

}  // namespace

void add_info(CommandLine& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("info", "what is in a trace: devices, ranks, categories, markers, cycles, losses");
  auto options = std::make_shared<InfoOptions>();
  add_input_options(*verb, options->files, options->load);
  verb->add_flag("--all", options->all, "terminal: everything instead of one screen");
  verb->add_option(
          "--show", options->show,
          "terminal: these parts, by comma: run, files, facts, scheduling, requests, calls, disks, faults, work, "
          "devices, categories, "
          "markers, counters, cycles, losses")
      ->delimiter(',')
      ->check(one_of({"run", "files", "facts", "scheduling", "requests", "calls", "disks", "faults", "work", "devices",
                      "categories", "markers", "counters", "cycles", "losses"}));
  add_width_options(*verb, options->width);
  verb->add_flag("--no-cycles", options->no_cycles, "do not look for cycles, which costs time on huge traces");
  add_output_options(*verb, options->output);
  verb->footer(help_footer("culprit info rank0.json.gz rank1.json.gz --json"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_info(*options); }; });
}

}  // namespace culprit::cli
