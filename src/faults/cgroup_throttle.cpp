// A CPU quota on the target: it runs, is taken off the CPU when its share of the 100 ms is used up, and waits.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/escape.h"
#include "faults/catalog.h"
#include "faults/cgroup.h"
#include "faults/injector.h"
#include "faults/text.h"

namespace culprit::faults {

namespace {

class CgroupThrottle final : public Injector {
 public:
  CgroupThrottle(ProcessId target, QuotaPlan plan, double cpus_left)
      : target_(target), plan_(std::move(plan)), cpus_left_(cpus_left) {}

  [[nodiscard]] std::string what() const override {
    return fmt::format("process {} and its descendants get {:.2f} CPUs by a quota on the cgroup {}", target_.pid,
                       cpus_left_, escape_terminal(plan_.group));
  }
  Status prepare(const std::function<bool()>&) override { return {}; }
  Status begin(Guard& guard) override {
    for (const Undo& undo : plan_.undo)
      if (Status status = guard.add(undo); !status) return status;
    before_ = plan_.own ? ThrottleCount{} : throttle_count(plan_);
    if (Status status = apply_quota(plan_); !status) return status;
    const auto moved = move_tree(plan_, target_);
    if (!moved) return moved.error();
    moved_ = *moved;
    return {};
  }
  Result<Ns> tick(Guard&, Ns now) override { return now + 1'000'000'000; }
  void end() override { after_ = throttle_count(plan_); }
  [[nodiscard]] std::vector<Figure> figures() const override {
    const ThrottleCount now = after_ ? *after_ : throttle_count(plan_);
    return {{"cgroup_version", static_cast<std::int64_t>(plan_.origin.version2 ? 2 : 1)},
            {"processes_moved", static_cast<std::int64_t>(moved_)},
            {"cpus_left", cpus_left_},
            {"periods", now.periods - before_.periods},
            {"throttled_periods", now.throttled_periods - before_.throttled_periods},
            {"throttled_ns", now.throttled_ns - before_.throttled_ns}};
  }

 private:
  ProcessId target_;
  QuotaPlan plan_;
  double cpus_left_;
  ThrottleCount before_;
  std::optional<ThrottleCount> after_;
  std::size_t moved_ = 0;
};

}  // namespace

Result<std::unique_ptr<Injector>> make_cgroup_throttle(const Request& request, const ProcessHandle* target) {
  if (target == nullptr) return usage_error("cgroup-throttle needs a process", "name it by --target");
  const auto origin = cpu_cgroup_of(target->id().pid);
  if (!origin) return origin.error();
  constexpr double kLeastCpus = 0.01;
  const double cpus = cpu_limit_of(*origin, static_cast<double>(allowed_cpus(target->id().pid).size()));
  const double left = std::max(kLeastCpus, (1 - request.severity) * cpus);
  auto plan = plan_quota(process_tree(target->id()), left, "culprit-fault-" + unique_text());
  if (!plan) return plan.error();
  return std::unique_ptr<Injector>(std::make_unique<CgroupThrottle>(target->id(), std::move(*plan), left));
}

Status cgroup_throttle_available() {
  const auto own = cpu_cgroup_of(getpid());
  if (!own) return own.error();
  if (access(own->mount.c_str(), W_OK) != 0)
    return environment_error("the cgroups cannot be changed", own->mount, "run as root");
  return {};
}

}  // namespace culprit::faults
