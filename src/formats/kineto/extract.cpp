#include "formats/kineto/extract.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "formats/kineto/event.h"
#include "formats/kineto/split.h"

namespace culprit::formats::kineto {

using simdjson::ondemand::value;

void Batch::clear() {
  slices.clear();
  gpu.clear();
  extras.clear();
  open.clear();
  instants.clear();
  counters.clear();
  metadata.clear();
  metrics.clear();
  new_strings.clear();
  new_tracks.clear();
  new_categories.clear();
  losses = {};
  events = 0;
  host.clear();
  stop = Stop::complete;
  stop_at = 0;
}

namespace {

std::string_view trimmed(std::string_view token) {
  while (!token.empty() &&
         (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t'))
    token.remove_suffix(1);
  return token;
}

bool is_key(const char* raw, std::string_view quoted) { return std::memcmp(raw, quoted.data(), quoted.size()) == 0; }

std::string_view token_of(value& v) { return trimmed(v.raw_json_token()); }

/// The text of a string value; nullopt when it is no string.
std::optional<std::string_view> text_of(value& v, Event& event) {
  const std::string_view token = token_of(v);
  if (token.size() < 2 || token.front() != '"' || token.back() != '"') return std::nullopt;
  const std::string_view inside = token.substr(1, token.size() - 2);
  if (std::memchr(inside.data(), '\\', inside.size()) == nullptr) return inside;
  std::string_view unescaped;
  if (!v.get_string().get(unescaped)) return unescaped;
  event.bad_escape = true;  // a lone surrogate, say: the escaped form is kept
  return inside;
}

std::string_view without_quotes(std::string_view token) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') return token.substr(1, token.size() - 2);
  return token;
}

std::optional<std::int64_t> integer_of(std::string_view token) {
  token = without_quotes(token);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
  if (error == std::errc() && end == token.data() + token.size()) return number;
  // 1.0, 1e3 and the unsigned half of 64 bits
  std::uint64_t big = 0;
  const auto [big_end, big_error] = std::from_chars(token.data(), token.data() + token.size(), big);
  if (big_error == std::errc() && big_end == token.data() + token.size()) return static_cast<std::int64_t>(big);
  return parse_scaled_decimal(token, 0);
}

std::optional<double> number_of(std::string_view token) {
  token = without_quotes(token);
  double number = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
  if (error != std::errc() || end != token.data() + token.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

template <class T>
void take(T& field, value& v) {
  if (auto n = integer_of(token_of(v))) field = static_cast<T>(*n);
}

template <class T>
void take_triple(T (&out)[3], value& v) {
  simdjson::ondemand::array array;
  if (v.get_array().get(array)) return;
  std::size_t i = 0;
  for (auto element : array) {
    value item;
    if (element.get(item)) return;
    if (i < 3) take(out[i], item);
    ++i;
  }
}

void take_text(std::string_view& out, value& v, Event& event) {
  if (auto text = text_of(v, event)) out = *text;
}

/// One member of "args". False when the text is damaged.
void take_argument(const char* key, value& v, Event& e) {
  switch (key[0]) {
    case 'c':
      if (is_key(key, "correlation\"")) return take(e.correlation, v);
      if (is_key(key, "context\"")) return take(e.context, v);
      break;
    case 'd':
      if (is_key(key, "device\"")) return take(e.device, v);
      break;
    case 's':
      if (is_key(key, "stream\"")) return take(e.stream, v);
      if (is_key(key, "shared memory\"")) return take(e.shared_memory, v);
      break;
    case 'S':
      if (is_key(key, "Sequence number\"")) return take(e.extra.sequence, v), e.has_extra = true, void();
      break;
    case 'F':
      if (is_key(key, "Fwd thread id\"")) return take(e.extra.forward_thread, v);
      break;
    case 'P':
      if (is_key(key, "Process Group Name\"")) return take_text(e.group, v, e);
      break;
    case 'C':
      if (is_key(key, "Collective name\"")) return take_text(e.collective, v, e);
      break;
    case 'I':
      if (is_key(key, "In msg nelems\"")) return take(e.extra.elements, v);
      break;
    case 'b':
      if (is_key(key, "block\"")) return take_triple(e.block, v);
      if (is_key(key, "bytes\"")) return take(e.bytes, v);
      break;
    case 'g':
      if (is_key(key, "grid\"")) return take_triple(e.grid, v);
      if (is_key(key, "graph node id\"")) return take(e.extra.graph_node, v), e.has_extra = true, void();
      break;
    case 'r':
      if (is_key(key, "registers per thread\"")) return take(e.registers, v);
      break;
    case 'e':
      if (is_key(key, "est. achieved occupancy %\"")) {
        if (const auto percent = number_of(token_of(v))) e.occupancy = *percent;
        return;
      }
      break;
    case 'h':
      if (is_key(key, "hostname\"")) return take_text(e.hostname, v, e);
      break;
    case 'n':
      if (is_key(key, "name\"")) return take_text(e.metadata, v, e);
      break;
    case 'l':
      if (is_key(key, "labels\"")) return take_text(e.metadata, v, e);
      break;
    default:
      break;
  }
  // The category stands before the arguments in every trace that holds profiler ranges.
  if (e.phase != 'C' && e.phase != 0 && e.category != kCounterRange) return;
  const std::string_view token = token_of(v);
  if (token.empty() || token.front() == '{' || token.front() == '[' || token.front() == '"') return;
  const char* end = static_cast<const char*>(std::memchr(key, '"', 256));
  if (end == nullptr) return;
  if (e.values.size() < Event::kMaxValues)
    e.values.push_back({std::string_view(key, static_cast<std::size_t>(end - key)), number_of(token)});
}

bool take_arguments(value& v, Event& event) {
  simdjson::ondemand::object object;
  if (v.get_object().get(object)) return false;
  for (auto field : object) {
    if (field.error()) return false;
    const char* key = field.key().value_unsafe().raw();
    value item = field.value().value_unsafe();
    if (key[0] == 'a' && is_key(key, "args\"")) {
      if (auto text = text_of(item, event)) event.nested_args = *text;
      continue;
    }
    take_argument(key, item, event);
  }
  return true;
}

/// Reads one event object. False when the text is damaged.
bool take_event(simdjson::ondemand::object& object, Event& e) {
  for (auto field : object) {
    if (field.error()) return false;
    const char* key = field.key().value_unsafe().raw();
    value v = field.value().value_unsafe();
    switch (key[0]) {
      case 'p':
        if (is_key(key, "ph\"")) {
          const std::string_view token = without_quotes(token_of(v));
          e.phase = token.size() == 1 ? token[0] : '?';
        } else if (is_key(key, "pid\"")) {
          e.pid = token_of(v);
        }
        break;
      case 't':
        if (is_key(key, "ts\""))
          e.ts = without_quotes(token_of(v));
        else if (is_key(key, "tid\""))
          e.tid = token_of(v);
        break;
      case 'd':
        if (is_key(key, "dur\"")) e.dur = without_quotes(token_of(v));
        break;
      case 'n':
        if (is_key(key, "name\"")) {
          e.name = text_of(v, e);
        }
        break;
      case 'c':
        if (is_key(key, "cat\"")) take_text(e.category, v, e);
        break;
      case 'i':
        if (is_key(key, "id\"")) e.id = without_quotes(token_of(v));
        break;
      case 'a':
        if (is_key(key, "args\"")) {
          const std::string_view token = token_of(v);
          if (!token.empty() && token.front() == '{' && !take_arguments(v, e)) return false;
        }
        break;
      default:
        break;
    }
  }
  return true;
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
    const std::string_view text = e.nested_args;
    const std::size_t first = text.find_first_not_of(" \n\r\t");
    if (first == npos || text[first] != '{') return;
    nested.resize(text.size() + simdjson::SIMDJSON_PADDING);
    std::memcpy(nested.data(), text.data(), text.size());
    std::memset(nested.data() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    bool good = !nested_parser.iterate(nested.data(), text.size(), nested.size()).get(document) &&
                !document.get_object().get(object);
    if (good) {
      for (auto field : object) {
        if (field.error()) {
          good = false;
          break;
        }
        value item = field.value().value_unsafe();
        take_argument(field.key().value_unsafe().raw(), item, e);
      }
    }
    if (!good) batch.losses.add(LossReason::nested_args_invalid);
  }

  void emit(Batch& batch) {
    if (!event.nested_args.empty()) merge_nested(event, batch);
    sink.emit(event, batch);
  }

  /// Iterates the whole text with simdjson. Returns where to go on event by event, or `size` when nothing is left.
  std::size_t fast(char* text, std::size_t size, Batch& batch, bool& refused) {
    refused = false;
    text[-1] = '[';
    text[size] = ']';
    std::memset(text + size + 1, ' ', kTail - 1);
    simdjson::ondemand::document document;
    simdjson::ondemand::array array;
    if (parser.iterate(text - 1, size + 2, size + 1 + kTail).get(document) || document.get_array().get(array)) {
      refused = true;
      return 0;
    }
    std::size_t begin = 0;
    bool emitted = false;  // the event at `begin` has been taken
    for (auto element : array) {
      value v;
      if (element.get(v)) return emitted ? scan_event({text, size}, begin, size).end : begin;
      const std::string_view token = v.raw_json_token();
      begin = static_cast<std::size_t>(token.data() - text);
      emitted = false;
      if (token.front() != '{') {
        ++batch.events;
        batch.losses.add(LossReason::event_not_object);
        continue;
      }
      simdjson::ondemand::object object;
      if (v.get_object().get(object)) return begin;
      event.clear();
      if (!take_event(object, event)) return begin;
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
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    if (parser.iterate(single.data(), n, single.size()).get(document) || document.get_object().get(object))
      return false;
    event.clear();
    if (!take_event(object, event)) return false;
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
          if (ending == Ending::last) batch.losses.add(LossReason::truncated_tail);
          batch.stop = Stop::unfinished;
          batch.stop_at = at;
          return;
        }
        ++batch.events;
        batch.losses.add(LossReason::event_malformed);
        const std::size_t stop = resume != npos ? resume : span.state == EventSpan::State::closed ? span.end : size;
        batch.losses.add(LossReason::text_after_damage, stop - at);
        at = stop;
        continue;
      }
      // Something that is no object: skip to the next likely event or structural end.
      ++batch.events;
      batch.losses.add(LossReason::event_not_object);
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
  bool refused = false;
  std::size_t at = s.fast(text, size, batch, refused);
  if (refused) {
    const Repairs repairs = repair(text, size);
    batch.losses.add(LossReason::utf8_repaired, repairs.utf8);
    batch.losses.add(LossReason::control_repaired, repairs.control);
    at = repairs.utf8 + repairs.control != 0 ? s.fast(text, size, batch, refused) : 0;
    if (refused) at = 0;
  }
  if (at < size) s.slow(text, size, at, ending, batch);
  s.sink.hand_over(batch);
}

}  // namespace culprit::formats::kineto
