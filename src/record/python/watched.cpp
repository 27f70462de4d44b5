#include "record/python/watched.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "core/utf8.h"
#include "record/collector/step_name.h"
#include "record/inject/status_file.h"
#include "record/python/python_process.h"

namespace culprit::record::python {

namespace {

constexpr std::uint32_t kCollection = ~std::uint32_t{0};
constexpr std::size_t kMostFunctions = 512;
constexpr std::size_t kMostThreads = 4096;
constexpr std::size_t kMostTracks = 65536;
constexpr std::size_t kMostOpen = 256;
constexpr Ns kForgetsEvery = 100'000'000;
constexpr Ns kEarlier = 60'000'000'000;  // than the agent was put in no call can have begun

std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = text.find('\0');
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Watched::Watched(std::int64_t pid, inject::Injected injected, const std::vector<FunctionSpec>& functions)
    : pid_(pid),
      shared_(std::move(injected.shared)),
      ring_(shared_.data()),
      specs_(functions),
      requests_(pid),
      own_namespace_(has_own_namespace(pid)),
      stack_(injected.stack),
      begun_(monotonic_now()),
      stopped_(injected.stopped) {}

bool Watched::has_executed_another() const {
  const std::uint64_t now = inject::start_of_stack(pid_);
  return stack_ != 0 && now != 0 && now != stack_;
}

bool Watched::read(perfetto::Writer& writer, Ns now, Ns since, Ns until) {
  since_ = since;
  until_ = until;
  if (since == kNotBegun) dropped_before_ = ring_.dropped();
  has_looked_ = false;
  ring_.is_alive(now);
  waited_ = ring_.waiting();
  const bool more = ring_.read([&](const AgentRecord& record) {
    // Whoever waited for a CPU since then looks at the clock again.
    if (record.time > now) now = monotonic_now();
    take(writer, record, now);
  }) > 0;
  const std::uint64_t lost = ring_.dropped() + malformed_;
  if (lost != std::exchange(lost_, lost)) close_all(writer);
  return more;
}

void Watched::close_all(perfetto::Writer& writer) {
  for (auto& [tid, thread] : threads_) close_all(writer, thread);
}

void Watched::close_all(perfetto::Writer& writer, Thread& thread) {
  thread.deeper = 0;
  for (; !thread.open.empty(); thread.open.pop_back()) close(writer, thread, thread.last);
}

void Watched::cut() {
  for (auto& [tid, thread] : threads_)
    for (Open& call : thread.open) call.named = call.step = call.written = false;
}

/// The innermost call ends.
void Watched::close(perfetto::Writer& writer, const Thread& thread, Ns at) {
  const Open& call = thread.open.back();
  if (!call.written) return;
  writer.slice_end(thread.track, at);
  if (call.named) writer.slice_end(thread.track, at);
}

/// Room for threads to come: those in which nothing is open, and those that have ended.
void Watched::forget_idle(perfetto::Writer& writer, Ns now) {
  if (now - forgot_ < kForgetsEvery) return;
  const std::unordered_map<std::int32_t, std::int32_t>& there = threads_there();
  for (auto entry = threads_.begin(); entry != threads_.end();) {
    Thread& thread = entry->second;
    if (!there.contains(entry->first)) {
      uncounted_ += thread.open.size();  // its end may be still to come
      close_all(writer, thread);
    }
    entry = thread.open.empty() && thread.deeper == 0 ? threads_.erase(entry) : std::next(entry);
  }
  if (threads_.size() >= kMostThreads / 2) forgot_ = now;  // it helped little
}

const std::unordered_map<std::int32_t, std::int32_t>& Watched::threads_there() {
  if (!std::exchange(has_looked_, true)) here_ = threads_in(pid_);
  return here_;
}

/// Of a thread of its namespace. One that has ended since it wrote is not found, and looked for once.
perfetto::TrackUuid Watched::track_of(perfetto::Writer& writer, std::int32_t tid) {
  if (!own_namespace_) return writer.thread_track(pid_, tid);
  const auto& there = threads_there();
  const auto here = there.find(tid);
  if (here != there.end()) return writer.thread_track(pid_, here->second);
  return writer.named_track("ended thread", pid_, 0, static_cast<std::uint32_t>(tid));
}

Watched::Thread* Watched::thread_of(perfetto::Writer& writer, std::int32_t tid, Ns now) {
  const auto found = threads_.find(tid);
  if (found != threads_.end()) return &found->second;
  if (threads_.size() >= kMostThreads) forget_idle(writer, now);
  if (threads_.size() >= kMostThreads) return nullptr;
  if (tracks_.size() >= kMostTracks && !tracks_.contains(tid)) return nullptr;
  tracks_.insert(tid);
  Thread& thread = threads_[tid];
  thread.track = track_of(writer, tid);
  return &thread;
}

void Watched::take(perfetto::Writer& writer, const AgentRecord& record, Ns now) {
  constexpr Ns kAhead = 1'000'000'000;
  if (record.time > now + kAhead || record.time < begun_ - kEarlier) {
    ++malformed_;
    return;
  }
  // Ends behind lost records are not those of calls before them.
  if ((record.flags & CULPRIT_AGENT_BEHIND_LOST) != 0) close_all(writer);
  switch (record.type) {
    case CULPRIT_AGENT_FUNCTION:
      return take_function(record);
    case CULPRIT_AGENT_MESSAGE:
      return take_message(record.text);
    default:
      break;
  }
  if (record.tid == ring_.agent_thread()) return;  // garbage that is collected while the agent works
  // Nothing is open in a thread that is not known.
  const bool ends = record.type == CULPRIT_AGENT_END || record.type == CULPRIT_AGENT_GC_END;
  if (ends && !threads_.contains(record.tid)) return;
  Thread* thread = thread_of(writer, record.tid, now);
  if (thread == nullptr) {
    ++uncounted_;
    return;
  }
  const Ns at = thread->last = std::max(thread->last, record.time);
  switch (record.type) {
    case CULPRIT_AGENT_BEGIN:
      return begin(writer, *thread, record, at);
    case CULPRIT_AGENT_END:
      return end(writer, *thread, record.value, at);
    case CULPRIT_AGENT_GC_BEGIN: {
      if (is_too_deep(*thread)) return;
      const bool written = at >= since_ && at <= until_;
      if (written) writer.slice_begin(thread->track, at, fmt::format("gc generation {}", record.value), "python");
      thread->open.push_back({kCollection, false, written});
      return;
    }
    case CULPRIT_AGENT_GC_END:
      return end(writer, *thread, kCollection, at);
    default:
      ++malformed_;
  }
}

/// Calls within more than is kept of a thread are counted alone, until they have ended.
bool Watched::is_too_deep(Thread& thread) {
  if (thread.open.size() < kMostOpen) return false;
  ++thread.deeper;
  ++uncounted_;
  return true;
}

void Watched::begin(perfetto::Writer& writer, Thread& thread, const AgentRecord& record, Ns at) {
  if (is_too_deep(thread)) return;
  if (record.value >= functions_.size() || functions_[record.value].name.empty()) {  // its name was lost
    ++uncounted_;
    thread.open.push_back({record.value, false, false});
    return;
  }
  if (at < since_ || at > until_) {
    thread.open.push_back({record.value, false, false});
    return;
  }
  ++calls_;
  const Function& function = functions_[record.value];
  const bool resumed = (record.flags & CULPRIT_AGENT_RESUMED) != 0;
  std::array<perfetto::Argument, CULPRIT_AGENT_ARGUMENTS> arguments;
  std::array<std::string_view, CULPRIT_AGENT_ARGUMENTS> names;
  std::array<std::optional<std::int64_t>, CULPRIT_AGENT_ARGUMENTS> numbers;
  std::size_t count = 0;
  std::size_t all = 0;
  if (function.spec != nullptr)
    for (; all < std::min(record.count, function.spec->captures.size()); ++all) {
      names[all] = function.spec->captures[all].label;
      if ((record.missing >> all & 1U) != 0) continue;
      numbers[all] = record.arguments[all];
      if (function.spec->captures[all].kind != Capture::Kind::seconds)
        arguments[count++] = {names[all], record.arguments[all]};
    }
  const auto is_set = [&](const std::string& when) {
    for (std::size_t i = 0; i < all; ++i)
      if (names[i] == when) return numbers[i].value_or(0) != 0;
    return when.empty();
  };
  if (!resumed && function.spec != nullptr && !function.spec->request.empty() && is_set(function.spec->request_when))
    requests_.write(
        writer, request_times(function.spec->request, std::span(names).first(all), std::span(numbers).first(all), at),
        std::max(begun_, since_), std::span(arguments).first(count));
  // The rest of a call that gave its thread away comes without numbers, and is no step of its own.
  const bool named = !resumed && function.spec != nullptr && !function.spec->step.empty() &&
                     all == function.spec->captures.size() && is_set(function.spec->step_when);
  if (named) {
    std::string name = step_name(function.spec->step, std::span(names).first(all), std::span(numbers).first(all));
    if (!function.spec->says && !is_step_name(name)) name = "step: " + name;
    writer.slice_begin(thread.track, at, name, function.spec->says ? "annotation" : "step",
                       std::span(arguments).first(count));
  }
  writer.slice_begin(thread.track, at, function.name, "python", std::span(arguments).first(count));
  thread.open.push_back({record.value, named, true, named && !function.spec->says});
}

/// Of calls that began before it was watched only the end comes. One that ends takes with it what it called and of
/// which no end was seen.
void Watched::end(perfetto::Writer& writer, Thread& thread, std::uint32_t function, Ns at) {
  if (thread.deeper > 0) {
    --thread.deeper;
    return;
  }
  const auto last = std::ranges::find(thread.open.rbegin(), thread.open.rend(), function, &Open::function);
  if (last == thread.open.rend()) return;
  const auto keep = static_cast<std::size_t>(thread.open.rend() - last) - 1;
  for (; thread.open.size() > keep; thread.open.pop_back()) {
    close(writer, thread, at);
    steps_ += thread.open.back().step ? 1U : 0U;
  }
}

void Watched::take_function(const AgentRecord& record) {
  const std::vector<std::string_view> fields = fields_of(record.text);
  // Where records were dropped, numbers are missing before it.
  const bool is_known = record.value < functions_.size() && !functions_[record.value].name.empty();
  if (record.value >= kMostFunctions || is_known || fields.size() < 4 || fields[0].empty()) {
    ++malformed_;
    return;
  }
  if (record.value >= functions_.size()) functions_.resize(record.value + 1);
  Function& function = functions_[record.value];
  function.name = repair_utf8(fields[0]);
  function.spec = spec_of(fields[3]);
  const bool is_wrapper = function.spec != nullptr && function.spec->optional && !function.spec->step.empty() &&
                          function.spec->qualified.find("<locals>") != std::string::npos;
  if (is_wrapper) function.name = function.spec->step;  // of what it wraps: its own says nothing to anybody
  if (function.spec != nullptr) found_.insert(function.spec->text);
}

const FunctionSpec* Watched::spec_of(std::string_view text) const {
  const auto spec = std::ranges::find(specs_, text, &FunctionSpec::text);
  return spec != specs_.end() ? &*spec : nullptr;
}

namespace {

/// Each once, and not without end.
void add_reason(std::string& reasons, std::string_view reason) {
  constexpr std::size_t kMost = 1000;
  if (reasons.find(reason) != std::string::npos || reasons.size() + reason.size() > kMost) return;
  reasons += (reasons.empty() ? "" : "; ") + std::string(reason);
}

}  // namespace

void Watched::take_message(std::string_view text) {
  const std::vector<std::string_view> fields = fields_of(text);
  const FunctionSpec* const spec = fields.size() > 1 ? spec_of(fields[1]) : nullptr;
  if (fields.size() > 1 && spec == nullptr)
    ++malformed_;
  else if (fields[0] == "unusable" && fields.size() == 3)
    add_reason(unusable_[spec->text], repair_utf8(fields[2]));
  else if (fields[0] == "found" && fields.size() == 2)
    found_.insert(spec->text);
  else if (fields[0] == "absent" && fields.size() == 2)
    absent_.insert(spec->text);
  else if (trouble_.empty())
    trouble_ = repair_utf8(fields[0]);
}

}  // namespace culprit::record::python
