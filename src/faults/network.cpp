// Delay and loss on a network interface, by the kernel's netem queue. Only where the default queue is, because only the
// default comes back by itself when netem is taken away.

#include <fmt/format.h>
#include <net/if.h>
#include <unistd.h>

#include "core/escape.h"
#include "core/text.h"
#include "faults/catalog.h"
#include "faults/command.h"
#include "faults/injector.h"

namespace culprit::faults {

namespace {

constexpr double kMostDelayMs = 100;
constexpr double kMostLossPercent = 5;
constexpr const char* kHandle = "c0de:";  // the undo step removes a queue of this name only

class Network final : public Injector {
 public:
  Network(std::string tc, std::string interface, double severity)
      : tc_(std::move(tc)),
        interface_(std::move(interface)),
        delay_(fmt::format("{:.3f}ms", kMostDelayMs * severity)),
        loss_(fmt::format("{:.3f}%", kMostLossPercent * severity)) {}

  [[nodiscard]] std::string what() const override {
    return fmt::format("packets leaving by {} are delayed by {} and {} are lost", escape_terminal(interface_), delay_,
                       loss_);
  }
  Status prepare(const std::function<bool()>&) override { return {}; }
  Status begin(Guard& guard) override {
    // Whether netem is there is asked again by the step itself: without it, deleting is no failure.
    if (Status status = guard.add({Undo::Kind::remove_queue, {tc_, interface_, kHandle}}); !status) return status;
    const auto outcome = run_command(
        {tc_, "qdisc", "add", "dev", interface_, "root", "handle", kHandle, "netem", "delay", delay_, "loss", loss_});
    if (!outcome) return outcome.error();
    if (outcome->exit_code != 0) return environment_error(escape_terminal(outcome->text), tc_);
    return {};
  }
  Result<Ns> tick(Guard&, Ns now) override { return now + 1'000'000'000; }
  void end() override {
    if (const auto outcome = run_command({tc_, "-s", "qdisc", "show", "dev", interface_}); outcome)
      statistics_ = outcome->text;
  }
  [[nodiscard]] std::vector<Figure> figures() const override {
    return {{"interface", interface_}, {"delay", delay_}, {"loss", loss_}, {"queue", statistics_}};
  }

 private:
  std::string tc_;
  std::string interface_;
  std::string delay_;
  std::string loss_;
  std::string statistics_;
};

}  // namespace

Status network_available() {
  const auto tc = find_program("tc");
  if (!tc) return environment_error("the program tc is not installed", "", "install iproute2");
  if (geteuid() != 0) return environment_error("only root may change network queues", "", "run as root");
  const auto outcome =
      run_command({*tc, "qdisc", "add", "dev", "lo", "root", "handle", kHandle, "netem", "delay", "1ms"}, true);
  if (!outcome) return outcome.error();
  if (outcome->exit_code != 0)
    return environment_error(fmt::format("this kernel has no netem queue (sch_netem): {}", outcome->text), *tc,
                             "load the module sch_netem, or use a kernel that has it");
  return {};
}

Result<std::unique_ptr<Injector>> make_network(const Request& request, const ProcessHandle*) {
  const auto tc = find_program("tc");
  if (!tc) return environment_error("the program tc is not installed", "", "install iproute2");
  if (if_nametoindex(request.interface.c_str()) == 0)
    return usage_error(fmt::format("there is no network interface '{}'", request.interface), "see 'ip link'");
  const auto shown = run_command({*tc, "qdisc", "show", "dev", request.interface});
  if (!shown) return shown.error();
  if (shown->exit_code != 0) return environment_error(shown->text, *tc);
  for (const std::string_view line : split_lines(shown->text)) {
    // "qdisc noqueue 0: root refcnt 2": the kernel's own default has the handle 0:.
    const auto words = split_words(line);
    if (words.size() < 4 || words[0] != "qdisc" || words[2] == "0:") continue;
    return environment_error(
        fmt::format("has the queue {} {} of somebody else, which could not be brought back", words[1], words[2]),
        request.interface, "choose another one by --interface");
  }
  return std::unique_ptr<Injector>(std::make_unique<Network>(*tc, request.interface, request.severity));
}

}  // namespace culprit::faults
