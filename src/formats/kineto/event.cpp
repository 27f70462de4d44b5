#include "formats/kineto/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace culprit::formats::kineto {

namespace {

/// Sets of numbered categories that begin anew, so that those of one chunk always find room.
constexpr std::size_t kManyCategories = 25'000;
constexpr std::size_t kMostCategories = std::numeric_limits<CategoryId>::max();
/// The names of one counter event ("name.key") may take this many times its text.
constexpr std::size_t kNamesPerText = 64;

constexpr std::uint32_t kGpuFields = (std::uint32_t{2} << Arguments::last_of_gpu) - 1;

/// pid and tid: a number, a text that is a number, "host(123)", or any other text.
struct Identity {
  std::int64_t number = -1;
  std::string_view text;  ///< empty when it was a plain number
  bool valid = true;
};

Identity identify(const Scalar& scalar) {
  Identity id;
  const std::string_view inside = scalar.text;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), number);
  if (error == std::errc() && end == inside.data() + inside.size()) {
    id.number = number;
    return id;
  }
  if (!scalar.quoted) {
    if (const auto scaled = parse_scaled_decimal(inside, 0)) {
      id.number = *scaled;
    } else {
      id.valid = inside.empty() || inside == "null";
    }
    return id;
  }
  id.text = inside;
  if (const std::size_t open = inside.rfind('('); open != std::string_view::npos) {
    const char* first = inside.data() + open + 1;
    const char* last = inside.data() + inside.size();
    const auto [digits_end, digits_error] = std::from_chars(first, last, number);
    if (digits_error == std::errc() && digits_end != last && *digits_end == ')') id.number = number;
  }
  return id;
}

template <class T>
T number_or_none(std::int64_t value) {
  return value >= 0 && value <= std::numeric_limits<T>::max() ? static_cast<T>(value) : T{-1};
}

std::uint32_t id_or_none(std::int64_t id) {
  return id > 0 && id <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(id) : 0;
}

std::uint32_t correlation_of(const Event& event) { return id_or_none(event.args.correlation_id); }

/// What a synchronisation record says of a stream that waits for an event. Of an event that the profiler did not see
/// recorded, Kineto writes -1.
std::optional<StreamWait> stream_wait(const Event& event, std::uint32_t row) {
  const Arguments& args = event.args;
  StreamWait wait;
  wait.slice = row;
  wait.recorded_by = id_or_none(args.event_record_id);
  wait.event_device = number_or_none<std::int32_t>(args.event_device_id);
  wait.event_stream = number_or_none<std::int32_t>(args.event_stream_id);
  if (event.name.value_or("") != "Stream Wait Event" || wait.recorded_by == 0 || wait.event_stream < 0)
    return std::nullopt;
  wait.device = args.gpu.device >= 0 ? args.gpu.device : number_or_none<std::int16_t>(identify(event.pid).number);
  wait.stream = args.gpu.stream >= 0 ? args.gpu.stream : number_or_none<std::int32_t>(identify(event.tid).number);
  return wait;
}

/// Values by key; of a key that stands twice the last counts.
void order_values(Event& event, Batch& batch) {
  auto& values = event.values;
  if (values.size() < 2) return;
  std::ranges::stable_sort(values, {}, &Arguments::Value::key);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool again = i + 1 < values.size() && values[i + 1].key == values[i].key;
    if (!again) values[kept++] = values[i];
    if (again) batch.lose(LossReason::member_repeated, values[i].known ? 0 : 1);
  }
  values.resize(kept);
}

}  // namespace

void Event::clear_arguments() {
  static const Arguments kNoArguments;
  std::memcpy(&args, &kNoArguments, sizeof args);  // an assignment fills byte by byte (rep stos), which takes longer
  values.clear();
}

void Event::clear() {
  if ((seen & (std::uint32_t{1} << args_)) != 0) clear_arguments();
  phase = 0;
  bad_escape = category_invalid = holds_trace = local_id = false;
  seen = repeated = 0;
  name.reset();
  for (std::string_view* text : {&category, &ts, &dur, &id}) *text = {};
  pid = {};
  tid = {};
}

EventSink::EventSink() {
  categories_.push_back(0);
  classes_.push_back(SliceClass::other);
  category_ids_.emplace(0, 0);
}

