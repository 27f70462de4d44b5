// Any bytes as a Perfetto trace: read, with whatever is damaged counted; what was read is consistent. The input comes
// as it is and, when its first byte is odd, inside the deflated packet that a writer would make of it.
#include <isa-l.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "check_trace.h"
#include "formats/io/input.h"
#include "formats/perfetto/reader.h"

namespace {

using namespace culprit;
using fuzz::require;

void varint(std::string& to, std::size_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

std::string deflated(const std::uint8_t* data, std::size_t size) {
  std::string out(size + size / 8 + 4096, '\0');
  isal_zstream stream{};
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_ZLIB;
  stream.end_of_stream = 1;
  stream.next_in = const_cast<std::uint8_t*>(data);
  stream.avail_in = static_cast<std::uint32_t>(size);
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = static_cast<std::uint32_t>(out.size());
  require(isal_deflate_stateless(&stream) == COMP_OK);
  out.resize(stream.total_out);
  std::string field = "\x92\x03";
  varint(field, out.size());
  field += out;
  std::string packet = "\x0a";
  varint(packet, field.size());
  return packet + field;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  (void)perfetto::looks_like(bytes);
  if (data[0] % 2 == 1) bytes = deflated(data + 1, size - 1);
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  require(file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  auto input = formats::Input::open("/proc/self/fd/" + std::to_string(file));
  if (input) {
    const auto trace = perfetto::read(std::move(*input));
    if (trace) fuzz::check(*trace);
  }
  close(file);
  return 0;
}
