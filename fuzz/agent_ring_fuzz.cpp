// Any bytes as what an agent in a recorded program leaves for the recorder, in two portions: the recording that is
// written of them reads back consistent. Times count from the begin of the recording, else none would be near enough to
// be believed.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "check_trace.h"
#include "formats/io/input.h"
#include "formats/perfetto/reader.h"
#include "record/python/watched.h"

namespace {

using namespace culprit;
using fuzz::require;

constexpr std::int32_t kPid = 999'999'999;  // above what the kernel gives: no process of this machine is looked at

/// Adds to the times of records as far as there are such.
void shift_times(std::string& records, Ns by) {
  for (std::size_t at = 0; at + sizeof(culprit_agent_record) <= records.size();) {
    culprit_agent_record record;
    std::memcpy(&record, records.data() + at, sizeof record);
    if (record.size < sizeof record) return;
    constexpr std::uint64_t kSecond = 1'000'000'000;
    if (record.time < kSecond) record.time += static_cast<std::uint64_t>(by);
    std::memcpy(records.data() + at, &record, sizeof record);
    at += record.size;
  }
}

record::inject::Injected made_memory() {
  record::inject::Injected injected;
  void* at = mmap(nullptr, CULPRIT_AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(at != MAP_FAILED);
  injected.shared = record::inject::Shared(at, CULPRIT_AGENT_BYTES);
  return injected;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path = "/dev/shm/culprit-fuzz-" + std::to_string(getpid()) + ".pftrace";
  static const auto kFunctions =
      record::python::parse_functions("m:f(a, b=len(c)) as step {a} {b:1=x <a>}\nm:g\n").value();
  if (size < 2) return 0;
  {
    auto writer = perfetto::Writer::create(path, {.replace = true});
    require(writer.ok());
    auto injected = made_memory();
    auto* header = static_cast<culprit_agent_header*>(injected.shared.data());
    auto* place = reinterpret_cast<char*>(header) + CULPRIT_AGENT_HEADER_BYTES + CULPRIT_AGENT_CONFIG_BYTES;
    record::python::Watched watched(kPid, std::move(injected), kFunctions);
    const Ns begin = record::monotonic_now();
    std::string records(reinterpret_cast<const char*>(data + 2),
                        std::min<std::size_t>(size - 2, CULPRIT_AGENT_CAPACITY));
    shift_times(records, begin);
    std::memcpy(place, records.data(), records.size());
    const std::size_t first = (std::size_t{data[0]} * 8) % (records.size() + 8);
    header->head = first & ~std::size_t{7};
    watched.read(*writer, begin + 1'000'000);
    header->head = data[1] == 255 ? UINT64_MAX : records.size() & ~std::size_t{7};
    watched.read(*writer, begin + 2'000'000);
    require(writer->close().ok());
  }
  auto input = formats::Input::open(path);
  require(input.ok());
  const auto trace = perfetto::read(std::move(*input));
  require(trace.ok());
  fuzz::check(*trace);
  require(trace->losses[LossReason::end_without_begin] == 0);
  unlink(path.c_str());
  return 0;
}
