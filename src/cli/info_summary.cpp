#include "cli/info_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "core/saturating.h"
#include "core/units.h"
#include "model/table_rows.h"
#include "report/cycles_report.h"
#include "report/work_report.h"

namespace culprit::cli {

namespace {

constexpr std::size_t kFiles = 1;
constexpr std::size_t kDevices = 2;
constexpr std::size_t kPhases = 2;
constexpr std::size_t kRows = 20;

double percent(Ns part, Ns whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) * 100 : 0;
}

std::string counted(std::uint64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", format_count(n), n == 1 ? one : many);
}

class Summary {
 public:
  explicit Summary(const model::TraceInfo& info) : info_(info) {}

  model::Table make() {
    const bool work = info_.work && info_.work->recorded;
    if (work)
      for (auto& [what, value] : report::work_lines(*info_.work)) {
        const bool why_unit = what.empty() && value == info_.work->units.front().reason;
        add(std::move(what), std::move(value), why_unit ? 5 : 0);
      }
    const bool steps_first = !work && info_.cycles && info_.cycles->step;  // of a recording they are the answer
    if (steps_first) add_cycles(*info_.cycles);
    add_files();
    add_faults();
    add("duration", format_duration(info_.duration) + (info_.clock == "unknown" ? "" : ", clock " + info_.clock));
    add("slices",
        fmt::format("{} of {}, in {} of {}", format_count(info_.slices), counted(info_.names, "name", "names"),
                    counted(info_.threads, "thread", "threads"), counted(info_.processes, "process", "processes")));
    if (!work || !info_.devices.empty() || info_.kernels.count > 0) add_gpu();
    if (!work) add_scheduling();
    add_recorded();
    if (!work && info_.cycles && !steps_first) add_cycles(*info_.cycles);
    add_losses();
    leave_out_the_rest();
    model::Table table = model::fact_table("Run", "summary", facts_);
    if (!work && info_.cycles && info_.cycles->count == 0 && !info_.cycles->reason.empty())
      table.notes.push_back("No steps: " + info_.cycles->reason);
    table.notes.emplace_back(info_.slices == 0 && info_.counters.empty() ? "This trace holds no slice."
                             : info_.slices == 0                         ? "Counters only: --show counters"
                             : work ? "More: --show work,scheduling,counters,..., or --all"
                                    : "More: --all, or --show files,devices,categories,markers,...");
    return table;
  }

 private:
  /// The larger `rank`, the sooner it is left out where there is more than a screen holds; 0: never.
  void add(std::string what, std::string value, unsigned rank = 0) {
    facts_.push_back({std::move(what), std::move(value)});
    ranks_.push_back(rank);
  }

  /// Sections tell it. A row without a name belongs to the one above, so that one with such a row stays.
  void leave_out_the_rest() {
    while (facts_.size() > kRows) {
      const auto least = std::ranges::max_element(ranks_);
      if (*least == 0) return;
      facts_.erase(facts_.begin() + (least - ranks_.begin()));
      ranks_.erase(least);
    }
  }

  void add_files() {
    for (std::size_t i = 0; i < std::min(info_.ranks.size(), kFiles); ++i) {
      const model::RankInfo& rank = info_.ranks[i];
      std::string text = fmt::format("{}, {}", format_of(rank), format_bytes(static_cast<double>(rank.input_bytes)));
      if (rank.rank >= 0) text += fmt::format(", rank {}", rank.rank);
      if (rank.world_size > 0) text += fmt::format(" of {}", rank.world_size);
      add(i == 0 ? "file" : "", rank.path);
      add("", text);
      for (const model::JoinedFile& file : rank.recordings) {
        add("recording", file.path);
        add("", fmt::format("{}, {}", file.format, format_bytes(static_cast<double>(file.input_bytes))), 9);
      }
    }
    if (info_.ranks.size() > kFiles) add("", counted(info_.ranks.size() - kFiles, "more file", "more files"));
  }

  /// A recording that was made while something was broken on purpose.
  void add_faults() {
    constexpr std::string_view kPrefix = "inject.";
    std::string faults;
    for (const model::RankInfo& rank : info_.ranks)
      for (const auto& [key, value] : rank.metadata)
        if (key.starts_with(kPrefix)) faults += (faults.empty() ? "" : ", ") + key.substr(kPrefix.size());
    if (!faults.empty()) add("disturbed by", "culprit inject " + faults);
  }

  void add_gpu() {
    std::vector<model::DeviceInfo> devices = info_.devices;
    std::ranges::stable_sort(devices, std::greater(), &model::DeviceInfo::busy_union);
    for (std::size_t i = 0; i < std::min(devices.size(), kDevices); ++i) {
      const model::DeviceInfo& device = devices[i];
      std::string text = info_.ranks.size() > 1 ? fmt::format("rank {} ", device.rank) : "";
      text += fmt::format("device {}", device.device);
      if (!device.name.empty()) text += " " + device.name;
      text += fmt::format(": busy {:.1f}%, idle {:.1f}%", percent(device.busy_union, info_.duration),
                          100 - percent(device.busy_union, info_.duration));
      add(i == 0 ? "devices" : "", text);
    }
    if (info_.devices.size() > kDevices) add("", counted(info_.devices.size() - kDevices, "more", "more"));
    const std::uint64_t gpu = info_.kernels.count + info_.memcpy.count + info_.memset.count;
    if (gpu == 0) {
      add("GPU work", "none");
      return;
    }
    add("GPU busy",
        fmt::format("{} ({:.1f}% of the duration)", format_duration(info_.busy_union),
                    percent(info_.busy_union, info_.duration)),
        7);
    add("kernels", fmt::format("{} of {}, {}", format_count(info_.kernels.count),
                               counted(info_.unique_kernels, "name", "names"), format_duration(info_.kernels.sum)));
    add("memcpy, memset",
        fmt::format("{}, {}; {}, {}", format_count(info_.memcpy.count), format_duration(info_.memcpy.sum),
                    format_count(info_.memset.count), format_duration(info_.memset.sum)),
        8);
    if (info_.top.count != 0)
      add("most GPU time", fmt::format("{} in {} of {}", format_duration(info_.top.sum),
                                       counted(info_.top.count, "call", "calls"), info_.top_name));
  }

