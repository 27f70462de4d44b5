#include "core/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/units.h"

namespace culprit {

namespace {
constexpr auto kQuiet = std::chrono::seconds(1);
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr std::uint64_t kBarWidth = 30;
constexpr std::string_view kErase = "\r\x1b[K";
}  // namespace

Progress::Progress(std::string label, Sink sink, std::function<Clock::time_point()> now)
    : label_(std::move(label)), sink_(std::move(sink)), now_(std::move(now)), start_(now_()), shown_(start_) {}

Progress::~Progress() {
  if (visible_) sink_(kErase);
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (!sink_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // another thread is showing a state just as good
  const auto now = now_();
  if (now - start_ < kQuiet || (visible_ && now - shown_ < kInterval)) return;
  shown_ = now;
  visible_ = true;
  if (total == 0) {
    sink_(fmt::format("{}{} {}", kErase, label_, format_bytes(static_cast<double>(done))));
    return;
  }
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
  sink_(fmt::format("{}{} [{}{}] {:3.0f} %", kErase, label_, std::string(filled, '#'),
                    std::string(kBarWidth - filled, '.'), share * 100));
}

Progress::Sink progress_sink_of_stderr() {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [](std::string_view text) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
  };
}

}  // namespace culprit
