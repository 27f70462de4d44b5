/* The part of the recorder that runs inside the recorded process: a thread of its own that waits for the recorder's
   word, and a ring into which the process's threads write what they do. See agent_ring.h and docs/attach.md. */
#include "agent.h"

#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/time_types.h>

enum {
  kProtRead = 1,
  kProtWrite = 2,
  kMapShared = 1,
  kMonotonic = 1,
  kThreadCpu = 3,
  kSetName = 15,
  kSetMask = 2,
  kSetBlock = 0,
  kCloseOnExec = 02000000
};
static const int64_t kLook = 200000000;       /* ns between two looks at what was imported */
static const int64_t kAbandoned = 5000000000; /* a recorder that has not been seen for so long is gone */

__attribute__((visibility("default"))) struct culprit_agent_parameters culprit_agent_parameters = {
    CULPRIT_AGENT_MAGIC, -1, -1, 0, 0, 0};

struct culprit_agent_header* culprit_agent_shared = NULL;
static int (*clock_gettime_)(int, struct __kernel_timespec*) = NULL;
static volatile int32_t busy = 0;                            /* a thread of the agent runs */
static int has_dropped = 0;                                  /* since the last record that was written */
static struct culprit_agent_header* volatile serving = NULL; /* its memory, as long as that is mapped */

void* memcpy(void* restrict to, const void* restrict from, size_t bytes) {
  char* t = to;
  const char* f = from;
  while (bytes-- > 0) *t++ = *f++;
  return to;
}
void* memset(void* to, int value, size_t bytes) {
  char* t = to;
  while (bytes-- > 0) *t++ = (char)value;
  return to;
}

