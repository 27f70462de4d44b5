// Time per function of one trace: calls, sums and the spread of their durations, for any selection and grouping.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cycles/find.h"
#include "profile/nesting.h"
#include "summary/passes.h"
#include "trace/trace.h"

namespace culprit::summary {

/// A set of slice classes.
using ClassSet = std::uint32_t;
constexpr ClassSet class_bit(SliceClass c) { return ClassSet{1} << static_cast<unsigned>(c); }
inline constexpr ClassSet kGpuWork =
    class_bit(SliceClass::kernel) | class_bit(SliceClass::memcpy) | class_bit(SliceClass::memset);
inline constexpr ClassSet kAllClasses = ~ClassSet{0};
/// What the program says of itself, without what the operating system saw of its threads in the same time.
inline constexpr ClassSet kFunctions =
    kAllClasses & ~(class_bit(SliceClass::os_sched) | class_bit(SliceClass::syscall));

enum class GroupBy : std::uint8_t { name, raw_name, short_name, kind, device, stream, rank, category, cycle, phase };

struct FunctionQuery {
  ClassSet classes = kGpuWork;
  GroupBy by = GroupBy::name;
  std::string filter;                         ///< keeps names or labels that match, see matches_filter(); empty: all
  const profile::Nesting* nesting = nullptr;  ///< of this trace; nullptr: nothing nests (right for GPU work alone)
  const Passes* passes = nullptr;             ///< with it, only GPU work of one of `pass_set`
  std::uint32_t pass_set = 0;                 ///< bit per Pass
  const cycles::Found* cycles = nullptr;  ///< of this trace; needed to group by cycle and phase, and to choose cycles
  std::stop_token stop{};                 ///< when it is requested some calls are missing
  const std::vector<bool>* kept_cycles = nullptr;  ///< by row of `cycles`: only slices in these; nullptr: all slices
};
constexpr std::uint32_t pass_bit(Pass pass) { return 1u << static_cast<unsigned>(pass); }

/// Times in ns. Sums stop at the largest Ns.
struct FunctionStats {
  std::string label;
  std::uint64_t calls = 0;  ///< without those that are Nesting::again
  Ns self = 0;
  /// GPU work: the sum of durations. On the host: the time in which at least one call ran, per thread, so that a
  /// function that calls itself, directly or through others, counts once.
  Ns total = 0;
  Ns min = 0;
  Ns max = 0;
  double mean = 0;       ///< of the durations of the calls
  double median = 0;     ///< exact; the mean of the two middle ones when `calls` is even
  double deviation = 0;  ///< sample standard deviation (n - 1); 0 for one call
  /// Place among groups with an order of their own (cycles by number, phases, then what is in no cycle); else 0.
  std::uint64_t position = 0;
};

struct FunctionSums {
  std::vector<FunctionStats> functions;  ///< in order of first appearance: in the input, or with nesting by thread
  Ns self = 0;  ///< of all slices of the classes, passes and cycles, whether the filter keeps them or not
  std::uint64_t calls = 0;
  Ns self_in_no_cycle = 0;  ///< left out because cycles were chosen and this lies in none
  std::uint64_t calls_in_no_cycle = 0;
  Ns profiler_time = 0;  ///< left out because it is the span of a profiler, is_profiler_span()
  std::uint64_t profiler_spans = 0;
};

/// Statistics per group; the order of events in the input changes nothing but the order of `functions`. Linear in
/// slices (medians by selection, not sorting); 20 bytes per selected slice while it runs.
FunctionSums function_stats(const Trace& trace, const FunctionQuery& query);

/// A filter with `*` or `?` is a pattern for the whole name (`*` any text, `?` one byte); any other is looked for
/// anywhere in the name. Case counts. Time is bounded by length of name times length of filter.
bool matches_filter(std::string_view name, std::string_view filter);

}  // namespace culprit::summary
