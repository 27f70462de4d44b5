// The JSON around the events: finds "traceEvents" wherever it stands in the object, and keeps the other members.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace culprit::formats::kineto {

/// Reads the top level of a trace as a stream of text pieces. The events themselves never pass through it.
class Envelope {
 public:
  static constexpr std::size_t kMaxMember = std::size_t{16} << 20;

  enum class State : std::uint8_t {
    before,     ///< nothing but white space yet
    in_object,  ///< between members
    events,     ///< the next byte belongs to the event array
    done,       ///< the top level value has ended
    failed,     ///< no JSON object or array
  };

  /// Takes `text`; returns how many bytes were used: fewer than all of it when the event array begins or something is
  /// wrong.
  std::size_t feed(std::string_view text);
  /// Called when the event array has ended.
  void after_events();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool bare_array() const { return bare_array_; }
  [[nodiscard]] bool saw_events() const { return saw_events_; }
  /// What is wrong, when failed.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// Top-level members other than the events: key to JSON text. Members over kMaxMember have an empty text.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& members() const { return members_; }

 private:
  enum class Step : std::uint8_t { want_key, in_key, want_colon, want_value, in_value, want_comma };
  void end_member();

  State state_ = State::before;
  Step step_ = Step::want_key;
  bool bare_array_ = false;
  bool saw_events_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  std::size_t depth_ = 0;
  std::size_t taken_ = 0;
  std::string key_;
  std::string value_;
  std::string failure_;
  std::map<std::string, std::string, std::less<>> members_;
};

}  // namespace culprit::formats::kineto
