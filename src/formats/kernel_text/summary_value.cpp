#include "formats/kernel_text/summary_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/text.h"

namespace culprit::formats::kernel_text {

namespace {

using namespace model;

struct Suffix {
  std::string_view text;
  SummaryColumnKind kind;
  double factor;
};

constexpr double kKilo = 1024;  // the profiler's Kb, Mb, Gb
constexpr std::array<Suffix, 14> kSuffixes = {{{"%", SummaryColumnKind::percent, 0.01},
                                               {"ns", SummaryColumnKind::time, 1},
                                               {"us", SummaryColumnKind::time, 1e3},
                                               {"\xC2\xB5s", SummaryColumnKind::time, 1e3},
                                               {"\xCE\xBCs", SummaryColumnKind::time, 1e3},
                                               {"ms", SummaryColumnKind::time, 1e6},
                                               {"s", SummaryColumnKind::time, 1e9},
                                               {"Kb", SummaryColumnKind::bytes, kKilo},
                                               {"KB", SummaryColumnKind::bytes, kKilo},
                                               {"Mb", SummaryColumnKind::bytes, kKilo* kKilo},
                                               {"MB", SummaryColumnKind::bytes, kKilo* kKilo},
                                               {"Gb", SummaryColumnKind::bytes, kKilo* kKilo* kKilo},
                                               {"GB", SummaryColumnKind::bytes, kKilo* kKilo* kKilo},
                                               {"b", SummaryColumnKind::bytes, 1}}};

/// The device a column speaks of ("CUDA" in "Self CUDA %"), or empty.
struct Title {
  std::string_view device;
  enum class What : std::uint8_t { other, self, self_share, total, average } what = What::other;
};

Title read_title(std::string_view title) {
  using enum Title::What;
  const auto one_word = [](std::string_view text) { return !text.empty() && text.find(' ') == text.npos; };
  if (title.starts_with("Self ")) {
    std::string_view rest = title.substr(5);
    const bool share = rest.ends_with(" %");
    if (share) rest.remove_suffix(2);
    return one_word(rest) ? Title{rest, share ? self_share : self} : Title{};
  }
  for (const auto& [suffix, what] : {std::pair{std::string_view(" time avg"), average}, {" total", total}})
    if (title.ends_with(suffix) && one_word(title.substr(0, title.size() - suffix.size())))
      return {title.substr(0, title.size() - suffix.size()), what};
  return {};
}

/// Narrows `total` by one row: time / share with both inside their rounding.
void narrow(const SummaryValue& time, const SummaryValue& share, double& low, double& high) {
  if (std::isnan(time.value) || std::isnan(share.value) || time.value <= 0 || share.value <= 0) return;
  low = std::max(low, time.low / share.high);
  if (share.low > 0) high = std::min(high, time.high / share.low);
}

SummaryTotal recover(const KernelSummary& table, std::size_t time, std::size_t share, std::string_view device) {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  if (time < table.columns.size() && share < table.columns.size())
    for (const SummaryRow& row : table.rows) narrow(row.values[time], row.values[share], low, high);
  SummaryTotal total;
  for (const std::string& footer : table.footers) {
    const std::size_t colon = footer.rfind(':');
    const std::string_view text = footer;
    if (colon == std::string::npos || !text.starts_with(std::string("Self ") + std::string(device) + " time total"))
      continue;
    const auto cell = parse_summary_cell(trim(text.substr(colon + 1)));
    if (!cell || cell->kind != SummaryColumnKind::time) continue;
    total.printed = true;
    low = std::max(low, cell->value.low);
    high = std::min(high, cell->value.high);
  }
  total.known = low > 0 && high < std::numeric_limits<double>::infinity() && low <= high;
  if (total.known) {
    total.low = low;
    total.high = high;
  }
  return total;
}

}  // namespace

std::optional<ParsedCell> parse_summary_cell(std::string_view text) {
  const std::string_view all = trim(text);
  double number = 0;
  const char* last = all.data() + all.size();
  const auto [end, error] = std::from_chars(all.data(), last, number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view digits = all.substr(0, static_cast<std::size_t>(end - all.data()));
  const std::string_view unit = trim(all.substr(digits.size()));
  const std::size_t point = digits.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : digits.size() - point - 1;
  ParsedCell cell;
  double factor = 1;
  bool rounded = true;
  if (unit.empty()) {
    cell.kind = point == std::string_view::npos ? SummaryColumnKind::count : SummaryColumnKind::number;
    rounded = point != std::string_view::npos;
  } else {
    const auto* suffix = std::ranges::find(kSuffixes, unit, &Suffix::text);
    if (suffix == kSuffixes.end()) return std::nullopt;
    cell.kind = suffix->kind;
    factor = suffix->factor;
  }
  const double half = rounded ? 0.5 * std::pow(10.0, -static_cast<double>(decimals)) : 0;
  cell.value.value = number * factor;
  cell.value.low = (number - half) * factor;
  cell.value.high = (number + half) * factor;
  if (number >= 0) cell.value.low = std::max(0.0, cell.value.low);
  cell.value.text = all;
  return cell;
}

void derive_summary(KernelSummary& table) {
  constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::size_t self = kAbsent, share = kAbsent, total = kAbsent, average = kAbsent, calls = kAbsent;
  std::size_t cpu_self = kAbsent, cpu_share = kAbsent;
  std::string_view device;
  const auto first = [](std::size_t& slot, std::size_t i) { slot = slot == kAbsent ? i : slot; };
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string_view text = table.columns[i].title;
    if (text == "# of Calls") first(calls, i);
    const Title title = read_title(text);
    if (title.what == Title::What::other) continue;
    if (title.device == "CPU") {
      if (title.what == Title::What::self) first(cpu_self, i);
      if (title.what == Title::What::self_share) first(cpu_share, i);
      continue;
    }
    if (device.empty()) device = title.device;
    if (title.device != device) continue;
    switch (title.what) {
      case Title::What::self:
        first(self, i);
        break;
      case Title::What::self_share:
        first(share, i);
        break;
      case Title::What::total:
        first(total, i);
        break;
      case Title::What::average:
        first(average, i);
        break;
      case Title::What::other:
        break;
    }
  }
  const auto value = [](const SummaryRow& row, std::size_t column) {
    return column == kAbsent ? kNoNumber : row.values[column].value;
  };
  double listed = 0, low = 0, high = 0;
  for (SummaryRow& row : table.rows) {
    row.self_device_ns = value(row, self);
    row.share = value(row, share);
    row.total_device_ns = value(row, total);
    row.average_device_ns = value(row, average);
    row.calls = value(row, calls);
    row.self_cpu_ns = value(row, cpu_self);
    if (std::isnan(row.self_device_ns)) continue;
    listed += row.self_device_ns;
    low += row.values[self].low;
    high += row.values[self].high;
  }
  if (!device.empty()) table.device_total = recover(table, self, share, device);
  table.cpu_total = recover(table, cpu_self, cpu_share, "CPU");
  if (self == kAbsent) return;
  table.listed_device_ns = listed;
  if (!table.device_total.known) return;
  table.missing_low_ns = std::max(0.0, table.device_total.low - high);
  table.missing_high_ns = std::max(0.0, table.device_total.high - low);
  table.cut = table.missing_low_ns > 0;
}

}  // namespace culprit::formats::kernel_text
