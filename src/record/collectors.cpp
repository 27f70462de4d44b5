#include "record/collectors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "record/annotate/annotate.h"
#include "record/environment/environment.h"
#include "record/host/host.h"
#include "record/interpreter/python_stacks.h"
#include "record/nvtx/nvtx.h"
#include "record/python/python.h"
#include "record/samples/samples.h"
#include "record/sched/sched.h"
#include "record/syscalls/syscalls.h"

namespace culprit::record {

namespace {

constexpr Ns kLongSyscallDeep = 1'000'000;
constexpr Ns kLongSyscallWatch = 10'000'000;

/// What collectors share.
struct Kernel {
  std::shared_ptr<bpf::Probes> probes;
  std::shared_ptr<interpreter::PythonStacks> python;
};

struct Entry {
  std::string_view name;
  std::function<std::unique_ptr<Collector>(Preset, const Kernel&, const CollectorOptions&)> make;
  bool in_watch = true;
};

/// Looking at so many calls a second costs half a percent of a CPU (docs/record.md: what one costs more).
constexpr double kFewCalls = 50'000;
/// So does looking at so many requests and their answers.
constexpr double kFewAnswers = 10'000;

/// Collectors that name processes and threads first: what others write refers to them.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {"sched",
       [](Preset preset, const Kernel& kernel, const CollectorOptions&) {
         sched::SchedOptions options;
         options.stacks = preset == Preset::deep;
         if (options.stacks) options.python = kernel.python;
         return sched::make_sched(kernel.probes, options);
       }},
      {"syscalls",
       [](Preset preset, const Kernel& kernel, const CollectorOptions& asked) {
         syscalls::SyscallsOptions options;
         if (!asked.every_call) options.few = preset == Preset::watch ? 0 : kFewCalls;
         options.answers = preset == Preset::deep;
         if (!asked.every_call) options.few_answers = kFewAnswers;
         return syscalls::make_syscalls(kernel.probes, options);
       }},
      {"samples",
       [](Preset, const Kernel& kernel, const CollectorOptions& options) {
         return samples::make_samples(kernel.probes, {options.call_graph, options.sample_hz}, kernel.python);
       },
       false},
      {"host", [](Preset, const Kernel&, const CollectorOptions&) { return make_host_collector(); }},
      {"environment", [](Preset, const Kernel&, const CollectorOptions&) { return make_environment_collector(); }},
      {"nvtx", [](Preset, const Kernel&, const CollectorOptions&) { return nvtx::make_nvtx(); }},
      {"python",
       [](Preset, const Kernel&, const CollectorOptions& options) {
         return python::make_python({options.functions, true, {}});
       }},
      {"annotate", [](Preset, const Kernel&, const CollectorOptions&) { return annotate::make_annotate(); }},
  };
  return all;
}

}  // namespace

std::vector<std::string> collector_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  return names;
}

Result<CollectorSet> make_collectors(Preset preset, const std::vector<std::string>& only,
                                     const std::vector<std::string>& without, const CollectorOptions& given) {
  const std::vector<std::string> known = collector_names();
  for (const auto* names : {&only, &without})
    for (const std::string& name : *names)
      if (std::ranges::find(known, name) == known.end())
        return usage_error(fmt::format("there is no collector '{}'", name),
                           fmt::format("choose from: {}", fmt::join(known, ", ")));
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  CollectorSet set;
  bpf::ProbeOptions options;
  options.long_syscall = preset == Preset::deep ? kLongSyscallDeep : kLongSyscallWatch;
  set.probes = std::make_shared<bpf::Probes>(options);
  const Kernel kernel{set.probes, std::make_shared<interpreter::PythonStacks>(set.probes)};
  for (const Entry& entry : entries())
    if ((only.empty() ? preset == Preset::deep || entry.in_watch : has(only, entry.name)) && !has(without, entry.name))
      set.collectors.push_back(entry.make(preset, kernel, given));
  if (set.collectors.empty()) return usage_error("no collector is left", "leave out --no-collect or --collect");
  return set;
}

}  // namespace culprit::record
