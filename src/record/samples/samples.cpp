#include "record/samples/samples.h"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/collector/file_end.h"
#include "record/samples/sampling_rate.h"
#include "record/samples/unwind.h"

namespace culprit::record::samples {

namespace {

constexpr std::size_t kMostNames = std::size_t{1} << 16;
constexpr std::size_t kMostWaiting = 8192;
constexpr unsigned kMostUnwound = 5000;  ///< samples a second: one takes some 50 us

/// Whether so many CPUs can be asked so often.
bool can_unwind(unsigned hz) {
#ifdef __x86_64__
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  return cpus > 0 && static_cast<unsigned>(cpus) * hz <= kMostUnwound;
#else
  return hz == 0;  // frame pointers are the rule elsewhere
#endif
}

class Samples final : public Collector, public FileEnd, private bpf::Listener {
 public:
  Samples(std::shared_ptr<bpf::Probes> probes, const SamplesOptions& options,
          std::shared_ptr<interpreter::PythonStacks> python)
      : probes_(std::move(probes)), python_(std::move(python)), options_(options), rate_(options.hz) {
    probes_->want(bpf::kSamples);
    unwinds_ = options_.call_graph == CallGraph::dwarf && can_unwind(options_.hz);
    probes_->set_sample_rate(options_.hz);
    probes_->set_take_memory(unwinds_);
    probes_->listen(*this);
  }
  ~Samples() override { probes_->unlisten(*this); }

  [[nodiscard]] std::string_view name() const override { return "samples"; }

  Status start(Session& session) override {
    Status status = probes_->open();
    if (status) status = probes_->samples();
    if (!status) {
      error_ = status.error().what;
      remedy_ = status.error().remedy;
      return status;
    }
    started_ = true;
    writer_ = &session.writer;
    session.writer.sampling_rate(options_.hz);
    session.writer.metadata("samples.rate_hz", std::to_string(options_.hz));
    round_begin_ = monotonic_now();
    for (const Target& target : session.targets) target_joined(target);
    if (python_) python_->poll(monotonic_now());
    return {};
  }

  [[nodiscard]] std::vector<Sight> sights() const override {
    const RatesUsed used = rate_.used();
    const std::string rarer =
        used.lowest_hz < options_.hz
            ? fmt::format(" ({:.1f} on average, {:.1f} at least: more would take over {:.0f} % of one CPU)",
                          used.mean_hz, used.lowest_hz, kMostShare * 100)
            : "";
    return {{fmt::format("call stacks of what runs, {} times a second{}{}", options_.hz, rarer,
                         unwinds_ ? "" : " (of code built with frame pointers)"),
             started_, error_, remedy_}};
  }

  void target_joined(const Target& target) override {
    probes_->add_target(target.pid);
    if (python_) python_->target_joined(target.pid);
  }
  void target_left(const Target& target) override {
    probes_->target_ended(target.pid);
    if (python_) python_->target_left(target.pid);
    symbols().forget(target.pid);
    unwinder_.forget(target.pid);
  }

  void poll(Session& /*session*/, Ns now) override {
    probes_->consume();
    if (python_) python_->poll(now);
    symbols().name_when_due(now);
    {
      const CpuCount count(cpu_);
      write_named();
    }
    if (now - round_begin_ < kRoundLasts) return;
    end_round(now);
    probes_->take_samples_of(rate_.every());
  }

  void file_ends(Session& session, Ns now) override {
    poll(session, now);
    if (writer_ == nullptr) return;
    // What waits for names of functions belongs into this file.
    symbols().name_all();
    write_named();
    write_rates();
  }

  void stop(Session& /*session*/, Ns now) override {
    if (writer_ == nullptr) return;
    probes_->detach();
    end_round(now);
    while (probes_->consume() > 0) {
    }
    symbols().name_all();
    write_named();
    write_rates();
    writer_ = nullptr;
  }

  [[nodiscard]] CollectorStats stats() const override {
    CollectorStats stats;
    stats.events = events_;
    stats.dropped = probes_->losses().ring_full_samples;
    stats.kernel_cpu_ns = probes_->kernel_cpu().samples_ns;
    return stats;
  }

 private:
  /// Waits for the names of its functions.
  struct Sample {
    perfetto::StackTaken taken;
    bpf::CodeStack stack;
    std::shared_ptr<const interpreter::PythonStack> python;
  };

  /// Adds the CPU that this thread takes while it lives.
  class CpuCount {
   public:
    explicit CpuCount(Ns& sum) : sum_(sum), before_(thread_cpu()) {}
    ~CpuCount() { sum_ += thread_cpu() - before_; }
    CpuCount(const CpuCount&) = delete;
    CpuCount& operator=(const CpuCount&) = delete;

   private:
    Ns& sum_;
    Ns before_;
  };

  /// What a thread had when its CPU was asked.
  struct Memory {
    std::uint64_t at = 0;
    std::int32_t tid = 0;
    std::vector<std::uint64_t> registers;
    std::vector<std::uint8_t> stack;
  };

  /// Reading symbol tables is left out: it is done once for each function, and sees to its share itself.
  void end_round(Ns now) {
    Ns cpu = std::exchange(cpu_, 0);
    if (const bpf::KernelCpu kernel = probes_->kernel_cpu(); kernel.known && events_ > 0)
      cpu += static_cast<Ns>(static_cast<double>(kernel.samples_ns) * static_cast<double>(events_ - events_before_) /
                             static_cast<double>(events_));
    events_before_ = events_;
    rate_.round_ended(cpu, now - std::exchange(round_begin_, std::max(round_begin_, now)));
  }

