// Files like /proc/PID/status: a name and what stands behind it in each line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace culprit::record::inject {

/// `name` with its colon. Empty: there is no such line, or file.
std::string value_in(const std::filesystem::path& path, std::string_view name);
/// 0 where that begins with no number.
std::int64_t number_in(const std::filesystem::path& path, std::string_view name);

}  // namespace culprit::record::inject
