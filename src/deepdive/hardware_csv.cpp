#include "deepdive/hardware_csv.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "deepdive/csv_names.h"
#include "deepdive/decimal.h"
#include "formats/io/csv_rows.h"

namespace culprit::deepdive {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kColumns = {"category", "config", "inventory"};
enum : std::size_t { kCategory, kConfig, kInventory };
constexpr double kMebi = 1024.0 * 1024.0;

/// The cell as a JSON object; empty text and damage give an empty object, damage also sets `bad`.
json object_of(std::string_view text, bool& bad) {
  if (text.empty()) return json::object();
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_discarded() && parsed.is_object()) return parsed;
  bad = true;
  return json::object();
}

const json* member(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

std::optional<double> number_of(const json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  if (value->is_string()) return parse_decimal(value->get_ref<const std::string&>(), DecimalRule::nearest);
  return std::nullopt;
}

std::optional<std::int64_t> whole_of(const json* value) {
  const auto number = number_of(value);
  constexpr double kLargest = 9.0e15;
  if (!number || !(std::abs(*number) < kLargest)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

/// "4000 MHz", "2.9 GHz" or a bare number of MHz.
std::optional<double> hertz_of(const json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>() * 1e6;
  if (!value->is_string()) return std::nullopt;
  const std::string& text = value->get_ref<const std::string&>();
  const std::size_t first = text.find_first_of("0123456789");
  if (first == std::string::npos) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::size_t unit = text.find_first_not_of(' ', static_cast<std::size_t>(end - text.data()));
  const char letter = unit == std::string::npos ? 'M' : text[unit];
  const double scale = letter == 'G' || letter == 'g' ? 1e9 : letter == 'k' || letter == 'K' ? 1e3 : 1e6;
  return number * scale;
}

void take_row(Hardware& hardware, std::string_view category, const std::string& host, const json& macro) {
  if (category == "CAT_CPU") {
    HostHardware& entry = hardware.hosts[host];
    if (const auto hertz = hertz_of(member(macro, "freq")); hertz && *hertz > 0) entry.max_cpu_hertz = *hertz;
    if (const auto cores = whole_of(member(macro, "cores")); cores && *cores > 0) entry.cores += *cores;
  } else if (category == "CAT_MEMORY") {
    if (const auto mebi = number_of(member(macro, "size")); mebi && *mebi > 0)
      hardware.hosts[host].memory_bytes += *mebi * kMebi;
  } else if (category == "CAT_XPU") {
    const auto index = whole_of(member(macro, "index"));
    const auto bytes = number_of(member(macro, "memory_capacity"));
    if (index && bytes && *bytes > 0) hardware.device_memory_bytes[{host, *index}] = *bytes;
  } else if (category == "CAT_PROCESS") {
    const auto pid = whole_of(member(macro, "pid"));
    const auto device = whole_of(member(macro, "gpu_index"));
    if (pid && device) hardware.device_of_process[{host, *pid}] = *device;
  }
}

}  // namespace

Result<Hardware> parse_hardware_csv(std::string_view text, std::string_view file) {
  Hardware hardware;
  std::array<std::size_t, kColumns.size()> at{};
  at.fill(kAbsent);
  std::size_t width = 0;
  const auto damage = [&](std::uint64_t, const std::string&, const std::string&) { ++hardware.bad_rows; };
  const auto row = [&](std::span<const std::string_view> fields, std::uint64_t) {
    if (width == 0) {
      width = fields.size();
      for (std::size_t i = 0; i < fields.size(); ++i)
        for (std::size_t c = 0; c < kColumns.size(); ++c)
          if (fields[i] == kColumns[c] && at[c] == kAbsent) at[c] = i;
      return;
    }
    if (at[kCategory] == kAbsent || at[kConfig] == kAbsent || at[kInventory] == kAbsent) return;
    if (fields.size() != width) {
      ++hardware.bad_rows;
      return;
    }
    bool bad = false;
    const json config = object_of(fields[at[kConfig]], bad);
    const json inventory = object_of(fields[at[kInventory]], bad);
    if (bad) ++hardware.bad_rows;
    const json* env = member(config, "env");
    const json* host = env == nullptr ? nullptr : member(*env, "hostname");
    const json* macro = member(inventory, "macro");
    if (host == nullptr || !host->is_string() || macro == nullptr) return;
    take_row(hardware, fields[at[kCategory]], host->get<std::string>(), *macro);
  };
  if (const Status status = formats::split_csv(text, file, {row, damage}); !status) return status.error();
  for (const std::size_t column : {std::size_t{kCategory}, std::size_t{kConfig}, std::size_t{kInventory}})
    if (at[column] == kAbsent)
      return input_error(fmt::format("is no hardware description: no column '{}'", kColumns[column]), std::string(file),
                         "give a topo_component.csv file, with its header line");
  return hardware;
}

Result<Hardware> read_hardware_csv(const std::string& path) {
  auto bytes = formats::read_whole_file(path);
  if (!bytes) return bytes.error();
  return parse_hardware_csv(*bytes, path);
}

}  // namespace culprit::deepdive
