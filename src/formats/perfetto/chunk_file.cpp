#include "formats/perfetto/chunk_file.h"

#include <fcntl.h>
#include <isa-l.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "formats/perfetto/encode.h"
#include "formats/perfetto/trace.pb.h"

namespace culprit::perfetto {

namespace {

constexpr std::uint32_t kPacketField = proto::Trace::kPacketFieldNumber;
constexpr std::uint32_t kCompressedField = proto::TracePacket::kCompressedPacketsFieldNumber;
constexpr std::uint32_t kSequenceField = proto::TracePacket::kTrustedPacketSequenceIdFieldNumber;
constexpr std::size_t kHead = 32;               ///< room for the fields before and behind the deflated bytes
constexpr std::size_t kMostPacket = 512 << 10;  ///< what readers take

Error write_error(const std::string& path, int code) {
  return environment_error(fmt::format("cannot write: {}", std::generic_category().message(code)), path,
                           code == ENOSPC ? "free some space; what was written before is readable"
                                          : "check the path, its permissions and limits (ulimit -f)");
}

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
  std::string path;
  int fd = -1;
  bool owned = false;    ///< fd has to be closed
  bool regular = false;  ///< can be cut
  std::uint64_t bytes = 0;
  int level = 1;
  std::vector<std::uint8_t> level_buffer;
  Bytes out;

  ~State() {
    if (owned && fd >= 0) ::close(fd);
  }

  Status write(const std::uint8_t* data, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
      const ssize_t n = ::write(fd, data + done, size - done);
      if (n < 0) {
        if (errno == EINTR) continue;
        const int code = errno;
        if (regular && done != 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
          return environment_error("cannot write, and the torn end cannot be cut off", path, "free some space");
        return write_error(path, code);
      }
      done += static_cast<std::size_t>(n);
    }
    bytes += size;
    return {};
  }
};

ChunkFile::ChunkFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChunkFile::ChunkFile(ChunkFile&&) noexcept = default;
ChunkFile& ChunkFile::operator=(ChunkFile&&) noexcept = default;
ChunkFile::~ChunkFile() = default;

Result<ChunkFile> ChunkFile::create(const std::string& path, bool replace, int level) {
  auto state = std::make_unique<State>();
  state->path = path == "-" ? "standard output" : path;
  state->level = isal_level(level);
  state->level_buffer.resize(level_buffer_size(state->level));
  if (path == "-") {
    state->fd = STDOUT_FILENO;
    return ChunkFile(std::move(state));
  }
  state->owned = true;
  struct stat status {};
  const bool exists = ::lstat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return usage_error(fmt::format("'{}' is a directory", path), "name a file");
  if (exists && (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode))) {
    state->fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (state->fd < 0) return write_error(path, errno);
    return ChunkFile(std::move(state));
  }
  if (exists && !replace)
    return usage_error(fmt::format("'{}' exists", path), "choose another name, remove it, or give --force");
  // Removed instead of overwritten: whoever reads the old file keeps it, and a link is not followed.
  if (exists && ::unlink(path.c_str()) != 0) return write_error(path, errno);
  state->fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (state->fd < 0) return write_error(path, errno);
  state->regular = true;
  return ChunkFile(std::move(state));
}

Status ChunkFile::write_plain(std::span<const std::uint8_t> packets) {
  return state_->write(packets.data(), packets.size());
}

Status ChunkFile::write_deflated(std::span<const std::uint8_t> packets, std::uint32_t sequence) {
  assert(packets.size() <= kMostPlain);
  State& state = *state_;
  state.out.resize(2 * kHead + packets.size() + packets.size() / 8 + 1024);
  isal_zstream stream;
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
  assert(size < kMostPacket);
  (void)kMostPacket;
  return state.write(begin, size);
}

Status ChunkFile::close() {
  State& state = *state_;
  const int fd = std::exchange(state.fd, -1);
  if (!state.owned || fd < 0) return {};
  if (::close(fd) != 0 && errno != EINTR) return write_error(state.path, errno);
  return {};
}

std::uint64_t ChunkFile::bytes() const { return state_->bytes; }

}  // namespace culprit::perfetto
