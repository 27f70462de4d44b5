// Where generated text goes: a file, standard output, either of them through gzip. Memory use does not grow with the
// output.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/output_file.h"

namespace culprit::tracegen {

/// A text sink with a buffer of a few MiB. The first failed write is kept and returned by close().
class Sink {
 public:
  Sink();
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// An OutputFile (core/output_file.h) that gets its name in close(); a name that ends in .gz is compressed.
  Status open(const std::string& path, bool replace);
  /// Room for at least `bytes` (at most 64 KiB), valid until the next call; end with commit().
  char* reserve(std::size_t bytes) {
    if (capacity_ - size_ < bytes) flush();
    return buffer_.get() + size_;
  }
  void commit(const char* end) { size_ = static_cast<std::size_t>(end - buffer_.get()); }
  void write(std::string_view text);
  Status close();
  /// Bytes of text written so far, before compression.
  [[nodiscard]] std::uint64_t text_bytes() const { return flushed_ + size_; }
  [[nodiscard]] bool failed() const { return failed_.has_value() || file_->closed(); }

 private:
  struct Gzip;
  void flush();
  void put(const char* data, std::size_t size);
  void deflate(bool last);

  std::optional<OutputFile> file_;
  std::optional<Error> failed_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  std::uint64_t flushed_ = 0;
  std::unique_ptr<Gzip> gzip_;
};

}  // namespace culprit::tracegen
