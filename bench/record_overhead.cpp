// What a recording costs a workload: tinyserve runs once per preset, and a recorder attaches to that one process and
// ends again, in blocks of random length and order. Times of decode steps with all slots busy are compared between the
// two blocks of a pair of neighbours, so that what changes slowly on the machine cancels out.
//
//   record_overhead [--blocks N] [--seed N] [--threads N] [--cpu N] [--json FILE] [--only none|watch|deep] [--collect
//   NAME] [--python FUNCTION]
//
// Without NVTX: the library in the program always writes, which nvtx_cost measures.
//
// "none" attaches nothing: what it shows is the resolution of the measurement. Attaching and ending are not counted; a
// block is longer than the rhythm of the recorder (its looks every 50 ms, samples of the host every 100 ms, a flush
// every second), so that it holds its share of it.
#include <fmt/format.h>
#include <fmt/os.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/command.h"
#include "record/python/function_spec.h"
#include "record/recorder.h"

namespace {

using culprit::Ns;
using culprit::Status;
using namespace culprit::record;

constexpr Ns kMs = 1'000'000;
constexpr Ns kSecond = 1000 * kMs;
constexpr Ns kLook = 50 * kMs;        // between two looks of the recorder
constexpr Ns kSettle = 20 * kMs;      // of a block, not counted
constexpr Ns kShortest = 1000 * kMs;  // of what counts of a block
constexpr Ns kLongest = 1500 * kMs;
constexpr Ns kWarmUp = 3 * kSecond;
constexpr Ns kPatience = 5 * kSecond;  // for tinyserve to end
constexpr int kSlots = 8;
constexpr std::size_t kFewestSteps = 4;  // of a block that counts

struct Options {
  int blocks = 60;
  unsigned seed = 1;
  int threads = 1;
  int cpu = -1;  ///< the last one
  std::string json;
  std::string only;
  std::string tinyserve;
  std::vector<std::string> collect;  ///< empty: all
  CollectorOptions collectors = {};
};

struct Span {
  Ns begin = 0;
  Ns end = 0;
};
struct Pair {
  Span off;
  Span on;
};

/// Of one run. Shares are of one CPU, while recording.
struct Outcome {
  std::string name;
  std::size_t steps = 0;
  double step_ns = 0;          ///< mean, off
  std::vector<double> ratios;  ///< log(on / off) of every pair
  double slowdown = 0, low = 0, high = 0;
  double median = 0, median_low = 0, median_high = 0;
  double recorder_share = 0;
  double sched_share = 0;
  double syscalls_share = 0;
  bool kernel_known = false;
  double events_per_s = 0;
  std::uint64_t dropped = 0;
  double longest_switch_ms = 0;
};

void sleep_until(Ns at) {
  const timespec t{at / kSecond, at % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

Ns own_cpu() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return Ns{t.tv_sec} * kSecond + t.tv_nsec;
}

constexpr const char* kHelp =
    "record_overhead [OPTION VALUE]...: by how much recordings slow tinyserve down\n"
    "\n"
    "  --blocks N         in half of them nothing is recorded; 20 or more (60)\n"
    "  --seed N           of the lengths and the order of the blocks (1)\n"
    "  --threads N        of tinyserve; with one, it keeps to one CPU (1)\n"
    "  --cpu N            that one (the last)\n"
    "  --only NAME        none, watch or deep alone\n"
    "  --collect NAME     this collector alone; may be repeated\n"
    "  --python FUNCTION  attach to tinyserve and watch this function of it, as `culprit record --python` does:\n"
    "                     'scheduler:Scheduler.run_batch(len(batch.requests))'; may be repeated\n"
    "  --json FILE        all single values as well\n";

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "record_overhead: {}\n", why);
  std::exit(4);
}

/// Durations of decode steps with all slots busy that lie within a span, in the order of time.
class Steps {
 public:
  explicit Steps(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::array<std::string_view, 6> cells;
      std::string_view rest = line;
      for (std::string_view& cell : cells) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        cell = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      const auto number = [](std::string_view text) {
        Ns value = -1;
        std::from_chars(text.data(), text.data() + text.size(), value);
        return value;
      };
      if (cells[1] == "DECODE" && number(cells[2]) == kSlots)
        steps_.push_back({number(cells[4]), number(cells[4]) + number(cells[5])});
    }
  }

  /// Mean duration of those within; nothing when they are too few.
  [[nodiscard]] std::optional<double> mean(const Span& span, std::size_t& count) const {
    double sum = 0;
    std::size_t n = 0;
    for (auto it = std::ranges::lower_bound(steps_, span.begin, {}, &Span::begin);
         it != steps_.end() && it->end <= span.end; ++it, ++n)
      sum += static_cast<double>(it->end - it->begin);
    if (n < kFewestSteps) return std::nullopt;
    count += n;
    return sum / static_cast<double>(n);
  }
  [[nodiscard]] bool reaches(Ns at) const { return !steps_.empty() && steps_.back().end >= at; }

 private:
  std::vector<Span> steps_;
};

