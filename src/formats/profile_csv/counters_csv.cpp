#include "formats/profile_csv/counters_csv.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "formats/io/csv_rows.h"
#include "formats/profile_csv/names.h"
#include "formats/profile_csv/scale.h"

namespace culprit::formats {

namespace {

using namespace model;

constexpr std::array<std::string_view, 4> kColumns = {"counter_name", "timestamp", "value", "hostname"};
enum : std::size_t { kName, kTime, kValue, kHost };
constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
constexpr std::size_t kMostDamage = 20;

}  // namespace

Result<CounterLog> parse_counters_csv(std::string_view text, std::string_view file, CsvStyle* style) {
  if (style) {
    const std::size_t line_end = text.find('\n');
    style->crlf = line_end != std::string_view::npos && line_end > 0 && text[line_end - 1] == '\r';
    style->byte_order_mark = text.starts_with("\xEF\xBB\xBF");
  }
  CounterLog log;
  log.input.file = file;
  std::array<std::size_t, kColumns.size()> at{};
  at.fill(kAbsent);
  std::size_t width = 0;

  const auto damage = [&](std::uint64_t line, std::string what, std::string remedy) {
    ++log.input.bad_rows;
    if (log.input.first.size() < kMostDamage) log.input.first.push_back({line, std::move(what), std::move(remedy)});
  };
  const auto row = [&](std::span<const std::string_view> fields, std::uint64_t line) {
    if (width == 0) {
      width = fields.size();
      for (std::size_t i = 0; i < fields.size(); ++i)
        for (std::size_t c = 0; c < kColumns.size(); ++c)
          if (fields[i] == kColumns[c] && at[c] == kAbsent) at[c] = i;
      return;
    }
    if (at[kName] == kAbsent || at[kTime] == kAbsent || at[kValue] == kAbsent) return;
    if (fields.size() != width)
      return damage(line, fmt::format("the row has {} columns instead of {}", fields.size(), width),
                    "look for an unquoted comma or a cut line");
    const auto time = parse_us(fields[at[kTime]]);
    const auto time_us = parse_decimal(fields[at[kTime]], DecimalRule::nearest);
    const auto value = parse_decimal(fields[at[kValue]], DecimalRule::nearest);
    if (!time || !time_us || !value)
      return damage(line,
                    fmt::format("column '{}' holds '{}', which is no number", kColumns[value ? kTime : kValue],
                                fields[at[value ? kTime : kValue]].substr(0, 40)),
                    "correct the value or remove the row");
    CounterSample sample;
    const std::string_view name = unguard_name(fields[at[kName]]);
    sample.counter = log.texts.intern(name);
    if (at[kHost] != kAbsent) sample.host = log.texts.intern(unguard_name(fields[at[kHost]]));
    const Scale scale = counter_scale(name);
    sample.unit = scale.unit;
    sample.time = *time;
    sample.value = scale.to_si(*value);
    sample.reported_time_us = *time_us;
    sample.reported_value = *value;
    log.samples.push_back(sample);
    ++log.input.rows;
  };
  if (const Status status = split_csv(text, file, {row, damage}); !status) return status.error();
  for (const std::size_t column : {std::size_t{kName}, std::size_t{kTime}, std::size_t{kValue}})
    if (at[column] == kAbsent)
      return input_error(fmt::format("is no counter table: no column '{}'", kColumns[column]), std::string(file),
                         "give a *_counters_data.csv file, with its header line");
  log.reported = true;
  return log;
}

Result<CounterLog> read_counters_csv(const std::string& path, CsvStyle* style) {
  auto bytes = read_whole_file(path);
  if (!bytes) return bytes.error();
  return parse_counters_csv(*bytes, path, style);
}

std::string write_counters_csv(const CounterLog& log, const CsvStyle& style) {
  const std::string_view line_end = style.crlf ? "\r\n" : "\n";
  std::string out = style.byte_order_mark ? "\xEF\xBB\xBF" : "";
  out += fmt::format("{}{}", fmt::join(kColumns, ","), line_end);
  for (const CounterSample& sample : log.samples) {
    append_csv_name(out, log.texts[sample.counter]);
    const double time = log.reported ? sample.reported_time_us : static_cast<double>(sample.time) / 1e3;
    const double value =
        log.reported ? sample.reported_value : counter_scale(log.texts[sample.counter]).from_si(sample.value);
    fmt::format_to(std::back_inserter(out), ",{:.6f},{:.6f},", time, value);
    append_csv_name(out, log.texts[sample.host]);
    out += line_end;
  }
  return out;
}

}  // namespace culprit::formats
