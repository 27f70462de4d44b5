#include "record/inject/pending.h"

#include <fmt/format.h>

#include <exception>
#include <stop_token>
#include <utility>

#include "record/collector/collector.h"
#include "record/collector/prompt.h"

namespace culprit::record::inject {

Pending::Pending(std::int64_t pid, const Agent& agent, const std::string& config)
    : begun_(monotonic_now()),
      thread_([this, pid, &agent, &config, is_prompt = Prompt::is_held()](const std::stop_token& given_up) {
        std::optional<Prompt> prompt;
        if (is_prompt) prompt.emplace();
        try {
          result_.emplace(inject(pid, agent, config, given_up));
        } catch (const std::exception& error) {  // no memory, no thread
          result_.emplace(environment_error(error.what(), fmt::format("process {}", pid)));
        }
        is_done_.store(true, std::memory_order_release);
      }) {}

std::optional<Result<Injected>> Pending::take() {
  if (!is_done_.load(std::memory_order_acquire)) return std::nullopt;
  return std::exchange(result_, std::nullopt);
}

}  // namespace culprit::record::inject
