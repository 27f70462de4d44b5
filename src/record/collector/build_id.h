// The build-id of an ELF file: which build of a library ran, when names and versions say nothing.
#pragma once

#include <optional>
#include <string>

namespace culprit::record {

/// Hexadecimal, from the GNU note. nullopt: no 64-bit ELF file, no note, or damaged.
std::optional<std::string> read_build_id(const std::string& path);

}  // namespace culprit::record
