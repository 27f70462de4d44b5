#include "record/host/host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "record/collector/file_end.h"
#include "record/host/sampler.h"

namespace culprit::record {

namespace {

class HostCollector : public Collector, public FileEnd {
 public:
  explicit HostCollector(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] std::string_view name() const override { return "host"; }

  Status start(Session& session) override {
    HostOptions options;
    options.root = root_;
    options.own_pid = session.own_pid;
    if (session.preset == Preset::watch) options.interval = 1'000'000'000;
    perfetto::Writer* writer = &session.writer;
    CounterOut out{[writer](std::string_view name, std::string_view unit, std::int64_t pid) {
                     return writer->counter_track(name, unit, pid);
                   },
                   [writer](std::uint64_t track, Ns at, double value) { writer->counter(track, at, value); },
                   [writer](std::int64_t pid, std::string_view name) {
                     perfetto::ProcessInfo info;
                     info.pid = pid;
                     info.name = name;
                     info.recorded = false;
                     writer->process(info);
                   }};
    sampler_.emplace(options, std::move(out));
    for (const Target& target : session.targets) sampler_->join(target);
    session.writer.metadata("host.interval_ns", std::to_string(options.interval));
    return {};
  }

  [[nodiscard]] std::vector<Sight> sights() const override {
    return sampler_ ? sampler_->sights() : HostSampler({root_, 0, 0, 0}, {}).sights();
  }

  void target_joined(const Target& target) override {
    if (sampler_) sampler_->join(target);
  }
  void target_left(const Target& target) override {
    if (sampler_) sampler_->leave(target.pid);
  }

  void poll(Session& /*session*/, Ns now) override {
    if (sampler_ && !stopped_) sampler_->poll(now);
  }

  void file_ends(Session& session, Ns now) override {
    poll(session, now);
    if (sampler_) sampler_->begin_file(now);
  }

  void stop(Session& session, Ns now) override {
    if (!sampler_ || stopped_) return;
    stopped_ = true;
    sampler_->finish(now);
    session.writer.metadata("cost.host.samples", std::to_string(sampler_->samples()));
    session.writer.metadata("cost.host.cpu_ns", std::to_string(sampler_->cpu_ns()));
    session.writer.metadata("cost.host.speed_preempted", std::to_string(sampler_->speed_preempted()));
    session.writer.metadata("cost.host.odd_values", std::to_string(sampler_->emitter().odd()));
  }

  [[nodiscard]] CollectorStats stats() const override {
    CollectorStats stats;
    if (!sampler_) return stats;
    stats.events = sampler_->emitter().written();
    stats.dropped = sampler_->emitter().odd();
    return stats;
  }

 private:
  std::string root_;
  std::optional<HostSampler> sampler_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Collector> make_host_collector(const std::string& root) {
  return std::make_unique<HostCollector>(root);
}

}  // namespace culprit::record
