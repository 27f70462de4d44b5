// Whole files as one text, with an end: a size in /proc says nothing, and a file that grows must not take all memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/error.h"

namespace culprit {

/// The whole content of `path`. Errors: it cannot be read (missing, a directory, no permission), or it is larger than
/// `most` bytes. Never waits for a writer of a FIFO.
Result<std::string> read_file(const std::string& path, std::size_t most = std::size_t{64} << 20);

/// At most the first `most` bytes of a file whose absence is no error, as those of /proc and /sys; nothing when it
/// cannot be read.
std::optional<std::string> read_beginning(const std::string& path, std::size_t most = std::size_t{16} << 20);

}  // namespace culprit