/// One tinyserve, from its start to its end.
class Run {
 public:
  Run(const Options& options, const std::string& folder, bool records, Preset preset)
      : options_(options), records_(records), preset_(preset), folder_(folder), times_(folder + "/steps.csv") {}

  Outcome measure(const std::string& name) {
    start();
    std::mt19937_64 random(options_.seed);
    std::uniform_int_distribution<Ns> length(kShortest, kLongest);
    std::vector<Pair> pairs(static_cast<std::size_t>(options_.blocks) / 2);
    for (Pair& pair : pairs) {
      const bool on_first = (random() & 1) != 0;
      for (const bool on : {on_first, !on_first}) (on ? pair.on : pair.off) = block(on, length(random));
    }
    server_->signal(SIGTERM);
    for (const Ns limit = monotonic_now() + kPatience; !server_->ended() && monotonic_now() < limit;)
      sleep_until(monotonic_now() + kSettle);
    Outcome outcome;
    outcome.name = name;
    const auto time_on = static_cast<double>(std::max<Ns>(time_on_, 1));
    outcome.recorder_share = static_cast<double>(cpu_on_) / time_on;
    outcome.sched_share = static_cast<double>(kernel_on_.sched_ns) / time_on;
    outcome.syscalls_share = static_cast<double>(kernel_on_.syscalls_ns) / time_on;
    outcome.kernel_known = kernel_on_.known;
    outcome.events_per_s = static_cast<double>(events_on_) * 1e9 / time_on;
    outcome.dropped = dropped_;
    outcome.longest_switch_ms = static_cast<double>(longest_switch_) / 1e6;
    compare(pairs, outcome);
    return outcome;
  }

