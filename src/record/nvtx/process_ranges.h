// Ranges of one process that any thread may begin and any other end, and the names it gives to categories.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "record/collector/collector.h"

namespace culprit::record::nvtx {

class ProcessRanges {
 public:
  explicit ProcessRanges(std::int64_t pid) : pid_(pid) {}

  /// Ranges of one process may overlap: each lies in a lane of its own while it is open.
  void start(perfetto::Writer& writer, std::uint64_t id, Ns at, std::string_view name,
             std::span<const perfetto::Argument> arguments);
  void end(perfetto::Writer& writer, std::uint64_t id, Ns at);
  /// What goes on now ends in no file: that in which it began is complete.
  void cut();
  /// After every ring was looked at: an end whose start has not come by now, from whatever ring, never will.
  void settle();

  void name_category(std::uint16_t domain, std::uint64_t category, std::string_view name);
  /// Its name, else its number.
  [[nodiscard]] std::string category(std::uint16_t domain, std::uint64_t category) const;

  /// Ends without start, and starts that found no room.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  static constexpr std::size_t kMostOpen = 4096;
  static constexpr std::size_t kMostNames = 4096;
  struct Lane {
    perfetto::TrackUuid track = 0;
    Ns free_from = 0;
    bool is_open = false;
  };
  struct Open {
    std::size_t lane = 0;
    Ns begin = 0;
    bool is_written = true;
  };
  struct EarlyEnd {
    Ns at = 0;
    int rounds = 0;
  };

  void finish(perfetto::Writer& writer, const Open& open, Ns at);

  std::int64_t pid_;
  std::vector<Lane> lanes_;
  std::map<std::uint64_t, Open> open_;
  std::map<std::uint64_t, EarlyEnd> early_ends_;
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::string> categories_;
  std::uint64_t lost_ = 0;
};

}  // namespace culprit::record::nvtx
