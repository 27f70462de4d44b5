#!/usr/bin/env python3
"""What the agent and its recorder leave in a process: signals, descriptors, masks, memory.

    attach_process_test.py --bin BUILD_DIR [unittest options]
"""

import glob
import json
import os
import random
import re
import signal
import struct
import subprocess
import time

import attaching
from attaching import LIMIT, Case

# A signal comes every millisecond, whose handler makes system calls; the program checks what it gets from its own.
SIGNALLED = r"""
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
static int ends[2];
static volatile long handled = 0;
static void on_alarm(int number) {
  const int before = errno;
  if (write(ends[1], "x", 1) != 1 || getppid() < 1 || number != SIGALRM) _exit(5);
  ++handled;
  errno = before;
}
int main(void) {
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC)) return 2;
  for (int i = 0; i < 20; ++i)
    if (open("/dev/null", O_RDONLY) < 0) return 2;
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR2);
  sigprocmask(SIG_BLOCK, &some, NULL);
  struct itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, NULL);
  puts("ready");
  fflush(stdout);
  long taken = 0;
  for (;;) {
    struct pollfd fds[2] = {{0, POLLIN, 0}, {ends[0], POLLIN, 0}};
    const int n = poll(fds, 2, -1);
    if (n < 0 && errno != EINTR) return 3;
    if (n <= 0) continue;
    char* text = malloc(100);
    ssize_t got = 0;
    while ((got = read(ends[0], text, 100)) > 0) taken += got;
    if (errno != EAGAIN && errno != EINTR) return 4;
    free(text);
    if (fds[0].revents) break;
  }
  signal(SIGALRM, SIG_IGN);
  char rest[4096];
  for (ssize_t got; (got = read(ends[0], rest, sizeof rest)) > 0;) taken += got;
  return taken == handled ? 0 : 6;
}
"""

