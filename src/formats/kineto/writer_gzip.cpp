#include "formats/kineto/writer_gzip.h"

#include <isa-l.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

namespace culprit::formats::kineto {

struct GzipWriter::State {
  isal_zstream stream{};
  std::array<std::uint8_t, ISAL_DEF_LVL1_DEFAULT> level_buffer;
  std::array<std::uint8_t, std::size_t{64} << 10> out;
};

GzipWriter::GzipWriter(ByteSink sink) : sink_(std::move(sink)), state_(std::make_unique<State>()) {
  isal_deflate_init(&state_->stream);
  state_->stream.level = 1;
  state_->stream.level_buf = state_->level_buffer.data();
  state_->stream.level_buf_size = static_cast<std::uint32_t>(state_->level_buffer.size());
  state_->stream.gzip_flag = IGZIP_GZIP;
  state_->stream.flush = NO_FLUSH;
}

GzipWriter::~GzipWriter() = default;

Status GzipWriter::run(std::string_view text, bool last) {
  isal_zstream& stream = state_->stream;
  std::string input(text);  // the library takes a pointer to mutable bytes
  stream.next_in = reinterpret_cast<std::uint8_t*>(input.data());
  stream.avail_in = static_cast<std::uint32_t>(input.size());
  stream.end_of_stream = last ? 1 : 0;
  do {
    stream.next_out = state_->out.data();
    stream.avail_out = static_cast<std::uint32_t>(state_->out.size());
    [[maybe_unused]] const int code = isal_deflate(&stream);
    assert(code == COMP_OK);
    const std::size_t made = state_->out.size() - stream.avail_out;
    if (made == 0) continue;
    if (Status written = sink_({reinterpret_cast<const char*>(state_->out.data()), made}); !written) return written;
  } while (stream.avail_out == 0);
  assert(stream.avail_in == 0);
  return {};
}

Status GzipWriter::write(std::string_view text) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  for (; !text.empty(); text.remove_prefix(std::min(kPiece, text.size())))
    if (Status written = run(text.substr(0, kPiece), false); !written) return written;
  return {};
}

Status GzipWriter::finish() { return run({}, true); }

}  // namespace culprit::formats::kineto