void EventSink::begin(Batch& batch) {
  if (categories_.size() < kManyCategories) return;
  categories_.assign(1, 0);
  classes_.assign(1, SliceClass::other);
  categories_handed_ = 0;
  category_ids_.clear();
  category_ids_.emplace(0, 0);
  known_categories_ = {};
  batch.categories_anew = true;
}

void EventSink::hand_over(Batch& batch) {
  for (; strings_handed_ < strings_.size(); ++strings_handed_)
    batch.new_strings.push_back(strings_[static_cast<StringId>(strings_handed_)]);
  for (; tracks_handed_ < tracks_.size(); ++tracks_handed_) batch.new_tracks.push_back(tracks_[tracks_handed_]);
  for (; categories_handed_ < categories_.size(); ++categories_handed_)
    batch.new_categories.push_back(categories_[categories_handed_]);
}

std::uint32_t EventSink::track(const Event& event, Batch& batch) {
  const auto ending = [](std::string_view text) { return text.empty() ? 0U : static_cast<unsigned char>(text.back()); };
  KnownTrack& last = known_tracks_[(ending(event.tid.text) + event.tid.text.size() * 3 + ending(event.pid.text) * 5) %
                                   known_tracks_.size()];
  if (last.id == kNone || event.pid.text != last.pid || event.tid.text != last.tid ||
      event.pid.quoted != last.pid_quoted || event.tid.quoted != last.tid_quoted) {
    const Identity pid = identify(event.pid);
    const Identity tid = identify(event.tid);
    TrackKey key;
    key.pid = pid.number;
    key.tid = tid.number;
    key.pid_text = pid.text.empty() ? 0 : strings_.intern(pid.text);
    key.tid_text = tid.text.empty() ? 0 : strings_.intern(tid.text);
    auto it = track_ids_.find(key);
    if (it == track_ids_.end()) {
      it = track_ids_.emplace(key, static_cast<std::uint32_t>(tracks_.size())).first;
      tracks_.push_back(key);
    }
    last.pid = event.pid.text;
    last.tid = event.tid.text;
    last.pid_quoted = event.pid.quoted;
    last.tid_quoted = event.tid.quoted;
    last.valid = pid.valid && tid.valid;
    last.id = it->second;
  }
  if (!last.valid) batch.lose(LossReason::pid_invalid);
  return last.id;
}

std::uint16_t EventSink::category(std::string_view name, Batch& batch) {
  KnownCategory& last =
      known_categories_[(name.size() + (name.empty() ? 0 : static_cast<unsigned char>(name[name.size() / 2]))) %
                        known_categories_.size()];
  if (name == last.name) return last.id;
  const StringId text = strings_.intern(name);
  auto it = category_ids_.find(text);
  if (it == category_ids_.end()) {
    if (categories_.size() >= kMostCategories) {
      batch.lose(LossReason::categories_collapsed);
      return 0;
    }
    it = category_ids_.emplace(text, static_cast<std::uint16_t>(categories_.size())).first;
    categories_.push_back(text);
    classes_.push_back(classify_category(name));
  }
  last = {strings_[text], it->second};
  return it->second;
}

