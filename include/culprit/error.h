// How Culprit reports trouble that input can cause: as values, never as exceptions. An Error says what is wrong, where
// (file, byte, line, option) and what the user can do.
#pragma once

#include <culprit/api.h>

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace culprit {

/// Classes of trouble; the values are the exit codes of the program, which nobody cancels by a call.
enum class ErrorKind : int {
  usage = 2,        ///< the command line is wrong
  input = 3,        ///< a file is missing, damaged or of an unknown kind
  environment = 4,  ///< a permission or a device is missing
  cancelled = 130,  ///< the caller asked for the end
};

/// One error: what is wrong, where, and what to do about it. `where` and `remedy` may be empty.
struct Error {  // NOLINT(clang-analyzer-core.uninitialized.Assign): of one that is moved out of a variant
  ErrorKind kind = ErrorKind::input;
  std::string what;
  std::string where;
  std::string remedy;
};

/// "usage", "input", "environment" or "cancelled".
CULPRIT_API std::string_view to_string(ErrorKind kind);

/// "where: what (remedy)", one line.
CULPRIT_API std::string to_string(const Error& error);

/// A value or an Error. Taking the value of an error is a bug and asserts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return assert(ok()), std::get<0>(state_); }
  const T& value() const& { return assert(ok()), std::get<0>(state_); }
  T&& value() && { return assert(ok()), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const& { return assert(!ok()), std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return assert(!ok()), std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const { return assert(error_), *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace culprit
