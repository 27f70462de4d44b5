// Reading files: plain, gzip and zstd alike, as one sequential text.
//
// Files are read into buffers that the caller reuses instead of being mapped: a mapped file that shrinks kills the
// program, and touching fresh memory is the dearest part of loading on virtual machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/error.h"
#include "formats/io/expansion.h"

namespace culprit::formats {

enum class Compression : std::uint8_t { none, gzip, zstd };
std::string_view to_string(Compression compression);

/// Sequential, decompressed content of a file or of standard input ("-"). Movable, not thread safe.
class Input {
 public:
  /// Opens `path` and looks at its first bytes. Errors: missing, a directory, not readable, empty. When `stop` is
  /// requested read() ends with the error cancelled, and so does this while a pipe or a terminal has nothing yet.
  static Result<Input> open(const std::string& path, std::stop_token stop = {});

  Input(Input&&) noexcept;
  Input& operator=(Input&&) noexcept;
  ~Input();

  /// Compressed text beyond the limit is the error of `expansion`; without this call there is no limit.
  void limit(Expansion expansion);

  /// Fills up to `size` bytes of text; 0 at the end. Damaged compressed data ends the text early and sets damage().
  Result<std::size_t> read(char* buffer, std::size_t size);

  /// Up to `size` first bytes of the text, which read() will deliver again.
  std::string_view peek(std::size_t size);

  [[nodiscard]] const std::string& path() const;
  /// A regular file, which others can open by path(); neither standard input nor a pipe.
  [[nodiscard]] bool named_file() const;
  [[nodiscard]] Compression compression() const;
  /// Bytes of the file, 0 when unknown (a pipe).
  [[nodiscard]] std::uint64_t file_bytes() const;
  /// Bytes taken from the file so far.
  [[nodiscard]] std::uint64_t consumed_bytes() const;
  /// What is wrong with the compressed data, or empty.
  [[nodiscard]] std::string_view damage() const;

 private:
  struct State;
  explicit Input(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// All that is left of `input` as one text. Errors: unreadable, or larger than `most` bytes after decompression.
Result<std::string> read_all(Input& input, std::size_t most = std::size_t{8} << 30);

}  // namespace culprit::formats
