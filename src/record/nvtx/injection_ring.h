/* The writing side of the rings: how a thread of a recorded program gets one and puts records into it. Part of
   injection.c, in a file of its own so that both can be read; everything is inlined into the callbacks. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "record/nvtx/ring_format.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define RARE(x) __builtin_expect(!!(x), 0)

enum { kDomains = 64, kMaxRings = 512, kMaxStrings = 1 << 16 };

struct ring {
  struct culprit_nvtx_header* shared;
  uint8_t* data;
  uint64_t head;      /* ours; what is in the file is never read back */
  uint64_t tail_seen; /* the recorder's tail when last looked at */
  uint64_t dropped;
  uint64_t next_range;
  uint64_t announced; /* bit: the name of this domain is in the ring */
  uint32_t busy;      /* a signal handler that comes in between must not write */
  uint32_t depth[kDomains];
};

struct domain {
  uint32_t id;
  uint32_t bytes;
  char name[CULPRIT_NVTX_MAX_TEXT];
};

struct registered_string {
  uint32_t bytes;
  uint8_t truncated;
  char text[];
};

/* The state of a process. What a fork leaves to the child is set right by after_fork(). */
static char g_folder[256];
static uint32_t g_clock;
static uint32_t g_once;
static uint32_t g_rings;
static uint32_t g_domains = 1;
static uint32_t g_strings;
static uint32_t g_domain_lock;
static struct domain* g_domain[kDomains];

static struct ring g_none; /* stands for "this thread has none and gets none" */
static __thread struct ring* t_ring __attribute__((tls_model("initial-exec")));

extern int __cxa_thread_atexit_impl(void (*destructor)(void*), void* object, void* library);
extern void* __dso_handle;

static inline uint64_t now(void) {
  struct timespec t;
#if defined(__x86_64__)
  if (g_clock == CULPRIT_NVTX_CLOCK_TSC) return __builtin_ia32_rdtsc();
#endif
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The cycle counter is used where it runs evenly and the kernel itself trusts it. */
static uint32_t choose_clock(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  char source[16] = {0};
  int fd;
  ssize_t n;
  if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8))) return CULPRIT_NVTX_CLOCK_MONOTONIC;
  fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CULPRIT_NVTX_CLOCK_MONOTONIC;
  n = read(fd, source, sizeof source - 1);
  close(fd);
  if (n > 0 && (strcmp(source, "tsc\n") == 0 || strcmp(source, "kvm-clock\n") == 0)) return CULPRIT_NVTX_CLOCK_TSC;
#endif
  return CULPRIT_NVTX_CLOCK_MONOTONIC;
}

static void thread_ends(void* object) {
  struct ring* ring = object;
  if (t_ring != ring) return; /* a ring of the process that this one was forked from */
  t_ring = &g_none;
  __atomic_store_n(&ring->shared->finished, 1, __ATOMIC_RELEASE);
  munmap(ring->shared, CULPRIT_NVTX_HEADER_BYTES + CULPRIT_NVTX_CAPACITY);
  munmap(ring, sizeof *ring);
  __atomic_sub_fetch(&g_rings, 1, __ATOMIC_RELAXED);
}

/* The child has its parent's memory, but must not write into its parent's rings, and nobody is left to open a lock
   that another thread of the parent held. */
static void after_fork(void) {
  t_ring = NULL;
  g_rings = 0;
  __atomic_store_n(&g_domain_lock, 0, __ATOMIC_RELAXED);
}

static void* map_shared(int pid, int tid) {
  const off_t bytes = CULPRIT_NVTX_HEADER_BYTES + CULPRIT_NVTX_CAPACITY;
  struct timespec t;
  char path[sizeof g_folder + 64];
  void* out = MAP_FAILED;
  int fd;
  clock_gettime(CLOCK_MONOTONIC, &t);
  snprintf(path, sizeof path, "%s/%d-%d-%lld.ring", g_folder, pid, tid,
           (long long)t.tv_sec * 1000000000 + (long long)t.tv_nsec);
  fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return MAP_FAILED;
  /* The blocks are taken now: a full file system must not become a bus error later. */
  if (syscall(SYS_fallocate, fd, 0, (off_t)0, bytes) == 0)
    out = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (out == MAP_FAILED) unlink(path);
  close(fd);
  return out;
}

static struct ring* new_ring(void) {
  const int pid = (int)getpid();
  const int tid = (int)syscall(SYS_gettid);
  const int saved_errno = errno;
  struct ring* ring = MAP_FAILED;
  void* shared;
  t_ring = &g_none;
  if (g_folder[0] == 0) return t_ring;
  if (__atomic_add_fetch(&g_rings, 1, __ATOMIC_RELAXED) > kMaxRings) goto failed;
  ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ring == MAP_FAILED) goto failed;
  shared = map_shared(pid, tid);
  if (shared == MAP_FAILED) goto failed;
  ring->shared = shared;
  ring->data = (uint8_t*)shared + CULPRIT_NVTX_HEADER_BYTES;
  ring->announced = 1; /* the default domain has no name */
  ring->shared->version = CULPRIT_NVTX_VERSION;
  ring->shared->capacity = CULPRIT_NVTX_CAPACITY;
  ring->shared->pid = pid;
  ring->shared->tid = tid;
  ring->shared->clock = g_clock;
  __atomic_store_n(&ring->shared->magic, CULPRIT_NVTX_MAGIC, __ATOMIC_RELEASE);
  t_ring = ring;
  __cxa_thread_atexit_impl(thread_ends, ring, &__dso_handle);
  errno = saved_errno;
  return ring;