 private:
  void start() {
    const double seconds = 2e-9 * static_cast<double>(kLongest) * options_.blocks + 20;
    auto server = Command::prepare({"/bin/sh",
                                    "-c",
                                    "exec \"$@\" >/dev/null",
                                    "sh",
                                    "python3",
                                    options_.tinyserve,
                                    "--rate",
                                    "0",
                                    "--requests",
                                    fmt::format("{}", static_cast<int>(400 * seconds)),
                                    "--threads",
                                    std::to_string(options_.threads),
                                    "--layers",
                                    "8",
                                    "--width",
                                    "256",
                                    "--slots",
                                    std::to_string(kSlots),
                                    "--step-times",
                                    times_},
                                   {});
    if (!server) fail(to_string(server.error()));
    server_.emplace(std::move(*server));
    if (options_.threads == 1) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<unsigned>(options_.cpu), &one);
      sched_setaffinity(static_cast<pid_t>(server_->pid()), sizeof one, &one);
    }
    if (const Status status = server_->go(); !status) fail(to_string(status.error()));
    sleep_until(monotonic_now() + kWarmUp);
    if (server_->ended()) fail("tinyserve ended early");
  }

  /// The time that counts.
  Span block(bool on, Ns length) {
    std::optional<Recorder> recorder;
    std::shared_ptr<bpf::Probes> probes;
    if (on && records_) {
      auto set = make_collectors(preset_, options_.collect, {"nvtx"}, options_.collectors);
      if (!set) fail(to_string(set.error()));
      probes = set->probes;
      RecordOptions record;
      record.preset = preset_;
      record.output = folder_ + "/run.pftrace";
      record.replace = true;
      record.pids = {server_->pid()};
      recorder.emplace(record, std::move(*set));
      const Ns before = monotonic_now();
      if (const Status status = recorder->start(); !status) fail(to_string(status.error()));
      longest_switch_ = std::max(longest_switch_, monotonic_now() - before);
    }
    const Ns begin = monotonic_now();
    const Ns end = begin + kSettle + length;
    Span span;
    if (recorder)
      record_until(*recorder, *probes, end);
    else
      sleep_until(end);
    span = {begin + kSettle, monotonic_now()};
    if (recorder)
      if (const RecordSummary summary = recorder->finish(); summary.error) fail(to_string(*summary.error));
    return span;
  }

  void record_until(Recorder& recorder, const bpf::Probes& probes, Ns end) {
    const Ns begin = monotonic_now();
    const bpf::KernelCpu kernel_before = probes.kernel_cpu();
    const Ns cpu_before = own_cpu();
    const auto events_before = recorder.progress().events;
    while (monotonic_now() + kLook < end)
      if (!recorder.poll()) fail("the recording ended early");
    sleep_until(end);
    time_on_ += monotonic_now() - begin;
    cpu_on_ += own_cpu() - cpu_before;
    const bpf::KernelCpu kernel = probes.kernel_cpu();
    kernel_on_.known = kernel.known;
    kernel_on_.sched_ns += kernel.sched_ns - kernel_before.sched_ns;
    kernel_on_.syscalls_ns += kernel.syscalls_ns - kernel_before.syscalls_ns;
    const RecordProgress progress = recorder.progress();
    events_on_ += progress.events - events_before;
    dropped_ += progress.dropped;
  }

  void compare(const std::vector<Pair>& pairs, Outcome& outcome) const {
    const Steps steps(times_);
    if (!steps.reaches(pairs.back().off.begin)) fail("tinyserve had too few requests, or wrote no times");
    double off_sum = 0;
    for (const Pair& pair : pairs) {
      std::size_t count = 0;
      const auto off = steps.mean(pair.off, count);
      const auto on = steps.mean(pair.on, count);
      if (!off || !on) continue;
      outcome.ratios.push_back(std::log(*on / *off));
      outcome.steps += count;
      off_sum += *off;
    }
    const std::size_t n = outcome.ratios.size();
    if (n < 10) fail("too few pairs of blocks with steps in both");
    outcome.step_ns = off_sum / static_cast<double>(n);

    const auto size = static_cast<double>(n);
    double mean = 0;
    for (const double value : outcome.ratios) mean += value / size;
    double squares = 0;
    for (const double value : outcome.ratios) squares += (value - mean) * (value - mean);
    const double error = std::sqrt(squares / (size - 1) / size);
    const double t = boost::math::quantile(boost::math::students_t(size - 1), 0.975);
    outcome.slowdown = std::expm1(mean);
    outcome.low = std::expm1(mean - t * error);
    outcome.high = std::expm1(mean + t * error);

    // The median, with the ranks of the sign test: hardly moved by a neighbour's burst.
    std::vector<double> sorted = outcome.ratios;
    std::ranges::sort(sorted);
    const auto reach = static_cast<std::size_t>(std::ceil(0.98 * std::sqrt(size)));
    outcome.median = std::expm1((sorted[(n - 1) / 2] + sorted[n / 2]) / 2);
    outcome.median_low = std::expm1(sorted[n / 2 > reach ? n / 2 - reach : 0]);
    outcome.median_high = std::expm1(sorted[std::min(n / 2 + reach, n - 1)]);
  }

  const Options& options_;
  bool records_;
  Preset preset_;
  std::string folder_;
  std::string times_;
  std::optional<Command> server_;
  Ns time_on_ = 0;
  Ns cpu_on_ = 0;
  bpf::KernelCpu kernel_on_;
  std::uint64_t events_on_ = 0;
  std::uint64_t dropped_ = 0;
  Ns longest_switch_ = 0;
};

int number_of(std::string_view text, int at_least) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < at_least)
    fail(fmt::format("'{}' is not a number of {} or more", text, at_least));
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  const std::string self = argv[0];
  const std::size_t slash = self.rfind('/');
  options.tinyserve = (slash == std::string::npos ? "." : self.substr(0, slash)) + "/examples/tinyserve/tinyserve.py";
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--help") {
      fmt::print("{}", kHelp);
      std::exit(0);
    }
    if (i + 1 >= argc) fail(fmt::format("{} needs a value", name));
    const std::string_view value = argv[i + 1];
    if (name == "--blocks")
      options.blocks = number_of(value, 20);
    else if (name == "--seed")
      options.seed = static_cast<unsigned>(number_of(value, 0));
    else if (name == "--threads")
      options.threads = number_of(value, 1);
    else if (name == "--cpu")
      options.cpu = number_of(value, 0);
    else if (name == "--json")
      options.json = value;
    else if (name == "--collect")
      options.collect.emplace_back(value);
    else if (name == "--only")
      options.only = value;
    else if (name == "--python") {
      auto function = python::parse_function(value);
      if (!function) fail(to_string(function.error()));
      options.collectors.functions.push_back(std::move(*function));
    } else
      fail(fmt::format("unknown option {}", name));
  }
  cpu_set_t mine;
  sched_getaffinity(0, sizeof mine, &mine);
  for (int cpu = 0; options.cpu < 0 && cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(CPU_SETSIZE - 1 - cpu), &mine)) options.cpu = CPU_SETSIZE - 1 - cpu;
  return options;
}

