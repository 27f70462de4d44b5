#include "record/environment/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "record/environment/disturbances.h"
#include "record/environment/facts.h"
#include "record/environment/tools.h"

namespace culprit::record {

namespace {

constexpr std::size_t kMostTargets = 64;
/// A program loads its libraries in its first seconds; later ones are found when the recording ends.
constexpr std::array<Ns, 3> kLooks = {500'000'000, 5'000'000'000, 30'000'000'000};
constexpr Ns kFaultsOften = 500'000'000;
constexpr Ns kToolsOften = 5'000'000'000;  // a look takes some microseconds for each process

class EnvironmentCollector : public Collector {
 public:
  explicit EnvironmentCollector(EnvironmentOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return "environment"; }

  Status start(Session& session) override {
    for (const Fact& fact : host_facts(options_.root, options_.hostname)) write(session, "env." + fact.key, fact.value);
    sights_.clear();
    sights_.push_back({"kernel, CPUs, memory and settings of the machine", written_ != 0,
                       written_ != 0 ? "" : "/proc and /sys cannot be read",
                       written_ != 0 ? "" : "mount /proc and /sys"});
    for (const Fact& fact : nvidia_facts(options_.root, sights_)) write(session, "env." + fact.key, fact.value);
    for (const Target& target : session.targets) target_joined(target);
    started_ = true;
    for (Known& known : targets_) look(session, known);
    return {};
  }

  [[nodiscard]] std::vector<Sight> sights() const override {
    std::vector<Sight> sights = sights_;
    if (started_) {
      const bool all = hidden_ == 0;
      sights.push_back({"libraries, packages and settings of the targets", all,
                        all ? "" : fmt::format("environment and maps of {} targets cannot be read", hidden_),
                        all ? "" : "run as the same user as the target, or as root"});
    } else if (sights.empty()) {
      nvidia_facts(options_.root, sights);
    }
    return sights;
  }

  void target_joined(const Target& target) override {
    const auto same = [&](const Known& k) { return k.pid == target.pid && !k.gone; };
    if (numbers_ >= kMostTargets || std::ranges::any_of(targets_, same)) return;
    Known known;
    known.pid = target.pid;
    known.number = numbers_++;
    targets_.push_back(std::move(known));
  }

  void target_left(const Target& target) override {
    const auto same = [&](const Known& k) { return k.pid == target.pid && !k.gone; };
    const auto found = std::ranges::find_if(targets_, same);
    if (found == targets_.end()) return;
    // The first one stays: the others are compared with it. Its number may become somebody else's.
    found->gone = true;
    if (found->number != 0) targets_.erase(found);
  }

  void poll(Session& session, Ns now) override {
    if (stopped_) return;
    if (now - looked_for_faults_ >= kFaultsOften) {
      looked_for_faults_ = now;
      for (const std::string& fault : running_faults(options_.fault_folders))
        if (faults_.insert(fault).second) write(session, "inject." + fault, "running");
    }
    if (now - looked_for_tools_ >= kToolsOften) {
      looked_for_tools_ = now;
      look_for_tools(session);
      return;
    }
    for (Known& known : targets_) {
      if (known.joined == 0) known.joined = now;
      if (known.gone || known.looks >= kLooks.size() || now - known.joined < kLooks[known.looks]) continue;
      ++known.looks;
      look(session, known);
      return;  // one at a time: a look takes milliseconds
    }
  }

  void stop(Session& session, Ns /*now*/) override {
    if (stopped_ || !started_) return;
    stopped_ = true;
    look_for_tools(session);
    if (tools_.empty() && sees_tools_) write(session, "env.profilers", "none");
    for (Known& known : targets_)
      if (!known.gone) look(session, known);
    // Of a target that is as the first one nothing else is written.
    if (looked_at_ != 0) write(session, "env.targets", std::to_string(looked_at_));
  }

  [[nodiscard]] CollectorStats stats() const override {
    CollectorStats stats;
    stats.events = written_;
    return stats;
  }

 private:
  struct Known {
    std::int64_t pid = 0;
    Ns joined = 0;
    std::size_t looks = 0;
    std::size_t number = 0;
    bool blind = false;
    bool gone = false;
    std::map<std::string, std::string> written;
  };

  void write(Session& session, const std::string& key, const std::string& value) {
    session.writer.metadata(key, value);
    ++written_;
  }

  void look_for_tools(Session& session) {
    const auto running = running_tools(options_.root);
    sees_tools_ = running.has_value();
    for (const std::string& tool : running.value_or(std::set<std::string>()))
      if (tools_.insert(tool).second) write(session, "env.profilers", tool);
  }

  void look(Session& session, Known& known) {
    const auto facts = target_facts(options_.root, known.pid);
    if (facts.empty()) return;
    if (known.written.empty()) ++looked_at_;
    const bool sees = std::ranges::any_of(facts, [](const Fact& f) { return f.key.starts_with("library."); });
    if (!sees && !known.blind) ++hidden_, known.blind = true;
    if (sees && known.blind) --hidden_, known.blind = false;
    const auto* first = targets_.empty() || &targets_.front() == &known ? nullptr : &targets_.front().written;
    const std::string prefix = known.number == 0 ? "env.target." : fmt::format("env.target{}.", known.number);
    for (const Fact& fact : facts) {
      std::string& last = known.written[fact.key];
      if (last == fact.value) continue;
      last = fact.value;
      if (first != nullptr) {
        const auto same = first->find(fact.key);
        if (same != first->end() && same->second == fact.value) continue;
      }
      write(session, prefix + fact.key, fact.value);
    }
  }

  EnvironmentOptions options_;
  std::vector<Known> targets_;
  std::vector<Sight> sights_;
  std::set<std::string> faults_;  ///< that were seen at work
  std::set<std::string> tools_;   ///< profilers and debuggers that were seen
  bool sees_tools_ = false;
  Ns looked_for_faults_ = 0;
  Ns looked_for_tools_ = 0;
  std::size_t numbers_ = 0;
  std::size_t hidden_ = 0;
  std::size_t looked_at_ = 0;
  std::uint64_t written_ = 0;
  bool started_ = false;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Collector> make_environment_collector(EnvironmentOptions options) {
  return std::make_unique<EnvironmentCollector>(std::move(options));
}

}  // namespace culprit::record
