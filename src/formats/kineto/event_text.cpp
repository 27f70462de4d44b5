#include "formats/kineto/event_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace culprit::formats::kineto {

using simdjson::ondemand::value;

namespace {

constexpr std::uint32_t bit(unsigned field) { return std::uint32_t{1} << field; }

bool is_key(const char* raw, std::string_view quoted) { return std::memcmp(raw, quoted.data(), quoted.size()) == 0; }

/// True when the key, up to its closing quote, has escapes. At least 8 bytes behind the key can be read.
bool has_escapes(const char* key) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  const auto has = [&](std::uint64_t word, char c) {
    const std::uint64_t zeros = word ^ (kOnes * static_cast<unsigned char>(c));
    return ((zeros - kOnes) & ~zeros & kHighs) != 0;
  };
  for (;; key += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, key, sizeof word);
    if (has(word, '\\')) break;
    if (has(word, '"')) return false;
  }
  while (*key != '"' && *key != '\\') ++key;
  return *key == '\\';
}

/// A key with what it stands for instead of escapes, so that it can be compared like one in the text.
class PlainKey {
 public:
  /// False when the escapes are invalid.
  bool take(simdjson::ondemand::field& member) {
    if (member.unescaped_key().get(text_)) return false;
    quoted_.assign(text_.find('"') == std::string_view::npos ? text_ : "").append("\"").append(kLongestKey, '\0');
    return true;
  }
  /// With its closing quote; nothing but that when the key holds one, because then it is none that is known.
  [[nodiscard]] const char* quoted() const { return quoted_.data(); }
  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  static constexpr std::size_t kLongestKey = 40;
  std::string_view text_;
  std::string quoted_;
};

