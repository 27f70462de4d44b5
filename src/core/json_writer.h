// All JSON that Culprit writes comes from here: text that every parser takes, numbers in one form, names escaped.
//
// The text is appended to a string of the caller, who may empty it whenever a value is complete: a trace of a million
// events passes through one buffer. Keys and values have to come in an order that makes a document; that they do is
// asserted.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace culprit {

/// Whether a string escapes `<`, `>` and `&` too, so that it can stand inside a script element of a page.
enum class JsonEscapes : std::uint8_t { for_scripts, least };

/// A JSON string with its quotes. Control characters and marks that reorder a line are \u escapes, so that it can stand
/// on a terminal; invalid UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text, JsonEscapes escapes = JsonEscapes::for_scripts);

/// How the members or elements of an object or array stand: each on a line of its own, indented; all on one line; all
/// on one line without white space. What stands inside one line stays there.
enum class JsonForm : std::uint8_t { lines, line, packed };

class JsonWriter {
 public:
  /// The document is written into `out`, in the form `most` or, inside, a narrower one.
  explicit JsonWriter(std::string& out, JsonForm most = JsonForm::lines) : out_(out), most_(most) {}

  void begin_object(JsonForm form = JsonForm::lines) { begin('{', form); }
  void begin_array(JsonForm form = JsonForm::lines) { begin('[', form); }
  /// The same as a member.
  void begin_object(std::string_view name, JsonForm form = JsonForm::lines) { key(name), begin('{', form); }
  void begin_array(std::string_view name, JsonForm form = JsonForm::lines) { key(name), begin('[', form); }
  void end_object() { end('{', '}'); }
  void end_array() { end('[', ']'); }

  /// The name of the member whose value comes next.
  void key(std::string_view name);

  /// A text, a number, a truth, an optional of those, or a range of those (an array on one line). A number that is not
  /// finite and an absent optional are null; a double has the fewest digits that read back as itself.
  template <class T>
  void value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      raw(value ? "true" : "false");
    } else if constexpr (std::unsigned_integral<T>) {
      write_unsigned(value);
    } else if constexpr (std::integral<T>) {
      write_signed(value);
    } else if constexpr (std::floating_point<T>) {
      write_double(value);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      write_text(value);
    } else if constexpr (requires { value.has_value(); }) {
      value.has_value() ? this->value(*value) : null();
    } else {
      begin_array(JsonForm::line);
      for (const auto& element : value) this->value(element);
      end_array();
    }
  }
  void null() { raw("null"); }
  /// With exactly `digits` decimals, for numbers that mean no more.
  void fixed(double value, int digits);
  /// JSON text of one value, as it is.
  void raw(std::string_view json);

  template <class T>
  void member(std::string_view name, const T& value) {
    key(name);
    this->value(value);
  }

  /// Ends the document with a line feed; every object and array is closed.
  void finish();

 private:
  struct Level {
    char open;
    JsonForm form;
    bool empty = true;
  };

  void begin(char bracket, JsonForm form);
  void end(char open, char close);
  [[nodiscard]] JsonForm form() const { return levels_.empty() ? most_ : levels_.back().form; }
  /// What stands before a value or a key: comma, line feed, indentation.
  void lead();
  void before_value();
  void new_line();
  void write_unsigned(std::uint64_t value);
  void write_signed(std::int64_t value);
  void write_double(double value);
  void write_text(std::string_view text);

  std::string& out_;
  std::vector<Level> levels_;
  JsonForm most_;
  bool key_open_ = false;  ///< a key waits for its value
};

}  // namespace culprit