  void write_rates() {
    const RatesUsed used = rate_.used();
    writer_->metadata("samples.mean_rate_hz", fmt::format("{:.1f}", used.mean_hz));
    writer_->metadata("samples.lowest_rate_hz", fmt::format("{:.1f}", used.lowest_hz));
  }

  void on_memory(const culprit_memory& record) override {
    const CpuCount count(cpu_);
    Memory& memory = memory_[record.head.cpu];
    memory.at = record.head.at;
    memory.tid = record.tid;
    memory.registers.assign(std::begin(record.registers), std::end(record.registers));
    memory.stack.assign(record.bytes, record.bytes + record.size);
  }

  /// The callers of user code by the way that finds more of them: each ends where the other may go on.
  std::vector<std::uint64_t> user_chain(const culprit_sample& record, std::span<const std::uint64_t> by_pointers) {
    const auto memory = memory_.find(record.head.cpu);
    std::vector<std::uint64_t> chain;
    if (memory != memory_.end() && memory->second.at == record.head.at && memory->second.tid == record.tid)
      chain = unwinder_.chain({record.tgid, memory->second.registers, memory->second.stack},
                              static_cast<Ns>(record.head.at), CULPRIT_USER_FRAMES);
    if (chain.size() < by_pointers.size()) chain.assign(by_pointers.begin(), by_pointers.end());
    return chain;
  }

  void on_sample(const culprit_sample& record) override {
    if (writer_ == nullptr) return;
    const CpuCount count(cpu_);
    ++events_;
    name_thread(record);
    const std::vector<std::uint64_t> addresses(record.frames,
                                               record.frames + record.kernel_frames + record.user_frames);
    const std::span<const std::uint64_t> frames(addresses);
    const auto kernel = frames.first(record.kernel_frames);
    const auto user = frames.subspan(record.kernel_frames);
    Sample& sample = waiting_.emplace_back();
    symbols().append_user(record.tgid, user_chain(record, user), static_cast<Ns>(record.head.at), sample.stack);
    symbols().append_kernel(kernel, sample.stack);
    if (python_) sample.python = python_->find(record.tgid, record.python);
    perfetto::StackTaken& taken = sample.taken;
    taken.at = static_cast<Ns>(record.head.at);
    taken.cpu = record.head.cpu;
    taken.pid = record.tgid;
    taken.tid = record.tid;
    taken.in_kernel = !kernel.empty();
    taken.asks = std::max(1U, record.asks);
    if (waiting_.size() >= kMostWaiting) symbols().name_all();
    write_named();
  }

  void on_exec(const culprit_task& record) override {
    symbols().forget(record.tgid);
    unwinder_.forget(record.tgid);
  }
  void on_exit(const culprit_task& record) override {
    names_.erase(record.tid);
    if (record.group_dead == 0) return;
    symbols().forget(record.tgid);
    unwinder_.forget(record.tgid);
  }

  /// In the order in which they were taken.
  void write_named() {
    for (; !waiting_.empty() && bpf::is_named(waiting_.front().stack); waiting_.pop_front()) {
      frames_.clear();
      const Sample& sample = waiting_.front();
      const bpf::CodeStack stack = sample.python ? interpreter::merged(sample.stack, *sample.python) : sample.stack;
      for (const auto& code : stack) frames_.push_back(bpf::frame_of(*code));
      writer_->stack(waiting_.front().taken, frames_);
    }
  }

  bpf::Symbols& symbols() { return probes_->symbols(); }

  /// Others may not be there to do it.
  void name_thread(const culprit_sample& record) {
    const std::string_view name = bpf::comm(record.comm);
    if (names_.size() >= kMostNames) names_.clear();
    const auto [found, is_new] = names_.try_emplace(record.tid, name);
    if (!is_new && found->second == name) return;
    found->second = name;
    writer_->thread(record.tgid, record.tid, name);
  }

  std::shared_ptr<bpf::Probes> probes_;
  std::shared_ptr<interpreter::PythonStacks> python_;
  SamplesOptions options_;
  perfetto::Writer* writer_ = nullptr;  // from start() to stop(): other collectors of the same programs also consume
  bool started_ = false;
  bool unwinds_ = false;
  SamplingRate rate_;
  Ns round_begin_ = 0;
  Ns cpu_ = 0;                       // that the stacks of this round took in this thread
  std::uint64_t events_before_ = 0;  // in earlier rounds
  Unwinder unwinder_;
  std::unordered_map<std::uint32_t, Memory> memory_;  // by CPU
  std::string error_;
  std::string remedy_;
  std::uint64_t events_ = 0;
  std::deque<Sample> waiting_;
  std::vector<perfetto::CodeFrame> frames_;
  std::unordered_map<std::int32_t, std::string> names_;  // as last written
};

}  // namespace

std::unique_ptr<Collector> make_samples(std::shared_ptr<bpf::Probes> probes, const SamplesOptions& options,
                                        std::shared_ptr<interpreter::PythonStacks> python) {
  return std::make_unique<Samples>(std::move(probes), options, std::move(python));
}

}  // namespace culprit::record::samples
