#include "formats/kineto/extract.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "formats/kineto/event_text.h"
#include "formats/kineto/split.h"

namespace culprit::formats::kineto {

void Batch::clear() {
  slices.clear();
  gpu.clear();
  extras.clear();
  open.clear();
  instants.clear();
  counters.clear();
  metadata.clear();
  metrics.clear();
  waits.clear();
  new_strings.clear();
  new_tracks.clear();
  new_categories.clear();
  categories_anew = false;
  losses = {};
  events = 0;
  host.clear();
  at = 0;
  stop = Stop::complete;
  stop_at = 0;
}

namespace {

using simdjson::ondemand::value;

/// Memory that is missing is no fault of the text.
simdjson::error_code checked(simdjson::error_code error) {
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  return error;
}

}  // namespace

struct Extractor::State {
  simdjson::ondemand::parser parser;
  simdjson::ondemand::parser nested_parser;
  std::vector<char> nested;
  std::vector<char> single;
  EventSink sink;
  Event event;

  void merge_nested(Event& e, Batch& batch) {
    const std::string_view text = e.args.nested_text;
    const std::size_t first = text.find_first_not_of(" \n\r\t");
    if (first == npos) return;
    e.may_escape = true;
    nested.resize(text.size() + simdjson::SIMDJSON_PADDING);
    std::memcpy(nested.data(), text.data(), text.size());
    std::memset(nested.data() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    const bool good = !checked(nested_parser.iterate(nested.data(), text.size(), nested.size()).get(document)) &&
                      !document.get_object().get(object) && read_arguments(object, e);
    if (!good) batch.lose(LossReason::nested_args_invalid);
  }

  void emit(Batch& batch) {
    if (!event.args.nested_text.empty()) merge_nested(event, batch);
    sink.emit(event, batch);
  }

  /// Iterates the whole text with simdjson. Returns where to go on event by event, or `size` when nothing is left.
  std::size_t fast(char* text, std::size_t size, Batch& batch, bool& refused) {
    refused = false;
    text[-1] = '[';
    text[size] = ']';
    std::memset(text + size + 1, ' ', kTail - 1);
    event.may_escape = std::memchr(text, '\\', size) != nullptr;
    // Pieces are about as long as each other: with some room, the parser's memory is not taken anew for the longest
    // yet.
    if (parser.capacity() < size + 2) static_cast<void>(checked(parser.allocate(size + size / 16 + 2)));
    simdjson::ondemand::document document;
    simdjson::ondemand::array array;
    if (checked(parser.iterate(text - 1, size + 2, size + 1 + kTail).get(document)) ||
        document.get_array().get(array)) {
      refused = true;
      return 0;
    }
    std::size_t begin = 0;
    bool emitted = false;  // the event at `begin` has been taken
    for (auto element : array) {
      value v;
      if (element.get(v)) return emitted ? scan_event({text, size}, begin, size).end : begin;
      const std::string_view token = v.raw_json_token();
      begin = batch.at = static_cast<std::size_t>(token.data() - text);
      emitted = false;
      if (token.front() != '{') {
        ++batch.events;
        batch.lose(LossReason::event_not_object);
        continue;
      }
      simdjson::ondemand::object object;
      if (v.get_object().get(object)) return begin;
      event.clear();
      if (!read_event(object, event)) return begin;
      emit(batch);
      emitted = true;
    }
    const char* location = nullptr;
    if (!document.current_location().get(location) && location < text + size) {
      batch.stop = Stop::array_end;
      std::size_t end = static_cast<std::size_t>(location - text);
      while (end > 0 && text[end - 1] != ']')
        --end;  // the location is the next token; what is between belongs to the rest
      batch.stop_at = end;
    }
    return size;
  }

  /// Parses the one event [begin, end). False when it is damaged.
  bool parse_single(const char* text, std::size_t begin, std::size_t end, Batch& batch) {
    const std::size_t n = end - begin;
    single.resize(n + simdjson::SIMDJSON_PADDING);
    std::memcpy(single.data(), text + begin, n);
    std::memset(single.data() + n, ' ', simdjson::SIMDJSON_PADDING);
    event.may_escape = true;
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    if (checked(parser.iterate(single.data(), n, single.size()).get(document)) || document.get_object().get(object))
      return false;
    event.clear();
    if (!read_event(object, event)) return false;
    emit(batch);
    return true;
  }

  void slow(char* text, std::size_t size, std::size_t at, Ending ending, Batch& batch) {
    const std::string_view view(text, size);
    std::size_t budget = 32 * size + (std::size_t{1} << 20);
    while (at < size) {
      const char c = text[at];
      if (c == ']') {
        batch.stop = Stop::array_end;
        batch.stop_at = at + 1;
        return;
      }
      if (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        ++at;
        continue;
      }
      batch.at = at;
      if (c == '{') {
        // Without budget only what lies before the next likely event is looked at.
        const std::size_t next = budget == 0 ? next_event(view, at + 1) : npos;
        const EventSpan span = scan_event(view, at, next);
        budget -= std::min(budget, span.end - at);
        if (span.state == EventSpan::State::closed && parse_single(text, at, span.end, batch)) {
          at = span.end;
          continue;
        }
        const bool unfinished = span.state == EventSpan::State::unfinished;
        const std::size_t resume = unfinished && ending == Ending::more_follows ? npos : next_event(view, at + 1);
        if (unfinished && resume == npos) {
          if (ending == Ending::last) batch.lose(LossReason::truncated_tail);
          batch.stop = Stop::unfinished;
          batch.stop_at = at;
          return;
        }
        ++batch.events;
        batch.lose(LossReason::event_malformed);
        const std::size_t stop = resume != npos ? resume : span.state == EventSpan::State::closed ? span.end : size;
        batch.lose(LossReason::text_after_damage, stop - at);
        at = stop;
        continue;
      }
      // Something that is no object: skip to the next likely event or structural end.
      ++batch.events;
      batch.lose(LossReason::event_not_object);
      const std::size_t next = view.find_first_of(",]{", at);
      at = next == npos ? size : next;
    }
  }
};

Extractor::Extractor() : state_(std::make_unique<State>()) {}
Extractor::~Extractor() = default;
Extractor::Extractor(Extractor&&) noexcept = default;
Extractor& Extractor::operator=(Extractor&&) noexcept = default;

void Extractor::extract(char* text, std::size_t size, Ending ending, Batch& batch) {
  State& s = *state_;
  batch.clear();
  s.sink.begin(batch);
  bool refused = false;
  std::size_t at = s.fast(text, size, batch, refused);
  if (refused) {
    const Repairs repairs = repair(text, size);
    batch.lose(LossReason::utf8_repaired, repairs.utf8);
    batch.lose(LossReason::control_repaired, repairs.control);
    at = repairs.utf8 + repairs.control != 0 ? s.fast(text, size, batch, refused) : 0;
    if (refused) at = 0;
  }
  if (at < size) s.slow(text, size, at, ending, batch);
  s.sink.hand_over(batch);
}

}  // namespace culprit::formats::kineto
