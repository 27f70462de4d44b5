// What comparing two runs found. `compare` fills it, `report` shows it. Where there is one value per side, [0] is the
// baseline's and [1] the candidate's. Relative changes: 0.1 is 10 % more.
#pragma once

#include <culprit/outcome.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/string_table.h"
#include "model/alternation.h"
#include "model/cycles.h"
#include "model/host_evidence.h"
#include "model/profile.h"
#include "model/recording.h"
#include "model/verdict.h"
#include "model/whole_run.h"
#include "model/work_units.h"

namespace culprit::model {

using culprit::ChangeInterval;
using culprit::Comparable;
using culprit::FunctionStatus;
using culprit::Outcome;
using culprit::RestsOn;

inline constexpr std::array<const char*, 2> kSideNames = {"baseline", "candidate"};
inline constexpr std::size_t kMostRecordings = 20;  ///< that anyone would be asked for

/// Cycle times of one phase, and what follows from them.
struct CycleTimeOutcome {
  Phase phase = Phase::other;
  std::int32_t rank = -1;  ///< its number; -1: of each step the slowest rank
  Outcome outcome = Outcome::inconclusive;
  std::array<double, 2> time_ns{kNoNumber, kNoNumber};    ///< geometric means
  std::array<double, 2> median_ns{kNoNumber, kNoNumber};  ///< of the same cycles
  double change = kNoNumber;                              ///< of the means
  double low = kNoNumber;                                 ///< 95 % interval; none with too few cycles
  double high = kNoNumber;
  double smallest_seen = kNoNumber;  ///< smallest regression that would have been seen four times out of five
  /// Where nothing is decided: what these recordings differ by, beyond the tolerance, though two of the same may.
  std::optional<ChangeInterval> these_differ{};
  /// Where nothing is decided: recordings of each side, taken in turns, that would decide with 80 % if they differ as
  /// these do; kMostRecordings + 1: more than so many. 0: decided, or not known.
  std::size_t enough = 0;
  double tolerance = 0;
  double between = 0;  ///< spread between recordings of the same, assumed or measured
  std::array<std::size_t, 2> cycles{};
  std::array<double, 2> effective{};          ///< number of independent cycles, or of recordings where these are judged
  std::array<std::size_t, 2> recordings{};    ///< that tell how much recordings of the same differ; 0: that is assumed
  std::size_t earlier = 0;                    ///< recordings beside the two sides, or of one of them, that tell it
  std::optional<std::size_t> earlier_side{};  ///< the side whose own these are; none: they stand beside the two
  std::array<std::size_t, 2> other_work{};    ///< whole cycles left out: the other side has none of such work
  std::array<std::string, 2> usual_work;      ///< what most cycles worked on, "4 requests"; empty: not known
  double other_share = 0;          ///< of the cycles of a side that would have to work on something else to be alike
  std::array<double, 2> all_ns{};  ///< mean of all whole cycles, whatever they worked on
  std::array<double, 2> prompt_tokens{};   ///< that one of them computes, mean; 0: not known
  std::array<double, 2> prompts{};         ///< that these are of, mean; 0: not known
  std::array<double, 2> requests{};        ///< that one of them works for, mean; 0: not known
  std::array<double, 2> most_requests{};   ///< that a fiftieth of them works for at once; 0: not known
  std::array<double, 2> cached_prompts{};  ///< share of them that compute hardly any token of each prompt
  std::array<double, 2> looked_back{};     ///< tokens that one of them looks back at, mean; 0: not known
  bool knows_context = false;              ///< both sides tell how many tokens cycles look back at
};

/// Otherwise the sides have no cycles of like work in that phase, and there is nothing to judge.
inline bool is_judged(const CycleTimeOutcome& outcome) { return outcome.cycles[0] > 0 && outcome.cycles[1] > 0; }

/// The judged phase, of a known change, in which the baseline spends most time. nullptr: there is none.
inline const CycleTimeOutcome* longest_phase(const std::vector<CycleTimeOutcome>& outcomes) {
  const CycleTimeOutcome* longest = nullptr;
  double most = 0;
  for (const CycleTimeOutcome& outcome : outcomes) {
    const double time = outcome.time_ns[0] * static_cast<double>(outcome.cycles[0]);
    if (!is_judged(outcome) || !std::isfinite(outcome.change) || !(time > most)) continue;
    most = time;
    longest = &outcome;
  }
  return longest;
}

/// Whether what cycles of the phase usually work on can be held against each other: both sides have some of them. Where
/// one has hardly any beside many of the other, as prefills alone of a server that is seldom idle, they are no sample.
inline bool tells_usual_work(const CycleTimeOutcome& outcome) {
  constexpr std::size_t kEnough = 8;
  constexpr std::size_t kAsMany = 4;
  const std::array all = {outcome.cycles[0] + outcome.other_work[0], outcome.cycles[1] + outcome.other_work[1]};
  const std::size_t fewer = std::min(all[0], all[1]);
  const std::size_t more = std::max(all[0], all[1]);
  return fewer >= kEnough || kAsMany * fewer >= more;
}

/// Prompts are longer by so much: classes of work are halves of a doubling.
inline constexpr double kLongerPrompts = 1.5;

/// Whether cycles of the phase compute longer prompts on this side than on the other, and not only more at once.
inline bool has_longer_prompts(const CycleTimeOutcome& outcome, std::size_t side) {
  std::array<double, 2> tokens = outcome.prompt_tokens;
  if (outcome.prompts[0] > 0 && outcome.prompts[1] > 0)
    for (std::size_t s = 0; s < 2; ++s) tokens.at(s) /= outcome.prompts.at(s);
  const double other = tokens.at(1 - side);
  return other > 0 && tokens.at(side) >= kLongerPrompts * other && tells_usual_work(outcome);
}

/// Whether cycles of the phase look back at earlier tokens, and do not tell at how many.
inline bool looks_back_unseen(const CycleTimeOutcome& outcome) {
  return (outcome.phase == Phase::decode || outcome.phase == Phase::mixed) && !outcome.knows_context;
}

/// Whether a cycle of the phase works on clearly less on this side than on the other, and on no more of anything. Not
/// where it looks back at tokens that it does not tell, or where each prompt is longer.
inline bool has_less_work(const CycleTimeOutcome& outcome, std::size_t side) {
  if (looks_back_unseen(outcome) || has_longer_prompts(outcome, side)) return false;
  constexpr double kLess = 0.8;   // of it
  constexpr double kMore = 1.05;  // times: sides under the same load differ by a few in a hundred
  bool less = false;
  for (const std::array<double, 2>& work : {outcome.requests, outcome.prompt_tokens, outcome.looked_back}) {
    if (!(work[0] > 0) || !(work[1] > 0)) continue;
    if (work.at(side) > kMore * work.at(1 - side)) return false;
    less = less || work.at(side) < kLess * work.at(1 - side);
  }
  return less;
}

/// Whether cycles of the phase work for more requests on this side, and never for more at once than some of the other
/// side do, each of which has as much: the same clients, whom the program serves one after the other for a while.
inline bool may_be_batched(const CycleTimeOutcome& outcome, std::size_t side) {
  constexpr double kAlike = 1.25;
  const auto each = [&](const std::array<double, 2>& sum) {
    return sum[0] > 0 && sum[1] > 0
               ? (sum.at(side) / outcome.requests.at(side)) / (sum.at(1 - side) / outcome.requests.at(1 - side))
               : 1;
  };
  return outcome.requests.at(side) > outcome.requests.at(1 - side) && outcome.requests.at(1 - side) > 0 &&
         outcome.most_requests.at(1 - side) > 0 &&
         outcome.most_requests.at(side) <= outcome.most_requests.at(1 - side) && !has_longer_prompts(outcome, side) &&
         each(outcome.looked_back) < kAlike;
}

/// has_longer_prompts() in any phase.
inline bool has_longer_prompts(const std::vector<CycleTimeOutcome>& outcomes, std::size_t side) {
  return std::ranges::any_of(outcomes, [&](const CycleTimeOutcome& o) { return has_longer_prompts(o, side); });
}

/// Whether recordings tell how much recordings of the same differ, in every phase that is judged.
inline bool is_measured(const std::vector<CycleTimeOutcome>& outcomes) {
  bool any = false;
  for (const CycleTimeOutcome& outcome : outcomes) {
    if (!is_judged(outcome)) continue;
    if (outcome.recordings[0] == 0 && outcome.earlier == 0) return false;
    any = true;
  }
  return any;
}

/// A side on which hardly a step was seen, though the other has many: the thread that runs them could not run for most
/// of the time, and was on a CPU for too little to have done more than a few; or it did some, and then none to the end.
/// ns, of all of the recording or since the last step began.
struct Standstill {
  std::size_t side = 1;
  std::size_t seen = 0;   ///< steps
  bool at_end = false;    ///< it did some
  bool compared = false;  ///< those that it did are compared as well
  std::string thread{};
  std::string process{};
  std::string units{};  ///< of work: "requests"; "": steps, which the thread runs
  double recorded = 0;
  double on_cpu = 0;
  double runnable = 0;
  double stopped = 0;
  double uninterruptible = 0;
  double steps_per_second = 0;  ///< of the other side
  double at_most = 0;           ///< of this one; or those that it did
};

/// A side whose recordings end so, as is_stuck() says; those of the other side go on.
struct StuckSide {
  std::size_t side = 1;
  LongEnd end;  ///< of the first
};

/// A side in whose recordings nothing ran, as all threads wait for each other; in those of the other something did.
struct DeadlockedSide {
  std::size_t side = 1;
  Asleep asleep;  ///< of the first
};

/// One function of one process role on one device in one phase, per cycle; a cycle without it counts as 0. Time is
/// exposed time on a device, on the host the time outside of other functions that it called; of what waits for input or
/// makes it (is_input) all time on the host.
struct FunctionFinding {
  Phase phase = Phase::other;
  std::uint32_t process = 0;  ///< index into RunComparison::processes
  StringId function = 0;      ///< texts of the RunComparison
  StringId short_name = 0;
  StringId was = 0;  ///< what the baseline calls it, where that is another name; 0: the same, or it has none
  StringId kind = 0;
  StringId device = 0;  ///< "GPU" where the process has one, "GPU 3", "Host"
  FunctionStatus status = FunctionStatus::unknown;
  RestsOn rests_on = RestsOn::time;
  std::array<double, 2> time_ns{};  ///< per cycle
  double impact_ns = 0;             ///< time_ns[1] - time_ns[0]
  double low_ns = kNoNumber;        ///< 95 % interval of it; none with too few cycles
  double high_ns = kNoNumber;
  std::array<double, 2> calls{};  ///< per cycle
  /// The same in steps of like work where nine of ten call it as often as the others do; else none.
  std::array<double, 2> steady_calls{kNoNumber, kNoNumber};
  std::array<double, 2> per_call_ns{kNoNumber, kNoNumber};  ///< a call's duration on a device; on the host as above
  double work_ratio = kNoNumber;                            ///< of these, candidate over baseline
  double q_of_calls = kNoNumber;  ///< the same at which calls on a device, hidden or not, last another time
  /// Threads that a call launches, or bytes that it copies or sets; 0: not known.
  std::array<double, 2> size{};
  double q = kNoNumber;  ///< rate of false discoveries at which it counts as changed, new or gone
  bool apart = false;    ///< each cycle of one side takes longer in it than all of the other, beyond the tolerance
  /// The function or range in which most of its time lay, or was launched, on every side that has it; 0: none, or not
  /// the same.
  StringId parent = 0;
  /// A cost shift: the function or range inside of which others lost what it gained, or the other way round; 0: none.
  StringId moved_inside = 0;
};

/// What steps of like work call more or less often than before: on the device, or the thread, of the waterfall.
struct CallsChange {
  Phase phase = Phase::other;
  std::int32_t device = -1;   ///< as of the waterfall
  std::size_t functions = 0;  ///< whose calls are steady
  std::size_t more = 0;       ///< of these, that both sides call and the candidate more often
  std::size_t fewer = 0;
  std::size_t added = 0;  ///< that the candidate alone calls
  std::size_t gone = 0;
  /// Index into RunComparison::functions, where `fewer` or `more` is not 0: of these the one that most time moved of.
  std::array<std::size_t, 2> example{};
  std::array<double, 2> moved_ns{};    ///< per step: time of calls that only the baseline, or the candidate, makes
  std::array<double, 2> of_both_ns{};  ///< of these, by functions that the other side calls as well
  double speed = 1;                    ///< by what a call takes longer: the median of the functions
  double change = kNoNumber;  ///< relative, of the time of a step, by these calls if all took as long on both sides
  /// The same if what lies between functions went with the number of its pieces.
  double change_with_between = kNoNumber;
};

inline bool has_changed(const FunctionFinding& finding) {
  return finding.status != FunctionStatus::same && finding.status != FunctionStatus::unknown;
}

/// Whether functions of this kind wait: who waits longer waits for something else.
inline bool is_wait(std::string_view kind) { return kind == "sync" || kind == "syscall_wait" || kind == "blocked"; }

/// Whether a function of this name waits for, or makes, what a training step works on.
bool is_input(std::string_view function);
/// Calls that nothing ends but time, or a signal.
inline bool is_sleep(std::string_view call) { return call == "clock_nanosleep" || call == "nanosleep"; }
/// Whether a function of Python of this name waits for something else: a lock, a socket, time ("threading.py(320):
/// wait",
/// "<built-in method poll of select.epoll object>").
bool is_python_wait(std::string_view function);
/// Whether it is the loop of an engine, which waits, beside what it calls, for the processes that run the model where
/// others do ("EngineCore.step" of vLLM).
bool is_engine_step(std::string_view function);
/// Whether a function of this name collects garbage.
bool is_collector(std::string_view function);

/// One line of the ledger on both sides, per cycle.
struct WaterfallLine {
  LedgerState state = LedgerState::function;
  StringId function = 0;            ///< texts of the RunComparison
  std::array<double, 2> time_ns{};  ///< 0: that side has none
  std::array<double, 2> calls{};    ///< NaN of what samples tell, as is by_calls_ns
  double change_ns = 0;             ///< time_ns[1] - time_ns[0]
  double by_calls_ns =
      0;  ///< of it what more or fewer calls of the baseline's mean time make; the rest is longer calls
  /// Of idle time of a device for its host: time of the thread of the cycles in that function itself, or where it is
  /// `between`; kNoNumber: not known.
  std::array<double, 2> host_ns{kNoNumber, kNoNumber};
  bool between = false;  ///< of such: in a range that only encloses functions, or in none
  bool apart = false;    ///< of idle time: each window of one side has more of it than all of the other
};

/// Where the difference of the cycles of one phase comes from: the lines' changes sum to that of the windows.
struct Waterfall {
  Phase phase = Phase::other;
  std::int32_t device = -1;                         ///< the first of the baseline; -1: the thread that runs the cycles
  std::array<std::set<std::int32_t>, 2> devices{};  ///< of each side all, one of each rank
  std::array<std::size_t, 2> windows{};
  std::array<double, 2> window_ns{};  ///< means
  std::vector<WaterfallLine> lines;   ///< largest change first
};

/// One rank in the collectives that it shared with others, ns per cycle.
struct CollectiveChange {
  std::int32_t rank = -1;
  std::array<double, 2> wait_ns{};      ///< from its begin until the last rank had come
  std::array<double, 2> transfer_ns{};  ///< from then to the end
  std::array<double, 2>
      held_up_ns{};  ///< that all others waited for it alone: from the last but one's begin to its own
  std::array<double, 2> calls{};
  std::array<double, 2> elements{kNoNumber, kNoNumber};  ///< sent; kNoNumber: not known of every call
  bool knows_work = false;                               ///< both sides tell what their cycles worked on
};

/// A process of both runs, or of one: then the other side has none.
struct ProcessPair {
  std::int32_t rank = -1;  ///< its number; of the baseline where the sides have none in common
  std::array<std::optional<std::int64_t>, 2> pid;
  bool has_steps = true;  ///< or nobody tells whose they are
};

/// How many ranks these are of.
std::size_t count_ranks(const std::vector<ProcessPair>& processes);

/// One resource of one device while whole cycles ran (clocks: while it was busy): means that moved.
struct ResourceChange {
  std::string metric;
  std::string device;  ///< "GPU" where a run has one, else "GPU 3"
  std::int32_t rank = -1;
  Unit unit = Unit::plain;
  std::array<std::optional<double>, 2> value;
};

/// A fact that differs. `blocks`: the runs must not be compared.
struct Difference {
  std::string what;  ///< "device model"
  std::string base;
  std::string candidate;
  bool blocks = false;
  bool first = false;  ///< said before the outcome: the two were not recorded alike
};

/// Whether cycle times and functions of two runs may be held against each other.
struct Comparability {
  Comparable level = Comparable::yes;
  std::vector<std::string> reasons;     ///< sentences; when the level is `no` the first says why
  std::string remedy;                   ///< only when the level is `no`
  std::vector<Difference> differences;  ///< of the runs as such
};

/// One side, after its recordings were pooled.
struct ComparedSide {
  std::vector<std::string> files;
  std::size_t recordings = 0;
  CycleMethod method = CycleMethod::none;
  std::string anchor;
  std::string reason;  ///< how the cycles were found
  double period_confidence = 0;
  std::size_t cycles = 0;
  std::optional<Ns> median_period;  ///< of whole cycles
  std::vector<LossCount> losses;
  std::uint64_t events = 0;
  std::uint64_t events_lost = 0;
};

/// One fact about machine, libraries or limits, as each side gives it; empty: not at all.
struct EnvironmentChange {
  std::string key;
  std::array<std::string, 2> value;
};

/// A number of both sides and its relative change; low and high are the ends of its 95 % interval where there is one.
struct WorkChange {
  std::string what;
  std::string unit;  ///< "ns", "1/s", "CPUs"
  std::array<double, 2> value{kNoNumber, kNoNumber};
  double change = kNoNumber;
  double low = kNoNumber;
  double high = kNoNumber;
};

/// One system call of both sides.
struct CallChange {
  std::string name;
  bool waits = false;                   ///< for work, time or others: its time says nothing
  std::array<double, 2> per_unit{};     ///< 0: that side made none
  std::array<double, 2> per_call_ns{};  ///< 0 then
  std::array<double, 2> p99_ns{};       ///< 0: not known
};

/// Requests of one kind to one disk.
struct DiskChange {
  std::string name;  ///< "vda write"
  std::array<double, 2> per_second{};
  std::array<double, 2> bytes_per_second{};
  std::array<double, 2> mean_ns{};  ///< 0: that side made none
  std::array<double, 2> p99_ns{};   ///< 0: not known
};

/// Requests of one kind to one disk that the recorded processes issued.
struct OwnDiskChange {
  std::string name;  ///< "vda write"
  std::array<std::uint64_t, 2> count{};
  std::array<double, 2> per_unit{};
  std::array<double, 2> bytes_per_unit{};
  std::array<double, 2> mean_ns{};  ///< 0: that side issued too few to tell
};

/// Largest difference of time per unit first.
struct OwnDiskChanges {
  std::string per;  ///< "step", "request"; empty: nothing was compared
  std::vector<OwnDiskChange> requests;
};

/// A function that ran in another share of the samples.
struct ShareChange {
  std::string function;
  std::array<double, 2> share{};
  /// Of its samples those in processes of which a thread that works waits in futex; of Python another one than its own.
  std::array<double, 2> in_waiting{kNoNumber, kNoNumber};
  std::array<double, 2> in_steps{kNoNumber, kNoNumber};  ///< those on threads that run steps, by that share of all
};

/// What is different most: how long one lasted, or how many there were.
enum class OffCpuChanged : std::uint8_t { longer, shorter, more_often, less_often, added, gone };

/// Waits of threads inside of their work: in one function and system call, ended by one thread, or for CPUs that one
/// process had.
struct OffCpuChange {
  std::string name;  ///< of the function, the thread or the process
  std::string call;  ///< system call of the wait; empty of those for a CPU
  std::array<double, 2> ns_per_unit{};
  std::array<double, 2> per_unit{};
  OffCpuChanged changed = OffCpuChanged::longer;
  std::array<std::string, 2> ended_by{};  ///< of a function: the thread that ended two thirds of the time; empty: none
};

/// Those that differ surely, the largest change of time first.
struct OffCpuChanges {
  std::string per;                      ///< "step", "request", "second"; empty: nothing was compared
  std::vector<OffCpuChange> functions;  ///< where threads were blocked
  std::vector<OffCpuChange> inputs;     ///< of these, threads of steps in what waits for their input; not shown
  std::vector<OffCpuChange> wakers;     ///< who ended that
  std::vector<OffCpuChange> handed;     ///< waits that look as if for work and another thread of it ended; not shown
  std::vector<OffCpuChange> rivals;     ///< who had the CPUs meanwhile
  /// Who had them for longest of those that had none on the other side, surely or not; an empty name: nobody. Not
  /// shown.
  std::array<OffCpuChange, 2> newcomers{};
};

/// Recordings without cycles, by their units of work.
struct WorkComparison {
  Outcome outcome = Outcome::inconclusive;
  std::string why;      ///< what limits the outcome
  std::string reading;  ///< what else to know to understand it
  /// For the answers of one unit, ns, where that is what made a side slower, and it did not work then; else 0.
  std::array<double, 2> waited{};
  std::string waits_in;  ///< the call in which the slower side waits inside of its requests; empty: in none
  bool idle = false;     ///< both sides: there is nothing to compare
  WorkUnit unit;         ///< of the baseline, with the lower confidence of the sides
  std::array<std::uint64_t, 2> counts{};
  std::array<double, 2> seconds{};
  double between = 0;                       ///< spread between recordings of the same
  std::size_t earlier = 0;                  ///< recordings beside the two sides that it was measured among
  std::array<std::size_t, 2> recordings{};  ///< of each side that it was measured among; all 0: it is assumed
  double not_in_turns = 0;                  ///< a further spread, assumed, of sides that were not recorded in turns
  double smallest_seen = kNoNumber;  ///< smallest rise of the time per unit that would have been seen, as of cycles
  WorkChange throughput;
  WorkChange worked;                                            ///< time worked per unit
  std::vector<WorkChange> parts;                                ///< of that
  WorkChange waiting;                                           ///< for work, of all threads, per time
  std::vector<WorkChange> latency;                              ///< quantiles and mean
  std::array<double, 2> answer_bytes = {kNoNumber, kNoNumber};  ///< of an answer, in the mean
  std::optional<std::size_t> asked_more;  ///< the side of which more was asked, where that is all that changed
  bool other_answers = false;             ///< they are much larger or smaller on the side that works longer for each
  std::vector<CallChange> calls;          ///< largest difference of time per unit first, waits last
  std::vector<WorkChange> others;         ///< processes beside that took more or less; largest difference first
};

struct RunComparison {
  Outcome outcome = Outcome::inconclusive;         ///< of all phases together
  std::optional<std::array<WholeRun, 2>> whole{};  ///< of both sides, the mean of their recordings
  std::string why;                                 ///< what limits the outcome; empty: its cycle times say all
  bool shared_by_all = false;                      ///< that: what one side takes longer all its functions share
  std::optional<Alternation> alternation;          ///< both sides ran in turns, which decides the outcome
  bool same_recording = false;                     ///< both sides are one: nothing was compared
  std::optional<Standstill> standstill{};          ///< of a side, which is the whole answer
  std::optional<StuckSide> stuck{};                ///< steps of a side before it do not tell that all is well
  std::optional<DeadlockedSide> deadlocked{};
  Comparability comparability;
  std::array<ComparedSide, 2> sides;
  std::array<std::vector<std::string>, 2> profiled_alone;  ///< what a side's profiler recorded, and the other's did not
  bool recorded_deep = false;                              ///< both sides are recordings of every detail
  std::vector<CycleTimeOutcome> cycle_times;               ///< by phase
  std::vector<CycleTimeOutcome> rank_times;  ///< by phase, then rank: where both sides have several; decide nothing
  StringTable texts;
  std::vector<ProcessPair> processes;
  std::vector<Waterfall> waterfalls;          ///< by phase
  std::vector<FunctionFinding> functions;     ///< largest impact first, then work ratio, then names
  std::vector<CallsChange> calls;             ///< by phase
  std::vector<CollectiveChange> collectives;  ///< by rank; where several were recorded
  std::vector<ResourceChange> resources;      ///< by metric, rank and device
  std::size_t resources_alike = 0;            ///< that did not move
  std::vector<ResourceChange> steady;         ///< these
  std::optional<WorkComparison> work;         ///< instead of cycle times and functions
  std::vector<CallChange> system_calls;  ///< by step, where there are cycles; in the order of WorkComparison::calls
  std::vector<DiskChange> disks;         ///< largest difference of time per second first
  OwnDiskChanges own_disks;              ///< of these what the program itself issued, by step or unit of work
  std::vector<ShareChange> on_cpu;       ///< that moved by more than their windows spread; largest difference first
  std::vector<ShareChange> python;       ///< the same of functions of Python, with the native code that they called
  OffCpuChanges off_cpu;                 ///< what the threads waited for, and behind whom
  std::optional<HostChanges> host;       ///< recordings with scheduling or counters of the host
  std::vector<EnvironmentChange> environment;
  std::vector<Verdict> verdicts;  ///< causes; the slower side's first, largest impact first
  std::vector<std::string> assumptions;
  std::vector<std::string> notes;
};

/// Of all ranks together, by phase, then of each rank.
std::vector<CycleTimeOutcome> all_cycle_times(const RunComparison& comparison);

}  // namespace culprit::model
