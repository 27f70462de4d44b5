#include "formats/kineto/joiner.h"

#include <fmt/format.h>

namespace culprit::formats::kineto {

namespace {
/// An event that has not ended after so much text is taken for damaged.
constexpr std::size_t kJoin = std::size_t{4} << 20;
}  // namespace

void Joiner::take(const Chunk& chunk) {
  if (in_epilogue_) {
    envelope_.feed(",", chunk.offset);
    envelope_.feed(chunk.view(), chunk.offset);
    return;
  }
  Translation& translation = translations_[chunk.worker];
  learn(chunk.batch, translation, pending_.empty());
  if (pending_.empty()) {
    apply(chunk.batch, translation, chunk.view(), chunk.offset);
  } else {
    // Read from a wrong begin: only what was repaired in the text itself still counts.
    for (LossReason repaired : {LossReason::utf8_repaired, LossReason::control_repaired})
      builder_.losses().add(repaired, chunk.batch.losses[repaired]);
    pending_ += ',';
    pending_ += chunk.view();
  }
  if (pending_.empty() || !(chunk.last || pending_.size() >= next_try_)) return;
  const std::size_t before = pending_.size();
  retry(chunk.last ? Ending::last : before > kJoin ? Ending::give_up : Ending::more_follows);
  if (chunk.last) {
    pending_.clear();
  } else if (pending_.size() < before) {
    next_try_ = 0;
  } else if (before > kMaxEvent) {
    builder_.losses().add(LossReason::event_too_large, 1, place(pending_offset_));
    builder_.losses().add(LossReason::text_after_damage, before, place(pending_offset_));
    pending_.clear();
    next_try_ = 0;
  } else {
    next_try_ = 2 * before;
  }
}

/// `certain`: the batch was read from the begin of an event.
void Joiner::learn(const Batch& batch, Translation& t, bool certain) {
  for (const std::string_view text : batch.new_strings) {
    if (!certain) t.texts.emplace(static_cast<StringId>(t.strings.size()), text);
    t.strings.push_back(certain ? builder_.intern(text) : kNone);
  }
  for (const TrackKey& key : batch.new_tracks) {
    t.keys.push_back(key);
    t.tracks.push_back(kNone);
    if (certain) track(t, static_cast<std::uint32_t>(t.tracks.size() - 1));
  }
  if (batch.categories_anew) {
    t.category_names.clear();
    t.categories.clear();
  }
  for (const StringId name : batch.new_categories) {
    if (name == 0 && !t.categories.empty()) continue;
    t.category_names.push_back(name);
    t.categories.push_back(kNone);
    if (certain) category(t, static_cast<std::uint32_t>(t.categories.size() - 1));
  }
}

StringId Joiner::string(Translation& t, StringId id) {
  StringId& known = t.strings[id];
  if (known == kNone) known = builder_.intern(t.texts.at(id));
  return known;
}

TrackId Joiner::track(Translation& t, std::uint32_t id) {
  if (t.tracks[id] == kNone) {
    TrackKey key = t.keys[id];
    key.pid_text = string(t, key.pid_text);
    key.tid_text = string(t, key.tid_text);
    t.tracks[id] = builder_.track(key);
  }
  return t.tracks[id];
}

CategoryId Joiner::category(Translation& t, std::uint32_t id) {
  if (t.categories[id] == kNone)
    t.categories[id] = builder_.category(builder_.trace().strings[string(t, t.category_names[id])]);
  return static_cast<CategoryId>(t.categories[id]);
}

std::string Joiner::place(std::uint64_t offset) { return fmt::format("{}: byte {}", builder_.rank().path, offset); }

void Joiner::count(const Batch& batch, std::uint64_t offset) {
  if (batch.losses.total() == 0) return;
  for (std::size_t i = 0; i < Losses::kReasons; ++i)
    if (const auto reason = static_cast<LossReason>(i); batch.losses[reason] != 0)
      builder_.losses().add(reason, batch.losses[reason], place(offset + batch.first[i]));
}

void Joiner::retry(Ending ending) {
  const std::size_t size = pending_.size();
  std::string text;
  text.reserve(size + 1 + kTail);
  text += '[';
  text += pending_;
  text.append(kTail, ' ');
  own_.extract(text.data() + 1, size, ending, own_batch_);
  pending_.clear();
  learn(own_batch_, translations_.back(), true);
  apply(own_batch_, translations_.back(), std::string_view(text).substr(1, size), pending_offset_);
}

void Joiner::apply(const Metadata& metadata, Translation& t) {
  const TrackId where = track(t, metadata.track);
  const ProcessId process = builder_.trace().tracks[where].process;
  const StringId value = string(t, metadata.text);
  switch (metadata.kind) {
    case MetadataKind::process_name:
      return builder_.name_process(process, value);
    case MetadataKind::process_labels:
      return builder_.label_process(process, value);
    case MetadataKind::thread_name:
      return builder_.name_thread(where, value);
  }
}

void Joiner::apply(const Batch& batch, Translation& t, std::string_view text, std::uint64_t offset) {
  Trace& trace = builder_.trace();
  const auto first = static_cast<SliceIndex>(trace.slices.size());
  for (const MetricEvent& metric : batch.metrics)
    trace.metrics.push_back({first + metric.slice, string(t, metric.name), metric.value});
  for (StreamWait wait : batch.waits) {
    wait.slice += first;
    trace.stream_waits.push_back(wait);
  }
  for (Slice slice : batch.slices) {
    slice.name = string(t, slice.name);
    slice.track = track(t, slice.track);
    slice.category = category(t, slice.category);
    if (slice.extra != kNone) {
      SliceExtra extra = batch.extras[slice.extra];
      extra.collective = string(t, extra.collective);
      extra.group = string(t, extra.group);
      slice.extra = builder_.add(extra);
    }
    if (slice.gpu != kNone)
      builder_.add(slice, batch.gpu[slice.gpu]);
    else
      builder_.add(slice);
  }
  for (OpenEvent open : batch.open) {
    open.name = string(t, open.name);
    open.track = track(t, open.track);
    open.category = category(t, open.category);
    builder_.add(open);
  }
  for (const Instant& instant : batch.instants)
    builder_.add(Instant{instant.at, string(t, instant.name), track(t, instant.track)});
  for (const CounterEvent& counter : batch.counters) {
    const TrackId where = track(t, counter.track);
    builder_.add_counter(string(t, counter.name), trace.tracks[where].process, counter.of_process ? kNone : where,
                         {counter.at, counter.value});
  }
  for (const Metadata& metadata : batch.metadata) apply(metadata, t);
  count(batch, offset);
  Rank& rank = builder_.rank();
  rank.events += batch.events;
  if (!batch.host.empty() && (rank.host.empty() || batch.host < rank.host)) rank.host = batch.host;
  if (batch.stop == Stop::array_end) {
    in_epilogue_ = true;
    envelope_.after_events();
    envelope_.feed(text.substr(batch.stop_at), offset + batch.stop_at);
  } else if (batch.stop == Stop::unfinished) {
    pending_.assign(text.substr(batch.stop_at));
    pending_offset_ = offset + batch.stop_at;
  }
}

}  // namespace culprit::formats::kineto
