#include "record/python/requests.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace culprit::record::python {

namespace {

constexpr std::size_t kMostLanes = 1024;
constexpr Ns kAhead = 1'000'000'000;

std::optional<std::int64_t> number_named(std::string_view name, std::span<const std::string_view> names,
                                         std::span<const std::optional<std::int64_t>> numbers, Ns now) {
  if (name == kNow) return now;
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return std::nullopt;
  const auto number = numbers[static_cast<std::size_t>(at - names.begin())];
  return number.value_or(0) > 0 ? number : std::nullopt;
}

/// Whether each that begins inside of another ends there, too: slices of one track must.
bool lie_within(std::span<const RequestTime> times) {
  std::vector<Ns> open;
  for (const RequestTime& time : times) {
    while (!open.empty() && open.back() <= time.begin) open.pop_back();
    if (!open.empty() && time.end > open.back()) return false;
    open.push_back(time.end);
  }
  return true;
}

}  // namespace

std::vector<RequestTime> request_times(std::span<const RequestSpan> spans, std::span<const std::string_view> names,
                                       std::span<const std::optional<std::int64_t>> numbers, Ns now) {
  const auto number = [&](std::string_view name) { return number_named(name, names, numbers, now); };
  const auto point = [&](std::string_view text) -> std::optional<Ns> {
    const std::size_t minus = text.find('-');
    const auto from = number(text.substr(0, minus));
    if (minus == std::string_view::npos || !from) return from;
    const auto less = number(text.substr(minus + 1));
    return less && *less < *from ? std::optional(*from - *less) : std::nullopt;
  };
  std::vector<RequestTime> times;
  for (const RequestSpan& span : spans) {
    const auto begin = point(span.begin);
    auto end = point(span.end);
    if (!begin || !end || *end < *begin || *end > now + kAhead) continue;
    if (!span.tokens.empty()) {
      const auto tokens = number(span.tokens);
      if (!tokens || *tokens < 2) continue;
      end = *begin + (*end - *begin) / (*tokens - 1);
    }
    times.push_back({span.name, *begin, *end});
  }
  std::ranges::stable_sort(times, {}, [](const RequestTime& time) { return std::tuple(time.begin, -time.end); });
  return times;
}

void Requests::write(perfetto::Writer& writer, std::span<const RequestTime> times, Ns begun,
                     std::span<const perfetto::Argument> arguments) {
  if (times.empty()) return;
  if (times.front().begin < begun) {
    ++begun_before_;
    return;
  }
  if (lie_within(times)) return write_together(writer, times, arguments);
  for (std::size_t i = 0; i < times.size(); ++i) write_together(writer, times.subspan(i, 1), arguments);
}

void Requests::write_together(perfetto::Writer& writer, std::span<const RequestTime> times,
                              std::span<const perfetto::Argument> arguments) {
  const Ns begin = times.front().begin;
  Ns end = begin;
  for (const RequestTime& time : times) end = std::max(end, time.end);
  auto lane = std::ranges::find_if(lanes_, [&](Ns free) { return free <= begin; });
  if (lane == lanes_.end()) {
    if (lanes_.size() >= kMostLanes) {
      ++unwritten_;
      return;
    }
    lane = lanes_.insert(lanes_.end(), 0);
  }
  *lane = end;
  const perfetto::TrackUuid track =
      writer.named_track("requests", pid_, 0, static_cast<std::uint32_t>(lane - lanes_.begin()));
  for (const RequestTime& time : times) writer.slice(track, time.begin, time.end, time.name, "request", arguments);
}

}  // namespace culprit::record::python
