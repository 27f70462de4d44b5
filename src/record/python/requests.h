// Requests of a server, from what it says of each when it is finished: how long it waited, when its first token came,
// how long a token took.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/perfetto/writer.h"
#include "record/python/function_spec.h"

namespace culprit::record::python {

/// A time of one request.
struct RequestTime {
  std::string_view name;
  Ns begin = 0;
  Ns end = 0;
};

/// The times of a request that ended at `now`, by begin, longer ones first. Left out: those of
/// which a number is missing or 0, that end before they begin or later than a second from `now`.
std::vector<RequestTime> request_times(std::span<const RequestSpan> spans, std::span<const std::string_view> names,
                                       std::span<const std::optional<std::int64_t>> numbers, Ns now);

/// Writes the requests of one process onto as many tracks as there were at once.
class Requests {
 public:
  explicit Requests(std::int64_t pid) : pid_(pid) {}
  /// Requests that began before `begun` are only counted.
  void write(perfetto::Writer& writer, std::span<const RequestTime> times, Ns begun,
             std::span<const perfetto::Argument> arguments);
  [[nodiscard]] std::uint64_t begun_before() const { return begun_before_; }
  /// For which there were too many at once.
  [[nodiscard]] std::uint64_t unwritten() const { return unwritten_; }

 private:
  void write_together(perfetto::Writer& writer, std::span<const RequestTime> times,
                      std::span<const perfetto::Argument> arguments);

  std::int64_t pid_;
  std::vector<Ns> lanes_;  // when each is free
  std::uint64_t begun_before_ = 0;
  std::uint64_t unwritten_ = 0;
};

}  // namespace culprit::record::python
