// How durations that spread over buckets (stats/log_buckets.h) stand in a recording.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/units.h"
#include "formats/perfetto/writer.h"

namespace culprit::record::syscalls {

/// `text` is "BUCKET:COUNT …" of what is new. `more` is written beside it where it is above 0.
inline void write_durations(perfetto::Writer& writer, const std::string& track, std::int64_t pid, Ns now,
                            const std::string& name, std::string_view text,
                            const perfetto::Argument& more = {"", std::int64_t{0}}) {
  const std::array<perfetto::Argument, 2> arguments = {{{"buckets", text}, more}};
  writer.instant(writer.named_track(track, pid), now, name, perfetto::kDurations,
                 std::span(arguments).first(std::get<std::int64_t>(more.value) > 0 ? 2 : 1));
}

}  // namespace culprit::record::syscalls
