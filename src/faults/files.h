// Small files of /proc, /sys and cgroups: numbers read from them, values written in one write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace culprit::faults {

/// Writes to an existing file in one write(2). Error: it is not there, or the kernel refuses the value.
Status write_small_file(const std::string& path, std::string_view text);

/// The number in a file; nothing when there is none.
std::optional<std::int64_t> read_number(const std::string& path);
/// The number after `key` at the begin of a line of `text`, as in /proc/meminfo and cpu.stat.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key);

}  // namespace culprit::faults
