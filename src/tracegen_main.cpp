// The command line of culprit-tracegen.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "core/escape.h"
#include "tracegen/generate.h"

namespace {

using namespace culprit::tracegen;

std::int64_t to_ppm(double share) { return static_cast<std::int64_t>(share * 1e6 + (share < 0 ? -0.5 : 0.5)); }

int fail(const culprit::Error& error) {
  std::cerr << "culprit-tracegen: " << culprit::escape_terminal(to_string(error)) << '\n';
  return static_cast<int>(error.kind);
}

int run(int argc, char** argv) {
  Options o;
  std::string workload = "serve";
  std::vector<std::string> faults;
  std::string style = "kineto";
  double severity = 0.5;
  double jitter = 0.02;
  double lost = 0;
  double clock_offset_us = 250;
  bool no_markers = false;
  bool quiet = false;

  CLI::App app{
      "Simulates a GPU workload and writes its trace as a profiler would (Chrome JSON), with the truth about it beside "
      "it.\n"
      "The same options give the same bytes on every machine. The output says nothing about any real system."};
  app.name("culprit-tracegen");
  app.add_option(
         "-o,--output", o.output,
         "trace to write: FILE.json, FILE.json.gz, or - for standard output; with several ranks FILE.rankN.json")
      ->required()
      ->type_name("PATH");
  app.add_flag("--force", o.replace, "overwrite files that exist");
  app.add_option("--truth", o.truth, "where the truth goes (default: FILE.truth.json; none for a pipe)")
      ->type_name("PATH");
  app.add_option("--workload", workload, "serve (prefill and decode steps) or train")->capture_default_str();
  auto* steps = app.add_option("--steps", o.steps, "number of steps")->capture_default_str();
  app.add_option("--slices", o.slices, "go on until the first rank has at least so many slices, then finish the step")
      ->excludes(steps);
  app.add_option("--ranks", o.ranks, "number of ranks, one file each")->capture_default_str();
  app.add_option("--layers", o.layers, "layers of the model")->capture_default_str();
  app.add_option("--batch", o.batch, "requests or samples in a batch")->capture_default_str();
  app.add_option("--seed", o.seed, "seed of all chance")->capture_default_str();
  app.add_option("--work-seed", o.work_seed, "seed of which requests come (default: that of all chance)");
  app.add_option("--fault", faults,
                 "what disturbs the run, also several times: none, gpu_clock_drop, gpu_memory, gpu_shared, "
                 "cpu_contention, slow_link, pcie_contention, straggler, slow_input, slow_function, "
                 "kernel_regression, kernel_changed, gc_pause (default: none)")
      ->allow_extra_args(false);
  app.add_option("--severity", severity, "share of the disturbed resource that is lost, 0 to 0.99")
      ->capture_default_str();
  app.add_option("--fault-from", o.fault_from, "first disturbed step")->capture_default_str();
  app.add_option("--fault-rank", o.fault_rank, "disturb this rank only (default: all; straggler: the last)");
  app.add_option("--jitter", jitter, "relative spread of every duration, 0 to 0.25")->capture_default_str();
  app.add_option("--lost", lost, "share of slices that the profiler loses")->capture_default_str();
  app.add_option("--queue-depth", o.queue_depth, "launches that may wait before the host blocks")
      ->capture_default_str();
  app.add_option("--prefill-every", o.prefill_every, "serve: every so manyth step is a prefill, 0 = never")
      ->capture_default_str();
  app.add_option("--inputs", o.inputs, "train: copies of input in a step; several are waited for one by one")
      ->capture_default_str();
  app.add_option("--input-bytes", o.input_bytes, "train: bytes of each of these copies (default: what tokens need)");
  app.add_option("--accumulate", o.accumulate, "train: steps whose gradients are accumulated before the optimizer runs")
      ->capture_default_str();
  app.add_option("--sync-every", o.sync_every, "steps between waits for the device (default: serve 1, train 4)");
  app.add_option("--clock-offset", clock_offset_us, "microseconds that each rank's clock is ahead of the rank before")
      ->capture_default_str();
  app.add_flag("--cpu", o.cpu, "no GPU: operators compute on the host");
  app.add_flag("--graph", o.graph, "decode steps (serve) or the optimiser (train) run as one graph launch");
  app.add_flag("--no-markers", no_markers, "no step annotations");
  app.add_flag("--python", o.python, "record Python functions");
  app.add_flag("--sched", o.sched, "record time in the run queue");
  app.add_flag("--counters", o.counters, "record clock and use of the GPU as counters");
  app.add_option("--style", style,
                 "kineto, kineto-old (capital categories, text ids, whole microseconds) or legacy-array (a bare list)")
      ->capture_default_str();
  app.add_flag("--compact", o.compact, "no spaces and line breaks");
  app.add_flag("-q,--quiet", quiet, "say nothing when all went well");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(culprit::ErrorKind::usage);
  }
  const auto chosen_workload = parse_workload(workload);
  if (!chosen_workload) return fail(chosen_workload.error());
  for (const std::string& name : faults) {
    const auto fault = parse_fault(name);
    if (!fault) return fail(fault.error());
    o.faults.push_back(*fault);
  }
  const auto chosen_style = parse_style(style);
  if (!chosen_style) return fail(chosen_style.error());
  for (const double share : {severity, jitter, lost})
    if (!(share >= 0 && share <= 1))
      return fail(culprit::usage_error("--severity, --jitter and --lost are shares from 0 to 1"));
  if (!(clock_offset_us >= 0 && clock_offset_us <= 1e9))
    return fail(culprit::usage_error("--clock-offset must be 0 to 1e9 microseconds"));
  o.workload = *chosen_workload;
  o.style = *chosen_style;
  o.severity_ppm = to_ppm(severity);
  o.jitter_ppm = to_ppm(jitter);
  o.lost_ppm = to_ppm(lost);
  o.clock_offset = static_cast<culprit::Ns>(clock_offset_us * 1e3);
  o.markers = !no_markers;

  const auto generated = generate(o);
  if (!generated) return fail(generated.error());
  if (!quiet)
    std::cerr << fmt::format("culprit-tracegen: simulated {} steps, {} slices, {} bytes of JSON in {} file{}\n",
                             generated->steps, generated->slices, generated->text_bytes, generated->traces.size(),
                             generated->traces.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "culprit-tracegen: %s\n", error.what()));
    return 1;
  }
}
