#include "formats/kineto/reader.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "formats/kineto/envelope.h"
#include "formats/kineto/extract.h"
#include "formats/kineto/split.h"

namespace culprit::formats::kineto {

namespace {

constexpr std::size_t kKeep = std::size_t{2} << 20;  // a buffer that a large event made larger is given back
constexpr std::size_t kMaxEvent = std::size_t{64} << 20;
constexpr std::size_t kJoin = std::size_t{4}
                              << 20;  // an event that has not ended after so much text is taken for damaged

/// A piece of text with room for what the extractor writes around it.
struct Chunk {
  std::unique_ptr<char[]> buffer;
  std::size_t capacity = 0;
  std::size_t size = 0;
  std::uint64_t offset = 0;  // of the text in the whole text
  bool last = false;
  bool extracted = false;
  std::size_t worker = 0;
  Batch batch;

  char* text() { return buffer.get() + 1; }
  [[nodiscard]] std::string_view view() const { return {buffer.get() + 1, size}; }
  void reserve(std::size_t bytes) {
    if (bytes <= capacity) return;
    auto larger = std::make_unique_for_overwrite<char[]>(bytes + 1 + kTail);
    if (size != 0) std::memcpy(larger.get() + 1, text(), size);
    buffer = std::move(larger);
    capacity = bytes;
  }
  void recycle() {
    size = 0;
    last = extracted = false;
    if (capacity > kKeep) {
      buffer.reset();
      capacity = 0;
    }
  }
};

/// Chunks on their way: free -> filled and extracted by a worker -> taken in order by the calling thread.
class Conveyor {
 public:
  explicit Conveyor(std::size_t chunks) : chunks_(chunks) {
    for (Chunk& chunk : chunks_) free_.push_back(&chunk);
  }

  Chunk* take_free() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !free_.empty(); });
    Chunk* chunk = free_.front();
    free_.pop_front();
    return chunk;
  }
  /// Fixes the place of `chunk` in the order; called in the order of the text.
  void filled(Chunk* chunk) {
    const std::lock_guard lock(mutex_);
    order_.push_back(chunk);
    all_filled_ = chunk->last;
  }
  void extracted(Chunk* chunk) {
    const std::lock_guard lock(mutex_);
    chunk->extracted = true;
    changed_.notify_all();
  }
  /// The next chunk in order once it is extracted; nullptr after the last one.
  Chunk* take_extracted() {
    std::unique_lock lock(mutex_);
    if (order_.empty() && all_filled_) return nullptr;
    changed_.wait(lock, [&] { return !order_.empty() && order_.front()->extracted; });
    Chunk* chunk = order_.front();
    order_.pop_front();
    return chunk;
  }
  void recycle(Chunk* chunk) {
    chunk->recycle();
    const std::lock_guard lock(mutex_);
    free_.push_back(chunk);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Chunk> chunks_;
  std::deque<Chunk*> free_, order_;
  bool all_filled_ = false;
};

/// Cuts the text behind the envelope's begin into chunks, one after another.
class Cutter {
 public:
  Cutter(Input& input, std::size_t piece_bytes, std::string start, std::uint64_t start_bytes)
      : input_(input), piece_bytes_(piece_bytes), carry_(std::move(start)), text_bytes_(start_bytes) {}

  /// Fills `chunk` up to a likely boundary; the last chunk takes what is left and sets `last`.
  void fill(Chunk& chunk) {
    chunk.reserve(std::max(piece_bytes_, carry_.size()));
    std::memcpy(chunk.text(), carry_.data(), carry_.size());
    chunk.size = carry_.size();
    chunk.offset = text_bytes_ - carry_.size();
    carry_.clear();
    std::size_t cut = npos;
    bool skipping = false;  // inside an event that is too large
    while (cut == npos) {
      auto n = input_.read(chunk.text() + chunk.size, chunk.capacity - chunk.size);
      if (!n) {
        error_ = n.error();
        chunk.last = true;
        return;
      }
      chunk.size += *n;
      text_bytes_ += *n;
      consumed_ = input_.consumed_bytes();
      chunk.last = chunk.size < chunk.capacity;
      if (skipping) {
        const std::size_t next = next_event(chunk.view(), 0);
        const std::size_t from = next == npos ? chunk.size : next;
        losses_.add(LossReason::text_after_damage, from);
        chunk.offset = text_bytes_ - chunk.size + from;
        std::memmove(chunk.text(), chunk.text() + from, chunk.size - from);
        chunk.size -= from;
        skipping = next == npos;
        if (!chunk.last) continue;
      }
      if (chunk.last) return;
      cut = last_boundary(chunk.view());
      if (cut != npos) break;
      if (chunk.capacity >= kMaxEvent) {
        const std::string place = fmt::format("{}: byte {}", input_.path(), chunk.offset);
        losses_.add(LossReason::event_too_large, 1, place);
        losses_.add(LossReason::text_after_damage, chunk.size, place);
        chunk.size = 0;
        skipping = true;
      } else {
        chunk.reserve(std::min(2 * chunk.capacity, kMaxEvent));
      }
    }
    carry_.assign(chunk.view().substr(cut));
    while (chunk.text()[cut - 1] != ',') --cut;
    chunk.size = cut - 1;
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const Losses& losses() const { return losses_; }
  [[nodiscard]] std::uint64_t text_bytes() const { return text_bytes_; }
  [[nodiscard]] std::uint64_t consumed() const { return consumed_; }

 private:
  Input& input_;
  std::size_t piece_bytes_;
  std::string carry_;  // what was read behind the last cut
  std::uint64_t text_bytes_;
  std::atomic<std::uint64_t> consumed_{0};
  Losses losses_;
  std::optional<Error> error_;
};

/// Numbers of one worker in terms of the trace.
struct Translation {
  std::vector<StringId> strings{0};
  std::vector<TrackId> tracks;
  std::vector<CategoryId> categories{0};
};

/// The calling thread: joins batches in order.
class Joiner {
 public:
  Joiner(TraceBuilder& builder, Envelope& envelope, std::size_t workers)
      : builder_(builder), envelope_(envelope), translations_(workers + 1) {}