failed:
  if (ring != MAP_FAILED) munmap(ring, sizeof *ring);
  __atomic_sub_fetch(&g_rings, 1, __ATOMIC_RELAXED);
  errno = saved_errno;
  return t_ring;
}

/* The ring of this thread with `busy` taken, or NULL. */
static inline struct ring* take(void) {
  struct ring* ring = t_ring;
  if (RARE(ring == NULL)) ring = new_ring();
  if (RARE(ring == &g_none)) return NULL;
  if (RARE(ring->busy)) {
    ring->shared->dropped = ++ring->dropped;
    return NULL;
  }
  ring->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return ring;
}
static inline void give(struct ring* ring) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  ring->busy = 0;
}

struct text {
  const char* at;
  uint32_t bytes;
  uint8_t truncated;
};

static inline struct text ascii(const char* s) {
  struct text out = {s, 0, 0};
  if (s == NULL) return out;
  while (out.bytes < CULPRIT_NVTX_MAX_TEXT && s[out.bytes] != 0) ++out.bytes;
  out.truncated = out.bytes == CULPRIT_NVTX_MAX_TEXT && s[out.bytes] != 0;
  return out;
}

/* UTF-8 of a wide string into `room`, which has place for CULPRIT_NVTX_MAX_TEXT bytes. */
static struct text wide(const wchar_t* s, char* room) {
  struct text out = {room, 0, 0};
  if (s == NULL) return out;
  for (; *s != 0; ++s) {
    uint32_t c = (uint32_t)*s;
    uint32_t i, n;
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = 0xFFFD;
    n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (out.bytes + n > CULPRIT_NVTX_MAX_TEXT) {
      out.truncated = 1;
      break;
    }
    for (i = n - 1; i > 0; --i, c >>= 6) room[out.bytes + i] = (char)(0x80 | (c & 0x3F));
    room[out.bytes] = (char)(n == 1 ? c : (0xF00u >> n & 0xFF) | c);
    out.bytes += n;
  }
  return out;
}

struct event {
  uint8_t type;
  uint8_t flags;
  uint8_t depth;
  uint16_t domain;
  uint64_t value;
  uint64_t payload;
  struct text text;
};

/* Writes one record; 0 when there was no room. */
static inline int put(struct ring* ring, const struct event* e) {
  const uint32_t mask = CULPRIT_NVTX_CAPACITY - 1;
  const int has_value = (e->flags & CULPRIT_NVTX_HAS_VALUE) != 0;
  const int has_payload = (e->flags & CULPRIT_NVTX_PAYLOAD_MASK) != 0;
  const uint32_t fixed = 16u + (has_value ? 8u : 0u) + (has_payload ? 8u : 0u);
  const uint32_t size = (fixed + e->text.bytes + 7u) & ~7u;
  const uint32_t offset = (uint32_t)ring->head & mask;
  const uint32_t rest = CULPRIT_NVTX_CAPACITY - offset;
  const uint32_t needed = size <= rest ? size : rest + size;
  struct culprit_nvtx_record head;
  uint8_t* at = ring->data + offset;
  if (RARE(ring->head + needed - ring->tail_seen > CULPRIT_NVTX_CAPACITY)) {
    ring->tail_seen = __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
    if (ring->tail_seen > ring->head || ring->head + needed - ring->tail_seen > CULPRIT_NVTX_CAPACITY) {
      if (ring->tail_seen > ring->head) ring->tail_seen = ring->head - CULPRIT_NVTX_CAPACITY; /* nonsense: look again */
      ring->shared->dropped = ++ring->dropped;
      return 0;
    }
  }
  if (RARE(size > rest)) {
    memset(&head, 0, 8);
    head.size = (uint16_t)rest; /* less than a record; type 0: skip to the end */
    memcpy(at, &head, 8);
    ring->head += rest;
    at = ring->data;
  }
  head.size = (uint16_t)size;
  head.type = e->type;
  head.flags = (uint8_t)(e->flags | (e->text.truncated ? CULPRIT_NVTX_TRUNCATED : 0));
  head.text_bytes = (uint8_t)e->text.bytes;
  head.depth = e->depth;
  head.domain = e->domain;
  head.time = now();
  memcpy(at, &head, 16);
  if (has_value) memcpy(at + 16, &e->value, 8);
  if (has_payload) memcpy(at + fixed - 8, &e->payload, 8);
  if (e->text.bytes != 0) memcpy(at + fixed, e->text.at, e->text.bytes);
  ring->head += size;
  __atomic_store_n(&ring->shared->head, ring->head, __ATOMIC_RELEASE);
  return 1;
}

/* Says the domain's name in this ring, once. */
static void announce(struct ring* ring, uint16_t domain) {
  struct event e = {.type = CULPRIT_NVTX_DOMAIN_NAME, .domain = domain};
  e.text.at = g_domain[domain]->name;
  e.text.bytes = g_domain[domain]->bytes;
  if (put(ring, &e)) ring->announced |= (uint64_t)1 << domain;
}

static inline void write_event(struct ring* ring, const struct event* e) {
  if (RARE(!(ring->announced >> e->domain & 1))) announce(ring, e->domain);
  put(ring, e);
}
