#include "formats/nsys_sqlite/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/utf8.h"

namespace culprit::formats::nsys_sqlite {

namespace {
// Ids of the first process are kept as they are below this; all others are numbered from here on.
constexpr std::uint32_t kForeign = 0x80000000U;
}  // namespace

void Session::lose(LossReason reason, std::string_view table) {
  if (builder_.losses()[reason] == 0)
    builder_.losses().add(reason, 1, fmt::format("{}: table {}", path_, table));
  else
    builder_.losses().add(reason);
}

void Session::learn_string(std::int64_t id, std::string_view text) {
  words_[id] = {texts_.intern(repair_utf8(text)), kNone};
}

StringId Session::string(std::int64_t id) {
  const auto it = words_.find(id);
  if (it == words_.end()) {
    lose(LossReason::name_invalid, "StringIds");
    return builder_.intern("(no name)");
  }
  Word& word = it.value();
  if (word.in_trace == kNone) word.in_trace = builder_.intern(texts_[word.local]);
  return word.in_trace;
}

void Session::learn_process_name(std::int64_t global_pid, std::string_view name) {
  process_names_[global_pid >> 24] = builder_.intern(repair_utf8(name));
}

StringId Session::process_text(std::int64_t global) {
  if (machine_ < 0) machine_ = machine_of(global);
  if (machine_of(global) == machine_) return 0;
  return builder_.intern(fmt::format("machine {}({})", machine_of(global), pid_of(global)));
}

TrackId Session::thread(std::int64_t global_tid, std::string_view lane) {
  if (lane.empty())
    if (const auto it = threads_.find(global_tid); it != threads_.end()) return it->second;
  TrackKey key{.pid = pid_of(global_tid), .tid = tid_of(global_tid), .pid_text = process_text(global_tid)};
  if (!lane.empty()) {
    key.tid_text = builder_.intern(lane);
    key.kind = TrackKind::async;
  }
  const TrackId id = builder_.track(key);
  Trace& trace = builder_.trace();
  if (const auto name = process_names_.find(global_tid >> 24); name != process_names_.end())
    trace.processes[trace.tracks[id].process].name = name->second;
  if (!lane.empty()) return id;
  if (const auto name = thread_names_.find(global_tid); name != thread_names_.end())
    trace.tracks[id].name = string(name->second);
  threads_.emplace(global_tid, id);
  return id;
}

TrackId Session::stream(std::int64_t global_pid, std::int64_t device, std::int64_t context, std::int64_t stream) {
  const std::array<std::int64_t, 4> key = {global_pid, device, context, stream};
  if (last_stream_ != kNone && key == last_stream_key_) return last_stream_;
  const StringId lane = builder_.intern(fmt::format("device {} context {} stream {}", device, context, stream));
  const TrackId id = builder_.track({.pid = pid_of(global_pid),
                                     .tid = stream,
                                     .pid_text = process_text(global_pid),
                                     .tid_text = lane,
                                     .kind = TrackKind::gpu_stream});
  Trace& trace = builder_.trace();
  Track& track = trace.tracks[id];
  track.device = static_cast<std::int32_t>(std::clamp<std::int64_t>(device, -1, 32767));
  track.stream = static_cast<std::int32_t>(std::clamp<std::int64_t>(stream, -1, 0x7fffffff));
  if (const auto name = process_names_.find(global_pid >> 24); name != process_names_.end())
    trace.processes[track.process].name = name->second;
  last_stream_ = id;
  last_stream_key_ = key;
  return id;
}

std::uint32_t Session::correlation(std::int64_t global, std::int64_t id) {
  if (id < 0) lose(LossReason::argument_invalid, "of correlation ids");
  if (id <= 0) return 0;
  const std::int64_t process = global >> 24;
  if (first_process_ < 0) first_process_ = process;
  if (process == first_process_ && id < kForeign) return static_cast<std::uint32_t>(id);
  const auto next = kForeign + static_cast<std::uint32_t>(correlations_.size());
  return correlations_.try_emplace({process, id}, next).first->second;
}

bool Session::moment(std::optional<std::int64_t> at, std::string_view table) {
  if (!at) {
    lose(LossReason::time_missing, table);
    return false;
  }
  if (*at > kMaxTime || *at < -kMaxTime) {
    lose(LossReason::time_invalid, table);
    return false;
  }
  return true;
}

bool Session::span(std::optional<std::int64_t> begin, std::optional<std::int64_t> end, std::string_view table,
                   Slice& slice) {
  if (!moment(begin, table) || !moment(end, table)) return false;
  slice.begin = *begin;
  slice.duration = *end - *begin;
  if (slice.duration > kMaxDuration) {
    lose(LossReason::time_invalid, table);
    return false;
  }
  if (slice.duration < 0) {
    lose(LossReason::duration_negative, table);
    slice.duration = 0;
  }
  return true;
}

}  // namespace culprit::formats::nsys_sqlite
