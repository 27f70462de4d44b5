#include "record/sched/sched.h"

#include <utility>

#include "record/collector/file_end.h"
#include "record/sched/kernel_sched.h"
#include "record/sched/schedstat.h"

namespace culprit::record::sched {

namespace {

/// eBPF when start() can open it, else schedstat. What eBPF would have seen stays among the sights.
class WithFallback final : public Collector, public FileEnd {
 public:
  WithFallback(std::shared_ptr<bpf::Probes> probes, const SchedOptions& options)
      : used_(std::make_unique<KernelSched>(std::move(probes), options)) {}

  [[nodiscard]] std::string_view name() const override { return "sched"; }

  Status start(Session& session) override {
    if (used_->start(session)) return {};
    missed_ = used_->sights();
    used_ = make_schedstat();
    return used_->start(session);
  }

  [[nodiscard]] std::vector<Sight> sights() const override {
    std::vector<Sight> all = missed_;
    for (Sight& sight : used_->sights()) all.push_back(std::move(sight));
    return all;
  }

  void target_joined(const Target& target) override { used_->target_joined(target); }
  void target_left(const Target& target) override { used_->target_left(target); }
  void poll(Session& session, Ns now) override { used_->poll(session, now); }
  void file_ends(Session& session, Ns now) override { end_file(*used_, session, now); }
  void stop(Session& session, Ns now) override { used_->stop(session, now); }
  [[nodiscard]] CollectorStats stats() const override { return used_->stats(); }

 private:
  std::unique_ptr<Collector> used_;
  std::vector<Sight> missed_;
};

}  // namespace

std::unique_ptr<Collector> make_sched(std::shared_ptr<bpf::Probes> probes, const SchedOptions& options) {
  return std::make_unique<WithFallback>(std::move(probes), options);
}

std::unique_ptr<Collector> make_schedstat() { return std::make_unique<Schedstat>(); }

}  // namespace culprit::record::sched
