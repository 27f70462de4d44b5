// A thread at a safe point, which is made to call what the recorder wants and goes on as if nothing had happened.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "record/inject/borrowed.h"
#include "record/inject/process.h"

namespace culprit::record::inject {

inline constexpr std::uint64_t kOwnStack = std::uint64_t{512} << 10;  ///< of a thread while it calls the loader

/// Until let_go() the thread handles no signals but those of its own mistakes: what a handler calls must not be taken
/// for what was asked for.
class Caller {
 public:
  Caller(std::int64_t pid, std::int64_t tid, const Process& process, Borrowed thread);

  /// Is asked again and again while a call is waited for, and says whether to go on with that.
  void while_waiting(std::function<bool()> goes_on) { goes_on_ = std::move(goes_on); }

  [[nodiscard]] const ThreadState& state() const { return thread_.state(); }
  /// Lays the way back on the thread's own stack. Nothing is changed in the thread yet.
  bool prepare();
  /// What the process's own `number` returns; a failed one is a negative errno. Nothing when the process is gone, or
  /// the thread gets no CPU.
  std::optional<long> call(long number, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0,
                           std::uint64_t e = 0, std::uint64_t f = 0);
  /// Goes on with the calls on a stack of its own, whose last bytes are free for words().
  bool move_to(std::uint64_t stack);
  /// The opposite: the thread's own stack, so that the other one may be unmapped.
  bool move_back();
  std::optional<std::uint64_t> words(const std::string& text);
  /// Just below the way back, for the first call.
  std::optional<std::uint64_t> short_words(const std::string& text);
  /// Calls a function; true when it has returned, and the thread can be let go, or call more.
  bool call_function(std::uint64_t function, std::uint64_t a, std::uint64_t b);
  /// The thread is where it was, and goes on.
  bool let_go();

 private:
  enum class Stands : std::uint8_t { where_it_was, behind_a_call, before_a_call };

  [[nodiscard]] user_regs_struct start(std::uint64_t at) const;
  bool set(const user_regs_struct& registers);
  bool lay_way_back(std::uint64_t top);

  const Process& process_;
  Borrowed thread_;
  std::function<bool()> goes_on_;
  user_regs_struct on_;
  std::uint64_t own_ = 0;  ///< the way back on the thread's own stack
  std::uint64_t back_ = 0;
  std::uint64_t stack_ = 0;
  Stands stands_ = Stands::where_it_was;
};

}  // namespace culprit::record::inject
