// A side that did no step, or none any more. What its thread waited for instead tells why.
#include <fmt/format.h>

#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "core/units.h"
#include "diagnose/cpu.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr double kMostlyThrottled = 0.5;  // of every second, of all CPUs together
constexpr double kLeastTaken = 0.5;       // CPUs

std::string held_text(const model::Standstill& still, double time, std::string_view how) {
  return fmt::format("{}{} {} for {} of {}", still.thread, still.units.empty() ? ", which runs the steps," : "", how,
                     format_duration(time), format_duration(still.recorded));
}

Verdict waits_for_cpu(const Evidence& evidence, const model::Standstill& still) {
  const std::string waited = held_text(still, still.runnable, "waited for a CPU");
  if (const auto time = evidence.counter("cgroup.cpu.throttled_time");
      time && time->rise() >= kMostlyThrottled * kSecond) {
    Verdict verdict = cpu_verdict(evidence, "throttled", 0.9);
    verdict.evidence = {waited, fmt::format("A CPU quota held the group of the program back for {:.0f} instead of "
                                            "{:.0f} ms of every second, summed over CPUs",
                                            time->with / kMs, time->without / kMs)};
    verdict.next_step = "raise the quota of its control group (cpu.max, cpu.cfs_quota_us), or give it less to do";
    return verdict;
  }
  const MoreBeside beside = more_beside(evidence);
  if (!beside.programs.empty() && beside.cpus >= kLeastTaken) {
    Verdict verdict = cpu_verdict(evidence, "other_processes", 0.9);
    verdict.evidence = {waited};
    name_them(beside, verdict);
    verdict.next_step = other_cpus(beside.programs.front());
    return verdict;
  }
  const auto others = evidence.counter("host.cpu.others");
  const std::string took =
      others && others->with >= kLeastTaken
          ? fmt::format("Programs beside it took {} CPUs, and somebody had those that it waited for",
                        instead_number(*others))
          : std::string();
  std::vector<std::string> settings = lowered(evidence);
  const bool is_lowered = !settings.empty();
  if (std::string fewer = fewer_cpus(evidence); !fewer.empty()) settings.push_back(std::move(fewer));
  if (!took.empty() && !settings.empty()) {
    Verdict verdict = cpu_verdict(evidence, is_lowered ? "priority" : "affinity", 0.7);
    verdict.evidence = std::move(settings);
    verdict.evidence.push_back(waited);
    verdict.evidence.push_back(took);
    verdict.next_step = "see who changed that (nice, chrt, taskset, cpuset), or give the programs beside it other CPUs";
    return verdict;
  }
  if (!took.empty()) {
    Verdict verdict = cpu_verdict(evidence, "other_processes", 0.6);
    verdict.evidence = {waited, took};
    verdict.against.emplace_back("Its own threads may have had them, too");
    verdict.next_step = "see who runs on its CPUs (top)";
    return verdict;
  }
  Verdict verdict = cpu_verdict(evidence, "unknown", 0.5);
  verdict.evidence = {waited};
  verdict.against.emplace_back("Who had the CPUs meanwhile is not known");
  verdict.next_step = "culprit top --by rival names who had its CPUs";
  return verdict;
}

Verdict what_held_it(const Evidence& evidence, const model::Standstill& still) {
  if (still.runnable >= still.stopped && still.runnable >= still.uninterruptible) return waits_for_cpu(evidence, still);
  const bool stopped = still.stopped >= still.uninterruptible;
  Verdict verdict = verdict_of(evidence, stopped ? "process_stopped" : "unknown", "", stopped ? 0.95 : 0);
  verdict.scope = model::VerdictScope::process;
  verdict.evidence = {stopped
                          ? held_text(still, still.stopped, "stood still by a signal (SIGSTOP, SIGTSTP) or a debugger")
                          : held_text(still, still.uninterruptible, "was in a sleep that no signal ends")};
  if (stopped) verdict.against.emplace_back("Who stopped it was not recorded: who looked at this run may have");
  verdict.next_step =
      stopped ? "see who sends it signals, and whether a debugger is attached (TracerPid in /proc/PID/status)"
              : "see where it sleeps (/proc/PID/stack), and whether its control group is frozen (cgroup.freeze)";
  return verdict;
}

Verdict hang(const char* detail, std::size_t side) {
  Verdict verdict;
  verdict.cause = "hang";
  verdict.detail = detail;
  verdict.side = side;
  verdict.state = model::VerdictState::latent;
  verdict.scope = model::VerdictScope::process;
  verdict.confidence = 0.5;
  return verdict;
}

}  // namespace

Verdicts standstill_verdicts(const Evidence& evidence) {
  const model::Standstill& still = *evidence.comparison().standstill;
  Verdict verdict = what_held_it(evidence, still);
  if (still.at_end) {
    verdict.impact_ns = still.recorded / static_cast<double>(still.seen);
    verdict.evidence.insert(verdict.evidence.begin(), fmt::format("No step began in the last {} of the recording",
                                                                  format_duration(still.recorded)));
  }
  return {std::move(verdict)};
}

Verdict hang_verdict(const model::LongEnd& end, std::size_t side) {
  Verdict verdict = hang(end.waits_in.empty() ? "loop" : "wait", side);
  std::string text = model::stuck_text(end, "recording");
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  verdict.evidence = {std::move(text)};
  verdict.against.emplace_back("It may be something long, as an evaluation or a checkpoint: a longer recording tells");
  verdict.next_step = end.waits_in.empty() ? "culprit top --stacks on-cpu of that recording shows where it runs"
                                           : "culprit top --stacks off-cpu of that recording shows where it waits";
  return verdict;
}

Verdict deadlock_verdict(const model::Asleep& asleep, std::size_t side) {
  Verdict verdict = hang("wait", side);
  verdict.evidence = {
      fmt::format("Every thread waits for another, and none ran from the begin of the recording to its end: {}",
                  asleep.in),
      "None waits for a connection, an event, a file or for time to pass: nothing outside can wake it"};
  verdict.against.emplace_back(
      "A signal or a timer that it set could, or a process that shares its memory and was not recorded");
  verdict.next_step =
      "see which locks its threads wait for, and who holds them (gdb -p PID -ex 'thread apply all bt'; py-spy dump)";
  return verdict;
}

}  // namespace culprit::diagnose
