#include "formats/perfetto/chunk_file.h"

#include <isa-l.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "core/output_file.h"
#include "formats/perfetto/encode.h"
#include "formats/perfetto/trace.pb.h"

namespace culprit::perfetto {

namespace {

constexpr std::uint32_t kPacketField = proto::Trace::kPacketFieldNumber;
constexpr std::uint32_t kCompressedField = proto::TracePacket::kCompressedPacketsFieldNumber;
constexpr std::uint32_t kSequenceField = proto::TracePacket::kTrustedPacketSequenceIdFieldNumber;
constexpr std::size_t kHead = 32;                ///< room for the fields before and behind the deflated bytes
constexpr std::size_t kMostWritten = 512 << 10;  ///< what readers take

int isal_level(int level) {
  if (level <= 1) return std::max(level, 0);
  return level <= 5 ? 2 : 3;
}

std::size_t level_buffer_size(int level) {
  constexpr std::array<std::size_t, 4> kSizes = {ISAL_DEF_LVL0_DEFAULT, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT,
                                                 ISAL_DEF_LVL3_DEFAULT};
  return kSizes[static_cast<std::size_t>(level)];
}

}  // namespace

struct ChunkFile::State {
  OutputFile file;
  std::string path;
  int level = 1;
  std::vector<std::uint8_t> level_buffer;
  Bytes out;

  Status write(const std::uint8_t* data, std::size_t size) {
    const std::uint64_t before = file.bytes();
    Status status = file.write({reinterpret_cast<const char*>(data), size});
    if (status && file.closed()) return environment_error("the reader has closed the pipe", path);
    if (status) return {};
    if (file.bytes() != before && !file.cut(before))
      return environment_error("cannot write, and the torn end cannot be cut off", path, "free some space");
    return status;
  }
};

ChunkFile::ChunkFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChunkFile::ChunkFile(ChunkFile&&) noexcept = default;
ChunkFile& ChunkFile::operator=(ChunkFile&&) noexcept = default;
ChunkFile::~ChunkFile() = default;

Result<ChunkFile> ChunkFile::create(const std::string& path, bool replace, int level) {
  auto file = OutputFile::create(path, {kPrivateMode, replace});
  if (!file) return file.error();
  auto state = std::make_unique<State>(State{std::move(*file), path, isal_level(level), {}, {}});
  state->level_buffer.resize(level_buffer_size(state->level));
  return ChunkFile(std::move(state));
}

Status ChunkFile::write_plain(std::span<const std::uint8_t> packets) {
  return state_->write(packets.data(), packets.size());
}

Status ChunkFile::write_deflated(std::span<const std::uint8_t> packets, std::uint32_t sequence) {
  assert(packets.size() <= kMostPlain);
  State& state = *state_;
  state.out.resize(2 * kHead + packets.size() + packets.size() / 8 + 1024);
  isal_zstream stream{};
  isal_deflate_stateless_init(&stream);
  stream.level = static_cast<std::uint32_t>(state.level);
  stream.level_buf = state.level_buffer.data();
  stream.level_buf_size = static_cast<std::uint32_t>(state.level_buffer.size());
  stream.gzip_flag = IGZIP_ZLIB;
  stream.end_of_stream = 1;
  stream.flush = NO_FLUSH;
  stream.next_in = const_cast<std::uint8_t*>(packets.data());  // not written to
  stream.avail_in = static_cast<std::uint32_t>(packets.size());
  stream.next_out = state.out.data() + kHead;
  stream.avail_out = static_cast<std::uint32_t>(state.out.size() - 2 * kHead);
  [[maybe_unused]] const int code = isal_deflate_stateless(&stream);
  assert(code == COMP_OK && stream.avail_in == 0);
  const std::size_t deflated = stream.total_out;
  std::array<std::uint8_t, kHead> tail{};
  const auto tail_size = static_cast<std::size_t>(put(tail.data(), kSequenceField, sequence) - tail.data());
  std::array<std::uint8_t, kHead> field{};
  std::uint8_t* end = put_raw(put_raw(field.data(), tag(kCompressedField, Wire::length)), deflated);
  const auto field_size = static_cast<std::size_t>(end - field.data());
  std::array<std::uint8_t, kHead> head{};
  end = put_raw(put_raw(head.data(), tag(kPacketField, Wire::length)), field_size + deflated + tail_size);
  end = std::copy_n(field.data(), field_size, end);
  const auto head_size = static_cast<std::size_t>(end - head.data());
  std::uint8_t* begin = state.out.data() + kHead - head_size;
  std::copy_n(head.data(), head_size, begin);
  std::copy_n(tail.data(), tail_size, state.out.data() + kHead + deflated);
  const std::size_t size = head_size + deflated + tail_size;
  assert(size < kMostWritten);
  (void)kMostWritten;
  return state.write(begin, size);
}

Status ChunkFile::publish() { return state_->file.publish(); }
Status ChunkFile::close() { return state_->file.commit(); }
std::uint64_t ChunkFile::bytes() const { return state_->file.bytes(); }

}  // namespace culprit::perfetto
