// An agent on its way into a process, while whoever wants it there goes on with other things.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/units.h"
#include "record/inject/inject.h"

namespace culprit::record::inject {

class Pending {
 public:
  /// Begins at once, as prompt as the calling thread. `agent` and `config` outlive it.
  Pending(std::int64_t pid, const Agent& agent, const std::string& config);
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  /// Gives up, and waits for that.
  ~Pending() = default;

  /// CLOCK_MONOTONIC.
  [[nodiscard]] Ns begun() const { return begun_; }
  /// It ends soon: at once where nothing of the process has been changed yet, within seconds otherwise.
  void give_up() { thread_.request_stop(); }
  /// What came of it, once; nothing as long as it is under way.
  std::optional<Result<Injected>> take();

 private:
  Ns begun_ = 0;
  std::optional<Result<Injected>> result_;
  std::atomic<bool> is_done_ = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace culprit::record::inject
