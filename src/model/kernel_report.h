// What the analyses of one launch log find: utilisation classes, repeated blocks, fusion candidates, launch gaps, and
// the differences of two logs. Units are SI; NaN is unknown.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/string_table.h"
#include "core/units.h"
#include "model/kernel_log.h"

namespace culprit::model {

/// What uses a GPU while a kernel runs, by two axes and a threshold.
enum class UseClass : std::uint8_t { both_low, low_compute, low_dram, neither_low, unknown, count_ };
inline constexpr std::size_t kUseClasses = static_cast<std::size_t>(UseClass::count_);

/// Which measurement is the compute axis of a class.
enum class ComputeAxis : std::uint8_t {
  sm,      ///< SM throughput
  tensor,  ///< tensor pipe use stands in for it: work of the other pipes is not seen
  none,    ///< neither is known
};

struct TimeAndCount {
  Ns time = 0;
  std::uint64_t launches = 0;
};

/// Time per utilisation bin of one measurement, and the time for which it is not known.
struct UseHistogram {
  std::string axis;  ///< "SM", "tensor", "DRAM"
  std::vector<Ns> bins;
  Ns unknown = 0;
};

/// Classes of a log, weighted by time.
struct UseReport {
  double low = 0.33;
  double high = 0.67;
  ComputeAxis axis = ComputeAxis::none;  ///< of most of the time
  Ns total = 0;
  std::uint64_t launches = 0;
  std::array<TimeAndCount, kUseClasses> classes;
  /// [compute][dram], each 0 = below `low`, 1 = between, 2 = at or above `high`; launches with both known.
  std::array<std::array<TimeAndCount, 3>, 3> bins;
  std::vector<UseHistogram> histograms;  ///< only measurements that some launch has
};

/// One position of a repeated block over all its copies.
struct BlockPosition {
  StringId name = 0;         ///< of KernelLog::names
  std::uint32_t copies = 0;  ///< copies that have a launch here
  double mean = 0;           ///< ns
  double deviation = 0;      ///< ns, sample standard deviation
  Ns min = 0;
  Ns max = 0;
  bool other_names = false;  ///< in some copies another kernel stands here
  bool unstable = false;     ///< coefficient of variation above the limit, missing in a copy, or another kernel
};

/// How alike launches had to be to count as repetition.
enum class Likeness : std::uint8_t { same_kernel, same_name, same_family };

/// A stretch of launches, or a body that repeats back to back. Children lie inside the first copy.
struct BlockNode {
  std::uint32_t copies = 1;
  std::uint32_t period = 0;          ///< launches of one copy (median over the copies)
  std::uint32_t first = 0;           ///< index in the lane of its first launch
  std::uint32_t launches = 0;        ///< of all copies
  std::uint32_t shape = 0;           ///< equal for blocks of (nearly) the same launches; 0 = not repeated
  std::uint32_t changed_copies = 0;  ///< copies that are not launch for launch like the first
  Likeness likeness = Likeness::same_kernel;
  Ns time = 0;                           ///< of all copies
  std::vector<std::uint32_t> starts;     ///< begin of every copy, and the end of the last
  std::vector<BlockPosition> positions;  ///< of one copy; empty for stretches
  std::vector<BlockNode> children;
};

/// Launches that follow one another: of one process, device and stream.
struct Lane {
  std::int32_t process = -1;
  std::int16_t device = -1;
  std::int32_t stream = -1;
  Ns time = 0;
  std::vector<std::uint32_t> launches;  ///< rows of KernelLog::launches, in order
};

struct LaneBlocks {
  Lane lane;
  std::vector<BlockNode> nodes;  ///< together they are the lane
};

/// How the bound of a fusion candidate was found.
enum class FusionModel : std::uint8_t {
  traffic_once,     ///< what the launch with the most traffic moves, at the best DRAM use of the log, is what remains
  longest_remains,  ///< DRAM use unknown: the longest launch is what remains
  pass_remains,     ///< launches over different tensors: the longest pass over all of them remains
  removed,          ///< the work need not be done at all
};

/// Launches in a row that one kernel could do, in all places where the same names stand in the same order.
struct FusionCandidate {
  std::string idiom;                  ///< "layer norm", "GELU (tanh)", ... or "element-wise chain"
  bool by_shape = false;              ///< the names do not say it: concluded from which kernels stand together
  std::vector<StringId> names;        ///< of the launches, in order
  std::vector<std::uint32_t> begins;  ///< rows of KernelLog::launches of the first launch of every place
  Ns time = 0;                        ///< of all launches in all places
  Ns gaps = 0;                        ///< launch-sized idle time between them, where begins are known; not in `bound`
  double bound = 0;                   ///< ns that an ideal fusion saves at most, all places together
  double careful = 0;                 ///< ns saved when the longest launch of each place takes as long as before
  FusionModel model = FusionModel::traffic_once;
};

struct FusionReport {
  std::vector<FusionCandidate> candidates;  ///< by bound, largest first
  Ns total = 0;                             ///< of all launches
  double best_dram = kNoNumber;             ///< highest DRAM use of a launch long enough to trust
  Ns shortest = 0;                          ///< shortest launch of the log
};

struct GapBin {
  Ns from = 0;
  Ns to = 0;  ///< exclusive; the last bin has no end
  std::uint64_t count = 0;
  Ns time = 0;
};

/// A stretch of one device in which it waited longer than it worked.
struct LaunchBoundStretch {
  std::int32_t process = -1;
  std::int16_t device = -1;
  std::uint32_t first = 0;  ///< row of KernelLog::launches
  std::uint32_t launches = 0;
  Ns begin = 0;
  Ns duration = 0;
  Ns busy = 0;
};

struct LaunchReport {
  bool begins_known = false;   ///< without begins there are no gaps
  Ns launch_cost = 0;          ///< assumed duration of one launch on the host
  TimeAndCount short_kernels;  ///< kernels shorter than a launch
  Ns window = 0;               ///< sum over devices of first begin to last end
  Ns busy = 0;
  std::vector<GapBin> gaps;
  std::vector<LaunchBoundStretch> stretches;  ///< longest idle time first
};

/// What became of a kernel between two logs.
enum class Change : std::uint8_t { same, slower, faster, appeared, gone, replaced, unclear, not_judged };

/// One name, grid and block; or one position of a block that both logs have.
struct KernelChange {
  Change change = Change::same;
  std::string name;
  std::string name_b;  ///< replaced only
  std::string where;   ///< "" for names; "12 x [38 launches], launch 5" for positions
  std::uint64_t calls_a = 0;
  std::uint64_t calls_b = 0;
  double median_a = kNoNumber;  ///< ns per call
  double median_b = kNoNumber;
  double mean_a = kNoNumber;
  double mean_b = kNoNumber;
  double ratio =
      kNoNumber;     ///< B / A of what was judged: calls matched one by one where there are such, else the medians
  double limit = 0;  ///< ratio - 1 beyond which it counts as different here
  UseClass class_a = UseClass::unknown;
  UseClass class_b = UseClass::unknown;
  std::string note;
};

struct LogComparison {
  std::vector<KernelChange> names;      ///< all, by difference of time at equal work
  std::vector<KernelChange> positions;  ///< those that are not `same`
  std::uint64_t positions_compared = 0;
  std::uint64_t launches_a = 0;
  std::uint64_t launches_b = 0;
  std::uint64_t aligned = 0;  ///< launches that have a partner
  Ns time_a = 0;
  Ns time_b = 0;
  bool alignment_bounded = false;  ///< too different somewhere: only what was found within the bound is aligned
  std::vector<std::string> notes;
};

}  // namespace culprit::model
