// The text of a state file: who wrote it, and the steps back. Written by the guard, read by `culprit inject --undo`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "faults/guard.h"

namespace culprit::faults {

std::string boot_id();
std::string format_state(const Leftover& state);
/// Nothing when the text is damaged.
std::optional<Leftover> parse_state(std::string_view text);
/// Replaces the file whole.
Status write_state(const std::string& path, const Leftover& state);

}  // namespace culprit::faults