  /// What the kernel counts by itself, where nobody was allowed to look at the scheduling.
  void add_totals() {
    double on_cpu = 0;
    double run_queue = 0;
    std::size_t threads = 0;
    for (const model::CounterInfo& counter : info_.counters) {
      if (counter.name.starts_with("sched.oncpu ")) {
        on_cpu += counter.max - counter.min;
        ++threads;
      }
      if (counter.name.starts_with("sched.runq ")) run_queue += counter.max - counter.min;
    }
    if (threads == 0) return;
    add("threads", fmt::format("on CPU {}, run queue {}: totals of {}", format_duration(on_cpu),
                               format_duration(run_queue), counted(threads, "thread", "threads")));
    for (const model::RankInfo& rank : info_.ranks)
      for (const auto& [key, value] : rank.metadata)
        if (key == "missing.sched") add("not seen", value);
  }

  void add_scheduling() {
    if (info_.sched.empty()) return add_totals();
    Ns on_cpu = 0;
    Ns run_queue = 0;
    Ns blocked = 0;
    for (const model::ThreadSchedInfo& thread : info_.sched) {
      on_cpu = add_saturating(on_cpu, thread.on_cpu);
      run_queue = add_saturating(run_queue, thread.run_queue);
      blocked = add_saturating(blocked, thread.blocked);
    }
    add("threads", fmt::format("on CPU {}, run queue {}, blocked {}", format_duration(on_cpu),
                               format_duration(run_queue), format_duration(blocked)));
  }

  void add_recorded() {
    unsigned rank = 0;
    for (const model::Fact& fact : info_.recorded_facts) add(fact.what, fact.value, std::min(++rank, 4U));
  }

  void add_cycles(const model::CyclesInfo& cycles) {
    if (cycles.count == 0) {
      add("steps", "none found");
      return;
    }
    std::string steps = fmt::format("{} by {}", format_count(cycles.count), report::to_string(cycles.method));
    if (cycles.step && info_.duration > 0)
      steps +=
          fmt::format(", {:.3g} per s", static_cast<double>(cycles.count) * 1e9 / static_cast<double>(info_.duration));
    add("steps", std::move(steps));
    add("", fmt::format("{} ({:.0f}% sure to be one step each)", cycles.anchor, cycles.period_confidence * 100));
    for (std::size_t i = 0; i < std::min(cycles.phases.size(), kPhases); ++i) {
      const model::PhaseInfo& phase = cycles.phases[i];
      std::string text = fmt::format("{}: {}", model::phase_name(phase.phase), format_count(phase.cycles));
      if (phase.whole_periods != 0) text += fmt::format(", median {}", format_duration(phase.median_period));
      if (phase.device_window > 0)
        text += fmt::format(", device busy {:.1f}%", percent(phase.device_busy, phase.device_window));
      add("", text);
    }
    if (cycles.step) add_step(*cycles.step);
  }

  void add_step(const model::StepTimes& step) {
    const auto part = [&](double time) {
      return fmt::format("{} ({:.1f}%)", format_duration(time), step.period > 0 ? time / step.period * 100 : 0);
    };
    add("per step", fmt::format("on CPU {}, run queue {}", part(step.on_cpu), part(step.run_queue)));
    add("", fmt::format("blocked {} of {}, thread {}", part(step.blocked), format_duration(step.period), step.thread));
    constexpr double kLeastCpus = 0.05;
    constexpr std::size_t kNamed = 3;
    std::string beside;
    for (std::size_t i = 0; i < std::min(step.beside.size(), kNamed); ++i)
      if (step.beside[i].cpus >= kLeastCpus)
        beside +=
            fmt::format("{}{} took {:.2f} CPUs", beside.empty() ? "" : ", ", step.beside[i].name, step.beside[i].cpus);
    if (!beside.empty()) add("beside it", beside);
  }

  void add_losses() {
    if (info_.losses.empty()) {
      add("losses", "none");
      return;
    }
    std::string text;
    const model::LossCount* worst = nullptr;
    for (const std::string_view severity : {"data loss", "warning", "info"}) {
      std::uint64_t n = 0;
      for (const model::LossCount& loss : info_.losses) {
        if (loss.severity != severity) continue;
        n += loss.count;
        if (worst == nullptr) worst = &loss;
      }
      if (n != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", format_count(n), severity);
    }
    add("losses", text + "; --show losses says what and why");
    if (worst != nullptr) add("", worst->meaning);
  }

  const model::TraceInfo& info_;
  std::vector<model::Fact> facts_;
  std::vector<unsigned> ranks_;  // of facts_
};

}  // namespace

std::string format_of(const model::RankInfo& rank) {
  if (!rank.format.empty()) return rank.schema.empty() ? rank.format : rank.format + ", schema " + rank.schema;
  return rank.schema.empty() ? "Chrome JSON" : "Kineto JSON, schema " + rank.schema;
}

model::Table info_summary(const model::TraceInfo& info) { return Summary(info).make(); }

}  // namespace culprit::cli
