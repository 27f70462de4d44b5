#include "model/ledger.h"

#include <fmt/format.h>

#include <array>

namespace culprit::model {

std::string_view ledger_state_name(LedgerState state) {
  constexpr std::array<std::string_view, 12> kNames = {
      "function",           "between functions",    "run queue",        "blocked",
      "idle, not launched", "idle, being launched", "idle, dependency", "idle, launched",
      "idle, inside graph", "idle, unknown",        "no work",          "by samples"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string ledger_line_name(LedgerState state, std::string_view function) {
  if (state == LedgerState::function) return std::string(function);
  const std::string_view name = ledger_state_name(state);
  return function.empty() ? std::string(name) : fmt::format("{}: {}", name, function);
}

std::span<const LedgerLine> lines_of(const Ledger& ledger, std::size_t window) {
  const std::size_t begin = ledger.windows[window].first_line;
  const std::size_t end =
      window + 1 < ledger.windows.size() ? ledger.windows[window + 1].first_line : ledger.lines.size();
  return std::span(ledger.lines).subspan(begin, end - begin);
}

}  // namespace culprit::model
