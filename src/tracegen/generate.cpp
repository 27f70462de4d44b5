#include "tracegen/generate.h"

#include <fmt/format.h>

#include <optional>

#include "core/escape.h"
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
  if (o.output == "-") return {};
  return split_ending(o.output).first + ".truth.json";
}

std::string options_json(const Options& o) {
  return fmt::format(
      "{{\"workload\": \"{}\", \"ranks\": {}, \"layers\": {}, \"batch\": {}, \"seed\": {}, \"fault\": \"{}\", "
      "\"severity_ppm\": {}, \"fault_from\": {}, \"fault_rank\": {}, \"jitter_ppm\": {}, \"lost_ppm\": {}, "
      "\"queue_depth\": {}, \"graph\": {}, \"markers\": {}, \"python\": {}, \"style\": \"{}\", \"base_ns\": {}}}",
      to_string(o.workload), o.ranks, o.layers, o.batch, o.seed, to_string(o.fault), o.severity_ppm, o.fault_from,
      o.fault_rank, o.jitter_ppm, o.lost_ppm, o.queue_depth, o.graph, o.markers, o.python, to_string(o.style), kBaseNs);
}

std::string step_json(const Machine& m, const StepPlan& plan, const StepTruth& s, Ns next, std::uint32_t rank,
                      bool disturbed) {
  const TraceWriter& w = m.writer(rank);
  return fmt::format(
      "{{\"rank\": {}, \"step\": {}, \"phase\": \"{}\", \"batch\": {}, \"tokens\": {}, \"context\": {}, "
      "\"disturbed\": {}, \"begin_ns\": {}, \"period_ns\": {}, \"device_begin_ns\": {}, \"device_end_ns\": {}, "
      "\"runq_ns\": {}, \"blocked_ns\": {}, \"input_ns\": {}, \"kernels\": {}}}",
      rank, plan.number, plan.phase, plan.batch, plan.tokens, plan.context, disturbed, w.as_written(s.begin),
      next - s.begin, w.as_written(s.device_begin), s.device_end, s.runq, s.blocked, s.input, s.kernels);
}

std::string rank_json(const Machine& m, std::uint32_t rank, const std::string& path) {
  const TraceWriter& writer = m.writer(rank);
  const Written& w = writer.written();
  std::string out = fmt::format(
      "{{\"rank\": {}, \"path\": \"{}\", \"clock_offset_ns\": {}, \"text_bytes\": {}, \"events\": {}, \"slices\": {}, "
      "\"lost\": {}, \"flow_begins\": {}, \"flow_ends\": {}, \"counters\": {}, \"instants\": {}, \"metadata\": {}, "
      "\"memcpy_bytes\": {}, \"memset_bytes\": {},\n \"categories\": {{",
      rank, escape_json(path), m.clock_offset(rank), writer.text_bytes(), w.events, w.slices, w.lost, w.flow_begins,
      w.flow_ends, w.counters, w.instants, w.metadata, w.memcpy_bytes, w.memset_bytes);
  std::string_view comma;
  for (std::size_t c = 0; c < kCats; ++c) {
    out += fmt::format("{}\"{}\": {{\"count\": {}, \"sum_ns\": {}}}", comma, kCatNames[c], w.by_cat[c].count,
                       w.by_cat[c].total);
    comma = ", ";
  }
  out += "},\n \"names\": [";
  comma = "\n  ";
  for (std::size_t f = 0; f < kFns; ++f) {
    if (w.by_fn[f].count == 0) continue;
    out += fmt::format("{}{{\"category\": \"{}\", \"name\": \"{}\", \"count\": {}, \"sum_ns\": {}}}", comma,
                       kCatNames[static_cast<std::size_t>(kFnInfos[f].cat)], escape_json(kFnInfos[f].name),
                       w.by_fn[f].count, w.by_fn[f].total);
    comma = ",\n  ";
  }
  return out + "]}";
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
    if (Status s = truth->open(result.truth); !s) return s.error();
    truth->write(fmt::format("{{\"format\": \"culprit-tracegen truth 1\",\n\"options\": {},\n\"steps\": [",
                             options_json(options)));
  }
  Machine machine(options);
  if (Status s = machine.open(result.traces); !s) return s.error();

  Planner planner(options);
  std::string_view comma = "\n";
  const auto more = [&] {
    if (options.slices != 0) return machine.writer(0).written().slices < options.slices;
    return result.steps < options.steps;
  };
  while (more() && !machine.failed()) {
    const StepPlan plan = planner.next();
    run_step(machine, options, plan);
    ++result.steps;
    if (!truth) continue;
    for (std::uint32_t r = 0; r < options.ranks; ++r) {
      truth->write(comma);
      truth->write(step_json(machine, plan, machine.step(r), machine.now(r), r, machine.fault_active(r)));
      comma = ",\n";
    }
  }
  if (Status s = machine.close(); !s) return s.error();
  if (truth) truth->write("],\n\"ranks\": [\n");
  for (std::uint32_t r = 0; r < options.ranks; ++r) {
    if (truth) {
      if (r != 0) truth->write(",\n");
      truth->write(rank_json(machine, r, result.traces[r]));
    }
    result.slices += machine.writer(r).written().slices;
    result.text_bytes += machine.writer(r).text_bytes();
  }
  if (truth) {
    truth->write("]}\n");
    if (Status s = truth->close(); !s) return s.error();
  }
  return result;
}

}  // namespace culprit::tracegen
