#include "formats/kineto/event.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace culprit::formats::kineto {

namespace {

constexpr std::size_t kMaxCategories = 4096;

/// pid and tid tokens: a number, a text that is a number, "host(123)", or any other text.
struct Identity {
  std::int64_t number = -1;
  std::string_view text;  ///< empty when the token was a plain number
  bool valid = true;
};

Identity identify(std::string_view token) {
  Identity id;
  const bool quoted = token.size() >= 2 && token.front() == '"';
  const std::string_view inside = quoted ? token.substr(1, token.size() - 2) : token;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), number);
  if (error == std::errc() && end == inside.data() + inside.size()) {
    id.number = number;
    return id;
  }
  if (!quoted) {
    if (const auto scaled = parse_scaled_decimal(inside, 0)) {
      id.number = *scaled;
    } else {
      id.valid = token.empty();
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
T clamped(std::int64_t value) {
  return static_cast<T>(std::clamp<std::int64_t>(value, static_cast<std::int64_t>(std::numeric_limits<T>::min()),
                                                 static_cast<std::int64_t>(std::numeric_limits<T>::max())));
}

}  // namespace

void Event::clear() {
  auto kept = std::move(values);
  kept.clear();
  *this = Event{};
  values = std::move(kept);
}

std::size_t EventSink::KeyHash::operator()(const TrackKey& key) const {
  struct {
    std::int64_t pid, tid;
    std::uint64_t texts;
  } words{key.pid, key.tid, static_cast<std::uint64_t>(key.pid_text) << 32 | key.tid_text};
  return XXH3_64bits(&words, sizeof words) + static_cast<std::size_t>(key.kind);
}

EventSink::EventSink() {
  categories_.push_back(0);
  classes_.push_back(SliceClass::other);
  category_ids_.emplace(0, 0);
}

void EventSink::hand_over(Batch& batch) {
  for (; strings_handed_ < strings_.size(); ++strings_handed_)
    batch.new_strings.push_back(strings_[static_cast<StringId>(strings_handed_)]);
  for (; tracks_handed_ < tracks_.size(); ++tracks_handed_) batch.new_tracks.push_back(tracks_[tracks_handed_]);
  for (; categories_handed_ < categories_.size(); ++categories_handed_)
    batch.new_categories.push_back(categories_[categories_handed_]);
}

std::uint32_t EventSink::track(const Event& event, TrackKind kind, Batch& batch) {
  const Identity pid = identify(event.pid);
  const Identity tid = identify(event.tid);
  if (!pid.valid || !tid.valid) batch.losses.add(LossReason::pid_invalid);
  TrackKey key;
  key.pid = pid.number;
  key.tid = tid.number;
  key.pid_text = pid.text.empty() ? 0 : strings_.intern(pid.text);
  key.tid_text = tid.text.empty() ? 0 : strings_.intern(tid.text);
  key.kind = kind;
  if (last_track_ != kNone && key == last_key_) return last_track_;
  auto it = track_ids_.find(key);
  if (it == track_ids_.end()) {
    it = track_ids_.emplace(key, static_cast<std::uint32_t>(tracks_.size())).first;
    tracks_.push_back(key);
  }
  last_key_ = key;
  last_track_ = it->second;
  return last_track_;
}

std::uint16_t EventSink::category(std::string_view name) {
  const StringId text = strings_.intern(name);
  if (auto it = category_ids_.find(text); it != category_ids_.end()) return it->second;
  if (categories_.size() >= kMaxCategories) return 0;
  const auto id = static_cast<std::uint16_t>(categories_.size());
  categories_.push_back(text);
  classes_.push_back(classify_category(name));
  category_ids_.emplace(text, id);
  return id;
}

void EventSink::slice(const Event& event, Ns ts, Batch& batch) {
  Ns duration = 0;
  if (!event.dur.empty()) {
    const auto parsed = parse_us(event.dur);
    if (!parsed || *parsed > kMaxDuration || *parsed < -kMaxDuration) {
      batch.losses.add(LossReason::time_invalid);
      return;
    }
    duration = *parsed;
    if (duration < 0) {
      batch.losses.add(LossReason::duration_negative);
      duration = 0;
    }
  }
  Slice slice;
  slice.begin = ts;
  slice.duration = duration;
  slice.name = strings_.intern(event.name ? *event.name : "(no name)");
  slice.track = track(event, TrackKind::thread, batch);
  slice.category = category(event.category);
  if (event.correlation > 0 && event.correlation <= std::numeric_limits<std::uint32_t>::max())
    slice.correlation = static_cast<std::uint32_t>(event.correlation);
  else if (event.correlation != 0)
    batch.losses.add(LossReason::correlation_overflow);
  const SliceClass slice_class = classes_[slice.category];
  if (is_gpu_work(slice_class)) {
    GpuSlice gpu;
    gpu.device = clamped<std::int16_t>(event.device);
    gpu.stream = clamped<std::int32_t>(event.stream);
    gpu.context = clamped<std::uint16_t>(event.context);
    gpu.bytes = event.bytes;
    gpu.registers = clamped<std::uint16_t>(event.registers);
    gpu.shared_memory = clamped<std::uint32_t>(event.shared_memory);
    for (std::size_t i = 0; i < 3; ++i) {
      gpu.grid[i] = event.grid[i];
      gpu.block[i] = clamped<std::uint16_t>(event.block[i]);
    }
    if (gpu.device < 0) gpu.device = clamped<std::int16_t>(identify(event.pid).number);
    if (gpu.stream < 0) gpu.stream = clamped<std::int32_t>(identify(event.tid).number);
    if (event.occupancy >= 0)
      batch.metrics.push_back({static_cast<std::uint32_t>(batch.slices.size()),
                               strings_.intern("est. achieved occupancy %"), event.occupancy});
    slice.gpu = static_cast<std::uint32_t>(batch.gpu.size());
    batch.gpu.push_back(gpu);
  }
  if (slice_class == SliceClass::counter_range) {
    for (const auto& [key, value] : event.values) {
      if (value)
        batch.metrics.push_back({static_cast<std::uint32_t>(batch.slices.size()), strings_.intern(key), *value});
      else
        batch.losses.add(LossReason::counter_value_invalid);
    }
  }
  if (event.has_extra || !event.collective.empty()) {
    SliceExtra extra = event.extra;
    extra.collective = strings_.intern(event.collective);
    extra.group = strings_.intern(event.group);
    slice.extra = static_cast<std::uint32_t>(batch.extras.size());
    batch.extras.push_back(extra);
  }
  batch.slices.push_back(slice);
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
  if (event.metadata.empty()) return;
  batch.metadata.push_back({kind, track(event, TrackKind::thread, batch), strings_.intern(event.metadata)});
}

void EventSink::emit(const Event& event, Batch& batch) {
  ++batch.events;
  if (event.bad_escape) batch.losses.add(LossReason::utf8_repaired);
  if (event.phase == 'M') return metadata(event, batch);
  if (!event.hostname.empty() && batch.host != event.hostname) batch.host = event.hostname;

  if (event.ts.empty() || event.ts == "null") {
    batch.losses.add(LossReason::time_missing);
    return;
  }
  const auto parsed = parse_us(event.ts);
  if (!parsed || *parsed > kMaxTime || *parsed < -kMaxTime) {
    batch.losses.add(LossReason::time_invalid);
    return;
  }
  const Ns ts = *parsed;
  const bool named = event.name.has_value() && !event.name->empty();

  switch (event.phase) {
    case 'X':
      if (!named) batch.losses.add(LossReason::name_invalid);
      return slice(event, ts, batch);
    case 'B':
    case 'b':
    case 'n':
      if (!named) batch.losses.add(LossReason::name_invalid);
      [[fallthrough]];
    case 'E':
    case 'e':
    case 's':
    case 't':
    case 'f': {
      const bool flow = event.phase == 's' || event.phase == 't' || event.phase == 'f';
      // Kineto writes the arrow right behind the slice it starts or ends at; when both carry one number the correlation
      // id already says what the arrow says.
      if (flow && event.category == "ac2g" && !batch.slices.empty() && batch.slices.back().correlation != 0) {
        std::uint32_t id = 0;
        const auto [end, error] = std::from_chars(event.id.data(), event.id.data() + event.id.size(), id);
        if (error == std::errc() && end == event.id.data() + event.id.size() && id == batch.slices.back().correlation)
          return;
      }
      OpenEvent open;
      open.at = ts;
      open.phase = event.phase;
      open.track = track(event, TrackKind::thread, batch);
      open.category = category(event.category);
      open.name = event.name ? strings_.intern(*event.name) : 0;
      if (event.phase != 'B' && event.phase != 'E')
        open.id = XXH3_64bits_withSeed(event.id.data(), event.id.size(),
                                       flow ? 0 : XXH3_64bits(event.category.data(), event.category.size()));
      if (event.correlation > 0 && event.correlation <= std::numeric_limits<std::uint32_t>::max())
        open.correlation = static_cast<std::uint32_t>(event.correlation);
      batch.open.push_back(open);
      return;
    }
    case 'C': {
      if (!named) batch.losses.add(LossReason::name_invalid);
      const std::uint32_t where = track(event, TrackKind::thread, batch);
      for (const auto& [key, value] : event.values) {
        if (!value) {
          batch.losses.add(LossReason::counter_value_invalid);
          continue;
        }
        scratch_ = event.name.value_or("(no name)");
        if (key != "value") scratch_.append(".").append(key);
        batch.counters.push_back({ts, *value, strings_.intern(scratch_), where});
      }
      return;
    }
    case 'i':
    case 'I':
    case 'R': {
      const std::uint32_t where = track(event, TrackKind::thread, batch);
      batch.instants.push_back({ts, strings_.intern(event.name.value_or("(no name)")), where});
      return;
    }
    default:
      batch.losses.add(LossReason::phase_unknown);
  }
}

}  // namespace culprit::formats::kineto