void EventSink::slice(Event& event, Ns ts, Batch& batch) {
  const Arguments& args = event.args;
  Ns duration = 0;
  if (event.dur.empty() || event.dur == "null") {
    batch.lose(LossReason::duration_missing);
  } else {
    const auto parsed = parse_us(event.dur);
    if (!parsed || *parsed > kMaxDuration || *parsed < -kMaxDuration) {
      batch.lose(LossReason::time_invalid);
      return;
    }
    duration = *parsed;
    if (duration < 0) {
      batch.lose(LossReason::duration_negative);
      duration = 0;
    }
  }
  Slice slice;
  slice.begin = ts;
  slice.duration = duration;
  slice.name = name_of(event);
  slice.track = track(event, batch);
  slice.category = category(event.category, batch);
  slice.correlation = correlation_of(event);
  if (slice.correlation == 0 && args.correlation_id != 0) batch.lose(LossReason::correlation_overflow);
  const SliceClass slice_class = classes_[slice.category];
  const auto row = static_cast<std::uint32_t>(batch.slices.size());
  if (is_gpu_work(slice_class)) {
    GpuSlice gpu = args.gpu;
    if (gpu.device < 0) gpu.device = number_or_none<std::int16_t>(identify(event.pid).number);
    if (gpu.stream < 0) gpu.stream = number_or_none<std::int32_t>(identify(event.tid).number);
    if (args.occupancy_percent >= 0) {
      if (occupancy_ == 0) occupancy_ = strings_.intern("est. achieved occupancy %");
      batch.metrics.push_back({row, occupancy_, args.occupancy_percent});
    }
    slice.gpu = static_cast<std::uint32_t>(batch.gpu.size());
    batch.gpu.push_back(gpu);
  } else {
    TraceBuilder::number_call(slice, slice_class == SliceClass::python ? args.python_id : args.external_id);
  }
  const std::uint32_t unused = is_gpu_work(slice_class) ? 0 : kGpuFields;
  if (const std::uint32_t invalid = args.invalid & ~unused; invalid != 0)
    batch.lose(LossReason::argument_invalid, static_cast<std::uint64_t>(std::popcount(invalid)));
  if (slice_class == SliceClass::gpu_sync)
    if (const auto wait = stream_wait(event, row)) batch.waits.push_back(*wait);
  if (slice_class == SliceClass::counter_range) {
    order_values(event, batch);
    for (const auto& [key, value, known] : event.values) {
      if (known) continue;
      if (value)
        batch.metrics.push_back({row, strings_.intern(key), *value});
      else
        batch.lose(LossReason::counter_value_invalid);
    }
  }
  if (args.has_extra || !args.collective_name.empty()) {
    SliceExtra extra = args.extra;
    extra.collective = strings_.intern(args.collective_name);
    extra.group = strings_.intern(args.group_name);
    slice.extra = static_cast<std::uint32_t>(batch.extras.size());
    batch.extras.push_back(extra);
  }
  batch.slices.push_back(slice);
}

/// Begins, ends and arrows.
void EventSink::half(const Event& event, Ns ts, Batch& batch) {
  const bool flow = event.phase == 's' || event.phase == 't' || event.phase == 'f';
  OpenEvent open;
  open.at = ts;
  open.phase = event.phase;
  open.track = track(event, batch);
  const bool arrow = flow && event.category == "ac2g";
  open.category = category(event.category, batch);
  open.correlation = flow ? 0 : correlation_of(event);
  if (!flow && event.name) open.name = strings_.intern(*event.name);
  if (arrow) {
    // Kineto writes the arrow right behind the slice it starts or ends at, mostly with one number for both: then the
    // correlation id already says what the arrow says. (TraceBuilder finds such arrows anywhere.)
    const auto [end, error] = std::from_chars(event.id.data(), event.id.data() + event.id.size(), open.correlation);
    if (error != std::errc() || end != event.id.data() + event.id.size()) open.correlation = 0;
    if (open.correlation != 0 && !batch.slices.empty()) {
      const Slice& last = batch.slices.back();
      if (TraceBuilder::correlation_of(last) == open.correlation && last.track == open.track && last.begin <= ts &&
          last.end() >= ts)
        return;
    }
  }
  if (event.phase != 'B' && event.phase != 'E') {
    std::uint64_t scope = flow ? 0 : hash_of(event.category);
    if (event.local_id) scope = hash_parts(scope, hash_of(event.pid.text));
    open.id = hash_parts(scope, hash_of(event.id));
  }
  batch.open.push_back(open);
}

void EventSink::counter(Event& event, Ns ts, Batch& batch) {
  const std::uint32_t where = track(event, batch);
  const std::string_view name = event.name.value_or("(no name)");
  order_values(event, batch);
  std::size_t text = name.size();
  for (const auto& value : event.values) text += value.key.size() + std::string_view(R"("":0,)").size();
  std::size_t room = kNamesPerText * text;
  for (const auto& [key, value, known] : event.values) {
    const std::size_t size = name.size() + key.size() + 1;
    if (!value) {
      batch.lose(LossReason::counter_value_invalid);
    } else if (size > room) {
      batch.lose(LossReason::counter_names_long);
    } else {
      room -= size;
      scratch_ = name;
      if (key != "value") scratch_.append(".").append(key);
      batch.counters.push_back({ts, *value, strings_.intern(scratch_), where});
    }
  }
}

