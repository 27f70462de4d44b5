#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <string>

#include "core/text.h"
#include "formats/kineto/reader.h"
#include "trace/builder.h"

namespace culprit::formats::kineto {

namespace {

using simdjson::dom::element;

std::int64_t integer(element object, std::string_view key, std::int64_t missing) {
  element field;
  if (object[key].get(field)) return missing;
  std::int64_t value = 0;
  if (!field.get_int64().get(value)) return value;
  std::string_view text;
  if (!field.get_string().get(text))
    if (auto parsed = parse_scaled_decimal(text, 0)) return *parsed;
  return missing;
}

std::string text(element object, std::string_view key) {
  std::string_view value;
  return object[key].get_string().get(value) ? std::string() : std::string(value);
}

void devices(element list, Trace& trace) {
  constexpr std::size_t kMaxDevices = 4096;
  simdjson::dom::array array;
  if (list.get_array().get(array)) return trace.losses.add(LossReason::metadata_invalid);
  for (element item : array) {
    if (!item.is_object() || trace.devices.size() >= kMaxDevices) {
      trace.losses.add(LossReason::metadata_invalid);
      continue;
    }
    Device device;
    device.id = static_cast<std::int32_t>(std::clamp<std::int64_t>(integer(item, "id", -1), -1, 1 << 20));
    device.name = text(item, "name");
    device.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, integer(item, "totalGlobalMem", 0)));
    device.multiprocessors =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(integer(item, "numSms", 0), 0, 1 << 20));
    device.warp_size = static_cast<std::uint32_t>(std::clamp<std::int64_t>(integer(item, "warpSize", 0), 0, 1 << 20));
    const std::int64_t major = integer(item, "computeMajor", -1);
    if (major >= 0)
      device.compute_capability = std::to_string(major) + "." + std::to_string(integer(item, "computeMinor", 0));
    trace.devices.push_back(std::move(device));
  }
}

}  // namespace

void apply_member(std::string_view key, std::string_view json, Trace& trace) {
  simdjson::dom::parser parser;
  element value;
  const simdjson::padded_string padded(json);
  if (parser.parse(padded).get(value)) {
    trace.losses.add(LossReason::metadata_invalid);
    return;
  }
  Rank& rank = trace.ranks.front();
  if (value.is_null()) return;
  if (key == "deviceProperties") {
    devices(value, trace);
  } else if (key == "distributedInfo") {
    if (!value.is_object()) return trace.losses.add(LossReason::metadata_invalid);
    rank.rank = integer(value, "rank", -1);
    rank.world_size = integer(value, "world_size", -1);
    rank.backend = text(value, "backend");
  } else if (key == "baseTimeNanoseconds") {
    std::string_view digits;
    if (value.get_string().get(digits)) digits = trim(json);
    const auto base = parse_scaled_decimal(digits, 0);
    rank.has_base = base && *base > 0 && *base <= kMaxTime;
    rank.base_ns = rank.has_base ? *base : 0;
    if (!rank.has_base && base != 0) trace.losses.add(LossReason::metadata_invalid);
  } else if (key == "schemaVersion") {
    rank.schema = std::string(json);
  } else if (trim(json) != "0" && trim(json) != "false") {  // what it was asked to record besides
    rank.metadata.emplace_back(fmt::format("{}{}", kProfilerOption, key), "1");
  }
}

}  // namespace culprit::formats::kineto
