#include "record/collector/prompt.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace culprit::record {

namespace {

constexpr int kPriority = 1;
constexpr int kNiceness = -10;

bool set_policy(int policy, int priority) {
  const sched_param parameters{priority};
  // NOLINTNEXTLINE(hicpp-signed-bitwise): the kernel's flag
  return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &parameters) == 0;
}

bool is_realtime() { return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_RR; }

/// The kernel sends it to the thread that computed for too long.
void step_back(int) {
  const int code = errno;
  if (is_realtime()) {
    set_policy(SCHED_OTHER, 0);
  } else {
    // Not ours: RLIMIT_CPU.
    static_cast<void>(std::signal(SIGXCPU, SIG_DFL));
    static_cast<void>(std::raise(SIGXCPU));
  }
  errno = code;
}

/// Before the limit that sends it; it stays, as another thread may still need it.
bool listen() {
  struct sigaction action {};
  action.sa_handler = step_back;
  action.sa_flags = SA_RESTART;
  return sigaction(SIGXCPU, &action, nullptr) == 0;
}

void set_limit(rlim_t soft) {
  rlimit limit{};
  if (getrlimit(RLIMIT_RTTIME, &limit) != 0) return;
  limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_RTTIME, &limit));
}

}  // namespace

std::string_view to_string(Promptness promptness) {
  switch (promptness) {
    case Promptness::ordinary:
      return "ordinary";
    case Promptness::niced:
      return "niced";
    case Promptness::realtime:
      return "realtime";
  }
  return "ordinary";
}

Prompt::Prompt() {
  const auto self = static_cast<id_t>(gettid());
  niceness_ = getpriority(PRIO_PROCESS, self);
  if (setpriority(PRIO_PROCESS, self, kNiceness) == 0) promptness_ = Promptness::niced;
  set_policy(SCHED_OTHER, 0);  // what is started is not niced, either
  rlimit limit{};
  if (getrlimit(RLIMIT_RTTIME, &limit) != 0 || !listen()) return;
  limit_before_ = limit.rlim_cur;
  set_limit(kLongest);
  if (set_policy(SCHED_RR, kPriority))
    promptness_ = Promptness::realtime;
  else
    set_limit(limit_before_);
}

Prompt::~Prompt() {
  if (promptness_ == Promptness::realtime) {
    set_policy(SCHED_OTHER, 0);
    set_limit(limit_before_);
  }
  if (promptness_ != Promptness::ordinary) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness_);
}

void Prompt::again() {
  if (promptness_ == Promptness::realtime && !is_realtime()) set_policy(SCHED_RR, kPriority);
}

}  // namespace culprit::record
