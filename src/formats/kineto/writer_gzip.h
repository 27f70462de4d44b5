// Compresses what passes through, for the writer.
#pragma once

#include <memory>
#include <string_view>

#include "formats/kineto/writer.h"

namespace culprit::formats::kineto {

/// One gzip member, written to `sink` as it grows. finish() completes it.
class GzipWriter {
 public:
  explicit GzipWriter(ByteSink sink);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  Status write(std::string_view text);
  Status finish();

 private:
  struct State;
  Status run(std::string_view text, bool last);
  ByteSink sink_;
  std::unique_ptr<State> state_;
};

}  // namespace culprit::formats::kineto
