#include "record/inject/caller.h"

#if defined(__x86_64__)

#include <asm/unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::record::inject {

namespace {

constexpr std::uint64_t kRedZone = 128;  // below the stack pointer, which code may use without saying so
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kWordsAt = 2048;  // on the own stack, from its end: the path
constexpr int kMostCalls = 4000;          // that dlopen() may make
constexpr std::uint64_t kNoDescriptor = static_cast<std::uint32_t>(-1);
constexpr std::uint64_t kCallBytes = 2;  // of the instruction

/// Whether the stack of a thread has room below its pointer.
bool has_room(const std::vector<Range>& writable, std::uint64_t pointer, std::uint64_t bytes) {
  return std::ranges::any_of(writable, [&](const Range& range) {
    return pointer > range.begin && pointer <= range.end && pointer - range.begin > bytes + kPage;
  });
}

/// The number of a line like "SigPnd:\t0000000000000000"; nothing when it is another one.
std::optional<std::uint64_t> mask_in(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(" \t", name.size()), line.size()));
  std::uint64_t value = 0;
  if (std::from_chars(line.data(), line.data() + line.size(), value, 16).ec != std::errc()) return std::nullopt;
  return value;
}

bool has_pending_signals(std::int64_t pid, std::int64_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/status", pid, tid));
  std::uint64_t pending = 0;
  std::uint64_t blocked = 0;
  for (std::string line; std::getline(file, line);) {
    pending |= mask_in(line, "SigPnd:").value_or(0) | mask_in(line, "ShdPnd:").value_or(0);
    blocked |= mask_in(line, "SigBlk:").value_or(0);
  }
  return (pending & ~blocked) != 0;
}

}  // namespace

Caller::Caller(std::int64_t pid, std::int64_t tid, const Process& process, Borrowed thread)
    : process_(process),
      thread_(std::move(thread)),
      on_(going_on(thread_.state().registers, !has_pending_signals(pid, tid))) {}

bool Caller::prepare() {
  const std::uint64_t bytes = frame_bytes(thread_.state()) + kPage;
  const std::uint64_t pointer = thread_.state().registers.rsp;
  if (!has_room(process_.writable, pointer, bytes + kRedZone)) return false;
  own_ = (pointer - kRedZone - bytes) & ~std::uint64_t{15};
  return lay_way_back(own_);
}

std::optional<long> Caller::call(long number, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d,
                                 std::uint64_t e, std::uint64_t f) {
  user_regs_struct r = start(process_.system_call);
  r.rax = static_cast<unsigned long long>(number);
  r.rdi = a;
  r.rsi = b;
  r.rdx = c;
  r.r10 = d;
  r.r8 = e;
  r.r9 = f;
  const std::uint64_t behind = process_.system_call + kCallBytes;
  int stops = 2;
  if (stands_ == Stands::before_a_call) {  // it takes the place of the one that is just beginning
    r.orig_rax = r.rax;
    r.rip = behind;
    stops = 1;
  }
  if (!set(r)) return std::nullopt;
  for (int n = 0; n < kMostCalls; ++n) {
    if (!thread_.to_next_call(goes_on_)) return std::nullopt;
    const auto now = thread_.registers();
    if (!now) return std::nullopt;
    if (now->rip != behind || now->rsp != back_ || --stops > 0) continue;
    stands_ = Stands::behind_a_call;
    return static_cast<long>(now->rax);
  }
  return std::nullopt;
}

bool Caller::move_to(std::uint64_t stack) {
  stack_ = stack;
  const std::uint64_t bytes = frame_bytes(thread_.state()) + kPage + kWordsAt;
  return lay_way_back((stack + kOwnStack - bytes) & ~std::uint64_t{15});
}

bool Caller::move_back() { return lay_way_back(own_); }

std::optional<std::uint64_t> Caller::words(const std::string& text) {
  const std::uint64_t at = stack_ + kOwnStack - kWordsAt;
  if (!thread_.write(at, {reinterpret_cast<const std::uint8_t*>(text.c_str()), text.size() + 1})) return std::nullopt;
  return at;
}

std::optional<std::uint64_t> Caller::short_words(const std::string& text) {
  const std::uint64_t at = back_ - kRedZone - 64;
  if (!thread_.write(at,
                     {reinterpret_cast<const std::uint8_t*>(text.c_str()), std::min<std::size_t>(text.size() + 1, 64)}))
    return std::nullopt;
  return at;
}

bool Caller::call_function(std::uint64_t function, std::uint64_t a, std::uint64_t b) {
  user_regs_struct r = start(function);
  r.rdi = a;
  r.rsi = b;
  r.rax = 0;
  if (!set(r)) return false;
  for (int n = 0; n < kMostCalls; ++n) {
    if (!thread_.to_next_call(goes_on_)) return false;
    const auto now = thread_.registers();
    if (!now) return false;
    if (now->orig_rax != __NR_rt_sigreturn || now->rip < process_.sigreturn || now->rip > process_.sigreturn + 16 ||
        now->rsp != back_ + 8)
      continue;
    stands_ = Stands::before_a_call;
    return true;
  }
  return false;  // the frame brings it back when it is through
}

bool Caller::let_go() {
  // A call that is begun while the thread is let go would take that for a signal: it is begun behind another one.
  if (stands_ == Stands::before_a_call && !call(__NR_close, kNoDescriptor)) return false;
  return thread_.let_go(on_);
}

user_regs_struct Caller::start(std::uint64_t at) const {
  user_regs_struct r = thread_.state().registers;
  r.rip = at;
  r.rsp = back_;
  r.orig_rax = static_cast<unsigned long long>(-1);
  r.eflags &= ~std::uint64_t{0x400 | 0x100};  // direction, single steps
  return r;
}

/// The mask comes behind the registers: it is the way back that puts it right when the recorder is killed in between.
bool Caller::set(const user_regs_struct& registers) { return thread_.set(registers) && thread_.hold_signals(); }

/// `top`: 16 bytes aligned. A function that is entered with the stack pointer at back_ returns to rt_sigreturn.
bool Caller::lay_way_back(std::uint64_t top) {
  back_ = top - 8;
  std::vector<std::uint8_t> bytes(8);
  std::memcpy(bytes.data(), &process_.sigreturn, 8);
  const std::vector<std::uint8_t> frame = signal_frame(thread_.state(), on_, top);
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  return thread_.write(back_, bytes);
}

}  // namespace culprit::record::inject

#endif