[[gnu::always_inline]] inline std::string_view token_of(value& v) {
  std::string_view token = v.raw_json_token();
  while (!token.empty() && token.back() <= ' ' &&
         (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t'))
    token.remove_suffix(1);
  return token;
}

/// What a text with its quotes off says.
[[gnu::noinline]] std::string_view unescaped(std::string_view inside, value& v, Event& event) {
  if (std::memchr(inside.data(), '\\', inside.size()) == nullptr) return inside;
  std::string_view text;
  if (!v.get_string().get(text)) return text;
  event.bad_escape = true;  // a lone surrogate, say: the escaped form is kept
  return inside;
}

[[gnu::always_inline]] inline Scalar scalar_of(value& v, Event& event) {
  const std::string_view token = token_of(v);
  // One return of two numbers: GCC passes views that come from several places through memory, half by half in and in
  // one piece out, which stops the CPU for a dozen cycles every time.
  const char* data = token.data();
  std::size_t size = token.size();
  const bool quoted = size >= 2 && data[0] == '"' && data[size - 1] == '"';
  if (quoted) {
    ++data;
    size -= 2;
    if (event.may_escape) {
      const std::string_view text = unescaped({data, size}, v, event);
      data = text.data();
      size = text.size();
    }
  }
  return {{data, size}, quoted};
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// Takes a number into `field` when it fits. Only fields of 64 bits with a sign take negative ones.
template <class T>
bool take_integer(std::string_view text, T& field) {
  constexpr bool kNegative = std::is_same_v<T, std::int64_t>;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  std::uint64_t number = 0;
  const char* p = text.data();
  const char* end = p + text.size();
  for (unsigned digit = 0; p != end && (digit = static_cast<unsigned char>(*p) - unsigned{'0'}) <= 9; ++p)
    number = number * 10 + digit;
  if (p != end || text.empty() || text.size() > 19) {
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) {
      const auto other = parse_scaled_decimal(text, 0);  // -1, 1.0, 1e3
      if (!other || (*other < 0 && !kNegative)) return false;
      if (*other < 0) {
        field = static_cast<T>(*other);
        return true;
      }
      number = static_cast<std::uint64_t>(*other);
    }
  }
  if (number > kMost) return false;
  field = static_cast<T>(number);
  return true;
}

class ArgumentReader {
 public:
  explicit ArgumentReader(Event& event) : event_(event), args_(event.args) {
    // Until phase and category are known, every number may turn out to be a counter.
    const bool may_be_range =
        event.phase == 'X' &&
        ((event.seen & bit(Event::cat)) == 0 ||
         (event.category.size() == kRangeSize && classify_category(event.category) == SliceClass::counter_range));
    const bool may_be_memory = event.phase == 'i' && (!event.name || is_memory_event(*event.name));
    collect_ = event.phase == 0 || event.phase == 'C' || may_be_range || may_be_memory;
  }

  bool read(simdjson::ondemand::object& object, bool nested) {
    nested_ = nested;
    for (auto field : object) {
      if (field.error()) return false;
      auto&& member = std::move(field).value_unsafe();
      const char* key = member.key().raw();
      value_ = &member.value();
      scalar_ = {};
      const bool known = take(key);
      if (!known && event_.may_escape && has_escapes(key))
        read_escaped(member);
      else if (collect_)
        collect(raw_key(key), known);
      value_ = nullptr;
    }
    return true;
  }

 private:
  static constexpr std::size_t kRangeSize = std::string_view("cuda_profiler_range").size();

  /// Takes the argument when its key, which ends with its quote, is known.
  bool take(const char* key);

  [[gnu::noinline]] void read_escaped(simdjson::ondemand::field& member) {
    const std::string_view raw = raw_key(member.key().raw());  // which is gone when it was taken
    PlainKey plain;
    const bool valid = plain.take(member);
    const bool known = valid && take(plain.quoted());
    if (collect_) collect(valid ? plain.text() : raw, known);
  }

  static std::string_view raw_key(const char* key) {
    const char* end = key;
    while (*end != '"') end += *end == '\\' ? 2 : 1;
    return {key, static_cast<std::size_t>(end - key)};
  }

  /// The value; asked for more than once, it is unescaped once.
  const Scalar& scalar() {
    if (scalar_.text.data() == nullptr) scalar_ = scalar_of(*value_, event_);
    return scalar_;
  }
  [[nodiscard]] bool is_null() { return !scalar().quoted && scalar().text == "null"; }

  void collect(std::string_view key, bool known) {
    const auto number = number_of(scalar().text);
    if (number || !scalar().quoted) event_.values.push_back({key, number, known});
  }

  void invalid(Arguments::Field field) { args_.invalid |= bit(field); }

  bool known(Arguments::Field field) {
    if ((args_.seen & bit(field)) != 0 && !nested_) [[unlikely]]
      ++event_.repeated;
    args_.seen |= bit(field);
    return true;
  }

  template <class T>
  bool number(Arguments::Field field, T& to) {
    if (!take_integer(scalar().text, to) && !is_null()) invalid(field);
    return known(field);
  }

  bool text(Arguments::Field field, std::string_view& to) {
    if (scalar().quoted)
      to = scalar().text;
    else if (!is_null())
      invalid(field);
    return known(field);
  }

  template <class T>
  bool triple(Arguments::Field field, T (&to)[3]) {
    known(field);
    bool good = false;
    std::size_t i = 0;
    simdjson::ondemand::array array;
    if (scalar().text.starts_with('[') && !value_->get_array().get(array)) {
      good = true;
      for (auto element : array) {
        value item;
        if (element.get(item)) {
          good = false;
          break;
        }
        if (i < 3) good = take_integer(scalar_of(item, event_).text, to[i]) && good;
        ++i;
      }
    }
    if (good && i <= 3) return true;
    std::memset(to, 0, sizeof to);
    if (!is_null()) invalid(field);
    return true;
  }

  bool percent(Arguments::Field field, double& to) {
    const auto found = number_of(scalar().text);
    if (found && *found >= 0)
      to = *found;
    else if (!is_null())
      invalid(field);
    return known(field);
  }

  Event& event_;
  Arguments& args_;
  bool collect_ = false;
  bool nested_ = false;
  value* value_ = nullptr;
  Scalar scalar_;
};

[[gnu::always_inline]] inline bool ArgumentReader::take(const char* key) {
  using enum Arguments::Field;
  switch (key[0]) {
    case 'E':
      if (is_key(key, "External id\"")) return take_integer(scalar().text, args_.external_id), true;
      break;
    case 'c':
      if (is_key(key, "correlation\"")) return number(correlation, args_.correlation_id);
      if (is_key(key, "context\"")) return number(context, args_.gpu.context);
      break;
    case 'd':
      if (is_key(key, "device\"")) return number(device, args_.gpu.device);
      break;
    case 's':
      if (is_key(key, "stream\"")) return number(stream, args_.gpu.stream);
      if (is_key(key, "shared memory\"")) return number(shared_memory, args_.gpu.shared_memory);
      break;
    case 'S':
      if (is_key(key, "Sequence number\"")) return args_.has_extra = number(sequence, args_.extra.sequence);
      break;
    case 'F':
      if (is_key(key, "Fwd thread id\"")) return number(forward_thread, args_.extra.forward_thread);
      break;
    case 'P':
      if (is_key(key, "Process Group Name\"")) return text(group, args_.group_name);
      if (is_key(key, "Python id\"")) return take_integer(scalar().text, args_.python_id), true;
      break;
    case 'C':
      if (is_key(key, "Collective name\"")) return text(collective, args_.collective_name);
      break;
    case 'I':
      if (is_key(key, "In msg nelems\"")) return number(elements, args_.extra.elements);
      break;
    case 'a':
      if (!nested_ && is_key(key, "args\"") && scalar().quoted) return text(nested, args_.nested_text);
      break;
    case 'b':
      if (is_key(key, "block\"")) return triple(block, args_.gpu.block);
      if (is_key(key, "bytes\"")) return number(bytes, args_.gpu.bytes);
      break;
    case 'g':
      if (is_key(key, "grid\"")) return triple(grid, args_.gpu.grid);
      if (is_key(key, "graph node id\"")) return args_.has_extra = number(graph_node, args_.extra.graph_node);
      break;
    case 'r':
      if (is_key(key, "registers per thread\"")) return number(registers, args_.gpu.registers);
      break;
    case 'e':
      if (is_key(key, "est. achieved occupancy %\"")) return percent(occupancy, args_.occupancy_percent);
      break;
    case 'h':
      if (is_key(key, "hostname\"")) return text(hostname, args_.host);
      break;
    case 'l':
      if (is_key(key, "labels\"")) return text(labels, args_.labels_text);
      break;
    case 'n':
      if (is_key(key, "name\"")) return text(name, args_.name_text);
      break;
    case 'w':
      if (is_key(key, "wait_on_device\"")) return number(event_device, args_.event_device_id);
      if (is_key(key, "wait_on_stream\"")) return number(event_stream, args_.event_stream_id);
      if (is_key(key, "wait_on_cuda_event_record_corr_id\"")) return number(event_record, args_.event_record_id);
      break;
    default:
      break;
  }
  return false;
}

/// Takes the id of "id2": {"local": "0x1"} or {"global": …}.
bool take_scoped_id(value& v, Event& e) {
  simdjson::ondemand::object object;
  if (v.get_object().get(object)) return false;
  for (auto field : object) {
    if (field.error()) return false;
    auto&& member = std::move(field).value_unsafe();
    const char* key = member.key().raw();
    const bool local = is_key(key, "local\"");
    if (!local && !is_key(key, "global\"")) continue;
    e.id = scalar_of(member.value(), e).text;
    e.local_id = local;
  }
  return true;
}

enum class Taken : std::uint8_t { yes, unknown, damaged };

/// Takes a member of an event when its key, which ends with its quote, is known.
[[gnu::always_inline]] inline Taken take_member(const char* key, value& v, Event& e) {
  const auto known = [&](Event::Member member) {
    if ((e.seen & bit(member)) != 0) [[unlikely]]
      ++e.repeated;
    e.seen |= bit(member);
  };
  switch (key[0]) {
    case 'p':
      if (is_key(key, "ph\"")) {
        known(Event::ph);
        const std::string_view token = token_of(v);
        if (token.size() == 3 && token.front() == '"') {
          e.phase = token[1];
        } else {
          const std::string_view text = scalar_of(v, e).text;
          e.phase = text.size() == 1 ? text[0] : '?';
        }
        return Taken::yes;
      }
      if (is_key(key, "pid\"")) return known(Event::pid_), e.pid = scalar_of(v, e), Taken::yes;
      break;
    case 't':
      if (is_key(key, "ts\"")) return known(Event::ts_), e.ts = scalar_of(v, e).text, Taken::yes;
      if (is_key(key, "tid\"")) return known(Event::tid_), e.tid = scalar_of(v, e), Taken::yes;
      if (is_key(key, "traceEvents\"")) return e.holds_trace = true, Taken::yes;
      break;
    case 'd':
      if (is_key(key, "dur\"")) return known(Event::dur_), e.dur = scalar_of(v, e).text, Taken::yes;
      break;
    case 'n':
      if (is_key(key, "name\"")) {
        known(Event::name_);
        e.name.reset();
        if (const Scalar found = scalar_of(v, e); found.quoted) e.name.emplace(found.text.data(), found.text.size());
        return Taken::yes;
      }
      break;
    case 'c':
      if (is_key(key, "cat\"")) {
        known(Event::cat);
        const Scalar found = scalar_of(v, e);
        e.category = {found.text.data(), found.quoted ? found.text.size() : 0};
        e.category_invalid = !found.quoted && found.text != "null";
        return Taken::yes;
      }
      break;
    case 'i':
      if (is_key(key, "id\"")) return known(Event::id_), e.id = scalar_of(v, e).text, Taken::yes;
      if (is_key(key, "id2\"")) return known(Event::id_), take_scoped_id(v, e) ? Taken::yes : Taken::damaged;
      break;
    case 'a':
      if (is_key(key, "args\"")) {
        if ((e.seen & bit(Event::args_)) != 0) e.clear_arguments();
        known(Event::args_);
        const std::string_view token = token_of(v);
        if (token.empty() || token.front() != '{') {
          if (token != "null") e.args.invalid |= bit(Arguments::all);
          return Taken::yes;
        }
        simdjson::ondemand::object object;
        if (v.get_object().get(object)) return Taken::damaged;
        return ArgumentReader(e).read(object, false) ? Taken::yes : Taken::damaged;
      }
      break;
    default:
      break;
  }
  return Taken::unknown;
}

[[gnu::noinline]] Taken take_escaped_member(simdjson::ondemand::field& member, Event& event) {
  PlainKey plain;
  if (!has_escapes(member.key().raw()) || !plain.take(member)) return Taken::unknown;
  return take_member(plain.quoted(), member.value(), event);
}

}  // namespace

bool read_event(simdjson::ondemand::object& object, Event& event) {
  for (auto field : object) {
    if (field.error()) return false;
    auto&& member = std::move(field).value_unsafe();
    Taken taken = take_member(member.key().raw(), member.value(), event);
    if (taken == Taken::unknown && event.may_escape) taken = take_escaped_member(member, event);
    if (taken == Taken::damaged) return false;
  }
  return true;
}

bool read_arguments(simdjson::ondemand::object& object, Event& event) {
  return ArgumentReader(event).read(object, true);
}

}  // namespace culprit::formats::kineto
