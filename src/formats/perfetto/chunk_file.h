// The file of a recording: whole chunks or nothing. A chunk that does not fit the disk is cut back to the last whole
// packet, so that what was written before stays readable to its last byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/error.h"

namespace culprit::perfetto {

class ChunkFile {
 public:
  /// An OutputFile with mode 0600: it has no name before publish() or close(). `level` is of deflate, 0 to 9; the
  /// compressor has four, which stand for 0, 1, 2 to 5 and 6 to 9. Errors: as of OutputFile.
  static Result<ChunkFile> create(const std::string& path, bool replace, int level);
  ChunkFile(ChunkFile&&) noexcept;
  ChunkFile& operator=(ChunkFile&&) noexcept;
  ~ChunkFile();

  /// Writes packets of a Trace as they are.
  Status write_plain(std::span<const std::uint8_t> packets);
  /// Writes packets of a Trace as one deflated packet of the sequence `sequence`. At most kMostPlain bytes.
  Status write_deflated(std::span<const std::uint8_t> packets, std::uint32_t sequence);
  /// Gives the file its name; it goes on to grow. Idempotent.
  Status publish();
  /// publish(), and closes the file. Idempotent. A file that is destroyed without either is removed.
  Status close();
  /// Bytes that the kernel has taken and that are still in the file.
  [[nodiscard]] std::uint64_t bytes() const;

  static constexpr std::size_t kMostPlain = std::size_t{500} << 10;

 private:
  struct State;
  explicit ChunkFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace culprit::perfetto
