// What one ring says, in order, as slices: keeps the nesting right even where records were lost.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "record/collector/collector.h"
#include "record/nvtx/ring_reader.h"

namespace culprit::record::nvtx {

/// What a ring's events amount to.
struct RangeCounts {
  std::uint64_t steps = 0;     ///< outermost ranges with a step's name that ended
  std::uint64_t unpaired = 0;  ///< ends without begin, begins without end
};

class ThreadRanges {
 public:
  ThreadRanges(std::int64_t pid, std::int64_t tid) : pid_(pid), tid_(tid) {}

  void push(perfetto::Writer& writer, const Event& event, Ns at, std::span<const perfetto::Argument> arguments);
  void pop(perfetto::Writer& writer, const Event& event, Ns at);
  void mark(perfetto::Writer& writer, const Event& event, Ns at, std::span<const perfetto::Argument> arguments);
  /// What goes on now ends in no file: that in which it began is complete.
  void cut();
  void name_domain(std::uint16_t domain, std::string_view name);
  [[nodiscard]] std::string domain_name(std::uint16_t domain) const;

  [[nodiscard]] const RangeCounts& counts() const { return counts_; }

 private:
  static constexpr std::size_t kDomains = 64;
  static constexpr std::uint8_t kTooDeep = 255;
  struct Open {
    bool is_written = false;
    bool is_step = false;
  };
  struct Domain {
    std::string name;
    std::vector<Open> open;
    perfetto::TrackUuid track = 0;
    bool has_track = false;
  };

  Domain& of(std::uint16_t domain) { return domains_[domain < kDomains ? domain : 0]; }
  perfetto::TrackUuid track(perfetto::Writer& writer, std::uint16_t domain);
  void close_top(perfetto::Writer& writer, Domain& domain, std::uint16_t id, Ns at);

  std::int64_t pid_;
  std::int64_t tid_;
  std::array<Domain, kDomains> domains_;
  RangeCounts counts_;
};

}  // namespace culprit::record::nvtx