/// What PyTorch's allocator of a device has given out and holds, of the whole process.
void EventSink::memory(Event& event, Ns ts, Batch& batch) {
  order_values(event, batch);
  const auto argument = [&](std::string_view key) -> const Arguments::Value* {
    const auto found = std::ranges::lower_bound(event.values, key, {}, &Arguments::Value::key);
    return found != event.values.end() && found->key == key ? &*found : nullptr;
  };
  const auto number = [&](std::string_view key) {
    const Arguments::Value* found = argument(key);
    return found != nullptr ? found->value : std::nullopt;
  };
  const auto type = number("Device Type");
  if (!type) return;
  constexpr double kCpu = 0;
  constexpr double kGpu = 1;
  const double device = number("Device Id").value_or(-1);
  for (const auto& [key, what] : {std::pair("Total Allocated", "allocated"), std::pair("Total Reserved", "reserved")}) {
    const Arguments::Value* value = argument(key);
    if (value == nullptr) continue;
    if (!value->value) {
      batch.lose(LossReason::counter_value_invalid);
      continue;
    }
    scratch_.clear();
    if (*type == kGpu)
      fmt::format_to(std::back_inserter(scratch_), "GPU {:.0f} ", device);
    else if (*type != kCpu)
      fmt::format_to(std::back_inserter(scratch_), "Device {:.0f}:{:.0f} ", *type, device);
    fmt::format_to(std::back_inserter(scratch_), "memory {}.bytes", what);
    batch.counters.push_back({ts, *value->value, strings_.intern(scratch_), track(event, batch), true});
  }
}

void EventSink::metadata(const Event& event, Batch& batch) {
  const std::string_view name = event.name.value_or("");
  MetadataKind kind;
  if (name == "process_name")
    kind = MetadataKind::process_name;
  else if (name == "process_labels")
    kind = MetadataKind::process_labels;
  else if (name == "thread_name")
    kind = MetadataKind::thread_name;
  else
    return;  // sort indices and the like
  const Arguments& args = event.args;
  const Arguments::Field field = kind == MetadataKind::process_labels ? Arguments::labels : Arguments::name;
  const std::uint32_t bit = std::uint32_t{1} << field;
  if ((args.seen & bit) == 0 || (args.invalid & bit) != 0) batch.lose(LossReason::metadata_invalid);
  const std::string_view text = field == Arguments::labels ? args.labels_text : args.name_text;
  if (text.empty()) return;
  batch.metadata.push_back({kind, track(event, batch), strings_.intern(text)});
}

StringId EventSink::name_of(const Event& event) {
  if (event.name) return strings_.intern(*event.name);
  if (no_name_ == 0) no_name_ = strings_.intern("(no name)");
  return no_name_;
}

void EventSink::emit(Event& event, Batch& batch) {
  ++batch.events;
  if (event.bad_escape) batch.lose(LossReason::utf8_repaired);
  if (event.repeated != 0) batch.lose(LossReason::member_repeated, event.repeated);
  if (event.category_invalid) batch.lose(LossReason::category_invalid);
  if (event.holds_trace) return batch.lose(LossReason::event_list_repeated);
  if (event.phase == 'M') return metadata(event, batch);
  if (const std::string_view host = event.args.host; !host.empty() && (batch.host.empty() || host < batch.host))
    batch.host = host;

  if (event.ts.empty() || event.ts == "null") {
    batch.lose(LossReason::time_missing);
    return;
  }
  const auto parsed = parse_us(event.ts);
  if (!parsed || *parsed > kMaxTime || *parsed < -kMaxTime) {
    batch.lose(LossReason::time_invalid);
    return;
  }
  const Ns ts = *parsed;
  const bool named = event.name.has_value() && !event.name->empty();

  switch (event.phase) {
    case 'X':
      if (!named) batch.lose(LossReason::name_invalid);
      return slice(event, ts, batch);
    case 'B':
    case 'b':
    case 'n':
      if (!named) batch.lose(LossReason::name_invalid);
      [[fallthrough]];
    case 'E':
    case 'e':
    case 's':
    case 't':
    case 'f':
      return half(event, ts, batch);
    case 'C':
      if (!named) batch.lose(LossReason::name_invalid);
      return counter(event, ts, batch);
    case 'i':
    case 'I':
    case 'R': {
      const StringId name = name_of(event);
      if (event.phase == 'i' && named && is_memory_event(*event.name)) memory(event, ts, batch);
      return batch.instants.push_back({ts, name, track(event, batch)});
    }
    default:
      batch.lose(LossReason::phase_unknown);
  }
}

}  // namespace culprit::formats::kineto
