// What the kernel's files on a process say of it. In those like /proc/PID/status each line is a name and what stands
// behind it.
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

/// Where the stack of a process began: another place, nearly always, when it executes a program anew. 0: not known.
std::uint64_t start_of_stack(std::int64_t pid);

}  // namespace culprit::record::inject
