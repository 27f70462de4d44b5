// Scheduling in a Perfetto trace: bundles of kernel events, one by one or in their compact form.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/chunked_vector.h"
#include "formats/io/expansion.h"
#include "formats/perfetto/clocks.h"
#include "formats/perfetto/packets.h"
#include "formats/perfetto/sched_slices.h"
#include "formats/perfetto/trace.pb.h"
#include "trace/builder.h"

namespace culprit::perfetto {

class Ftrace {
 public:
  Ftrace(TraceBuilder& builder, Clocks& clocks, formats::Expansion& expansion)
      : builder_(builder), clocks_(clocks), expansion_(expansion) {}

  /// Takes the events of an FtraceEventBundle.
  void bundle(Packet bytes);
  /// All of them, in the order of the file.
  [[nodiscard]] const ChunkedVector<SchedEvent>& events() const { return events_; }

 private:
  StringId comm(std::string_view name);
  std::optional<Ns> time(std::uint64_t at, std::uint32_t clock);
  void event(Packet bytes, std::int32_t cpu, std::uint32_t clock);
  void compact(const proto::FtraceEventBundle::CompactSched& sched, std::int32_t cpu, std::uint32_t clock);
  void keep(const SchedEvent& event);

  TraceBuilder& builder_;
  Clocks& clocks_;
  formats::Expansion& expansion_;
  ChunkedVector<SchedEvent> events_;
  std::map<std::int32_t, std::pair<std::int32_t, StringId>> compact_last_;  ///< who came last, by CPU
  proto::FtraceEvent event_;
};

}  // namespace culprit::perfetto
