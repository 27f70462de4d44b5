#include "record/syscalls/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "record/syscalls/durations.h"
#include "stats/log_buckets.h"

namespace culprit::record::syscalls {

namespace {

constexpr std::string_view kCounter = "answers";
constexpr std::string_view kUnixCounter = "answers over Unix sockets";

std::uint64_t sum_of(const culprit_times& times, std::size_t from = 0) {
  return std::accumulate(std::begin(times.counts) + from, std::end(times.counts), std::uint64_t{0});
}

/// Of requests that wait as long as windows are apart, no window sees both ends.
constexpr Ns kLong = AnswerWindows::kWindow;
constexpr double kFewLong = 0.01;

void add_bucket(std::string& text, std::size_t bucket, std::int64_t count) {
  text += fmt::format("{}{}:{}", text.empty() ? "" : " ", bucket, count);
}

/// The whole part of what is owed; the rest is owed on.
std::int64_t pay(double& owed) {
  const auto whole = static_cast<std::int64_t>(std::llround(owed));
  owed -= static_cast<double>(whole);
  return whole;
}

}  // namespace

Answers::Answers(bpf::Probes& probes, Ns begin, std::optional<double> few)
    : probes_(probes), windows_(begin, static_cast<std::uint32_t>(begin), few) {}

void Answers::turn(Ns now) {
  const AnswerWindows::Due due = windows_.due(now);
  if (due == AnswerWindows::Due::nothing) return;
  const bool opens = due == AnswerWindows::Due::open;
  probes_.look_at_requests(opens);
  if (opens)
    windows_.opened(now);
  else
    windows_.closed(now);
  in_windows_ = true;
}

void Answers::count(Ns now) {
  const std::size_t long_from = stats::log_bucket_of(kLong);
  std::map<std::int32_t, culprit_sends> sends;  // by slot, since the last time
  double answers = 0;
  double counted = 0, last_long = 0, expected = 0;
  for (const bpf::Times& row : probes_.answer_times()) {
    const std::int32_t slot = row.key.tgid & (CULPRIT_SENDS_SLOTS - 1);
    const auto [of_process, is_first] = sends.try_emplace(slot);
    if (is_first) {
      const culprit_sends sent = probes_.sends(row.key.tgid);
      const culprit_sends before = std::exchange(sends_[slot], sent);
      of_process->second = {sent.all - before.all, sent.seen - before.seen};
    }
    Times& times = times_[{row.key.tgid, row.key.device}];
    // Of a process with a number that was another's the counts begin anew.
    if (sum_of(row.total) < sum_of(times.counted)) times.counted = times.written = {};
    const AnswerPeriod period{static_cast<double>(sum_of(row.total) - sum_of(times.counted)),
                              static_cast<double>(of_process->second.all), static_cast<double>(of_process->second.seen),
                              windows_.is_whole()};
    counted += period.counted;
    last_long += static_cast<double>(sum_of(row.total, long_from) - sum_of(times.counted, long_from));
    expected += times.estimate.expected(period);
    const double more = times.estimate.add(period);
    times.counted = row.total;
    times.answers += more;
    times.unwritten += more;
    answers += more;
  }
  windows_.counted(now, answers, last_long > kFewLong * counted || counted < expected / 2);
  turn(now);
}

void Answers::write_counters(perfetto::Writer& writer, Ns now, Ns since) {
  std::map<AnsweredBy, double> sums;
  for (const auto& [row, times] : times_) sums[{row.first, row.second == 0}] += times.answers;
  for (const auto& [by, sum] : sums) {
    const auto [found, is_new] = tracks_.try_emplace(by);
    Track& answers = found->second;
    if (is_new) {
      answers.track = writer.counter_track(by.second ? kUnixCounter : kCounter, "count", by.first);
      answers.begin = since;
    }
    if (const auto begin = std::exchange(answers.begin, std::nullopt); begin && *begin < now)
      writer.counter(answers.track, *begin, static_cast<double>(answers.told));
    answers.told = static_cast<std::uint64_t>(std::llround(sum));
    writer.counter(answers.track, now, static_cast<double>(answers.told));
    events_ += 1;
  }
}

void Answers::write_times(perfetto::Writer& writer, Ns now, bool is_last,
                          const std::function<bool(std::int64_t pid)>& is_gone) {
  std::map<std::uint32_t, PortAnswers> ports;
  for (auto it = times_.begin(); it != times_.end();) {
    auto& [row, times] = *it;
    const bool ends = is_gone(row.first);
    culprit_times news = times.counted;
    for (std::size_t i = 0; i < CULPRIT_TIME_BUCKETS; ++i) news.counts[i] -= times.written.counts[i];
    news.bytes -= times.written.bytes;
    PortAnswers& port = ports[row.second];
    port.all += times.unwritten;
    port.counted += static_cast<double>(sum_of(news));
    // Behind the last window nothing was timed: it took as long as before.
    if ((is_last || ends) && sum_of(news) == 0) news = times.written;
    if (sum_of(news) > 0) {
      write_row(writer, now, row, news, times.unwritten);
      times.written = times.counted;
    }
    if (ends) {
      probes_.forget_times({row.first, CULPRIT_ANSWER, row.second});
      tracks_.erase({row.first, row.second == 0});
    }
    it = ends ? times_.erase(it) : std::next(it);
  }
  write_gaps(writer, now, ports);
}

void Answers::write_row(perfetto::Writer& writer, Ns now, const Row& row, const culprit_times& news, double& answers) {
  const double scale = answers / static_cast<double>(sum_of(news));
  double owed = 0;
  std::string text;
  for (std::size_t i = 0; i < CULPRIT_TIME_BUCKETS; ++i) {
    owed += scale * news.counts[i];
    if (const std::int64_t count = pay(owed); count > 0) add_bucket(text, i, count);
  }
  answers = owed;
  if (text.empty()) return;
  write_durations(writer, perfetto::answers_track(row.second), row.first, now, std::string(perfetto::kAnswer), text,
                  {"bytes", static_cast<std::int64_t>(std::llround(scale * static_cast<double>(news.bytes)))});
  ++events_;
}

void Answers::write_gaps(perfetto::Writer& writer, Ns now, const std::map<std::uint32_t, PortAnswers>& ports) {
  struct OfSize {
    double known = 0;
    double unknown = 0;  // the first in a window
    std::vector<std::pair<std::uint32_t, double>> news;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, OfSize> sizes;  // by port and bytes
  for (const bpf::AnswerGap& row : probes_.answer_gaps()) {
    Gap& gap = gaps_[{row.key.port, row.key.bytes, row.key.gap}];
    const auto news = static_cast<double>(row.total - std::exchange(gap.counted, row.total));
    OfSize& size = sizes[{row.key.port, row.key.bytes}];
    if (row.key.gap == CULPRIT_UNKNOWN_GAP)
      size.unknown += news;
    else if (news > 0)
      size.known += news, size.news.emplace_back(row.key.gap, news);
  }
  for (const auto& [key, size] : sizes) {
    if (size.known <= 0) continue;
    const auto port = ports.find(key.first);
    const double of_counted =
        port == ports.end() || port->second.counted <= 0 ? 1 : port->second.all / port->second.counted;
    const double scale = of_counted * (size.known + size.unknown) / size.known;
    std::string text;
    for (const auto& [gap, news] : size.news) {
      double& owed = gaps_[{key.first, key.second, gap}].unwritten;
      owed += scale * news;
      if (const std::int64_t count = pay(owed); count > 0) add_bucket(text, gap, count);
    }
    if (text.empty()) continue;
    write_durations(writer, perfetto::answers_track(key.first), 0, now,
                    fmt::format("{} of {} bytes after others", perfetto::kAnswer, key.second), text);
    ++events_;
  }
}

void Answers::write_share(perfetto::Writer& writer, Ns now) const {
  if (in_windows_) writer.metadata("syscalls.answers_share", fmt::format("{:.3f}", windows_.share(now)));
}

void Answers::file_begins(Ns now) {
  for (auto& [by, answers] : tracks_) answers.begin = now;
}

}  // namespace culprit::record::syscalls
