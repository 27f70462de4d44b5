#include "trace/loss.h"

namespace culprit {

namespace {
constexpr std::array<LossInfo, Losses::kReasons> kInfos = {{
#define X(name, severity, meaning, remedy) {#name, Severity::severity, meaning, remedy},
    CULPRIT_LOSS_REASONS(X)
#undef X
}};
}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::data_loss:
      return "data loss";
  }
  return "unknown";
}

const LossInfo& info(LossReason reason) { return kInfos[static_cast<std::size_t>(reason)]; }

std::uint64_t Losses::total() const {
  std::uint64_t sum = 0;
  for (std::uint64_t n : counts_) sum += n;
  return sum;
}

std::uint64_t Losses::total(Severity severity) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kReasons; ++i)
    if (kInfos[i].severity == severity) sum += counts_[i];
  return sum;
}

}  // namespace culprit
