// Any bytes as a Kineto trace, plain or compressed: read whole, or refused with an error that says something. The first
// byte chooses the number of worker threads.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "check_trace.h"
#include "formats/io/input.h"
#include "formats/kineto/reader.h"

using namespace culprit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const unsigned workers = 1 + data[0] % 3;
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || write(file, data + 1, size - 1) != static_cast<ssize_t>(size - 1)) std::abort();
  const auto read = [&](std::size_t piece_bytes) -> Result<Trace> {
    auto input = formats::Input::open("/proc/self/fd/" + std::to_string(file));
    if (!input) return input.error();
    return formats::kineto::read(std::move(input).value(), {.workers = workers, .piece_bytes = piece_bytes});
  };
  const auto whole = read(std::size_t{512} << 10);
  if (whole) {
    fuzz::check(whole.value());
    // Cutting the text elsewhere must not change what is read of undamaged input.
    const auto pieces = read(16 + data[0]);
    if (!pieces) std::abort();
    fuzz::check(pieces.value());
    if (whole->losses.total(Severity::data_loss) == 0 && whole->slices.size() != pieces->slices.size()) std::abort();
  } else if (whole.error().what.empty()) {
    std::abort();
  }
  close(file);
  return 0;
}
