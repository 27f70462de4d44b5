#include "record/nvtx/ring_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "record/nvtx/ring_format.h"

namespace culprit::record::nvtx {

namespace {

constexpr std::size_t kHead = sizeof(culprit_nvtx_record);
constexpr std::uint64_t kCapacity = CULPRIT_NVTX_CAPACITY;

template <class T>
T read_at(std::span<const std::byte> bytes, std::size_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

void set_payload(Event& event, unsigned type, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  switch (type) {
    case 1:
      event.payload = bits;
      break;
    case 2:
      event.payload = std::bit_cast<std::int64_t>(bits);
      break;
    case 3:
      event.payload = std::bit_cast<double>(bits);
      break;
    case 4:
      event.payload = std::uint64_t{low};
      break;
    case 5:
      event.payload = std::int64_t{std::bit_cast<std::int32_t>(low)};
      break;
    default:
      event.payload = static_cast<double>(std::bit_cast<float>(low));
      break;
  }
}

/// Decodes the record at the begin of `bytes` and returns its size; 0 when it cannot be one.
std::size_t parse_one(std::span<const std::byte> bytes, Event& event, bool& is_pad) {
  if (bytes.size() < 8) return 0;
  const auto size = std::size_t{read_at<std::uint16_t>(bytes, 0)};
  const auto type = read_at<std::uint8_t>(bytes, offsetof(culprit_nvtx_record, type));
  if (size < 8 || size % 8 != 0 || size > bytes.size()) return 0;
  is_pad = type == CULPRIT_NVTX_PAD;
  if (is_pad) return size;
  if (size < kHead || size > CULPRIT_NVTX_MAX_RECORD || type >= CULPRIT_NVTX_REGISTERED_TYPES) return 0;
  const auto head = read_at<culprit_nvtx_record>(bytes, 0);
  const unsigned payload = head.flags & CULPRIT_NVTX_PAYLOAD_MASK;
  const bool has_value = (head.flags & CULPRIT_NVTX_HAS_VALUE) != 0;
  const std::size_t fixed = kHead + (has_value ? 8 : 0) + (payload != 0 ? 8 : 0);
  if (payload > 6 || fixed + head.text_bytes > size) return 0;
  event = {};
  event.type = static_cast<EventType>(type);
  event.depth = head.depth;
  event.domain = head.domain;
  event.time = head.time;
  if (has_value) event.value = read_at<std::uint64_t>(bytes, kHead);
  if (payload != 0) set_payload(event, payload, read_at<std::uint64_t>(bytes, fixed - 8));
  event.text = {reinterpret_cast<const char*>(bytes.data() + fixed), head.text_bytes};
  event.truncated = (head.flags & CULPRIT_NVTX_TRUNCATED) != 0;
  return size;
}

bool read_exactly(int fd, std::span<std::byte> to, std::uint64_t from) {
  while (!to.empty()) {
    const ssize_t n = pread(fd, to.data(), to.size(), static_cast<off_t>(from));
    if (n <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(n));
    from += static_cast<std::uint64_t>(n);
  }
  return true;
}

}  // namespace

bool parse_records(std::span<const std::byte> bytes, const EventSink& sink) {
  Event event;
  while (!bytes.empty()) {
    bool is_pad = false;
    const std::size_t size = parse_one(bytes, event, is_pad);
    if (size == 0) return false;
    if (!is_pad) sink(event);
    bytes = bytes.subspan(size);
  }
  return true;
}

std::optional<RingName> parse_ring_name(std::string_view file) {
  RingName out;
  const auto number = [&file](auto& to, std::string_view behind) {
    const auto [end, code] = std::from_chars(file.data(), file.data() + file.size(), to);
    if (code != std::errc() || to <= 0) return false;
    file.remove_prefix(static_cast<std::size_t>(end - file.data()));
    if (!file.starts_with(behind)) return false;
    file.remove_prefix(behind.size());
    return true;
  };
  if (!number(out.pid, "-") || !number(out.tid, "-") || !number(out.created, ".ring") || !file.empty())
    return std::nullopt;
  return out;
}

RingReader::RingReader(RingReader&& other) noexcept { *this = std::move(other); }

RingReader& RingReader::operator=(RingReader&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(fd_, other.fd_);
  std::swap(counts_cycles_, other.counts_cycles_);
  std::swap(finished_, other.finished_);
  std::swap(tail_, other.tail_);
  std::swap(dropped_, other.dropped_);
  std::swap(malformed_, other.malformed_);
  return *this;
}

RingReader::~RingReader() {
  if (fd_ >= 0) close(fd_);
}

RingState RingReader::open(int folder_fd, const std::string& file, RingReader& out) {
  const std::optional<RingName> name = parse_ring_name(file);
  if (!name) return RingState::refused;
  RingReader ring;
  ring.name_ = *name;
  ring.fd_ = openat(folder_fd, file.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (ring.fd_ < 0 && (errno == EMFILE || errno == ENFILE)) return RingState::no_descriptor;
  struct stat status {};
  if (ring.fd_ < 0 || fstat(ring.fd_, &status) != 0 || !S_ISREG(status.st_mode)) return RingState::refused;
  if (status.st_size < off_t{CULPRIT_NVTX_HEADER_BYTES} + off_t{CULPRIT_NVTX_CAPACITY}) return RingState::unfinished;
  culprit_nvtx_header header{};
  if (!read_exactly(ring.fd_, std::as_writable_bytes(std::span(&header, 1)), 0) || header.magic == 0)
    return RingState::unfinished;
  if (header.magic != CULPRIT_NVTX_MAGIC || header.version != CULPRIT_NVTX_VERSION ||
      header.capacity != CULPRIT_NVTX_CAPACITY || header.pid != name->pid || header.tid != name->tid ||
      header.clock > CULPRIT_NVTX_CLOCK_TSC)
    return RingState::refused;
  ring.counts_cycles_ = header.clock == CULPRIT_NVTX_CLOCK_TSC;
  out = std::move(ring);
  return RingState::ready;
}

std::size_t RingReader::drain(const EventSink& sink) {
  culprit_nvtx_header header{};
  if (fd_ < 0 || !read_exactly(fd_, std::as_writable_bytes(std::span(&header, 1)), 0)) {
    malformed_ += fd_ >= 0 ? 1 : 0;
    finished_ = true;
    return 0;
  }
  finished_ = header.finished != 0;
  if (header.dropped > dropped_) dropped_ = header.dropped;
  const std::uint64_t waiting = header.head - tail_;
  if (waiting == 0) return 0;
  bool good = waiting <= kCapacity && waiting % 8 == 0;
  std::vector<std::byte> bytes;
  while (good && tail_ != header.head) {
    const std::uint64_t offset = tail_ % kCapacity;
    bytes.resize(std::min(header.head - tail_, kCapacity - offset));
    good = read_exactly(fd_, bytes, CULPRIT_NVTX_HEADER_BYTES + offset) && parse_records(bytes, sink);
    tail_ += bytes.size();
  }
  if (!good) ++malformed_;
  tail_ = header.head & ~std::uint64_t{7};
  const ssize_t written = pwrite(fd_, &tail_, sizeof tail_, offsetof(culprit_nvtx_header, tail));
  if (written != sizeof tail_) finished_ = true;
  return std::min(waiting, kCapacity);
}

}  // namespace culprit::record::nvtx
