// Every loss is counted: what went wrong with the input, how often, how bad it is, and what the user can do about it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace culprit {

enum class Severity : std::uint8_t { info, warning, data_loss };
std::string_view to_string(Severity severity);

// name, severity, what it means, remedy
#define CULPRIT_LOSS_REASONS(X)                                                                                        \
  X(event_not_object, data_loss, "an element of traceEvents is no JSON object",                                        \
    "look at the program that wrote the file")                                                                         \
  X(event_malformed, data_loss, "an event is not valid JSON", "write the trace again; the text around it was skipped") \
  X(text_after_damage, data_loss, "bytes skipped to find the next whole event", "write the trace again")               \
  X(truncated_tail, data_loss, "the file ends before the trace does",                                                  \
    "the writer was killed, or still writes: wait for its end, or record again")                                       \
  X(compressed_damage, data_loss, "the compressed data is damaged or cut; what came before is kept",                   \
    "copy the file again")                                                                                             \
  X(event_too_large, data_loss, "one event is larger than 64 MiB", "look at the program that wrote the file")          \
  X(name_invalid, data_loss, "an event has no name, or its name is no text; kept as \"(no name)\"",                    \
    "fix the annotation")                                                                                              \
  X(time_missing, data_loss, "an event has no usable time stamp", "look at the program that wrote the file")           \
  X(time_invalid, data_loss, "a time stamp or duration is no finite number or out of range",                           \
    "look at the writer's clock")                                                                                      \
  X(duration_negative, data_loss, "a slice ends before it begins; kept with duration 0",                               \
    "known fault of some profilers")                                                                                   \
  X(phase_unknown, warning, "events of a phase that is not read", "nothing: they hold no time")                        \
  X(begin_without_end, warning, "a begun slice has no end; closed at the end of the trace", "record longer, or flush") \
  X(end_without_begin, data_loss, "an end without a begin", "recording started inside the slice")                      \
  X(counter_value_invalid, data_loss, "a counter value is no finite number", "look at the counter's source")           \
  X(utf8_repaired, info, "invalid UTF-8 replaced", "names come from raw bytes; harmless")                              \
  X(control_repaired, info, "control characters in the text replaced", "known fault of some profilers; harmless")      \
  X(argument_invalid, data_loss, "an argument is negative, too large or of the wrong type; left out",                  \
    "look at the program that wrote the file")                                                                         \
  X(category_invalid, data_loss, "a category is no text; the event is kept without one",                               \
    "look at the program that wrote the file")                                                                         \
  X(member_repeated, warning, "a member stands twice in one object; the last one is used",                             \
    "look at the program that wrote the file")                                                                         \
  X(duration_missing, warning, "a slice has no duration; kept with 0", "look at the program that wrote the file")      \
  X(counter_names_long, data_loss, "the values of a counter whose names would take 64 times the text of the event",    \
    "shorten the names of the counter")                                                                                \
  X(event_list_repeated, data_loss, "another \"traceEvents\", inside or beside the list of events, is not read",       \
    "give every trace a file of its own")                                                                              \
  X(text_behind_end, data_loss, "bytes behind the end of the trace (another one?) are not read",                       \
    "give every trace a file of its own")                                                                              \
  X(nested_args_invalid, info, "nested args text is no JSON object", "harmless")                                       \
  X(nested_too_deep, data_loss, "an event is nested too deeply", "look at the program that wrote the file")            \
  X(flow_unbound, warning, "a flow has no slice at one of its ends", "the slice was not recorded")                     \
  X(gpu_without_launcher, warning, "GPU work without the host call that launched it",                                  \
    "record the runtime category too")                                                                                 \
  X(pid_invalid, warning, "a process id that is neither number nor text", "look at the program that wrote the file")   \
  X(correlation_overflow, warning, "a correlation id is negative or does not fit 32 bits",                             \
    "report it with the name of the profiler")                                                                         \
  X(metadata_invalid, warning, "a metadata event without usable arguments", "harmless")                                \
  X(tracks_collapsed, data_loss, "more than 4 million tracks; later ones share one",                                   \
    "look at the thread ids of the input")                                                                             \
  X(categories_collapsed, data_loss, "more than 65,000 categories; later ones share one for each kind of work",        \
    "look at the program that wrote the file")                                                                         \
  X(packets_lost, data_loss, "the recorder lost events before they reached the file", "record with larger buffers")    \
  X(recorder_dropped, data_loss, "events that the recorder had to drop because it could not keep up",                  \
    "leave it more CPU, or record less: --preset watch, --no-collect syscalls")                                        \
  X(export_damaged, data_loss, "damaged places of the trace that this file was exported from",                         \
    "export it again from an undamaged file")                                                                          \
  X(processes_left_out, data_loss, "processes that were not recorded because there were too many at once",             \
    "name fewer: -p, --cgroup")                                                                                        \
  X(calls_uncounted, data_loss, "system calls of the recording that stand in no total", "record fewer processes")      \
  X(requests_uncounted, data_loss, "disk requests of the recording that stand in no total", "record fewer processes")  \
  X(times_uncounted, warning,                                                                                          \
    "system calls, requests or answers whose time stands in no distribution: medians and p99 leave them out",          \
    "record fewer processes")                                                                                          \
  X(stacks_missed, warning,                                                                                            \
    "call stacks of waits that the kernel could not give or keep: top --stacks leaves them out",                       \
    "record fewer processes")                                                                                          \
  X(recording_partial, warning, "traces of which the recording beside them does not cover the whole time",             \
    "begin to record before the profiler does, and end after it")                                                      \
  X(clock_unknown, warning, "files without a common clock are aligned at their first event",                           \
    "record baseTimeNanoseconds")

enum class LossReason : std::uint8_t {
#define X(name, severity, meaning, remedy) name,
  CULPRIT_LOSS_REASONS(X)
#undef X
      count_
};

struct LossInfo {
  std::string_view name;
  Severity severity;
  std::string_view meaning;
  std::string_view remedy;
};
const LossInfo& info(LossReason reason);

/// Counters of all reasons, with where each was first seen.
class Losses {
 public:
  static constexpr std::size_t kReasons = static_cast<std::size_t>(LossReason::count_);

  void add(LossReason reason, std::uint64_t n = 1, std::string_view first_seen = {}) {
    const auto i = static_cast<std::size_t>(reason);
    if (n != 0 && counts_[i] == 0 && first_[i].empty()) first_[i] = first_seen;
    counts_[i] += n;
  }
  void merge(const Losses& other) {
    for (std::size_t i = 0; i < kReasons; ++i) add(static_cast<LossReason>(i), other.counts_[i], other.first_[i]);
  }
  [[nodiscard]] std::uint64_t operator[](LossReason reason) const { return counts_[static_cast<std::size_t>(reason)]; }
  /// Where the first one was seen ("FILE byte N"), or empty.
  [[nodiscard]] std::string_view first_seen(LossReason reason) const {
    return first_[static_cast<std::size_t>(reason)];
  }
  [[nodiscard]] std::uint64_t total() const;
  [[nodiscard]] std::uint64_t total(Severity severity) const;

 private:
  std::array<std::uint64_t, kReasons> counts_{};
  std::array<std::string, kReasons> first_{};
};

}  // namespace culprit
