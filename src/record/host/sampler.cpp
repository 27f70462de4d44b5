#include "record/host/sampler.h"

#include <unistd.h>

#include <algorithm>

#include "record/collector/collector.h"

namespace culprit::record {

namespace {

constexpr Ns kLeastLastLook = 200'000'000;  // of CPU time that /proc tells in hundredths of a second
// A look at all processes comes early when others have used so much CPU time since the last one (ns), beyond those
// that it found, and costs 1 % of a CPU at most then: who comes and goes between two looks has no name.
constexpr double kMuchUnnamed = 0.25e9;
constexpr Ns kRestWhileUnnamed = 100;

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(std::max(sysconf(_SC_PAGESIZE), 4096L)); }

ProcessOptions process_options(const HostOptions& options) {
  ProcessOptions process;
  process.root = options.root;
  process.own_pid = options.own_pid;
  process.page_bytes = page_bytes();
  process.ticks_per_second = static_cast<std::uint64_t>(std::max(sysconf(_SC_CLK_TCK), 1L));
  return process;
}

}  // namespace

HostSampler::HostSampler(const HostOptions& options, CounterOut out)
    : options_(options),
      emitter_(std::move(out)),
      cpu_(options.root),
      memory_(options.root, page_bytes()),
      disks_(options.root),
      networks_(options.root),
      connections_(options.root),
      sensors_(options.root),
      groups_(options.root),
      processes_(process_options(options)),
      others_{"host.cpu.others", "count"} {}

void HostSampler::join(const Target& target) {
  if (std::ranges::find(pids_, target.pid) == pids_.end()) pids_.push_back(target.pid);
  processes_.join(target);
  groups_.place(target.pid);
  connections_.join(target.pid);
}

void HostSampler::leave(std::int64_t pid) {
  std::erase(pids_, pid);
  processes_.leave(pid);
  groups_.forget(pid);
  connections_.leave(pid);
}

bool HostSampler::poll(Ns now) {
  // Of the machine this runs on, not of one that a test has made.
  const Ns before = thread_cpu();
  if (options_.root.empty() && speed_.sample(now, emitter_)) cpu_ns_ += thread_cpu() - before;
  if (now < due_) return false;
  const Ns begin = thread_cpu();
  sample(now);
  cpu_ns_ += thread_cpu() - begin;
  // Samples that were missed are not made up for.
  due_ = std::max(due_ + options_.interval, now + options_.interval / 2);
  return true;
}

void HostSampler::sample(Ns now) {
  cpu_.sample(now, emitter_);
  const auto own = processes_.sample(now, emitter_);
  if (const auto& used = cpu_.used(); used && own) {
    const double others = used->cores - *own - processes_.recorder();
    emitter_.put(others_, used->begin, others);
    unnamed_ns_ += std::max(0.0, others - named_) * static_cast<double>(now - used->begin);
  }
  memory_.sample(now, emitter_);
  disks_.sample(now, emitter_);
  groups_.sample(now, emitter_);
  cpu_.sample_frequencies(now, emitter_);
  sample_in_turns(now);
  ++samples_;
}

void HostSampler::sample_in_turns(Ns now) {
  // A target may be moved to another group at any time.
  if (!pids_.empty() && samples_ % 2 == 0) {
    if (next_pid_ >= pids_.size()) next_pid_ = 0;
    groups_.place(pids_[next_pid_++]);
  }
  const bool slow = options_.interval >= 1'000'000'000;
  const std::uint64_t turn = samples_ % 10;
  if (slow || turn == 1) networks_.sample(now, emitter_);
  if (slow || turn == 9 || samples_ == 0) connections_.sample(now, emitter_);
  if (slow || turn == 3) sensors_.sample(now, emitter_);
  if (slow || turn == 5) memory_.sample_nodes(now, emitter_);
  if (slow || turn % 5 == 0) groups_.refresh(now, emitter_);
  const bool early = unnamed_ns_ > kMuchUnnamed && now >= others_early_;
  if (now >= others_due_ || early) sample_others(now);
}

void HostSampler::sample_others(Ns now) {
  const bool first = samples_ == 0;
  const Ns begin = thread_cpu();
  named_ = processes_.sample_others(now, emitter_);
  const Ns cost = thread_cpu() - begin;
  unnamed_ns_ = 0;
  others_at_ = now;
  const Ns every = options_.others_interval;
  const auto after = [&](Ns rest) { return now + std::max(rest, every) - options_.interval / 2; };
  // What the first look finds is only where the counting begins.
  others_due_ = first ? now + every * 7 / 10 - options_.interval / 2 : after(std::min(cost * kRest, kLongestRest));
  others_early_ = first ? others_due_ : after(cost * kRestWhileUnnamed);
}

void HostSampler::finish(Ns now) {
  poll(now);
  if (samples_ > 0 && now - others_at_ >= kLeastLastLook) sample_others(now);
  connections_.finish(now, emitter_);
}

std::vector<Sight> HostSampler::sights() const {
  std::vector<Sight> sights;
  cpu_.sights(sights);
  processes_.sights(sights);
  memory_.sights(sights);
  disks_.sights(sights);
  networks_.sights(sights);
  connections_.sights(sights);
  groups_.sights(sights);
  sensors_.sights(sights);
  SpeedProbes::sights(sights);
  return sights;
}

}  // namespace culprit::record
