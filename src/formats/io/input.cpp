#include "formats/io/input.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace culprit::formats {

namespace {
constexpr std::size_t kRaw = std::size_t{256} << 10;

struct ZstdFree {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};
}  // namespace

struct Input::State {
  std::string path;
  int fd = -1;
  bool named_file = false;
  Compression compression = Compression::none;
  std::uint64_t file_bytes = 0;
  std::uint64_t consumed = 0;
  std::string damage;
  std::stop_token stop;
  Expansion expansion{0};
  bool raw_end = false;

  std::vector<std::uint8_t> raw;  // what was read of a compressed file and not yet decompressed, or the peeked start
  std::size_t raw_begin = 0;
  std::size_t raw_size = 0;

  std::string peeked;  // text that peek() showed and read() still owes
  std::size_t peeked_begin = 0;

  std::unique_ptr<inflate_state> inflate;
  bool member_begin = true;
  bool any_member = false;
  std::unique_ptr<ZSTD_DStream, ZstdFree> zstd;
  bool frame_done = true;

  ~State() {
    if (fd > STDIN_FILENO) ::close(fd);
  }

  /// Until a pipe or a terminal has something, its end included. Error: cancelled.
  Status await() {
    constexpr int kLook = 100;  // ms
    while (!stop.stop_requested()) {
      pollfd waited{fd, POLLIN, 0};
      const int n = ::poll(&waited, 1, kLook);
      if (n > 0 || (n < 0 && errno != EINTR)) return {};
    }
    return cancelled_error();
  }

