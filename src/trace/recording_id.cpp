#include "trace/recording_id.h"

namespace culprit {

std::string_view recording_id(const Trace& trace) {
  if (trace.ranks.size() != 1 || !trace.ranks[0].recordings.empty()) return {};
  for (const auto& [key, value] : trace.ranks[0].metadata)
    if (key == kRecordingId) return value;
  return {};
}

}  // namespace culprit
