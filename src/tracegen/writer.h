// Writes the events of one rank as Chrome JSON in the dialects that profilers produced over the years, and counts what
// it wrote: the counts are the truth that tests hold a reader to.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tracegen/names.h"
#include "tracegen/options.h"
#include "tracegen/sink.h"

namespace culprit::tracegen {

/// One slice with all that may stand in its arguments; what is negative or zero is left out.
struct SliceEvent {
  Cat cat = Cat::kernel;
  std::string_view name;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  Ns begin = 0;  ///< on the rank's clock, relative to the base
  Ns duration = 0;
  std::uint32_t correlation = 0;
  std::int64_t external_id = -1;
  std::int32_t device = -1;
  std::int32_t stream = -1;
  std::int64_t bytes = 0;
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  std::uint32_t registers = 0;
  std::uint32_t shared_memory = 0;
  std::uint32_t graph_node = 0;
  std::int64_t elements = 0;  ///< of a collective
  std::uint32_t group_size = 0;
  std::int64_t sequence = -1;
  std::int64_t forward_thread = -1;
  std::int64_t python_id = -1;
  std::int64_t python_parent = -1;
};

struct Sum {
  std::uint64_t count = 0;
  Ns total = 0;
};

/// What was written.
struct Written {
  std::array<Sum, kCats> by_cat{};
  std::array<Sum, kFns> by_fn{};
  std::uint64_t events = 0;
  std::uint64_t slices = 0;
  std::uint64_t lost = 0;
  std::uint64_t flow_begins = 0;
  std::uint64_t flow_ends = 0;
  std::uint64_t counters = 0;
  std::uint64_t instants = 0;
  std::uint64_t metadata = 0;
  std::uint64_t memcpy_bytes = 0;
  std::uint64_t memset_bytes = 0;
};

/// Unix time of trace time 0.
inline constexpr std::int64_t kBaseNs = 1'750'000'000'000'000'000;

class TraceWriter {
 public:
  TraceWriter(const Options& options, std::uint32_t rank);

  Status open(const std::string& path, bool replace);
  void slice(const SliceEvent& event);
  /// The same, counted under the function as well.
  void slice(const SliceEvent& event, Fn fn);
  void flow(bool begin, std::string_view kind, std::uint64_t id, std::int64_t pid, std::int64_t tid, Ns at);
  void counter(std::string_view name, std::string_view key, std::int64_t value, std::int64_t pid, Ns at);
  void instant(std::string_view name, std::int64_t pid, std::int64_t tid, Ns at);
  void process(std::int64_t pid, std::string_view name, std::string_view labels);
  void thread(std::int64_t pid, std::int64_t tid, std::string_view name);
  Status close(Ns begin, Ns end);
  /// A slice was simulated but the profiler lost it.
  void lose() { ++written_.lost; }

  [[nodiscard]] const Written& written() const { return written_; }
  [[nodiscard]] std::uint64_t text_bytes() const { return sink_.text_bytes(); }
  [[nodiscard]] bool failed() const { return sink_.failed(); }
  /// What a reader finds for a time or duration of the simulation: the old dialect has whole microseconds only.
  [[nodiscard]] Ns as_written(Ns t) const { return whole_us_ ? t / 1000 * 1000 : t; }

 private:
  void header();
  void begin_event(std::string_view phase);
  void end_event();
  void put(std::string_view text);
  void put_number(std::int64_t value);
  void put_us(Ns t);
  void key(std::string_view name);
  void text(std::string_view name, std::string_view value);
  void number(std::string_view name, std::int64_t value);
  void triple(std::string_view name, const std::array<std::uint32_t, 3>& value);
  void process_and_thread(std::int64_t pid, std::int64_t tid);
  void time(Ns at);
  void begin_args();
  void end_args();

  Style style_;
  bool compact_;
  bool whole_us_;
  bool text_ids_;
  bool absolute_;
  std::uint32_t rank_;
  std::uint32_t ranks_;
  Sink sink_;
  Written written_;
  std::string path_;
  char* at_ = nullptr;
  bool first_member_ = true;
};

}  // namespace culprit::tracegen
