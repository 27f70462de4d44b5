#include "tracegen/sink.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace culprit::tracegen {

namespace {
constexpr std::size_t kBuffer = std::size_t{1} << 20U;
}

struct Sink::Gzip {
  isal_zstream stream{};
  std::vector<std::uint8_t> level_buffer;
  std::vector<std::uint8_t> out;
};

Sink::Sink() = default;
Sink::~Sink() = default;

Status Sink::open(const std::string& path, bool replace) {
  auto file = OutputFile::create(path, {kReportMode, replace});
  if (!file) return file.error();
  file_.emplace(std::move(*file));
  capacity_ = kBuffer;
  buffer_ = std::make_unique<char[]>(capacity_);
  if (path.ends_with(".gz")) {
    gzip_ = std::make_unique<Gzip>();
    isal_deflate_init(&gzip_->stream);
    gzip_->level_buffer.resize(ISAL_DEF_LVL1_DEFAULT);
    gzip_->out.resize(kBuffer);
    gzip_->stream.level = 1;
    gzip_->stream.level_buf = gzip_->level_buffer.data();
    gzip_->stream.level_buf_size = static_cast<std::uint32_t>(gzip_->level_buffer.size());
    gzip_->stream.gzip_flag = IGZIP_GZIP;
  }
  return {};
}

void Sink::write(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = std::min(text.size(), std::size_t{1} << 16U);
    char* at = reserve(n);
    std::memcpy(at, text.data(), n);
    commit(at + n);
    text.remove_prefix(n);
  }
}

void Sink::put(const char* data, std::size_t size) {
  if (failed_) return;
  if (Status status = file_->write({data, size}); !status) failed_ = status.error();
}

void Sink::deflate(bool last) {
  isal_zstream& z = gzip_->stream;
  z.next_in = reinterpret_cast<std::uint8_t*>(buffer_.get());
  z.avail_in = static_cast<std::uint32_t>(size_);
  z.end_of_stream = last ? 1 : 0;
  z.flush = NO_FLUSH;
  do {
    z.next_out = gzip_->out.data();
    z.avail_out = static_cast<std::uint32_t>(gzip_->out.size());
    isal_deflate(&z);
    put(reinterpret_cast<const char*>(gzip_->out.data()), gzip_->out.size() - z.avail_out);
  } while (z.avail_out == 0 || (last && z.internal_state.state != ZSTATE_END));
}

void Sink::flush() {
  if (gzip_) {
    deflate(false);
  } else {
    put(buffer_.get(), size_);
  }
  flushed_ += size_;
  size_ = 0;
}

Status Sink::close() {
  if (!file_) return {};
  if (gzip_) {
    deflate(true);
    flushed_ += size_;
    size_ = 0;
  } else {
    flush();
  }
  if (failed_) return *failed_;
  Status status = file_->commit();
  file_.reset();
  return status;
}

}  // namespace culprit::tracegen
