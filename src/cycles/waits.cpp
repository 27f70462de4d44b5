#include "cycles/waits.h"

#include <algorithm>
#include <array>

namespace culprit::cycles {

namespace {

using Name = std::string_view;

template <std::size_t n>
bool is_one_of(const std::array<Name, n>& names, std::string_view call) {
  return std::ranges::find(names, call) != names.end();
}

constexpr std::array<Name, 24> kForWork = {
    "epoll_wait",      "epoll_pwait",   "epoll_pwait2",   "poll",         "ppoll",         "select",         "pselect6",
    "accept",          "accept4",       "recvfrom",       "recvmsg",      "recvmmsg",      "read",           "readv",
    "wait4",           "waitid",        "pause",          "io_getevents", "io_pgetevents", "io_uring_enter", "msgrcv",
    "rt_sigtimedwait", "rt_sigsuspend", "mq_timedreceive"};
constexpr std::array<Name, 2> kTime = {"nanosleep", "clock_nanosleep"};
constexpr std::array<Name, 8> kPool = {"futex",      "futex_waitv", "futex_wait",  "semop",
                                       "semtimedop", "unknown",     "sched_yield", "restart_syscall"};
constexpr std::array<Name, 7> kEventWait = {"epoll_wait", "epoll_pwait", "epoll_pwait2", "poll",
                                            "ppoll",      "select",      "pselect6"};
constexpr std::array<Name, 6> kReceive = {"read", "readv", "recvfrom", "recvmsg", "recvmmsg", "mq_timedreceive"};
constexpr std::array<Name, 9> kSend = {"write",    "writev",   "sendto", "sendmsg",     "sendmmsg",
                                       "sendfile", "pwritev2", "splice", "mq_timedsend"};

}  // namespace

std::string_view blocked_call(std::string_view reason) {
  constexpr std::string_view kBlocked = "blocked:";
  if (reason.starts_with(kBlocked)) reason.remove_prefix(kBlocked.size());
  return reason;
}

Wait wait_of(std::string_view call) {
  if (is_one_of(kForWork, call)) return Wait::for_work;
  if (is_one_of(kTime, call)) return Wait::time;
  return is_one_of(kPool, call) ? Wait::pool : Wait::in_work;
}

Wait main_wait(const std::map<Wait, WaitSum>& kinds) {
  constexpr double kAsOften = 0.5;
  const auto sum_of = [&](Wait wait) {
    const auto found = kinds.find(wait);
    return found == kinds.end() ? WaitSum{} : found->second;
  };
  const Wait other = sum_of(Wait::for_work).time > sum_of(Wait::pool).time ? Wait::for_work : Wait::pool;
  const WaitSum waits = sum_of(other);
  const WaitSum sleeps = sum_of(Wait::time);
  const bool as_often = static_cast<double>(waits.count) >= kAsOften * static_cast<double>(sleeps.count);
  return as_often || waits.time > sleeps.time ? other : Wait::time;
}

bool is_idle(Wait wait, Wait usual) { return wait == Wait::for_work || (wait == usual && wait != Wait::in_work); }

bool is_receive(std::string_view call) { return is_one_of(kReceive, call); }
bool is_send(std::string_view call) { return is_one_of(kSend, call); }
bool is_event_wait(std::string_view call) { return is_one_of(kEventWait, call); }
bool begins_turn(std::string_view call) { return is_event_wait(call) || call == "io_uring_enter"; }
bool is_accept(std::string_view call) { return call == "accept" || call == "accept4"; }

}  // namespace culprit::cycles
