// Any bytes as the rings that a recorded program leaves for the recorder: the collector writes a recording of them that
// reads back consistent. The input is a list of pieces: two bytes of length, one that says what kind of file, the
// bytes of the ring. Times of records count from the begin of the recording, else none would be near enough to be
// believed.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check_trace.h"
#include "formats/io/input.h"
#include "formats/perfetto/reader.h"
#include "record/nvtx/nvtx.h"
#include "record/nvtx/ring_format.h"

namespace {

using namespace culprit;
using fuzz::require;

constexpr std::int32_t kPid = 999'999'999;  // above what the kernel gives: no process of this machine is looked at

void shift_times(std::string& records, Ns by) {
  for (std::size_t at = 0; at + sizeof(culprit_nvtx_record) <= records.size();) {
    culprit_nvtx_record head;
    std::memcpy(&head, records.data() + at, sizeof head);
    if (head.size < 8) return;
    constexpr std::uint64_t kSecond = 1'000'000'000;
    if (head.size >= sizeof head && head.time < kSecond) {
      head.time += static_cast<std::uint64_t>(by);
      std::memcpy(records.data() + at, &head, sizeof head);
    }
    at += head.size;
  }
}

/// `kind` chooses what is wrong with the header: the sixth of them are right.
void write_ring(int folder, int number, unsigned kind, std::string records, Ns begin) {
  shift_times(records, begin);
  records.resize(std::min<std::size_t>(records.size(), CULPRIT_NVTX_CAPACITY));
  culprit_nvtx_header header{};
  header.magic = CULPRIT_NVTX_MAGIC;
  header.version = kind == 1 ? 7 : CULPRIT_NVTX_VERSION;
  header.capacity = kind == 2 ? 1 : CULPRIT_NVTX_CAPACITY;
  header.pid = kPid;
  header.tid = kPid + (kind == 3 ? 1000 : number);
  header.clock = CULPRIT_NVTX_CLOCK_MONOTONIC;
  header.finished = kind & 8U;
  header.head = kind == 4 ? UINT64_MAX : records.size() & ~std::size_t{7};
  header.dropped = kind == 5 ? UINT64_MAX : kind;
  const std::string name =
      std::to_string(kPid) + "-" + std::to_string(kPid + number) + "-" + std::to_string(number + 1) + ".ring";
  const int file = openat(folder, name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  require(file >= 0);
  require(pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header));
  require(pwrite(file, records.data(), records.size(), CULPRIT_NVTX_HEADER_BYTES) ==
          static_cast<ssize_t>(records.size()));
  if (kind != 6) require(ftruncate(file, CULPRIT_NVTX_HEADER_BYTES + CULPRIT_NVTX_CAPACITY) == 0);
  close(file);
}

std::string folder_of(const record::Collector& nvtx) {
  const std::string variable = CULPRIT_NVTX_DIR_VARIABLE "=";
  for (const std::string& one : nvtx.environment())
    if (one.starts_with(variable)) return one.substr(variable.size());
  return {};
}

void write_rings(const std::string& path, const std::uint8_t* data, std::size_t size, Ns begin) {
  const int folder = open(path.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  require(folder >= 0);
  constexpr int kMostRings = 8;
  for (int number = 0; size > 3 && number < kMostRings; ++number) {
    const std::size_t length = std::min<std::size_t>(std::size_t{data[0]} | std::size_t{data[1]} << 8, size - 3);
    write_ring(folder, number, data[2], std::string(reinterpret_cast<const char*>(data + 3), length), begin);
    data += 3 + length;
    size -= 3 + length;
  }
  close(folder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path = "/dev/shm/culprit-fuzz-" + std::to_string(getpid()) + ".pftrace";
  {
    auto writer = perfetto::Writer::create(path, {.replace = true});
    require(writer.ok());
    const auto nvtx = record::nvtx::make_nvtx({.library = "/none", .folder_parent = "/dev/shm"});
    std::vector<record::Target> targets{{.pid = kPid, .start_ticks = 1}};
    record::Session session{.writer = *writer, .targets = targets};
    require(nvtx->start(session).ok());
    const Ns begin = record::monotonic_now();
    write_rings(folder_of(*nvtx), data, size, begin);
    for (int round = 1; round <= 3; ++round) nvtx->poll(session, begin + round * 1'000'000);
    nvtx->stop(session, begin + 4'000'000);
    require(writer->close().ok());
  }
  auto input = formats::Input::open(path);
  require(input.ok());
  const auto trace = perfetto::read(std::move(*input));
  require(trace.ok());
  fuzz::check(*trace);
  require(trace->losses[LossReason::end_without_begin] == 0);
  require(trace->losses[LossReason::time_invalid] == 0);
  unlink(path.c_str());
  return 0;
}
