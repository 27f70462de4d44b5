#include "tracegen/options.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/output_file.h"

namespace culprit::tracegen {

namespace {

template <class T, std::size_t N>
using Names = std::array<std::pair<T, std::string_view>, N>;

constexpr Names<Workload, 2> kWorkloads = {{{Workload::serve, "serve"}, {Workload::train, "train"}}};
constexpr Names<Fault, 13> kFaults = {{{Fault::none, "none"},
                                       {Fault::gpu_clock_drop, "gpu_clock_drop"},
                                       {Fault::gpu_memory, "gpu_memory"},
                                       {Fault::cpu_contention, "cpu_contention"},
                                       {Fault::slow_link, "slow_link"},
                                       {Fault::pcie_contention, "pcie_contention"},
                                       {Fault::straggler, "straggler"},
                                       {Fault::slow_input, "slow_input"},
                                       {Fault::kernel_regression, "kernel_regression"},
                                       {Fault::gc_pause, "gc_pause"},
                                       {Fault::gpu_shared, "gpu_shared"},
                                       {Fault::kernel_changed, "kernel_changed"},
                                       {Fault::slow_function, "slow_function"}}};
constexpr Names<Style, 3> kStyles = {
    {{Style::kineto, "kineto"}, {Style::kineto_old, "kineto-old"}, {Style::legacy_array, "legacy-array"}}};

template <class T, std::size_t N>
std::string_view name_of(const Names<T, N>& names, T value) {
  for (const auto& [v, name] : names)
    if (v == value) return name;
  return "?";
}

template <class T, std::size_t N>
Result<T> parse(const Names<T, N>& names, std::string_view text, std::string_view what) {
  std::string known;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    known += known.empty() ? "" : ", ";
    known += name;
  }
  return usage_error(fmt::format("unknown {} '{}'", what, text), "use one of: " + known);
}

}  // namespace

std::string_view to_string(Workload workload) { return name_of(kWorkloads, workload); }
std::string_view to_string(Fault fault) { return name_of(kFaults, fault); }
std::string_view to_string(Style style) { return name_of(kStyles, style); }
Result<Workload> parse_workload(std::string_view text) { return parse(kWorkloads, text, "workload"); }
Result<Fault> parse_fault(std::string_view text) { return parse(kFaults, text, "fault"); }
Result<Style> parse_style(std::string_view text) { return parse(kStyles, text, "style"); }

Status check(const Options& o) {
  if (o.output.empty()) return usage_error("no output", "give -o FILE or -o -");
  if (OutputFile::is_stream(o.output) && o.ranks != 1)
    return usage_error("several ranks do not fit one stream", "give a file name with -o, or --ranks 1");
  if (o.ranks == 0 || o.ranks > 1024) return usage_error("--ranks must be 1 to 1024");
  if (o.layers == 0 || o.layers > 1000) return usage_error("--layers must be 1 to 1000");
  if (o.batch == 0 || o.batch > 4096) return usage_error("--batch must be 1 to 4096");
  if (o.steps == 0 && o.slices == 0) return usage_error("nothing to simulate", "give --steps or --slices");
  if (o.cpu && o.graph) return usage_error("--graph needs a GPU", "leave out --cpu or --graph");
  for (const Fault fault : o.faults)
    if (o.cpu && fault != Fault::none && fault != Fault::cpu_contention && fault != Fault::slow_link &&
        fault != Fault::slow_input && fault != Fault::gc_pause && fault != Fault::slow_function)
      return usage_error(fmt::format("--fault {} needs a GPU", to_string(fault)),
                         "with --cpu use cpu_contention, slow_link, slow_input, gc_pause or slow_function");
  if (o.inputs == 0 || o.inputs > 64) return usage_error("--inputs must be 1 to 64");
  if (o.input_bytes < 0 || o.input_bytes > 1'000'000'000'000) return usage_error("--input-bytes must be 0 to 10^12");
  if (o.accumulate == 0) return usage_error("--accumulate must be at least 1");
  if (o.queue_depth == 0 || o.queue_depth > 1'000'000) return usage_error("--queue-depth must be 1 to 1000000");
  if (o.severity_ppm < 0 || o.severity_ppm > 990'000) return usage_error("--severity must be 0 to 0.99");
  if (o.jitter_ppm < 0 || o.jitter_ppm > 250'000) return usage_error("--jitter must be 0 to 0.25");
  if (o.lost_ppm < 0 || o.lost_ppm >= kMillion) return usage_error("--lost must be at least 0 and below 1");
  if (o.fault_rank >= static_cast<std::int64_t>(o.ranks)) return usage_error("--fault-rank is not one of the ranks");
  return {};
}

}  // namespace culprit::tracegen
