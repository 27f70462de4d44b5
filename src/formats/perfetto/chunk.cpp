#include "formats/perfetto/chunk.h"

#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "core/utf8.h"
#include "formats/perfetto/trace.pb.h"

namespace culprit::perfetto {

namespace {

using proto::DebugAnnotation;
using proto::EventName;
using proto::FtraceEvent;
using proto::InternedData;
using proto::TracePacket;
using proto::TrackEvent;
using SwitchEvent = proto::SchedSwitchFtraceEvent;
using WakingEvent = proto::SchedWakingFtraceEvent;
using ExitEvent = proto::SchedProcessExitFtraceEvent;

constexpr std::uint32_t kPacket = proto::Trace::kPacketFieldNumber;
constexpr std::size_t kSliceEndBytes = 48;  ///< upper bound of the packet that ends a slice
constexpr std::uint32_t kMostCpus = 1 << 14;
constexpr std::size_t kMostArgumentText = 4 << 10;
constexpr std::size_t kMostInternedText = 64 << 10;  ///< longer ones are not looked up as they are
constexpr std::size_t kShortText = 24;               ///< of an argument; longer ones stand in a chunk once
constexpr std::size_t kMostArguments = 32;
constexpr std::size_t kMostFlows = 1024;  ///< of one slice
constexpr std::size_t kMostKey = 256;
constexpr std::size_t kBundleBytes = 32;  ///< what holds the events of one CPU together

bool plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Valid UTF-8 of at most `most` bytes. `store` holds it when it is not `text` itself.
std::string_view bounded(std::string_view text, std::size_t most, std::string& store) {
  if (text.size() <= most && plain(text)) return text;
  store = repair_utf8(text.substr(0, most));
  if (text.size() > most) {
    // A character cut in two has become one U+FFFD at the end.
    store.resize(std::min(store.size(), most));
    while (!store.empty() && (static_cast<unsigned char>(store.back()) & 0xc0U) == 0x80) store.pop_back();
    if (!store.empty() && static_cast<unsigned char>(store.back()) >= 0x80) store.pop_back();
    store += "...";
  }
  return store;
}

/// The kernel's 15 characters; names beyond that are not the kernel's.
std::string_view comm(std::string_view name, std::string& store) { return bounded(name, 32, store); }

/// The tracepoint gives one bit; the state of the task itself may have several and is translated as the kernel does:
/// the highest reported bit, idle apart; killable and frozen sleeps are what they sleep in.
std::uint64_t one_state(std::int64_t state) {
  constexpr std::uint64_t kReported = 0x7f, kIdle = 0x402, kIdleBit = 0x80, kPreempted = 0x100, kRtLock = 0x1000;
  const auto bits = static_cast<std::uint64_t>(state);
  if (std::has_single_bit(bits) && bits <= kPreempted) return bits;
  if ((bits & kIdle) == kIdle) return kIdleBit;
  if ((bits & kRtLock) != 0) return 2;
  return std::bit_floor(bits & kReported);
}

}  // namespace

std::uint64_t Interned::number(std::string_view text, bool& added) {
  const std::size_t before = texts_.size();
  const StringId id = texts_.intern(text);
  added = texts_.size() != before;
  return base_ + id;
}

void Interned::clear() {
  if (texts_.size() <= 1) return;
  base_ += texts_.size();
  texts_ = StringTable();
}

void Chunk::add_encoded(std::span<const std::uint8_t> packet) {
  main_.insert(main_.end(), packet.begin(), packet.end());
  size_ += packet.size();
  ++packets_;
}

void Chunk::add(const google::protobuf::MessageLite& message) {
  const std::size_t bytes = message.ByteSizeLong();
  const std::size_t before = main_.size();
  main_.resize(before + bytes + 2 * kMaxVarint);
  std::uint8_t* at = put_raw(put_raw(main_.data() + before, tag(kPacket, Wire::length)), bytes);
  at = message.SerializeWithCachedSizesToArray(at);
  main_.resize(static_cast<std::size_t>(at - main_.data()));
  size_ += main_.size() - before;
  ++packets_;
}

std::uint64_t Chunk::intern(Interned& table, std::uint32_t field, std::string_view text) {
  const std::size_t most = &table == &keys_ ? kMostKey : &table == &texts_ ? kMostArgumentText : kMostText;
  std::string store;
  if (text.size() > (&table == &texts_ ? kMostInternedText : most)) text = bounded(text, most, store);
  bool added = false;
  const std::uint64_t number = table.number(text, added);
  if (!added) return number;
  std::string repaired;
  text = bounded(text, &table == &texts_ ? most : 4 * most, repaired);
  Bytes entry(text.size() + 4 * kMaxVarint);
  std::uint8_t* at = put_text(put(entry.data(), EventName::kIidFieldNumber, number), EventName::kNameFieldNumber, text);
  entry.resize(static_cast<std::size_t>(at - entry.data()));
  Bytes data(entry.size() + 2 * kMaxVarint);
  at = put_bytes(data.data(), field, entry.data(), entry.size());
  data.resize(static_cast<std::size_t>(at - data.data()));
  Bytes whole(data.size() + 8 * kMaxVarint);
  at = put_bytes(whole.data(), TracePacket::kInternedDataFieldNumber, data.data(), data.size());
  at = put(put(at, TracePacket::kTrustedPacketSequenceIdFieldNumber, kSequence), TracePacket::kSequenceFlagsFieldNumber,
           TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  const auto size = static_cast<std::size_t>(at - whole.data());
  std::array<std::uint8_t, 2 * kMaxVarint> head{};
  append(main_, head.data(), put_raw(put_raw(head.data(), tag(kPacket, Wire::length)), size));
  append(main_, whole.data(), at);
  size_ += size + head.size();
  ++packets_;
  return number;
}

void Chunk::encode_event(Bytes& to, int type, Ns at, TrackUuid track, std::string_view name, std::string_view category,
                         std::span<const Argument> arguments, std::span<const FlowPoint> flows) {
  const std::uint64_t name_number = name.empty() ? 0 : intern(names_, InternedData::kEventNamesFieldNumber, name);
  const std::uint64_t category_number =
      category.empty() ? 0 : intern(categories_, InternedData::kEventCategoriesFieldNumber, category);
  std::array<std::uint8_t, 16 * kMaxVarint> fixed;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  std::uint8_t* p = put(fixed.data(), TrackEvent::kTypeFieldNumber, static_cast<std::uint64_t>(type));
  p = put(p, TrackEvent::kTrackUuidFieldNumber, track);
  if (category_number != 0) p = put(p, TrackEvent::kCategoryIidsFieldNumber, category_number);
  if (name_number != 0) p = put(p, TrackEvent::kNameIidFieldNumber, name_number);
  const auto fixed_size = static_cast<std::size_t>(p - fixed.data());
  event_.clear();
  const auto annotate = [&](const Argument& argument) {
    std::array<std::uint8_t, 8 * kMaxVarint + kShortText> one;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    std::uint8_t* q = put(one.data(), DebugAnnotation::kNameIidFieldNumber,
                          intern(keys_, InternedData::kDebugAnnotationNamesFieldNumber, argument.key));
    const auto* text = std::get_if<std::string_view>(&argument.value);
    if (const auto* value = std::get_if<std::int64_t>(&argument.value))
      q = put_signed(q, DebugAnnotation::kIntValueFieldNumber, *value);
    else if (const auto* number = std::get_if<double>(&argument.value))
      q = put_double(q, DebugAnnotation::kDoubleValueFieldNumber, *number);
    else if (text->size() <= kShortText && plain(*text))
      q = put_text(q, DebugAnnotation::kStringValueFieldNumber, *text);
    else
      q = put(q, DebugAnnotation::kStringValueIidFieldNumber,
              intern(texts_, InternedData::kDebugAnnotationStringValuesFieldNumber, *text));
    std::array<std::uint8_t, 2 * kMaxVarint> head;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    std::uint8_t* h = put_raw(put_raw(head.data(), tag(TrackEvent::kDebugAnnotationsFieldNumber, Wire::length)),
                              static_cast<std::size_t>(q - one.data()));
    append(event_, head.data(), h);
    append(event_, one.data(), q);
  };
  for (const Argument& argument : arguments.first(std::min(arguments.size(), kMostArguments))) annotate(argument);
  if (arguments.size() > kMostArguments)
    annotate({"arguments left out", static_cast<std::int64_t>(arguments.size() - kMostArguments)});
  for (const FlowPoint& flow : flows.first(std::min(flows.size(), kMostFlows))) {
    std::array<std::uint8_t, 2 * kMaxVarint> one{};
    const std::uint32_t field =
        flow.ends ? TrackEvent::kTerminatingFlowIdsFieldNumber : TrackEvent::kFlowIdsFieldNumber;
    append(event_, one.data(), put_fixed64(one.data(), field, flow.id));
  }
  const std::size_t inner = fixed_size + event_.size();
  std::array<std::uint8_t, 8 * kMaxVarint> around;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  p = put(around.data(), TracePacket::kTimestampFieldNumber, static_cast<std::uint64_t>(std::max<Ns>(at, 0)));
  p = put(put(p, TracePacket::kTrustedPacketSequenceIdFieldNumber, kSequence), TracePacket::kSequenceFlagsFieldNumber,
          TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  p = put_raw(put_raw(p, tag(TracePacket::kTrackEventFieldNumber, Wire::length)), inner);
  const auto around_size = static_cast<std::size_t>(p - around.data());
  std::array<std::uint8_t, 2 * kMaxVarint> head;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::uint8_t* h = put_raw(put_raw(head.data(), tag(kPacket, Wire::length)), around_size + inner);
  append(to, head.data(), h);
  append(to, around.data(), p);
  append(to, fixed.data(), fixed.data() + fixed_size);
  to.insert(to.end(), event_.begin(), event_.end());
  ++packets_;
}

void Chunk::event(int type, Ns at, TrackUuid track, std::string_view name, std::string_view category,
                  std::span<const Argument> arguments) {
  const std::size_t names_before = size_;
  const std::size_t before = main_.size();
  encode_event(main_, type, at, track, name, category, arguments);
  // What interning added has been counted by intern().
  size_ = std::max(size_, names_before + main_.size() - before);
}

void Chunk::counter(Ns at, TrackUuid track, double value) {
  std::array<std::uint8_t, 8 * kMaxVarint> inner{};
  std::uint8_t* p = put(inner.data(), TrackEvent::kTypeFieldNumber, TrackEvent::TYPE_COUNTER);
  p = put_double(put(p, TrackEvent::kTrackUuidFieldNumber, track), TrackEvent::kDoubleCounterValueFieldNumber, value);
  std::array<std::uint8_t, 16 * kMaxVarint> whole{};
  std::uint8_t* q =
      put(whole.data(), TracePacket::kTimestampFieldNumber, static_cast<std::uint64_t>(std::max<Ns>(at, 0)));
  q = put(put(q, TracePacket::kTrustedPacketSequenceIdFieldNumber, kSequence), TracePacket::kSequenceFlagsFieldNumber,
          TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  q = put_bytes(q, TracePacket::kTrackEventFieldNumber, inner.data(), static_cast<std::size_t>(p - inner.data()));
  std::array<std::uint8_t, 2 * kMaxVarint> head{};
  std::uint8_t* h =
      put_raw(put_raw(head.data(), tag(kPacket, Wire::length)), static_cast<std::size_t>(q - whole.data()));
  append(main_, head.data(), h);
  append(main_, whole.data(), q);
  size_ += static_cast<std::size_t>(h - head.data()) + static_cast<std::size_t>(q - whole.data());
  ++packets_;
}

void Chunk::slice(TrackUuid track, Ns begin, Ns end, std::string_view name, std::string_view category,
                  std::span<const Argument> arguments, std::span<const FlowPoint> flows) {
  const std::size_t before = slice_bytes_.size();
  encode_event(slice_bytes_, TrackEvent::TYPE_SLICE_BEGIN, begin, track, name, category, arguments, flows);
  const std::size_t size = slice_bytes_.size() - before;
  slices_.push_back(
      {begin, std::max(begin, end), track, static_cast<std::uint32_t>(before), static_cast<std::uint32_t>(size)});
  size_ += size + kSliceEndBytes;
}

Bytes& Chunk::cpu(std::uint32_t number) {
  number = std::min(number, kMostCpus);
  if (number >= cpus_.size()) cpus_.resize(number + 1);
  if (cpus_[number].empty()) size_ += kBundleBytes;
  return cpus_[number];
}

void Chunk::ftrace(std::uint32_t cpu_number, std::uint64_t at, std::int32_t pid, std::uint32_t field,
                   const std::uint8_t* begin, const std::uint8_t* end) {
  const auto inner = static_cast<std::size_t>(end - begin);
  std::array<std::uint8_t, 6 * kMaxVarint> event;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::uint8_t* p = put(event.data(), FtraceEvent::kTimestampFieldNumber, at);
  p = put(p, FtraceEvent::kPidFieldNumber, static_cast<std::uint32_t>(pid));
  p = put_raw(put_raw(p, tag(field, Wire::length)), inner);
  const auto event_size = static_cast<std::size_t>(p - event.data());
  std::array<std::uint8_t, 2 * kMaxVarint> head;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::uint8_t* h =
      put_raw(put_raw(head.data(), tag(proto::FtraceEventBundle::kEventFieldNumber, Wire::length)), event_size + inner);
  const auto head_size = static_cast<std::size_t>(h - head.data());
  Bytes& to = cpu(cpu_number);
  const std::size_t before = to.size();
  to.resize(before + head_size + event_size + inner);
  std::uint8_t* q = std::copy_n(head.data(), head_size, to.data() + before);
  q = std::copy_n(event.data(), event_size, q);
  std::copy_n(begin, inner, q);
  size_ += to.size() - before;
}

void Chunk::sched_switch(const SchedSwitch& event, Ns boot_offset) {
  std::string prev_store;
  std::string next_store;
  std::array<std::uint8_t, 2 * 64 + 12 * kMaxVarint> inner;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::uint8_t* p = put_text(inner.data(), SwitchEvent::kPrevCommFieldNumber, comm(event.prev_name, prev_store));
  p = put_signed(p, SwitchEvent::kPrevPidFieldNumber, event.prev_tid);
  p = put_signed(p, SwitchEvent::kPrevPrioFieldNumber, event.prev_priority);
  p = put(p, SwitchEvent::kPrevStateFieldNumber, one_state(event.prev_state));
  p = put_text(p, SwitchEvent::kNextCommFieldNumber, comm(event.next_name, next_store));
  p = put_signed(p, SwitchEvent::kNextPidFieldNumber, event.next_tid);
  p = put_signed(p, SwitchEvent::kNextPrioFieldNumber, event.next_priority);
  ftrace(event.cpu, static_cast<std::uint64_t>(std::max<Ns>(event.at + boot_offset, 0)), event.prev_tid,
         FtraceEvent::kSchedSwitchFieldNumber, inner.data(), p);
}

void Chunk::sched_waking(const SchedWaking& event, Ns boot_offset) {
  std::string store;
  std::array<std::uint8_t, 64 + 10 * kMaxVarint> inner;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::uint8_t* p = put_text(inner.data(), WakingEvent::kCommFieldNumber, comm(event.name, store));
  p = put_signed(p, WakingEvent::kPidFieldNumber, event.tid);
  p = put_signed(p, WakingEvent::kPrioFieldNumber, event.priority);
  p = put(p, WakingEvent::kSuccessFieldNumber, 1);
  p = put(p, WakingEvent::kTargetCpuFieldNumber, event.target_cpu);
  ftrace(event.cpu, static_cast<std::uint64_t>(std::max<Ns>(event.at + boot_offset, 0)), event.waker_tid,
         FtraceEvent::kSchedWakingFieldNumber, inner.data(), p);
}

void Chunk::process_exit(Ns at_boot, std::int32_t tid) {
  std::array<std::uint8_t, 4 * kMaxVarint> inner{};
  ftrace(0, static_cast<std::uint64_t>(std::max<Ns>(at_boot, 0)), tid, FtraceEvent::kSchedProcessExitFieldNumber,
         inner.data(), put_signed(inner.data(), ExitEvent::kPidFieldNumber, tid));
}

std::span<const std::uint8_t> Chunk::finish() {
  std::vector<std::uint32_t> order(slices_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const Pending& x = slices_[a];
    const Pending& y = slices_[b];
    if (x.begin != y.begin) return x.begin < y.begin;
    if (x.end != y.end) return x.end > y.end;
    return a < b;
  });
  for (const std::uint32_t i : order) {
    const Pending& slice = slices_[i];
    const auto begin = slice_bytes_.begin() + slice.offset;
    main_.insert(main_.end(), begin, begin + slice.size);
    encode_event(main_, TrackEvent::TYPE_SLICE_END, slice.end, slice.track, {}, {}, {});
  }
  for (std::uint32_t number = 0; number < cpus_.size(); ++number) {
    Bytes& events = cpus_[number];
    if (events.empty()) continue;
    std::array<std::uint8_t, 2 * kMaxVarint> cpu_field{};
    const std::uint8_t* cpu_end = put(cpu_field.data(), proto::FtraceEventBundle::kCpuFieldNumber, number);
    const auto cpu_size = static_cast<std::size_t>(cpu_end - cpu_field.data());
    std::array<std::uint8_t, 8 * kMaxVarint> around{};
    std::uint8_t* p = put(around.data(), TracePacket::kTrustedPacketSequenceIdFieldNumber, kSequence);
    p = put_raw(put_raw(p, tag(TracePacket::kFtraceEventsFieldNumber, Wire::length)), cpu_size + events.size());
    const auto around_size = static_cast<std::size_t>(p - around.data());
    std::array<std::uint8_t, 2 * kMaxVarint> head{};
    const std::uint8_t* h =
        put_raw(put_raw(head.data(), tag(kPacket, Wire::length)), around_size + cpu_size + events.size());
    append(main_, head.data(), h);
    append(main_, around.data(), p);
    append(main_, cpu_field.data(), cpu_end);
    main_.insert(main_.end(), events.begin(), events.end());
    events.clear();
    ++packets_;
  }
  return main_;
}

void Chunk::clear() {
  main_.clear();
  slice_bytes_.clear();
  slices_.clear();
  for (Bytes& events : cpus_) events.clear();
  names_.clear();
  categories_.clear();
  keys_.clear();
  texts_.clear();
  stacks_.clear();
  size_ = 0;
  packets_ = 0;
}

}  // namespace culprit::perfetto
