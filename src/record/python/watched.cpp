#include "record/python/watched.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/utf8.h"
#include "record/collector/step_name.h"
#include "record/python/python_process.h"

namespace culprit::record::python {

namespace {

constexpr std::uint32_t kCollection = ~std::uint32_t{0};
constexpr std::size_t kMostFunctions = 512;
constexpr std::size_t kMostThreads = 4096;
constexpr std::size_t kMostOpen = 256;
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
      begun_(monotonic_now()),
      stopped_(injected.stopped) {}

bool Watched::read(perfetto::Writer& writer, Ns now, Ns since) {
  since_ = since;
  if (since == kNotBegun) dropped_before_ = ring_.dropped();
  ring_.is_alive(now);
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
  for (auto& [tid, thread] : threads_)
    for (; !thread.open.empty(); thread.open.pop_back()) close(writer, thread, thread.last);
}

/// The innermost call ends.
void Watched::close(perfetto::Writer& writer, const Thread& thread, Ns at) {
  const Open& call = thread.open.back();
  if (!call.written) return;
  writer.slice_end(thread.track, at);
  if (call.step) writer.slice_end(thread.track, at);
}

Watched::Thread* Watched::thread_of(perfetto::Writer& writer, std::int32_t tid) {
  const auto found = threads_.find(tid);
  if (found != threads_.end()) return &found->second;
  if (threads_.size() >= kMostThreads) return nullptr;
  const std::int32_t here = own_namespace_ ? host_thread(pid_, tid) : tid;
  if (here == 0) return nullptr;
  Thread& thread = threads_[tid];
  thread.track = writer.thread_track(pid_, here);
  return &thread;
}

void Watched::take(perfetto::Writer& writer, const AgentRecord& record, Ns now) {
  constexpr Ns kAhead = 1'000'000'000;
  if (record.time > now + kAhead || record.time < begun_ - kEarlier) {
    ++malformed_;
    return;
  }
  switch (record.type) {
    case CULPRIT_AGENT_FUNCTION:
      return take_function(record);
    case CULPRIT_AGENT_MESSAGE:
      return take_message(record.text);
    default:
      break;
  }
  Thread* thread = thread_of(writer, record.tid);
  if (thread == nullptr) {
    ++malformed_;
    return;
  }
  const Ns at = thread->last = std::max(thread->last, record.time);
  switch (record.type) {
    case CULPRIT_AGENT_BEGIN:
      return begin(writer, *thread, record, at);
    case CULPRIT_AGENT_END:
      return end(writer, *thread, record.value, at);
    case CULPRIT_AGENT_GC_BEGIN: {
      if (thread->open.size() >= kMostOpen) return;
      const bool written = at >= since_;
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

void Watched::begin(perfetto::Writer& writer, Thread& thread, const AgentRecord& record, Ns at) {
  if (record.value >= functions_.size() || thread.open.size() >= kMostOpen) {
    ++malformed_;
    return;
  }
  if (at < since_) {
    thread.open.push_back({record.value, false, false});
    return;
  }
  ++calls_;
  const Function& function = functions_[record.value];
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
  if (function.spec != nullptr && !function.spec->request.empty() && is_set(function.spec->request_when))
    requests_.write(
        writer, request_times(function.spec->request, std::span(names).first(all), std::span(numbers).first(all), at),
        std::max(begun_, since_), std::span(arguments).first(count));
  // The rest of a call that gave its thread away comes without numbers, and is no step of its own.
  bool step = function.spec != nullptr && !function.spec->step.empty() && all == function.spec->captures.size();
  step = step && is_set(function.spec->step_when);
  if (step) {
    std::string name = step_name(function.spec->step, std::span(names).first(all), std::span(numbers).first(all));
    if (!is_step_name(name)) name = "step: " + name;
    writer.slice_begin(thread.track, at, name, "step", std::span(arguments).first(count));
  }
  writer.slice_begin(thread.track, at, function.name, "python", std::span(arguments).first(count));
  thread.open.push_back({record.value, step, true});
}

/// Of calls that began before it was watched only the end comes. One that ends takes with it what it called and of
/// which no end was seen.
void Watched::end(perfetto::Writer& writer, Thread& thread, std::uint32_t function, Ns at) {
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
  if (record.value != functions_.size() || functions_.size() >= kMostFunctions || fields.size() < 4) {
    ++malformed_;
    return;
  }
  Function function;
  function.name = repair_utf8(fields[0]);
  const auto spec = std::ranges::find(specs_, fields[3], &FunctionSpec::text);
  if (spec != specs_.end()) function.spec = &*spec;
  found_.push_back(repair_utf8(fields[3]));
  functions_.push_back(std::move(function));
}

void Watched::take_message(std::string_view text) {
  const std::vector<std::string_view> fields = fields_of(text);
  if (fields[0] == "unusable" && fields.size() == 3)
    unusable_.emplace_back(repair_utf8(fields[1]), repair_utf8(fields[2]));
  else if (trouble_.empty())
    trouble_ = repair_utf8(fields[0]);
}

}  // namespace culprit::record::python
