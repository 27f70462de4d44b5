#include "record/nvtx/thread_ranges.h"

#include <algorithm>

#include "record/collector/step_name.h"

namespace culprit::record::nvtx {

namespace {

constexpr std::string_view kUnnamed = "(unnamed)";

std::string_view name_of(const Event& event) { return event.text.empty() ? kUnnamed : event.text; }

}  // namespace

/// The default domain lies on the thread itself; another one nests by itself and needs a track of its own.
perfetto::TrackUuid ThreadRanges::track(perfetto::Writer& writer, std::uint16_t id) {
  Domain& domain = of(id);
  if (!domain.has_track) {
    domain.has_track = true;
    domain.track =
        id == 0 ? writer.thread_track(pid_, tid_) : writer.named_track("NVTX " + domain_name(id), pid_, tid_, id);
  }
  return domain.track;
}

std::string ThreadRanges::domain_name(std::uint16_t id) const {
  if (id == 0) return {};
  const std::string& name = domains_[id < kDomains ? id : 0].name;
  return name.empty() ? "domain " + std::to_string(id) : name;
}

void ThreadRanges::name_domain(std::uint16_t id, std::string_view name) {
  if (id != 0 && id < kDomains && domains_[id].name.empty()) domains_[id].name = name;
}

void ThreadRanges::close_top(perfetto::Writer& writer, Domain& domain, std::uint16_t id, Ns at) {
  const Open top = domain.open.back();
  domain.open.pop_back();
  if (top.is_written) writer.slice_end(track(writer, id), at);
}

void ThreadRanges::push(perfetto::Writer& writer, const Event& event, Ns at,
                        std::span<const perfetto::Argument> arguments) {
  if (event.depth == kTooDeep) {
    ++counts_.unpaired;
    return;
  }
  Domain& domain = of(event.domain);
  while (domain.open.size() > event.depth) {  // their ends were lost
    close_top(writer, domain, event.domain, at);
    ++counts_.unpaired;
  }
  while (domain.open.size() < event.depth) {  // their begins were
    domain.open.emplace_back();
    ++counts_.unpaired;
  }
  const bool inside_step = std::ranges::any_of(domain.open, &Open::is_step);
  domain.open.push_back({.is_written = true, .is_step = !inside_step && is_step_name(event.text)});
  writer.slice_begin(track(writer, event.domain), at, name_of(event), "nvtx", arguments);
}

void ThreadRanges::pop(perfetto::Writer& writer, const Event& event, Ns at) {
  Domain& domain = of(event.domain);
  if (event.depth == kTooDeep) return;
  while (domain.open.size() > std::size_t{event.depth} + 1) {
    close_top(writer, domain, event.domain, at);
    ++counts_.unpaired;
  }
  if (domain.open.size() != std::size_t{event.depth} + 1) {
    ++counts_.unpaired;
    return;
  }
  const bool is_step = domain.open.back().is_step && domain.open.back().is_written;
  close_top(writer, domain, event.domain, at);
  if (is_step) ++counts_.steps;
}

void ThreadRanges::cut() {
  for (Domain& domain : domains_)
    for (Open& open : domain.open) open.is_written = false;
}

void ThreadRanges::mark(perfetto::Writer& writer, const Event& event, Ns at,
                        std::span<const perfetto::Argument> arguments) {
  writer.instant(track(writer, event.domain), at, name_of(event), "nvtx", arguments);
}

}  // namespace culprit::record::nvtx
