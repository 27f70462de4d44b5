// A Perfetto trace as a Perfetto trace again: packet by packet, so that nothing is lost which only other programs read.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"
#include "formats/io/expansion.h"
#include "formats/io/input.h"

namespace culprit::perfetto {

/// The fact of a copy that says how many damaged places of the original are not in it.
inline constexpr std::string_view kDamageFact = "export.damaged_places";

/// Writes the whole packets of `input` to `path` as an OutputFile (core/output_file.h) with mode 0600, in their order,
/// deflated. A copy of a copy has the same bytes. `progress` gets bytes of the input. Errors: the input cannot be read
/// or becomes more than `expansion` allows; the file cannot be written.
Status copy_trace(formats::Input input, formats::Expansion expansion, const std::string& path, bool replace,
                  const std::function<void(std::uint64_t)>& progress = {});

}  // namespace culprit::perfetto
