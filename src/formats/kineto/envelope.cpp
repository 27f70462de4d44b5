#include "formats/kineto/envelope.h"

#include <simdjson.h>

#include <algorithm>

#include "formats/kineto/split.h"

namespace culprit::formats::kineto {

/// The key at hand is whole: what it says without escapes decides what becomes of its member.
void Envelope::end_key(std::uint64_t at) {
  step_ = Step::want_colon;
  if (key_.find('\\') != std::string::npos) {
    simdjson::dom::parser parser;
    std::string_view plain;
    const simdjson::padded_string quoted('"' + key_ + '"');
    if (!parser.parse(quoted).get_string().get(plain)) key_ = plain;
  }
  kept_ = std::ranges::find(kMembers, key_) != std::end(kMembers);
  Met* met = nullptr;
  if (kept_ && members_.contains(key_)) met = &repeated_;
  if (key_ == "traceEvents" && saw_events_) met = &further_events_;
  if (met != nullptr && met->count++ == 0) met->first = at;
}

void Envelope::end_member() {
  if (kept_) members_[key_] = taken_ > kMaxMember ? std::string() : std::move(value_);
  key_.clear();
  value_.clear();
  taken_ = 0;
}

void Envelope::after_events() {
  state_ = bare_array_ ? State::done : State::in_object;
  step_ = Step::want_comma;
}

std::size_t Envelope::feed(std::string_view text, std::uint64_t offset) {
  const auto fail = [&](std::string why, std::size_t at) {
    state_ = State::failed;
    failure_ = std::move(why);
    return at;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (state_ == State::before) {
      if (is_json_space(c) || c == '\xef' || c == '\xbb' || c == '\xbf') continue;
      if (c == '[') {
        bare_array_ = saw_events_ = true;
        state_ = State::events;
        return i + 1;
      }
      if (c != '{') return fail("is no JSON", i);
      state_ = State::in_object;
      continue;
    }
    if (state_ == State::done) {
      if (behind_end_) return i;
      if (!is_json_space(c)) behind_end_ = offset + i;
      continue;
    }
    if (state_ != State::in_object) return i;
    switch (step_) {
      case Step::want_key:
        if (is_json_space(c) || c == ',') break;
        if (c == '}') {
          state_ = State::done;
          break;
        }
        if (c != '"') return fail("is damaged JSON: a member of the top-level object has no name", i);
        step_ = Step::in_key;
        break;
      case Step::in_key:
        if (c == '"' && !escaped_) {
          end_key(offset + i);
          break;
        }
        key_ += c;
        escaped_ = c == '\\' && !escaped_;
        if (key_.size() > 4096) return fail("is damaged JSON: a member's name never ends", i);
        break;
      case Step::want_colon:
        if (is_json_space(c)) break;
        if (c != ':') return fail("is damaged JSON: a member's name is followed by no colon", i);
        step_ = Step::want_value;
        break;
      case Step::want_value:
        if (is_json_space(c)) break;
        if (key_ == "traceEvents" && !saw_events_) {
          if (c != '[') return fail("\"traceEvents\" is no list", i);
          saw_events_ = true;
          key_.clear();
          state_ = State::events;
          return i + 1;
        }
        step_ = Step::in_value;
        depth_ = 0;
        in_string_ = escaped_ = false;
        [[fallthrough]];
      case Step::in_value: {
        bool over = false;
        bool keep = true;
        if (in_string_) {
          if (escaped_)
            escaped_ = false;
          else if (c == '\\')
            escaped_ = true;
          else if (c == '"')
            in_string_ = false;
        } else if (c == '"') {
          in_string_ = true;
        } else if (c == '{' || c == '[') {
          ++depth_;
        } else if (c == '}' || c == ']') {
          if (depth_ == 0) {  // the end of the object that holds this member
            over = true;
            keep = false;
          } else {
            --depth_;
          }
        } else if (c == ',' && depth_ == 0) {
          over = true;
          keep = false;
        }
        if (keep && ++taken_ <= kMaxMember && kept_) value_ += c;
        if (over) {
          end_member();
          if (c == '}') {
            state_ = State::done;
            break;
          }
          if (c == ']') return fail("is damaged JSON: brackets do not match", i);
          step_ = Step::want_key;
        }
        break;
      }
      case Step::want_comma:
        if (is_json_space(c)) break;
        if (c == '}') {
          state_ = State::done;
          break;
        }
        if (c != ',') return fail("is damaged JSON after the events", i);
        step_ = Step::want_key;
        break;
    }
  }
  return text.size();
}

}  // namespace culprit::formats::kineto
