// The JSON around the events: finds "traceEvents" wherever it stands in the object, keeps the other members that are
// read, and notices what is not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::formats::kineto {

/// Members beside the events that are read.
inline constexpr std::string_view kMembers[] = {"deviceProperties", "distributedInfo", "baseTimeNanoseconds",
                                                "schemaVersion",    "with_stack",      "record_shapes",
                                                "profile_memory",   "with_flops",      "with_modules"};

/// Reads the top level of a trace as a stream of text pieces. The events themselves never pass through it.
class Envelope {
 public:
  /// Longer members count as invalid.
  static constexpr std::size_t kMaxMember = std::size_t{16} << 20;

  enum class State : std::uint8_t {
    before,     ///< nothing but white space yet
    in_object,  ///< between members
    events,     ///< the next byte belongs to the event array
    done,       ///< the top level value has ended
    failed,     ///< no JSON object or array
  };

  /// Something that is not read: how often, and where in the text it was first met.
  struct Met {
    std::uint64_t count = 0;
    std::uint64_t first = 0;
  };

  /// Takes `text`, which stands at `offset` of the whole text; returns how many bytes were used: fewer than all of it
  /// when the event array begins or something is wrong.
  std::size_t feed(std::string_view text, std::uint64_t offset);
  /// Called when the event array has ended.
  void after_events();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool bare_array() const { return bare_array_; }
  [[nodiscard]] bool saw_events() const { return saw_events_; }
  /// What is wrong, when failed.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// The members of kMembers: key to JSON text; empty when longer than kMaxMember.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& members() const { return members_; }
  /// Lists of events after the first.
  [[nodiscard]] const Met& further_events() const { return further_events_; }
  /// Members that stand twice; the last one is kept.
  [[nodiscard]] const Met& repeated() const { return repeated_; }
  /// Where something follows the end of the top level value.
  [[nodiscard]] std::optional<std::uint64_t> behind_end() const { return behind_end_; }

 private:
  enum class Step : std::uint8_t { want_key, in_key, want_colon, want_value, in_value, want_comma };
  void end_key(std::uint64_t at);
  void end_member();

  State state_ = State::before;
  Step step_ = Step::want_key;
  bool bare_array_ = false;
  bool saw_events_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  bool kept_ = false;  ///< the member at hand is one of kMembers
  std::size_t depth_ = 0;
  std::size_t taken_ = 0;
  std::string key_;
  std::string value_;
  std::string failure_;
  std::map<std::string, std::string, std::less<>> members_;
  Met further_events_;
  Met repeated_;
  std::optional<std::uint64_t> behind_end_;
};

}  // namespace culprit::formats::kineto