  void take(const Chunk& chunk) {
    learn(chunk.batch, translations_[chunk.worker]);
    if (in_epilogue_) {
      envelope_.feed(",");
      envelope_.feed(chunk.view());
      return;
    }
    if (pending_.empty()) {
      apply(chunk.batch, translations_[chunk.worker], chunk.view(), chunk.offset);
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

  [[nodiscard]] bool array_ended() const { return in_epilogue_; }

 private:
  void learn(const Batch& batch, Translation& t) {
    for (std::string_view text : batch.new_strings) t.strings.push_back(builder_.intern(text));
    for (TrackKey key : batch.new_tracks) {
      key.pid_text = t.strings[key.pid_text];
      key.tid_text = t.strings[key.tid_text];
      t.tracks.push_back(builder_.track(key));
    }
    for (StringId name : batch.new_categories)
      if (name != 0) t.categories.push_back(builder_.category(builder_.trace().strings[t.strings[name]]));
  }

  [[nodiscard]] std::string place(std::uint64_t offset) {
    return fmt::format("{}: byte {}", builder_.rank().path, offset);
  }

  void count(const Batch& batch, std::uint64_t offset) {
    if (batch.losses.total() == 0) return;
    for (std::size_t i = 0; i < Losses::kReasons; ++i)
      if (const auto reason = static_cast<LossReason>(i); batch.losses[reason] != 0)
        builder_.losses().add(reason, batch.losses[reason], place(offset + batch.first[i]));
  }

  void retry(Ending ending) {
    const std::size_t size = pending_.size();
    std::string text;
    text.reserve(size + 1 + kTail);
    text += '[';
    text += pending_;
    text.append(kTail, ' ');
    own_.extract(text.data() + 1, size, ending, own_batch_);
    pending_.clear();
    learn(own_batch_, translations_.back());
    apply(own_batch_, translations_.back(), std::string_view(text).substr(1, size), pending_offset_);
  }

  void apply(const Batch& batch, const Translation& t, std::string_view text, std::uint64_t offset) {
    Trace& trace = builder_.trace();
    const std::uint32_t before = trace.slices.empty() ? 0 : trace.slices.back().correlation;
    const auto first = static_cast<SliceIndex>(trace.slices.size());
    for (const MetricEvent& metric : batch.metrics)
      trace.metrics.push_back({first + metric.slice, t.strings[metric.name], metric.value});
    for (Slice slice : batch.slices) {
      slice.name = t.strings[slice.name];
      slice.track = t.tracks[slice.track];
      slice.category = t.categories[slice.category];
      if (slice.extra != kNone) {
        SliceExtra extra = batch.extras[slice.extra];
        extra.collective = t.strings[extra.collective];
        extra.group = t.strings[extra.group];
        slice.extra = builder_.add(extra);
      }
      if (slice.gpu != kNone)
        builder_.add(slice, batch.gpu[slice.gpu]);
      else
        builder_.add(slice);
    }
    for (OpenEvent open : batch.open) {
      const bool flow = open.phase == 's' || open.phase == 't' || open.phase == 'f';
      if (flow && open.correlation != 0 && open.correlation == before) continue;  // says what the slice before it says
      open.name = t.strings[open.name];
      open.track = t.tracks[open.track];
      open.category = t.categories[open.category];
      builder_.add(open);
    }
    for (const Instant& instant : batch.instants)
      builder_.add(Instant{instant.at, t.strings[instant.name], t.tracks[instant.track]});
    for (const CounterEvent& counter : batch.counters) {
      const TrackId track = t.tracks[counter.track];
      builder_.add_counter(t.strings[counter.name], trace.tracks[track].process, track, {counter.at, counter.value});
    }
    for (const Metadata& metadata : batch.metadata) {
      Track& track = trace.tracks[t.tracks[metadata.track]];
      const StringId value = t.strings[metadata.text];
      switch (metadata.kind) {
        case MetadataKind::process_name:
          trace.processes[track.process].name = value;
          break;
        case MetadataKind::process_labels:
          trace.processes[track.process].labels = value;
          break;
        case MetadataKind::thread_name:
          track.name = value;
          break;
      }
    }
    count(batch, offset);
    Rank& rank = builder_.rank();
    rank.events += batch.events;
    if (!batch.host.empty()) rank.host = batch.host;
    if (batch.stop == Stop::array_end) {
      in_epilogue_ = true;
      envelope_.after_events();
      envelope_.feed(text.substr(batch.stop_at));
    } else if (batch.stop == Stop::unfinished) {
      pending_.assign(text.substr(batch.stop_at));
      pending_offset_ = offset + batch.stop_at;
    }
  }

  TraceBuilder& builder_;
  Envelope& envelope_;
  std::vector<Translation> translations_;
  Extractor own_;
  Batch own_batch_;
  std::string pending_;  // text that ended inside an event, waiting for what follows
  std::uint64_t pending_offset_ = 0;
  std::size_t next_try_ = 0;
  bool in_epilogue_ = false;
};

/// Reads up to the begin of the event array; what was read behind it comes back.
Result<std::string> read_prologue(Input& input, Envelope& envelope, std::uint64_t& offset) {
  std::string block(std::size_t{64} << 10, '\0');
  for (;;) {
    auto n = input.read(block.data(), block.size());
    if (!n) return n.error();
    const std::string_view text(block.data(), *n);
    const std::size_t used = envelope.feed(text);
    if (envelope.state() == Envelope::State::events) {
      offset += *n;
      return std::string(text.substr(used));
    }
    if (envelope.state() == Envelope::State::failed)
      return input_error(envelope.failure(), fmt::format("{}: byte {}", input.path(), offset + used),
                         "expected a JSON trace (an object with \"traceEvents\", or a list of events)");
    if (*n < block.size() || envelope.state() == Envelope::State::done) {
      if (!input.damage().empty())
        return input_error(std::string(input.damage()) + " before the first event", input.path(),
                           "copy or record the file again");
      if (envelope.state() == Envelope::State::done)
        return input_error("is JSON but holds no \"traceEvents\"", input.path(),
                           "expected a trace of the PyTorch profiler or another Chrome trace");
      return input_error("ends before its first event", fmt::format("{}: byte {}", input.path(), offset + *n),
                         "copy or record the file again");
    }
    offset += *n;
  }
}

}  // namespace

bool looks_like_json(std::string_view start) {
  if (start.starts_with("\xef\xbb\xbf")) start.remove_prefix(3);
  const std::size_t first = start.find_first_not_of(" \n\r\t");
  return first != npos && (start[first] == '{' || start[first] == '[');
}

Result<Trace> read(Input input, const ReadOptions& options) {
  Rank rank;
  rank.path = input.path();
  rank.input_bytes = input.file_bytes();
  TraceBuilder builder(std::move(rank));
  Envelope envelope;
  std::uint64_t prologue_bytes = 0;
  auto rest = read_prologue(input, envelope, prologue_bytes);
  if (!rest) return rest.error();

  // Inflating alternates with extracting, so compressed text wants two hands even where one is asked for.
  const std::size_t workers = std::max(input.compression() == Compression::none ? 1U : 2U, options.workers);
  Conveyor conveyor(2 * workers + 1);
  Cutter cutter(input, std::max<std::size_t>(options.piece_bytes, 16), std::move(*rest), prologue_bytes);
  Joiner joiner(builder, envelope, workers);
  std::vector<Extractor> extractors(workers);  // own the names that batches refer to, so they outlive the joining
  {
    std::mutex cutting;
    bool all_cut = false;
    const auto work = [&](std::size_t w) {
      for (;;) {
        Chunk* chunk = nullptr;
        {
          const std::lock_guard lock(cutting);
          if (all_cut) return;
          chunk = conveyor.take_free();
          cutter.fill(*chunk);
          chunk->worker = w;
          all_cut = chunk->last;
          conveyor.filled(chunk);
        }
        extractors[w].extract(chunk->text(), chunk->size, Ending::more_follows, chunk->batch);
        conveyor.extracted(chunk);
      }
    };
    std::vector<std::jthread> threads;
    for (std::size_t w = 0; w < workers; ++w) threads.emplace_back(work, w);
    while (Chunk* chunk = conveyor.take_extracted()) {
      joiner.take(*chunk);
      conveyor.recycle(chunk);
      if (options.progress) options.progress(cutter.consumed());
    }
  }
  if (cutter.error()) return *cutter.error();

  Losses& losses = builder.losses();
  losses.merge(cutter.losses());
  if (!input.damage().empty()) losses.add(LossReason::compressed_damage, 1, input.damage());
  const bool cut = !envelope.bare_array() && (!joiner.array_ended() || envelope.state() != Envelope::State::done);
  if (cut && losses[LossReason::truncated_tail] == 0) losses.add(LossReason::truncated_tail);
  for (const auto& [key, json] : envelope.members()) apply_member(key, json, builder.trace());
  builder.rank().text_bytes = cutter.text_bytes();
  if (builder.rank().input_bytes == 0) builder.rank().input_bytes = input.consumed_bytes();
  return std::move(builder).finish();
}

}  // namespace culprit::formats::kineto
