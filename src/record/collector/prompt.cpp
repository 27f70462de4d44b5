#include "record/collector/prompt.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace culprit::record {

namespace {

constexpr int kPriority = 1;
constexpr int kNiceness = -10;
constexpr Ns kMicrosecond = 1000;

Ns time_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return Ns{now.tv_sec} * kSecond + now.tv_nsec;
}

bool set_policy(int policy, int priority) {
  const sched_param parameters{priority};
  return sched_setscheduler(0, policy, &parameters) == 0;
}

// NOLINTBEGIN(hicpp-signed-bitwise): the kernel's flag
bool come_first() { return set_policy(SCHED_RR | SCHED_RESET_ON_FORK, kPriority); }
bool be_ordinary() { return set_policy(SCHED_OTHER | SCHED_RESET_ON_FORK, 0); }
bool comes_first() { return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_RR; }
// NOLINTEND(hicpp-signed-bitwise)

constexpr auto kLimit = static_cast<rlim_t>(Prompt::kLongest / kMicrosecond);

/// The kernel raises the limit by a second each time it sends the signal.
bool was_exceeded() {
  rlimit limit{};
  return getrlimit(RLIMIT_RTTIME, &limit) == 0 && limit.rlim_cur != kLimit;
}

/// The kernel sends it for RLIMIT_RTTIME, to the thread that computed where that does not block it, and for RLIMIT_CPU.
void step_back(int) {
  const int code = errno;
  if (comes_first() && was_exceeded()) {
    be_ordinary();
  } else {
    static_cast<void>(std::signal(SIGXCPU, SIG_DFL));
    static_cast<void>(std::raise(SIGXCPU));
  }
  errno = code;
}

/// Before the limit that sends it. It stays, as another thread may need it.
bool listen() {
  struct sigaction action {};
  action.sa_handler = step_back;
  action.sa_flags = SA_RESTART;
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGXCPU);
  return sigaction(SIGXCPU, &action, nullptr) == 0 && pthread_sigmask(SIG_UNBLOCK, &wanted, nullptr) == 0;
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

Prompt::Prompt() : policy_(sched_getscheduler(0)) {
  const int policy = policy_ & ~SCHED_RESET_ON_FORK;  // NOLINT(hicpp-signed-bitwise)
  if (policy != SCHED_OTHER) {
    if (policy == SCHED_RR || policy == SCHED_FIFO) promptness_ = Promptness::realtime;
    return;
  }
  const auto self = static_cast<id_t>(gettid());
  niceness_ = getpriority(PRIO_PROCESS, self);
  if (niceness_ <= kNiceness || setpriority(PRIO_PROCESS, self, kNiceness) == 0) {
    promptness_ = Promptness::niced;
    be_ordinary();  // what is started is not niced, either
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_RTTIME, &limit) != 0 || limit.rlim_max <= kLimit || !listen()) return;
  limit_before_ = limit.rlim_cur;
  set_limit(kLimit);
  if (!come_first()) {
    set_limit(limit_before_);
    return;
  }
  promptness_ = Promptness::realtime;
  ours_ = true;
  looked_at_ = time_of(CLOCK_MONOTONIC);
  cpu_ = time_of(CLOCK_THREAD_CPUTIME_ID);
}

Prompt::~Prompt() {
  if (ours_) set_limit(limit_before_);
  if (!ours_ && promptness_ != Promptness::niced) return;
  // Whoever may not take the flag back keeps it.
  if (!set_policy(policy_, 0)) be_ordinary();
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness_);
}

bool Prompt::is_held() { return (sched_getscheduler(0) & SCHED_RESET_ON_FORK) != 0; }  // NOLINT(hicpp-signed-bitwise)

void Prompt::step_aside(Ns now) {
  if (now - looked_at_ < kSecond) return;
  const Ns cpu = time_of(CLOCK_THREAD_CPUTIME_ID);
  if (cpu - cpu_ > (now - looked_at_) / 2) {
    aside_until_ = now + kSecond;
    set_limit(RLIM_INFINITY);  // or its signal may find an ordinary thread
    be_ordinary();
  }
  looked_at_ = now;
  cpu_ = cpu;
}

void Prompt::again() {
  if (!ours_) return;
  const Ns now = time_of(CLOCK_MONOTONIC);
  step_aside(now);
  if (now < aside_until_ || comes_first() || !come_first()) return;
  // What it computed counts until it waits.
  const timespec shortly{0, 50 * kMicrosecond};
  nanosleep(&shortly, nullptr);
  set_limit(kLimit);
}

}  // namespace culprit::record