#if defined(__x86_64__)
static long raw(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
static long raw(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "the agent knows the system calls of x86-64 and aarch64"
#endif

long culprit_agent_call(long number, long a, long b, long c, long d) { return raw(number, a, b, c, d, 0, 0); }

static int64_t clock_ns(int clock) {
  struct __kernel_timespec now = {0, 0};
  if (!clock_gettime_ || clock != kMonotonic)
    raw(__NR_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
  else
    clock_gettime_(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t culprit_agent_now(void) { return clock_ns(kMonotonic); }
int32_t culprit_agent_thread(void) { return (int32_t)raw(__NR_gettid, 0, 0, 0, 0, 0, 0); }

void* culprit_agent_symbol(const char* name) {
  void* (*dlsym_)(void*, const char*) = (void* (*)(void*, const char*))culprit_agent_parameters.dlsym;
  return dlsym_(NULL, name);
}

void culprit_agent_write(uint8_t type, uint8_t flags, int32_t tid, uint32_t value, const int64_t* arguments,
                         uint8_t count, uint8_t missing, const char* text, size_t text_bytes) {
  struct culprit_agent_header* h = culprit_agent_shared;
  if (!h) return;
  if (text_bytes > CULPRIT_AGENT_MAX_TEXT) text_bytes = CULPRIT_AGENT_MAX_TEXT;
  const uint64_t size = (sizeof(struct culprit_agent_record) + (uint64_t)count * 8 + text_bytes + 7) & ~(uint64_t)7;
  char* data = (char*)h + CULPRIT_AGENT_HEADER_BYTES + CULPRIT_AGENT_CONFIG_BYTES;
  uint64_t head = h->head;
  const uint64_t tail = __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE);
  const uint64_t place = head % CULPRIT_AGENT_CAPACITY;
  const uint64_t pad = place + size > CULPRIT_AGENT_CAPACITY ? CULPRIT_AGENT_CAPACITY - place : 0;
  if (head + pad + size - tail > CULPRIT_AGENT_CAPACITY) {
    __atomic_store_n(&h->dropped, h->dropped + 1, __ATOMIC_RELAXED);
    has_dropped = 1;
    return;
  }
  if (pad) {
    /* What is left may be too little for a whole head: size and type come first in it. */
    struct culprit_agent_record* skip = (struct culprit_agent_record*)(data + place);
    skip->size = 0;
    skip->type = CULPRIT_AGENT_PAD;
    head += pad;
  }
  struct culprit_agent_record* record = (struct culprit_agent_record*)(data + head % CULPRIT_AGENT_CAPACITY);
  record->size = (uint16_t)size;
  record->type = type;
  record->flags = (uint8_t)(flags | (has_dropped ? CULPRIT_AGENT_BEHIND_LOST : 0));
  has_dropped = 0;
  record->tid = tid;
  record->value = value;
  record->text_bytes = (uint16_t)text_bytes;
  record->arguments = count;
  record->missing = missing;
  char* at = (char*)(record + 1);
  for (uint8_t i = 0; i < count; ++i, at += 8) memcpy(at, &arguments[i], 8);
  memcpy(at, text, text_bytes);
  record->time = (uint64_t)culprit_agent_now();
  __atomic_store_n(&h->head, head + size, __ATOMIC_RELEASE);
}

/* In a child only the thread that forked lives: nobody there serves the ring of its parent. */
static void in_child(void) {
  struct culprit_agent_header* h = serving;
  culprit_agent_shared = NULL;
  culprit_python_in_child();
  serving = NULL;
  busy = 0;
  if (!h) return;
  if (h->stack) raw(__NR_munmap, (long)h->stack, (long)h->stack_bytes, 0, 0, 0, 0);
  raw(__NR_munmap, (long)h, CULPRIT_AGENT_BYTES, 0, 0, 0, 0);
}

static int is_wanted(struct culprit_agent_header* h) {
  if (__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE)) return 0;
  return culprit_agent_now() - (int64_t)__atomic_load_n(&h->alive, __ATOMIC_RELAXED) < kAbandoned;
}

/* A recorder that was killed says nothing; by then the thread is back. */
static void free_stack(struct culprit_agent_header* h, int surely) {
  if (!h->stack || !(surely || __atomic_load_n(&h->returned, __ATOMIC_ACQUIRE))) return;
  raw(__NR_munmap, (long)h->stack, (long)h->stack_bytes, 0, 0, 0, 0);
  h->stack = 0;
}

static void tell_cpu(struct culprit_agent_header* h) {
  __atomic_store_n(&h->cpu_ns, (uint64_t)clock_ns(kThreadCpu), __ATOMIC_RELAXED);
}

static void* serve(void* shared) {
  struct culprit_agent_header* h = shared;
  raw(__NR_prctl, kSetName, (long)"culprit-agent", 0, 0, 0, 0); /* by which the recorder leaves it out */
  __atomic_store_n(&h->thread, (uint32_t)culprit_agent_thread(), __ATOMIC_RELAXED);
  clock_gettime_ = (int (*)(int, struct __kernel_timespec*))culprit_agent_symbol("clock_gettime");
  static int told = 0;
  int (*atfork)(void (*)(void), void (*)(void), void (*)(void), void*) =
      (int (*)(void (*)(void), void (*)(void), void (*)(void), void*))culprit_agent_symbol("__register_atfork");
  if (!told && atfork) {
    told = 1;
    atfork(NULL, NULL, in_child, NULL);
  }
  culprit_agent_shared = h;
  if (culprit_python_begin()) {
    tell_cpu(h);
    __atomic_store_n(&h->running_since, (uint64_t)culprit_agent_now(), __ATOMIC_RELAXED);
    __atomic_store_n(&h->state, CULPRIT_AGENT_RUNNING, __ATOMIC_RELEASE);
    while (is_wanted(h)) {
      const struct __kernel_timespec wait = {kLook / 1000000000, kLook % 1000000000};
      raw(__NR_futex, (long)&h->stop, FUTEX_WAIT, 0, (long)&wait, 0, 0);
      culprit_python_look();
      free_stack(h, 0);
      tell_cpu(h);
    }
    culprit_python_end();
    tell_cpu(h);
    __atomic_store_n(&h->state, CULPRIT_AGENT_STOPPED, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(&h->state, CULPRIT_AGENT_FAILED, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&h->returned, __ATOMIC_ACQUIRE) && is_wanted(h)) {
      const struct __kernel_timespec wait = {0, 10000000};
      raw(__NR_nanosleep, (long)&wait, 0, 0, 0, 0, 0);
    }
  }
  free_stack(h, 1);
  serving = NULL;
  raw(__NR_munmap, (long)h, CULPRIT_AGENT_BYTES, 0, 0, 0, 0);
  __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
  return NULL;
}

/* Called in a thread that does not know of it, which may hold any lock of Python: only begins a thread. The fd is
 * closed. 0: done. */
__attribute__((visibility("default"))) long culprit_agent_begin(long ring_fd);
__attribute__((visibility("default"))) long culprit_agent_begin(long ring_fd) {
  int32_t idle = 0;
  if (!__atomic_compare_exchange_n(&busy, &idle, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    raw(__NR_close, ring_fd, 0, 0, 0, 0, 0);
    return 1;
  }
  const long at = raw(__NR_mmap, 0, CULPRIT_AGENT_BYTES, kProtRead | kProtWrite, kMapShared, ring_fd, 0);
  raw(__NR_close, ring_fd, 0, 0, 0, 0, 0);
  if (at < 0 && at > -4096) {
    busy = 0;
    return 2;
  }
  struct culprit_agent_header* h = (struct culprit_agent_header*)at;
  h->begun = 1;
  serving = h;
  int (*create)(unsigned long*, const void*, void* (*)(void*), void*) =
      (int (*)(unsigned long*, const void*, void* (*)(void*), void*))culprit_agent_parameters.pthread_create;
  int (*detach)(unsigned long) = (int (*)(unsigned long))culprit_agent_parameters.pthread_detach;
  /* The signals of the process are for its own threads. */
  uint64_t all = ~(uint64_t)0;
  uint64_t before = 0;
  raw(__NR_rt_sigprocmask, kSetBlock, (long)&all, (long)&before, 8, 0, 0);
  unsigned long thread = 0;
  const int code = create(&thread, NULL, serve, h);
  if (code == 0) detach(thread);
  raw(__NR_rt_sigprocmask, kSetMask, (long)&before, 0, 8, 0, 0);
  if (code != 0) {
    h->begun = 2;
    serving = NULL;
    raw(__NR_munmap, at, CULPRIT_AGENT_BYTES, 0, 0, 0, 0);
    busy = 0;
    return 3;
  }
  return 0;
}

__attribute__((constructor)) static void when_loaded(void) {
  if (culprit_agent_parameters.agent_fd >= 0) raw(__NR_close, culprit_agent_parameters.agent_fd, 0, 0, 0, 0, 0);
  if (culprit_agent_parameters.ring_fd >= 0) culprit_agent_begin(culprit_agent_parameters.ring_fd);
}
