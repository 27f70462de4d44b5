#include "record/signals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace culprit::record {

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

Result<StopSignals> StopSignals::take() {
  StopSignals signals;
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (number != SIGHUP || !is_ignored(SIGHUP)) sigaddset(&wanted, number);
  pthread_sigmask(SIG_BLOCK, &wanted, &signals.before_);
  signals.fd_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals.fd_ < 0) {
    const int code = errno;
    pthread_sigmask(SIG_SETMASK, &signals.before_, nullptr);
    return environment_error("cannot wait for signals: " + std::generic_category().message(code), "signalfd");
  }
  return signals;
}

StopSignals::StopSignals(StopSignals&& other) noexcept : fd_(std::exchange(other.fd_, -1)), before_(other.before_) {}

StopSignals::~StopSignals() {
  if (fd_ < 0) return;
  // What arrived meanwhile was heard; it must not strike when the mask is lifted.
  while (take_signal(fd_).number != 0) {
  }
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Status stop_with_pipe(int pipe) {
  struct stat file {};
  const int flags = fcntl(pipe, F_GETFL);
  if (fstat(pipe, &file) != 0 || !S_ISFIFO(file.st_mode) || (flags & O_ACCMODE) != O_RDONLY)
    return usage_error(fmt::format("descriptor {} is not the end of a pipe that is read", pipe),
                       "give the number of one that the recorder inherits");
  const bool told = fcntl(pipe, F_SETFD, FD_CLOEXEC) == 0 && fcntl(pipe, F_SETOWN, getpid()) == 0 &&
                    fcntl(pipe, F_SETSIG, SIGTERM) == 0 && fcntl(pipe, F_SETFL, flags | O_ASYNC) == 0;
  if (!told)
    return environment_error("cannot ask for a signal at the end of a pipe: " + std::generic_category().message(errno),
                             "fcntl");
  pollfd asked{pipe, POLLIN, 0};
  if (poll(&asked, 1, 0) > 0 && (asked.revents & POLLHUP) != 0) kill(getpid(), SIGTERM);
  return {};
}

StopSignal take_signal(int fd) {
  signalfd_siginfo info{};
  if (read(fd, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {};
  return {static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace culprit::record
