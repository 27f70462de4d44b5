// What went wrong with an input, as it is shown: see trace/loss.h for the reasons.
#pragma once

#include <cstdint>
#include <string>

namespace culprit::model {

/// One reason, how bad it is ("data_loss", "warning", "info"), what it means and what to do, and how often.
struct LossCount {
  std::string reason;
  std::string severity;
  std::string meaning;
  std::string remedy;
  std::string first_seen;
  std::uint64_t count = 0;
};

}  // namespace culprit::model
