#include "record/nvtx/process_ranges.h"

#include <algorithm>

namespace culprit::record::nvtx {

void ProcessRanges::start(perfetto::Writer& writer, std::uint64_t id, Ns at, std::string_view name,
                          std::span<const perfetto::Argument> arguments) {
  if (open_.size() >= kMostOpen || open_.contains(id)) {
    ++lost_;
    return;
  }
  std::size_t lane = 0;
  while (lane < lanes_.size() && (lanes_[lane].is_open || lanes_[lane].free_from > at)) ++lane;
  if (lane == lanes_.size()) {
    if (lanes_.size() >= kMostOpen) {
      ++lost_;
      return;
    }
    lanes_.push_back({writer.named_track("NVTX ranges", pid_, 0, static_cast<std::uint32_t>(lane)), 0, false});
  }
  lanes_[lane].is_open = true;
  writer.slice_begin(lanes_[lane].track, at, name, "nvtx", arguments);
  const Open open{lane, at, true};
  if (const auto early = early_ends_.find(id); early != early_ends_.end()) {
    finish(writer, open, early->second.at);
    early_ends_.erase(early);
    return;
  }
  open_.emplace(id, open);
}

void ProcessRanges::finish(perfetto::Writer& writer, const Open& open, Ns at) {
  Lane& lane = lanes_[open.lane];
  lane.is_open = false;
  lane.free_from = std::max(at, open.begin);
  if (open.is_written) writer.slice_end(lane.track, lane.free_from);
}

void ProcessRanges::cut() {
  for (auto& [id, open] : open_) open.is_written = false;
}

void ProcessRanges::end(perfetto::Writer& writer, std::uint64_t id, Ns at) {
  const auto found = open_.find(id);
  if (found != open_.end()) {
    finish(writer, found->second, at);
    open_.erase(found);
  } else if (early_ends_.size() >= kMostOpen || !early_ends_.emplace(id, EarlyEnd{at, 0}).second) {
    ++lost_;
  }
}

void ProcessRanges::settle() {
  for (auto& [id, end] : early_ends_) ++end.rounds;
  lost_ += std::erase_if(early_ends_, [](const auto& entry) { return entry.second.rounds > 1; });
}

void ProcessRanges::name_category(std::uint16_t domain, std::uint64_t category, std::string_view name) {
  if (categories_.size() < kMostNames) categories_[{domain, category}] = name;
}

std::string ProcessRanges::category(std::uint16_t domain, std::uint64_t category) const {
  const auto found = categories_.find({domain, category});
  return found != categories_.end() ? found->second : std::to_string(category);
}

}  // namespace culprit::record::nvtx