double load_average() {
  double load = -1;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

void write_json(const Options& options, const std::vector<Outcome>& outcomes, const std::array<double, 2>& load) {
  auto out = fmt::output_file(options.json);
  out.print("{{\"blocks\": {}, \"seed\": {}, \"threads\": {}, \"load_average\": [{:.2f}, {:.2f}], \"runs\": [",
            options.blocks, options.seed, options.threads, load[0], load[1]);
  for (const Outcome& one : outcomes) {
    out.print("{}\n {{\"recording\": \"{}\", \"pairs\": {}, \"steps\": {}, \"step_ns\": {:.0f}",
              &one == &outcomes[0] ? "" : ",", one.name, one.ratios.size(), one.steps, one.step_ns);
    out.print(", \"slowdown\": {:.6f}, \"interval\": [{:.6f}, {:.6f}]", one.slowdown, one.low, one.high);
    out.print(", \"median\": {:.6f}, \"median_interval\": [{:.6f}, {:.6f}]", one.median, one.median_low,
              one.median_high);
    out.print(", \"recorder_cpu\": {:.6f}, \"kernel_sched_cpu\": {:.6f}, \"kernel_syscalls_cpu\": {:.6f}",
              one.recorder_share, one.sched_share, one.syscalls_share);
    out.print(", \"events_per_s\": {:.1f}, \"dropped\": {}, \"log_ratios\": [", one.events_per_s, one.dropped);
    for (std::size_t i = 0; i < one.ratios.size(); ++i) out.print("{}{:.6f}", i == 0 ? "" : ", ", one.ratios[i]);
    out.print("]}}");
  }
  out.print("\n]}}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  // The workload and the recorder alike: other programs disturb less, between the two nothing changes.
  // In a session of its own (setsid -w) this also holds where the kernel shares CPUs out by session.
  const bool raised = setpriority(PRIO_PROCESS, 0, -19) == 0;
  if (raised && getsid(0) == getpid()) std::ofstream("/proc/self/autogroup") << "-19";
  std::string folder = "/tmp/culprit-overhead-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) fail("cannot make a folder in /tmp");
  const double load_before = load_average();
  std::vector<Outcome> outcomes;
  for (const auto& [name, preset] :
       {std::pair("none", Preset::deep), std::pair("watch", Preset::watch), std::pair("deep", Preset::deep)}) {
    if (!options.only.empty() && options.only != name) continue;
    const bool records = std::string_view(name) != "none";
    outcomes.push_back(Run(options, folder, records, preset).measure(name));
  }
  for (const char* file : {"/run.pftrace", "/steps.csv"}) unlink((folder + file).c_str());
  rmdir(folder.c_str());
  if (outcomes.empty()) fail("--only is none, watch or deep");

  const double load_after = load_average();
  fmt::print(
      "\ntinyserve, {} thread(s){}, {} blocks, pairs of neighbours; load average {:.1f} before, {:.1f} after{}\n\n",
      options.threads, options.threads == 1 ? fmt::format(" on CPU {}", options.cpu) : "", options.blocks, load_before,
      load_after, raised ? "" : "; priority not raised");
  fmt::print(
      "| recording | slowdown, mean [95 %, t over pairs] | median of pairs [95 %] | pairs | steps | ms per step | "
      "recorder CPU | kernel sched | kernel syscalls | events/s | dropped | attaching, longest |\n"
      "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const Outcome& one : outcomes) {
    const auto percent = [](double mid, double low, double high) {
      return fmt::format("{:+.2f} % [{:+.2f}, {:+.2f}]", 100 * mid, 100 * low, 100 * high);
    };
    const auto share = [&](double value) {
      return one.kernel_known ? fmt::format("{:.3f} %", 100 * value) : "unknown";
    };
    fmt::print("| {} | {} | {} | {} | {} | {:.3f} | {:.3f} % | {} | {} | {:.0f} | {} | {:.0f} ms |\n", one.name,
               percent(one.slowdown, one.low, one.high), percent(one.median, one.median_low, one.median_high),
               one.ratios.size(), one.steps, one.step_ns / 1e6, 100 * one.recorder_share, share(one.sched_share),
               share(one.syscalls_share), one.events_per_s, one.dropped, one.longest_switch_ms);
  }
  fmt::print("\nShares are of one CPU, while recording.\n");
  if (!options.json.empty()) write_json(options, outcomes, {load_before, load_after});
  return 0;
}
