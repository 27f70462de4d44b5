// The rules. To add one: write a function that looks at the evidence and adds a verdict when it is sure, put it into
// the table of its family (one file each), and say in docs/verdicts-rules.md what it asks for. A rule for something is
// no rule against something else: what explains the same time twice is sorted out behind all of them (diagnose.cpp).
//
// Every rule asks for two things: that something in the world changed (others took CPUs, a clock fell), and that the
// program felt it (its threads waited longer for a CPU, its kernels took longer). Either alone is no verdict.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/evidence.h"
#include "model/verdict.h"

namespace culprit::diagnose {

using Verdicts = std::vector<model::Verdict>;

struct Rule {
  std::string_view name;  ///< "cpu.throttled"
  void (*judge)(const Evidence& evidence, Verdicts& verdicts);
};

std::span<const Rule> cpu_rules();
std::span<const Rule> memory_rules();
std::span<const Rule> disk_rules();
std::span<const Rule> network_rules();
std::span<const Rule> tool_rules();
std::span<const Rule> device_rules();
std::span<const Rule> load_rules();
std::span<const Rule> program_rules();
std::span<const Rule> wait_rules();          ///< asked after those: what is known by name needs no samples
std::span<const Rule> rank_rules();          ///< asked after those: they say of whom the others' verdicts are
std::span<const Rule> late_host_rules();     ///< asked when what explains another has gone into it
std::span<const Rule> few_steps_rules();     ///< asked after those
std::span<const Rule> settings_rules();      ///< asked last: for what the others leave open
std::span<const Rule> last_wait_rules();     ///< beside those: a thread that is late, whatever it does
std::span<const Rule> last_program_rules();  ///< after all: a program that computes more, whatever does

/// Of a side that did no step, or none any more: what held its thread. Where it did none no other rule is asked, they
/// are about steps.
Verdicts standstill_verdicts(const Evidence& evidence);

/// Of a recording that ends so that it may hang (model::is_stuck), latent: a long step looks alike.
model::Verdict hang_verdict(const model::LongEnd& end, std::size_t side);
/// The same of a recording in which no thread ran, and of which no thread waits for what could come from outside.
model::Verdict deadlock_verdict(const model::Asleep& asleep, std::size_t side);

/// One on the side that is judged, of the host and active unless it is said otherwise.
inline model::Verdict verdict_of(const Evidence& evidence, std::string cause, std::string detail, double confidence) {
  model::Verdict verdict;
  verdict.cause = std::move(cause);
  verdict.detail = std::move(detail);
  verdict.side = evidence.side();
  verdict.confidence = confidence;
  return verdict;
}

/// A verdict on all functions of the host together, of traces that know no scheduling.
inline bool is_of_all_functions(const model::Verdict& verdict) {
  return (verdict.cause == "cpu_contention" && verdict.detail == "unknown") ||
         (verdict.cause == "profiler_overhead" && verdict.where.empty());
}

/// The thread of the steps was longer in one place of the program.
inline bool is_of_one_function(const model::Verdict& verdict) {
  return verdict.cause == "host_bound" && (verdict.detail == "function" || verdict.detail == "between_functions");
}

/// Only files and the memory that is read from them make a thread wait in this state of HostEvidence.
bool surely_waits_for_disk(std::string_view state);

/// Whether it waits for pages of files that were not in memory, though memory is not short.
bool reads_cold_files(const Evidence& evidence);

/// The limit of its control group, not the machine, is what its memory meets.
inline bool is_of_memory_limit(const model::Verdict& verdict) {
  return verdict.cause == "host_memory_pressure" && verdict.detail == "memory_limit";
}

/// "0.5", "138", "203419": of something per second.
std::string rate_text(double per_second);

/// What of the program's connections to other machines changed, in sentences; empty: nothing much, or nobody knows.
std::vector<std::string> network_evidence(const Evidence& evidence);

/// Where threads are blocked longer, and who ends that, in a sentence; empty: it is little, or nobody knows.
std::string longest_wait_text(const Evidence& evidence);

/// Where nobody knows what runs between functions.
inline constexpr const char* kRecordPython =
    "record Python's functions (torch.profiler with_stack, or culprit record --python, --preset deep)";

/// A step must have become longer by this share by a cause that is called active.
inline constexpr double kLeastImpact = 0.05;
/// Confidence that programs on other CPUs made it slower, which nothing but that they ran then tells.
inline constexpr double kUnsure = 0.5;
inline bool is_unsure(const model::Verdict& verdict) {
  return verdict.cause == "cpu_contention" && verdict.detail == "other_processes" && verdict.confidence == kUnsure;
}
/// Confidence that a device works for others now and then: by it the verdict is known from that of a device that is
/// slow all the time, beside which one kernel may be slower yet.
inline constexpr double kSureOfTurns = 0.7;
/// What devices do is steadier: work that became slower by this share of a step is told though steps did not.
inline constexpr double kLeastOfDevice = 0.01;

}  // namespace culprit::diagnose