  Result<std::size_t> read_raw(void* buffer, std::size_t size) {
    std::size_t got = 0;
    while (got < size) {
      if (!named_file)
        if (Status status = await(); !status) return status.error();
      const ssize_t n = ::read(fd, static_cast<char*>(buffer) + got, size - got);
      if (n < 0) {
        if (errno == EINTR || errno == EAGAIN) continue;
        return input_error(std::string("cannot read: ") + std::generic_category().message(errno), path);
      }
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    consumed += got;
    return got;
  }

  Status refill() {
    if (raw_begin < raw_size || raw_end) return {};
    raw.resize(kRaw);
    auto n = read_raw(raw.data(), raw.size());
    if (!n) return n.error();
    raw_begin = 0;
    raw_size = *n;
    raw_end = *n == 0;
    return {};
  }

  Result<std::size_t> read_plain(char* buffer, std::size_t size) {
    std::size_t got = std::min(size, raw_size - raw_begin);
    if (got != 0) std::memcpy(buffer, raw.data() + raw_begin, got);
    raw_begin += got;
    if (got == size) return got;
    auto n = read_raw(buffer + got, size - got);
    if (!n) return n;
    return got + *n;
  }

  Result<std::size_t> read_gzip(char* buffer, std::size_t size) {
    if (!inflate) inflate = std::make_unique<inflate_state>();
    std::size_t got = 0;
    while (got < size && damage.empty()) {
      if (auto status = refill(); !status) return status.error();
      if (member_begin) {
        while (any_member && raw_begin < raw_size && raw[raw_begin] == 0) ++raw_begin;  // padding after the last member
        if (raw_begin == raw_size) {
          if (raw_end) break;
          continue;
        }
        if (any_member && raw[raw_begin] != 0x1f) {
          damage = "bytes after the compressed data that are no gzip member";
          break;
        }
        isal_inflate_init(inflate.get());
        inflate->crc_flag = ISAL_GZIP;
        member_begin = false;
        any_member = true;
      }
      inflate->next_in = raw.data() + raw_begin;
      inflate->avail_in = static_cast<std::uint32_t>(raw_size - raw_begin);
      inflate->next_out = reinterpret_cast<std::uint8_t*>(buffer + got);
      const auto room = static_cast<std::uint32_t>(std::min<std::size_t>(size - got, std::size_t{1} << 30));
      inflate->avail_out = room;
      const int rc = isal_inflate(inflate.get());
      raw_begin = raw_size - inflate->avail_in;
      const std::size_t made = room - inflate->avail_out;
      got += made;
      if (rc != ISAL_DECOMP_OK) {
        damage = rc == ISAL_INCORRECT_CHECKSUM ? "the gzip checksum does not match" : "the gzip data is damaged";
      } else if (inflate->block_state == ISAL_BLOCK_FINISH) {
        member_begin = true;
      } else if (raw_end && made == 0 && raw_begin == raw_size) {
        damage = "the gzip data is cut";
      }
    }
    return got;
  }

  Result<std::size_t> read_zstd(char* buffer, std::size_t size) {
    if (!zstd) {
      zstd.reset(ZSTD_createDStream());
      ZSTD_initDStream(zstd.get());
      ZSTD_DCtx_setParameter(zstd.get(), ZSTD_d_windowLogMax, 27);
    }
    std::size_t got = 0;
    while (got < size && damage.empty()) {
      if (auto status = refill(); !status) return status.error();
      if (raw_end && frame_done) break;
      ZSTD_inBuffer in{raw.data(), raw_size, raw_begin};
      ZSTD_outBuffer out{buffer, size, got};
      const std::size_t rc = ZSTD_decompressStream(zstd.get(), &out, &in);
      const bool moved = out.pos != got || in.pos != raw_begin;
      raw_begin = in.pos;
      got = out.pos;
      if (ZSTD_isError(rc)) {
        damage = std::string("the zstd data is damaged: ") + ZSTD_getErrorName(rc);
      } else {
        frame_done = rc == 0;
        if (!moved && raw_end) damage = "the zstd data is cut";
      }
    }
    return got;
  }

  Result<std::size_t> read_text(char* buffer, std::size_t size) {
    switch (compression) {
      case Compression::none:
        return read_plain(buffer, size);
      case Compression::gzip:
        return read_gzip(buffer, size);
      case Compression::zstd:
        return read_zstd(buffer, size);
    }
    return std::size_t{0};
  }
};

std::string_view to_string(Compression compression) {
  switch (compression) {
    case Compression::none:
      return "none";
    case Compression::gzip:
      return "gzip";
    case Compression::zstd:
      return "zstd";
  }
  return "unknown";
}

Input::Input(std::unique_ptr<State> state) : state_(std::move(state)) {}
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(Input&&) noexcept = default;
Input::~Input() = default;

Result<Input> Input::open(const std::string& path, std::stop_token stop) {
  auto state = std::make_unique<State>();
  state->stop = std::move(stop);
  state->path = path == "-" ? "standard input" : path;
  if (path == "-") {
    state->fd = STDIN_FILENO;
  } else {
    // A pipe into which nobody writes yet is not waited for here, where nothing could end that.
    state->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (state->fd < 0)
      return input_error(std::string("cannot open: ") + std::generic_category().message(errno), path,
                         "check the name and the permissions of the file");
    struct stat status {};
    if (::fstat(state->fd, &status) == 0) {
      if (S_ISDIR(status.st_mode)) return input_error("is a directory", path, "name the files in it");
      state->named_file = S_ISREG(status.st_mode);
      if (state->named_file) state->file_bytes = static_cast<std::uint64_t>(status.st_size);
    }
    ::posix_fadvise(state->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  if (auto status = state->refill(); !status) return status.error();
  if (state->raw_size == 0) return input_error("is empty", state->path, "record or copy it again");
  const std::uint8_t* raw = state->raw.data();
  const std::size_t n = state->raw_size;
  if (n >= 2 && raw[0] == 0x1f && raw[1] == 0x8b) {
    state->compression = Compression::gzip;
  } else if (n >= 4 && raw[0] == 0x28 && raw[1] == 0xb5 && raw[2] == 0x2f && raw[3] == 0xfd) {
    state->compression = Compression::zstd;
  } else if (n >= 4 && (raw[0] & 0xf0) == 0x50 && raw[1] == 0x2a && raw[2] == 0x4d && raw[3] == 0x18) {
    state->compression = Compression::zstd;  // a skippable frame first
  }
  return Input(std::move(state));
}

Result<std::size_t> Input::read(char* buffer, std::size_t size) {
  State& s = *state_;
  if (s.stop.stop_requested()) return cancelled_error();
  const std::size_t owed = std::min(size, s.peeked.size() - s.peeked_begin);
  if (owed != 0) {
    std::memcpy(buffer, s.peeked.data() + s.peeked_begin, owed);
    s.peeked_begin += owed;
    if (owed == size) return owed;
  }
  auto n = s.read_text(buffer + owed, size - owed);
  if (!n) return n;
  if (s.compression != Compression::none) {
    s.expansion.allow(s.consumed);
    s.expansion.spend(*n);
    if (s.expansion.exceeded()) return s.expansion.error(s.path);
  }
  return owed + *n;
}

void Input::limit(Expansion expansion) { state_->expansion = expansion; }

std::string_view Input::peek(std::size_t size) {
  State& s = *state_;
  if (s.peeked_begin == 0 && s.peeked.size() < size) {
    const std::size_t have = s.peeked.size();
    s.peeked.resize(size);
    auto n = s.read_text(s.peeked.data() + have, size - have);
    s.peeked.resize(have + (n ? *n : 0));
  }
  return std::string_view(s.peeked).substr(s.peeked_begin, size);
}

const std::string& Input::path() const { return state_->path; }
bool Input::named_file() const { return state_->named_file; }
Compression Input::compression() const { return state_->compression; }
std::uint64_t Input::file_bytes() const { return state_->file_bytes; }
std::uint64_t Input::consumed_bytes() const { return state_->consumed; }
std::string_view Input::damage() const { return state_->damage; }

Result<std::string> read_all(Input& input, std::size_t most) {
  std::string text;
  std::size_t used = 0;
  for (;;) {
    if (used == text.size()) text.resize(std::max<std::size_t>(2 * text.size(), std::size_t{1} << 20));
    const std::size_t room = text.size() - used;
    auto n = input.read(text.data() + used, room);
    if (!n) return n.error();
    used += *n;
    if (used > most) return input_error("is too large to be read as one text", input.path(), "cut it into parts");
    if (*n < room) break;
  }
  text.resize(used);
  return text;
}

}  // namespace culprit::formats
