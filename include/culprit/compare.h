// Two runs compared: did the steps become slower, which functions changed, and how sure is that.
#pragma once

#include <culprit/api.h>
#include <culprit/error.h>
#include <culprit/load.h>
#include <culprit/outcome.h>
#include <culprit/task.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace culprit {

struct CompareOptions {
  std::string anchor{};     ///< name of the marker or function that begins a cycle; empty: found
  double tolerance = 0.03;  ///< relative change of the cycle time that does not matter, between 0 and 1
  Task task{};              ///< both sides are measured at the same time, and report alike
};

// Times are nanoseconds, frequencies Hz, sizes bytes, shares fractions; a relative change of 0.1 is 10 % more. Where
// there is one value per side, [0] is the baseline's and [1] the candidate's. NaN: not known.

/// Cycle times of one phase, and what follows from them.
struct CycleTime {
  std::string phase;  ///< prefill, decode, mixed, train_step, other
  Outcome outcome = Outcome::inconclusive;
  std::array<double, 2> time_ns{};  ///< geometric means
  double change = 0;                ///< of these
  double low = 0;                   ///< its 95 % interval
  double high = 0;
  double smallest_seen = 0;  ///< smallest regression that would have been seen four times out of five
  std::array<std::size_t, 2> cycles{};
  std::int32_t rank = -1;  ///< of that rank alone, which decides nothing; -1: of each step the slowest
  /// Where nothing is decided: what these recordings differ by, beyond the tolerance, though two of the same may.
  std::optional<ChangeInterval> these_differ{};
};

/// One function of one rank on one device in one phase, per cycle; a cycle without it counts as 0. Time is exposed time
/// on a device, on the host the time outside of other functions that it called.
struct Finding {
  std::string phase;
  std::string function;
  std::string was;  ///< what the baseline calls it; empty: the same
  std::string short_name;
  std::string kind;    ///< "gpu_compute", "cuda_api", "python", ...
  std::string device;  ///< "GPU" where the process has one, "GPU 3", "Host"
  std::int32_t rank = -1;
  FunctionStatus status = FunctionStatus::unknown;
  RestsOn rests_on = RestsOn::time;
  std::array<double, 2> time_ns{};
  double impact_ns = 0;  ///< time_ns[1] - time_ns[0]
  double low_ns = 0;     ///< its 95 % interval
  double high_ns = 0;
  std::array<double, 2> calls{};
  double work_ratio = 0;  ///< time of a call, candidate over baseline
  double q = 0;           ///< rate of false discoveries at which it counts as changed, new or gone
  std::string parent;     ///< the function in which most of its time lay, or was launched; empty: none on both sides
  /// A cost shift: the function inside of which others lost what it gained, or the other way round; empty: none.
  std::string moved_inside;
};

/// Mean of one resource of one device while whole cycles ran (clocks: while it was busy), that moved.
struct ResourceChange {
  std::string metric;
  std::string device;
  std::int32_t rank = -1;
  std::string unit;  ///< "Hz", "bytes/s", ...; empty: plain number or fraction
  std::array<std::optional<double>, 2> value;
};

/// A fact that differs. Empty: a side does not say.
struct FactChange {
  std::string what;
  std::array<std::string, 2> value;
  bool blocks = false;  ///< the runs must not be compared
};

/// Whether cycle times and functions of the runs may be held against each other.
struct Comparability {
  Comparable level = Comparable::yes;
  std::vector<std::string> reasons;  ///< sentences; when the level is `no` the first says why
  std::string remedy;                ///< only when the level is `no`
  std::vector<FactChange> differences;
};

/// One side, after its recordings were pooled.
struct ComparedSide {
  std::vector<std::string> files;
  std::size_t recordings = 0;
  std::string anchor;
  std::string reason;  ///< how the cycles were found
  double period_confidence = 0;
  std::size_t cycles = 0;
  std::optional<std::int64_t> median_period_ns;  ///< of whole cycles
};

/// What made one side slower, docs/verdicts.md.
struct Verdict {
  std::string cause;   ///< "cpu_contention"
  std::string detail;  ///< "throttled"; empty: none, or not known
  std::string scope;   ///< "host", "device", "process", "function", "rank"
  std::string where;   ///< "GPU 7", the function; empty: all of the scope
  std::int32_t rank = -1;  ///< where it sits on one of several
  std::size_t side = 1;
  bool active = true;     ///< it made the steps longer; else work became slower while something hides it
  double impact_ns = 0;   ///< that a step, or unit of work, takes longer by it
  double share = 0;       ///< of all that it takes longer
  double work_ratio = 0;  ///< time of the same work, with the cause over without it
  double confidence = 0;  ///< 0 to 1
  std::vector<std::string> evidence;
  std::vector<std::string> against;
  std::string next_step;
};

struct Comparison {
  struct Data;
  Outcome outcome = Outcome::inconclusive;  ///< of all phases together
  std::string why;                          ///< what limits the outcome; empty: its cycle times say all
  bool same_recording = false;              ///< both sides are one: nothing was compared
  Comparability comparability;
  std::array<ComparedSide, 2> sides;
  std::vector<CycleTime> cycle_times;     ///< by phase; then of each rank, where both sides have several
  std::vector<Finding> findings;          ///< largest impact first
  std::vector<ResourceChange> resources;  ///< by metric, rank and device
  std::vector<FactChange> environment;    ///< machine, libraries and limits
  std::vector<Verdict> verdicts;          ///< the slower side's first, largest impact first
  std::vector<std::string> assumptions;
  std::vector<std::string> notes;
  std::shared_ptr<const Data> data;  ///< what the reports are made of; copies share it
};

/// Compares two runs, each of one or more recordings of the same (load_recordings()), which are pooled. Runs that must
/// not be compared give the outcome not_comparable and why. Errors: usage, when a side has no recording, a recording
/// comes twice, the anchor does not occur or the tolerance is no share; input, when recordings of one side are not of
/// the same run.
/// `earlier`: further recordings of the same workload, three or more; how much they differ is how much two recordings
/// of the same do, which is assumed otherwise. Those that are not of it are left out, with a note.
CULPRIT_API Result<Comparison> compare_runs(std::vector<Run> baseline, std::vector<Run> candidate,
                                            const CompareOptions& options = {}, const std::vector<Run>& earlier = {});

/// The reports of `culprit diff`, see docs/diff.md. `most_rows`: functions per phase.
CULPRIT_API std::string to_text(const Comparison& comparison, std::size_t most_rows = 12);
CULPRIT_API std::string to_markdown(const Comparison& comparison);
CULPRIT_API std::string to_csv(const Comparison& comparison);
CULPRIT_API std::string to_json(const Comparison& comparison);

}  // namespace culprit