# What the kernel does not begin again by itself when a thread was stopped: nobody may see that it was.
INTERRUPTED = r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
static int ends[2];
static int epoll;
static void* waits(void* out) {
  struct epoll_event event;
  int n = 0;
  while ((n = epoll_wait(epoll, &event, 1, 50)) == 0) {}
  *(int*)out = n < 0 ? errno : 0;
  return NULL;
}
static void* receives(void* out) {
  char byte = 0;
  ssize_t n = 0;
  while ((n = recv(ends[0], &byte, 1, 0)) < 0 && errno == EAGAIN) {}
  *(int*)out = n < 0 ? errno : 0;
  return NULL;
}
int main(void) {
  int results[2] = {-1, -1};
  pthread_t threads[2];
  struct timeval often = {0, 50000};
  struct epoll_event event = {EPOLLIN, {0}};
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &often, sizeof often)) return 2;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event)) return 2;
  pthread_create(&threads[0], NULL, waits, &results[0]);
  pthread_create(&threads[1], NULL, receives, &results[1]);
  puts("ready");
  fflush(stdout);
  pthread_join(threads[0], NULL);
  if (write(ends[1], "x", 1) != 1) return 2;
  pthread_join(threads[1], NULL);
  return results[0] ? 10 + results[0] : results[1] ? 100 + results[1] : 0;
}
"""

# No descriptor is left for the loader; or what a recorder left that was killed.
NO_DESCRIPTORS = """
#include <stdio.h>
#include <sys/resource.h>
int main(void) {
  struct rlimit few = {5, 5};
  char line[16];
  if (setrlimit(RLIMIT_NOFILE, &few)) return 2;
  puts("ready");
  fflush(stdout);
  return fgets(line, sizeof line, stdin) == NULL;
}
"""
LEFT_BEHIND = """
#include <stdio.h>
#include <sys/mman.h>
int main(void) {
  char line[16];
  const int fd = memfd_create("culprit-ring", MFD_CLOEXEC);
  if (fd < 0 || mmap(NULL, 512 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) == MAP_FAILED) return 2;
  puts("ready");
  fflush(stdout);
  return fgets(line, sizeof line, stdin) == NULL;
}
"""

# The same; one of its two threads waits in the kernel, where nobody can stop it, for a child that ends when it is told to. With an argument it is the first one.
ONE_DOES_NOT_STOP = r"""
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static int ends[2];
static void wait_for_child(void) {
  char byte = 0;
  if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, 0) != 0) return;
  close(ends[1]);
  _exit(read(ends[0], &byte, 1) < 0);
}
static void* waits(void* out) {
  wait_for_child();
  return out;
}
static void* listens(void* out) {
  char line[16];
  while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n")) {
    close(ends[1]);
    puts("let go");
    fflush(stdout);
  }
  close(ends[1]);
  return out;
}
int main(int count, char** words) {
  pthread_t thread;
  const int fd = memfd_create("culprit-ring", MFD_CLOEXEC);
  signal(SIGCHLD, SIG_IGN);
  if (fd < 0 || pipe(ends) || mmap(NULL, 512 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) == MAP_FAILED) return 2;
  if (pthread_create(&thread, NULL, count > 1 ? listens : waits, NULL)) return 2;
  usleep(100000);
  puts("ready");
  fflush(stdout);
  count > 1 ? waits(NULL) : listens(NULL);
  return pthread_join(thread, NULL);
}
"""

# An allocator that may not be entered while it works, and a program that is in it nearly all the time.
ALLOCATOR = r"""
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char memory[64 << 20];
static size_t used = 0;
static volatile int lock = 0;
static __thread int inside __attribute__((tls_model("initial-exec"))) = 0;
void* malloc(size_t bytes) {
  if (inside) abort();
  inside = 1;
  while (__sync_lock_test_and_set(&lock, 1)) {}
  for (volatile int i = 0; i < 2000; ++i) {}
  getppid();
  for (volatile int i = 0; i < 2000; ++i) {}
  size_t at = (used + 31) & ~(size_t)15;
  if (at + bytes > sizeof memory) at = 16;
  used = at + bytes;
  *(size_t*)(memory + at - 16) = bytes;
  __sync_lock_release(&lock);
  inside = 0;
  return memory + at;
}
void free(void* at) { (void)at; }
void* calloc(size_t n, size_t each) { return memset(malloc(n * each), 0, n * each); }
void* realloc(void* at, size_t bytes) {
  void* to = malloc(bytes);
  if (at) memcpy(to, at, ((size_t*)at)[-2] < bytes ? ((size_t*)at)[-2] : bytes);
  return to;
}
"""
ALLOCATES = r"""
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  struct pollfd in = {0, POLLIN, 0};
  puts("ready");
  fflush(stdout);
  for (long n = 0;; ++n) {
    void* volatile at = malloc(16);
    free(at);
    for (volatile int i = 0; i < 1000; ++i) {}
    if (n % 1000 == 0 && poll(&in, 1, 0) > 0) return 0;
  }
}
"""

# Its allocator computes for some seconds when the loader asks it the first time.
SLOW_ALLOCATOR = r"""
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static char memory[64 << 20];
static size_t used = 0;
static int seconds = 0;
void* malloc(size_t bytes) {
  if (seconds) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < seconds * 1000000000L);
    seconds = 0;
  }
  char* at = memory + used;
  used += (bytes + 15) & ~(size_t)15;
  return used > sizeof memory ? NULL : at;
}
void free(void* at) { (void)at; }
void* calloc(size_t n, size_t each) { return memset(malloc(n * each), 0, n * each); }
void* realloc(void* at, size_t bytes) { return at ? memmove(malloc(bytes), at, bytes) : malloc(bytes); }
int main(int count, char** words) {
  struct pollfd in = {0, POLLIN, 0};
  puts("ready");
  fflush(stdout);
  seconds = count > 1 ? atoi(words[1]) : 0;
  return poll(&in, 1, -1) != 1;
}
"""


class Process(Case):
    def descriptors(self, pid):
        return {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}

    def blocked(self, pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            return re.search(r"^SigBlk:\s*(\w+)$", status.read(), re.MULTILINE).group(1)

    def test_a_thread_whose_recorder_was_killed_handles_its_signals_again(self):
        child = self.compiled("signalled", SIGNALLED, "cc", "-D_GNU_SOURCE")
        descriptors = self.descriptors(child.pid)
        chance = random.Random(11)
        for _ in range(25):
            recorder = self.recorder(child.pid, "a:b", name="killed.pftrace")
            time.sleep(chance.uniform(0.02, 0.12))
            recorder.kill()
            recorder.communicate(timeout=LIMIT)
            if os.path.exists(self.path("killed.pftrace")):
                os.remove(self.path("killed.pftrace"))
            self.idle(child)
        self.put_in(child.pid)
        self.idle(child)
        self.assertEqual(self.descriptors(child.pid), descriptors)
        self.assertEqual(self.rings_of(child), 0)
        self.goes_on(child)

    def test_calls_that_the_stop_interrupts_go_on(self):
        child = self.compiled("interrupted", INTERRUPTED, "cc", "-pthread")
        for _ in range(20):
            self.put_in(child.pid)
            self.idle(child)
            self.assertIsNone(child.poll(), "it waits still")
        self.goes_on(child)

    def test_the_agent_needs_nothing_of_its_surroundings(self):
        """No version of glibc's symbols, no symbol at all, no library: so it comes into every one."""
        with open(os.path.join(attaching.ARGS.bin, "libculprit_agent.so"), "rb") as file:
            elf = file.read()
        sections = struct.unpack_from("<Q", elf, 40)[0]
        count = struct.unpack_from("<H", elf, 60)[0]
        headers = [struct.unpack_from("<IIQQQQIIQQ", elf, sections + 64 * n) for n in range(count)]
        dynamic_symbols, dynamic, versions_needed = 11, 6, 0x6ffffffe
        kinds = {header[1]: header for header in headers}
        self.assertNotIn(versions_needed, kinds)
        _, _, _, _, begin, size, link, *_ = kinds[dynamic_symbols]
        names = headers[link][4]
        undefined = []
        for at in range(begin + 24, begin + size, 24):
            name, _, _, section = struct.unpack_from("<IBBH", elf, at)
            if section == 0:
                undefined.append(elf[names + name:elf.index(b"\0", names + name)])
        self.assertEqual(undefined, [])
        _, _, _, _, begin, size, *_ = kinds[dynamic]
        self.assertNotIn(1, [struct.unpack_from("<Q", elf, at)[0] for at in range(begin, begin + size, 16)], "DT_NEEDED")

    def test_doctor_says_what_the_recorder_does(self):
        child = self.compiled("musl", NO_DESCRIPTORS.replace("{5, 5}", "{50, 50}"), "musl-gcc")
        doctor = json.loads(self.culprit("doctor", "-p", str(child.pid), "--json").stdout)
        said = [check["found"] for check in doctor["checks"] if check["key"] == "process.attach"]
        self.assertEqual(said, ["its C library is musl; the agent needs glibc"])
        self.assertIn(said[0], self.attach_for(child.pid).stderr)
        self.goes_on(child)

    def test_what_the_loader_refuses_leaves_nothing(self):
        child = self.compiled("full", NO_DESCRIPTORS, "cc")
        descriptors = self.descriptors(child.pid)
        for _ in range(3):
            self.assertIn("dlopen failed", self.attach_for(child.pid).stderr)
            self.assertEqual(self.descriptors(child.pid), descriptors)
            self.assertEqual(self.rings_of(child), 0)
        self.goes_on(child)

    def test_what_a_killed_recorder_left_is_removed(self):
        child = self.compiled("left", LEFT_BEHIND, "cc", "-D_GNU_SOURCE")
        self.assertEqual(self.rings_of(child), 1)
        self.put_in(child.pid)
        self.idle(child)
        self.assertEqual(self.rings_of(child), 0)
        self.assertEqual(sorted(self.descriptors(child.pid)), ["0", "1", "2"])
        self.goes_on(child)

    def test_what_a_killed_recorder_left_stays_where_a_thread_cannot_be_looked_at(self):
        self.compiled("stuck", ONE_DOES_NOT_STOP, "cc", "-D_GNU_SOURCE", "-pthread")
        for arguments in ([], ["first"]):
            with self.subTest(arguments):
                child = self.start([self.path("python3-stuck"), *arguments])
                self.is_ready(child)
                done = self.attach_for(child.pid)  # and to its child
                self.assertIn(f"process {child.pid}: there is no Python", done.stderr)
                self.idle(child)
                self.assertEqual(self.rings_of(child), 1)
                child.stdin.write("go on\n")
                child.stdin.flush()
                self.assertEqual(child.stdout.readline(), "let go\n")
                self.wait_until(lambda: not any(map(self.text_of, glob.glob(f"/proc/{child.pid}/task/*/children"))), "its child does not end")
                self.put_in(child.pid)
                self.wait_until(lambda: self.rings_of(child) == 0, "it is still there")
                self.goes_on(child)

    def test_a_second_recorder_is_refused_before_anything_is_touched(self):
        child = self.program()
        recorder = self.recorder(child.pid, "a:b")
        self.attached(recorder, child)
        self.wait_until(lambda: self.rings_of(child) == 1, "the stack of the borrowed thread stays")
        descriptors, rings = self.descriptors(child.pid), 1
        doctor = self.culprit("doctor", "-p", str(child.pid), "--json")
        for _ in range(3):
            self.assertIn("another recorder", self.attach_for(child.pid).stderr)
            self.assertEqual(self.descriptors(child.pid), descriptors)
            self.assertEqual(self.rings_of(child), rings)
        self.finish(recorder)
        self.idle(child)
        self.assertEqual(self.rings_of(child), 0)
        self.assertIn("another recorder", doctor.stdout)
        self.goes_on(child)

    def test_an_allocator_that_is_not_the_c_librarys(self):
        with open(self.path("own.c"), "w", encoding="utf-8") as file:
            file.write(ALLOCATOR)
        library = self.path("libown.so")
        child = self.compiled("allocates", ALLOCATES, "cc")
        self.goes_on(child)
        subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", self.path("own.c"), "-o", library], check=True)
        for _ in range(6):  # that the library comes is what allocates most
            child = self.start([self.path("python3-allocates")], env={**os.environ, "LD_PRELOAD": library})
            self.is_ready(child)
            for _ in range(2):
                self.put_in(child.pid)
                self.assertIsNone(child.poll(), "it runs")
                self.idle(child)
            self.goes_on(child)

    def slow(self, seconds):
        self.goes_on(self.compiled("slow", SLOW_ALLOCATOR, "cc"))
        child = self.start([self.path("python3-slow"), str(seconds)])
        self.is_ready(child)
        return child

    def test_a_borrowed_thread_that_takes_long_is_waited_for(self):
        child = self.slow(3)
        done = self.attach_for(child.pid, "3s")
        self.assertIn("there is no Python in this process", done.stderr)
        self.idle(child)
        self.assertEqual(self.rings_of(child), 0)
        self.goes_on(child)

    def test_a_borrowed_thread_that_takes_too_long(self):
        """The recording ends before; what the thread comes back with is removed the next time."""
        child = self.slow(8)
        begin = time.monotonic()
        done = self.attach_for(child.pid)
        self.assertLess(time.monotonic() - begin, 7)
        self.assertIn("a thread of it got no CPU any more while the agent was put in", done.stderr)
        self.assertIsNone(child.poll(), "it runs")
        self.idle(child)
        self.wait_until(lambda: "S (sleeping)" in self.text_of(f"/proc/{child.pid}/status"), "it is not back")
        self.idle(child)
        self.put_in(child.pid)
        self.idle(child)
        self.assertEqual(self.rings_of(child), 0)
        self.goes_on(child)

    def test_signals_that_come_while_a_thread_is_borrowed(self):
        child = self.compiled("signalled", SIGNALLED, "cc", "-D_GNU_SOURCE")
        descriptors, blocked = self.descriptors(child.pid), self.blocked(child.pid)
        for _ in range(50):
            self.put_in(child.pid)
            self.assertIsNone(child.poll(), "it runs")
            self.idle(child)
            self.assertEqual(self.descriptors(child.pid), descriptors)
            self.assertIn(self.blocked(child.pid), (blocked, f"{int(blocked, 16) | 1 << signal.SIGALRM - 1:016x}"), "while it is handled a signal is blocked")
        self.goes_on(child)


if __name__ == "__main__":
    attaching.main()
