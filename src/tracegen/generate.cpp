#include "tracegen/generate.h"

#include <fmt/format.h>

#include <optional>

#include "core/json_writer.h"
#include "core/output_file.h"
#include "tracegen/machine.h"
#include "tracegen/workload.h"

namespace culprit::tracegen {

namespace {

constexpr std::array<std::string_view, kCats> kCatNames = {"kernel",     "memcpy", "memset", "runtime", "cpu_op",
                                                           "annotation", "python", "sched",  "trace"};

/// "dir/run.json.gz" -> {"dir/run", ".json.gz"}.
std::pair<std::string, std::string> split_ending(const std::string& path) {
  for (const std::string_view ending : {".json.gz", ".json", ".gz"})
    if (path.ends_with(ending) && path.size() > ending.size())
      return {path.substr(0, path.size() - ending.size()), std::string(ending)};
  return {path, {}};
}

std::vector<std::string> trace_paths(const Options& o) {
  if (o.ranks == 1) return {o.output};
  const auto [stem, ending] = split_ending(o.output);
  std::vector<std::string> paths;
  for (std::uint32_t r = 0; r < o.ranks; ++r) paths.push_back(fmt::format("{}.rank{}{}", stem, r, ending));
  return paths;
}

std::string truth_path(const Options& o) {
  if (!o.truth.empty()) return o.truth;
  if (OutputFile::is_stream(o.output)) return {};
  return split_ending(o.output).first + ".truth.json";
}

void write_options(JsonWriter& json, const Options& o) {
  json.begin_object("options", JsonForm::line);
  json.member("workload", to_string(o.workload));
  json.member("ranks", o.ranks);
  json.member("layers", o.layers);
  json.member("batch", o.batch);
  json.member("seed", o.seed);
  json.member("work_seed", o.work_seed);
  json.begin_array("faults", JsonForm::line);
  for (const Fault fault : o.faults) json.value(to_string(fault));
  json.end_array();
  json.member("severity_ppm", o.severity_ppm);
  json.member("fault_from", o.fault_from);
  json.member("fault_rank", o.fault_rank);
  json.member("jitter_ppm", o.jitter_ppm);
  json.member("lost_ppm", o.lost_ppm);
  json.member("queue_depth", o.queue_depth);
  json.member("prefill_every", o.prefill_every);
  json.member("sync_every", o.sync_every);
  json.member("inputs", o.inputs);
  json.member("input_bytes", o.input_bytes);
  json.member("accumulate", o.accumulate);
  json.member("cpu", o.cpu);
  json.member("graph", o.graph);
  json.member("markers", o.markers);
  json.member("python", o.python);
  json.member("style", to_string(o.style));
  json.member("base_ns", kBaseNs);
  json.end_object();
}

void write_step(JsonWriter& json, const Machine& m, const StepPlan& plan, Ns next, std::uint32_t rank) {
  const TraceWriter& w = m.writer(rank);
  const StepTruth& s = m.step(rank);
  json.begin_object(JsonForm::line);
  json.member("rank", rank);
  json.member("step", plan.number);
  json.member("phase", plan.phase);
  json.member("batch", plan.batch);
  json.member("tokens", plan.tokens);
  json.member("context", plan.context);
  json.member("disturbed", m.fault_active(rank));
  json.member("begin_ns", w.as_written(s.begin));
  json.member("period_ns", next - s.begin);
  json.member("device_begin_ns", w.as_written(s.device_begin));
  json.member("device_end_ns", s.device_end);
  json.member("runq_ns", s.runq);
  json.member("blocked_ns", s.blocked);
  json.member("input_ns", s.input);
  json.member("kernels", s.kernels);
  json.end_object();
}

void write_rank(JsonWriter& json, const Machine& m, std::uint32_t rank, const std::string& path) {
  const TraceWriter& writer = m.writer(rank);
  const Written& w = writer.written();
  json.begin_object();
  json.member("rank", rank);
  json.member("path", path);
  json.member("clock_offset_ns", m.clock_offset(rank));
  json.member("text_bytes", writer.text_bytes());
  json.member("events", w.events);
  json.member("slices", w.slices);
  json.member("lost", w.lost);
  json.member("flow_begins", w.flow_begins);
  json.member("flow_ends", w.flow_ends);
  json.member("counters", w.counters);
  json.member("instants", w.instants);
  json.member("metadata", w.metadata);
  json.member("memcpy_bytes", w.memcpy_bytes);
  json.member("memset_bytes", w.memset_bytes);
  json.begin_object("categories");
  for (std::size_t c = 0; c < kCats; ++c) {
    json.begin_object(kCatNames[c], JsonForm::line);
    json.member("count", w.by_cat[c].count);
    json.member("sum_ns", w.by_cat[c].total);
    json.end_object();
  }
  json.end_object();
  json.begin_array("names");
  for (std::size_t f = 0; f < kFns; ++f) {
    if (w.by_fn[f].count == 0) continue;
    json.begin_object(JsonForm::line);
    json.member("category", kCatNames[static_cast<std::size_t>(kFnInfos[f].cat)]);
    json.member("name", kFnInfos[f].name);
    json.member("count", w.by_fn[f].count);
    json.member("sum_ns", w.by_fn[f].total);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

Result<Generated> generate(const Options& options) {
  if (Status s = check(options); !s) return s.error();
  Generated result;
  result.traces = trace_paths(options);
  result.truth = truth_path(options);

  std::optional<Sink> truth;
  if (!result.truth.empty()) {
    truth.emplace();
    if (Status s = truth->open(result.truth, options.replace); !s) return s.error();
  }
  std::string text;
  JsonWriter json(text);
  const auto flush = [&] {
    if (truth) truth->write(text);
    text.clear();
  };
  json.begin_object();
  json.member("format", "culprit-tracegen truth 1");
  write_options(json, options);
  json.begin_array("steps");
  Machine machine(options);
  if (Status s = machine.open(result.traces, options.replace); !s) return s.error();

  Planner planner(options);
  const auto more = [&] {
    if (options.slices != 0) return machine.writer(0).written().slices < options.slices;
    return result.steps < options.steps;
  };
  while (more() && !machine.failed()) {
    const StepPlan plan = planner.next();
    run_step(machine, options, plan);
    ++result.steps;
    for (std::uint32_t r = 0; r < options.ranks; ++r) write_step(json, machine, plan, machine.now(r), r);
    flush();
  }
  json.end_array();
  if (Status s = machine.close(); !s) return s.error();
  json.begin_array("ranks");
  for (std::uint32_t r = 0; r < options.ranks; ++r) {
    write_rank(json, machine, r, result.traces[r]);
    result.slices += machine.writer(r).written().slices;
    result.text_bytes += machine.writer(r).text_bytes();
  }
  json.end_array();
  json.end_object();
  json.finish();
  flush();
  if (truth)
    if (Status s = truth->close(); !s) return s.error();
  return result;
}

}  // namespace culprit::tracegen
