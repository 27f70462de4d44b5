// Call stacks of a Perfetto trace: interned from the innermost part (texts) to the outermost (stacks), by sequence, and
// the samples that name them by number.
#pragma once

#include <cstdint>

#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "formats/io/expansion.h"
#include "formats/perfetto/trace.pb.h"
#include "trace/builder.h"

namespace culprit::perfetto {

/// A map forgets in the time that filling it took, however large it once was.
template <class Map>
void reset(Map& map) {
  if (!map.empty()) map = Map();
}

/// What packets of one sequence share about stacks.
struct StackTables {
  struct Code {
    StringId function = 0;
    StringId module = 0;
    bool kernel = false;
  };
  template <class Value>
  using Numbered = tsl::hopscotch_map<std::uint64_t, Value, Hash>;
  Numbered<StringId> functions;
  Numbered<StringId> path_parts;
  Numbered<StringId> mappings;  ///< their paths
  Numbered<Code> frames;
  Numbered<std::uint32_t> stacks;  ///< the innermost frame, row of Trace::stack_frames
  Ns period = 0;                   ///< what a sample stands for; 0: unknown
  bool clock = true;               ///< a clock takes the samples

  void clear();
};

class Stacks {
 public:
  Stacks(TraceBuilder& builder, formats::Expansion& expansion) : builder_(builder), expansion_(expansion) {}

  void intern(StackTables& tables, const proto::InternedData& data);
  static void set_defaults(StackTables& tables, const proto::PerfSampleDefaults& defaults);
  /// A packet that only tells of losses is counted as that.
  void sample(const StackTables& tables, const proto::PerfSample& sample, Ns at);
  /// A stack as text, outermost frame first, between semicolons.
  std::uint32_t folded(std::string_view text);

 private:
  TraceBuilder& builder_;
  formats::Expansion& expansion_;
};

}  // namespace culprit::perfetto
