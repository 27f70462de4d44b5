#include "formats/kineto/reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <atomic>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "formats/kineto/conveyor.h"
#include "formats/kineto/envelope.h"
#include "formats/kineto/joiner.h"
#include "formats/kineto/split.h"

namespace culprit::formats::kineto {

namespace {

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

/// Reads up to the begin of the event array; what was read behind it comes back.
Result<std::string> read_prologue(Input& input, Envelope& envelope, std::uint64_t& offset) {
  std::string block(std::size_t{64} << 10, '\0');
  for (;;) {
    auto n = input.read(block.data(), block.size());
    if (!n) return n.error();
    const std::string_view text(block.data(), *n);
    const std::size_t used = envelope.feed(text, offset);
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

namespace {

std::string place(const Input& input, std::uint64_t offset) { return fmt::format("{}: byte {}", input.path(), offset); }

/// Lets the workers go, also when the joining thread fails.
class StopAtEnd {
 public:
  explicit StopAtEnd(Conveyor& conveyor) : conveyor_(conveyor) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() { conveyor_.stop(); }

 private:
  Conveyor& conveyor_;
};

/// Cuts, extracts and joins everything. Throws what a worker or a thread that does not start throws.
void read_events(Cutter& cutter, Joiner& joiner, std::vector<Extractor>& extractors, const ReadOptions& options) {
  const std::size_t workers = extractors.size();
  Conveyor conveyor(2 * workers + 1);
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
          if (chunk == nullptr) return;
          cutter.fill(*chunk);
          chunk->worker = w;
          all_cut = chunk->last;
          conveyor.filled(chunk);
        }
        extractors[w].extract(chunk->text(), chunk->size, Ending::more_follows, chunk->batch);
        conveyor.extracted(chunk);
      }
    };
    const auto guarded_work = [&](std::size_t w) {
      try {
        work(w);
      } catch (...) {
        conveyor.stop(std::current_exception());
      }
    };
    std::vector<std::jthread> threads;
    threads.reserve(workers);
    const StopAtEnd stop(conveyor);
    for (std::size_t w = 0; w < workers; ++w) {
      try {
        threads.emplace_back(guarded_work, w);
      } catch (const std::system_error&) {
        if (w == 0) throw;
        break;  // fewer do it too
      }
    }
    while (Chunk* chunk = conveyor.take_extracted()) {
      joiner.take(*chunk);
      conveyor.recycle(chunk);
      if (options.progress) options.progress(cutter.consumed());
    }
  }
  if (conveyor.failure()) std::rethrow_exception(conveyor.failure());
}

void count_losses(const Input& input, const Envelope& envelope, const Cutter& cutter, const Joiner& joiner,
                  Losses& losses) {
  losses.merge(cutter.losses());
  if (!input.damage().empty()) losses.add(LossReason::compressed_damage, 1, input.damage());
  const bool cut = !envelope.bare_array() && (!joiner.array_ended() || envelope.state() != Envelope::State::done);
  if (cut && losses[LossReason::truncated_tail] == 0)
    losses.add(LossReason::truncated_tail, 1, place(input, cutter.text_bytes()));
  const auto met = [&](LossReason reason, const Envelope::Met& what) {
    if (what.count != 0) losses.add(reason, what.count, place(input, what.first));
  };
  met(LossReason::event_list_repeated, envelope.further_events());
  met(LossReason::member_repeated, envelope.repeated());
  if (const auto at = envelope.behind_end())
    losses.add(LossReason::text_behind_end, cutter.text_bytes() - *at, place(input, *at));
}

Result<Trace> read_trace(Input& input, const ReadOptions& options) {
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
  Cutter cutter(input, std::max<std::size_t>(options.piece_bytes, 16), std::move(*rest), prologue_bytes);
  Joiner joiner(builder, envelope, workers);
  std::vector<Extractor> extractors(workers);  // own the names that batches refer to, so they outlive the joining
  read_events(cutter, joiner, extractors, options);
  if (cutter.error()) return *cutter.error();

  count_losses(input, envelope, cutter, joiner, builder.losses());
  for (const auto& [key, json] : envelope.members()) apply_member(key, json, builder.trace());
  builder.rank().text_bytes = cutter.text_bytes();
  if (builder.rank().input_bytes == 0) builder.rank().input_bytes = input.consumed_bytes();
  return std::move(builder).finish();
}

}  // namespace

Result<Trace> read(Input input, const ReadOptions& options) {
  // The parser looks for the best implementation at its first use and ends the program when memory is missing then.
  static_cast<void>(simdjson::get_active_implementation()->name());
  Error no_memory = out_of_memory(input.path());  // made while there is some
  try {
    return read_trace(input, options);
  } catch (const std::bad_alloc&) {
    return no_memory;
  } catch (const std::system_error& error) {
    return input_error(fmt::format("cannot start a thread: {}", error.code().message()), input.path(),
                       "raise the limit of processes or of memory (ulimit -u, ulimit -v)");
  }
}

}  // namespace culprit::formats::kineto
