// What the rules of the CPUs share, which are two files: who took them (cpu.cpp), and what share of them the program
// may have and how many of its threads want one (cpu_share.cpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/evidence.h"
#include "diagnose/rules.h"

namespace culprit::diagnose {

inline constexpr double kLeastOthers = 0.3;     // CPUs that others took more
inline constexpr double kFewOthers = 0.15;      // the same, where the kernel says that much more waited for CPUs
inline constexpr double kBehindThem = 0.5;      // of what it waited longer for a CPU others had it
inline constexpr double kFarMore = 3;           // times: behind programs of which none took much more
inline constexpr double kMuchOfStep = 0.1;      // that it waited longer behind them
inline constexpr double kManyOthers = 0.5;      // CPUs that others took more, where it did not wait for one
inline constexpr double kSomeOfThem = 0.2;      // of what it waited longer, behind one of many
inline constexpr double kLeastSteal = 0.03;     // of the machine's CPUs
inline constexpr double kLeastFrequency = 0.1;  // by so much the clock fell

inline constexpr const char* kWhoHadThem = "culprit top --by rival names who had its CPUs";

/// What the run queue took more of a step; 0: not known.
double queue_rise(const Evidence& evidence);
/// The run queue took so much more that the program felt it.
bool felt_queue(const Evidence& evidence);
std::string queue_text(const Evidence& evidence);
/// What all threads together waited longer for CPUs, of a program whose threads spin for one another: that of the steps
/// runs while it waits for those that have none. ns per step; nothing: it is none.
Sides queue_of_siblings(const Evidence& evidence);
model::Verdict cpu_verdict(const Evidence& evidence, std::string detail, double confidence);
bool has_detail(const Verdicts& verdicts, std::string_view detail);

/// Whether a thread of the kernel is called so, as in "kswapd0", "jbd2/vda1-8" or "kworker/u8:1-writeback". What it
/// does it does for somebody: it reclaims memory, writes what others wrote, takes what a network sends.
bool is_kernel_thread(std::string_view name);

/// Who took at least twice what it took.
struct MoreBeside {
  std::vector<Beside> programs;  ///< most more first
  std::vector<Beside> kernel;    ///< threads of the kernel
  /// CPUs that programs took more, less what those took that are gone. Of those of the kernel no more than as much, and
  /// only beside who took a few: who writes a lot has them write, but who has hardly run is not why they did.
  double cpus = 0;
};
MoreBeside more_beside(const Evidence& evidence);

/// Programs that end before anybody has looked at them: they have no names, but are counted, and so is what they take.
struct ShortPrograms {
  Sides cpus;     ///< that nobody with a name took
  Sides started;  ///< processes and threads per second
};
/// nullopt: few more came, or it is not they whom it waited for.
std::optional<ShortPrograms> short_programs(const Evidence& evidence);
std::string started_text(const ShortPrograms& programs);

/// Who was beside it, as evidence: the first three, and what the kernel did for them.
void name_them(const MoreBeside& beside, model::Verdict& verdict);
/// Who had the CPUs for `least` (share) of what its threads waited longer, or more, in a sentence; empty: nobody, or it
/// is not known. `is_new`: one that had none before.
std::string first_rival(const Evidence& evidence, double least, bool is_new = false);
/// Others who come and go: steps are slow just while they are there.
void comes_and_goes(const Evidence& evidence, Verdicts& verdicts);
/// What to do about one of them.
std::string other_cpus(const Beside& one);

/// That it may use fewer CPUs; empty: not as far as is known.
std::string fewer_cpus(const Evidence& evidence);
/// What was lowered of its right to the CPUs, in sentences.
std::vector<std::string> lowered(const Evidence& evidence);
void affinity(const Evidence& evidence, Verdicts& verdicts);
/// Nice value, scheduling policy or weight of its control group, beside somebody who wants the CPUs as well.
void priority(const Evidence& evidence, Verdicts& verdicts);
/// More threads than CPUs wait for one another.
void own_threads(const Evidence& evidence, Verdicts& verdicts);

}  // namespace culprit::diagnose
