/* Does what its argument says with NVTX, so that tests know what a recording must hold. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef WITH_NVTX3
#include <nvtx3/nvToolsExt.h>
#define PUSH(name) nvtxRangePushA(name)
#define POP() nvtxRangePop()
#define MARK(name) nvtxMarkA(name)
#define START(name) nvtxRangeStartA(name)
#define END(id) nvtxRangeEnd(id)
#define PUSH_WIDE(name) nvtxRangePushW(name)
#define NAME_THREAD(tid, name) nvtxNameOsThreadA(tid, name)
#define NAME_CATEGORY(domain, id, name) nvtxDomainNameCategoryA(domain, id, name)
#define DOMAIN(name) nvtxDomainCreateA(name)
#define REGISTER(domain, text) nvtxDomainRegisterStringA(domain, text)
#define DOMAIN_PUSH(domain, attributes) nvtxDomainRangePushEx(domain, attributes)
#define DOMAIN_POP(domain) nvtxDomainRangePop(domain)
typedef nvtxDomainHandle_t domain_handle;
typedef nvtxEventAttributes_t attributes;
static attributes attributes_of(uint32_t category, int64_t payload, void* registered) {
  attributes out = {0};
  out.version = NVTX_VERSION;
  out.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  out.category = category;
  out.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  out.payload.llValue = payload;
  out.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  out.message.registered = (nvtxStringHandle_t)registered;
  return out;
}
#else
#include "nvtx_client.h"
#define CALL(module, id, type, missing, ...) \
  (nvtx_client_callback(module, id) ? ((type)nvtx_client_callback(module, id))(__VA_ARGS__) : missing)
#define PUSH(name) nvtx_client_push(name)
#define POP() nvtx_client_pop()
#define MARK(name) nvtx_client_mark(name)
#define START(name) CALL(NVTX_CLIENT_CORE, NVTX_CLIENT_START, uint64_t (*)(const char*), 0, name)
#define END(id) CALL(NVTX_CLIENT_CORE, NVTX_CLIENT_END, void (*)(uint64_t), (void)0, id)
#define PUSH_WIDE(name) CALL(NVTX_CLIENT_CORE, 10, int (*)(const wchar_t*), -2, name)
#define NAME_THREAD(tid, name) \
  CALL(NVTX_CLIENT_CORE, NVTX_CLIENT_NAME_THREAD, void (*)(uint32_t, const char*), (void)0, tid, name)
#define NAME_CATEGORY(domain, id, name)                                                                              \
  CALL(NVTX_CLIENT_CORE2, NVTX_CLIENT_DOMAIN_NAME_CATEGORY, void (*)(void*, uint32_t, const char*), (void)0, domain, \
       id, name)
#define DOMAIN(name) CALL(NVTX_CLIENT_CORE2, NVTX_CLIENT_DOMAIN_CREATE, void* (*)(const char*), NULL, name)
#define REGISTER(domain, text) \
  CALL(NVTX_CLIENT_CORE2, NVTX_CLIENT_REGISTER_STRING, void* (*)(void*, const char*), NULL, domain, text)
#define DOMAIN_PUSH(domain, a) \
  CALL(NVTX_CLIENT_CORE2, NVTX_CLIENT_DOMAIN_PUSH_EX, int (*)(void*, const nvtx_client_attributes*), -2, domain, a)
#define DOMAIN_POP(domain) CALL(NVTX_CLIENT_CORE2, NVTX_CLIENT_DOMAIN_POP, int (*)(void*), -2, domain)
typedef void* domain_handle;
typedef nvtx_client_attributes attributes;
static attributes attributes_of(uint32_t category, int64_t payload, void* registered) {
  attributes out = {0};
  out.version = 3;
  out.size = sizeof out;
  out.category = category;
  out.payload_type = 2;
  out.payload.i64 = payload;
  out.message_type = 3;
  out.message = registered;
  return out;
}
#endif

static void pause_us(long us) {
  const struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}

static void steps(int count, const char* inner) {
  int i;
  for (i = 0; i < count; ++i) {
    char name[64];
    snprintf(name, sizeof name, "step[DECODE bs=%d toks=%d]", i + 1, i + 1);
    PUSH(name);
    PUSH(inner);
    pause_us(2000);
    POP();
    POP();
  }
}

static int everything(void) {
  char longer[1000];
  domain_handle domain;
  attributes a;
  uint64_t first, second;
  steps(3, "layer 0");
  MARK("a mark");
  first = START("first");
  pause_us(500);
  second = START("second");
  pause_us(500);
  END(first);
  pause_us(500);
  END(second);
  NAME_THREAD((uint32_t)syscall(SYS_gettid), "named by nvtx");
  domain = DOMAIN("my domain");
  NAME_CATEGORY(domain, 7, "loading");
  a = attributes_of(7, -42, (void*)REGISTER(domain, "a registered string"));
  DOMAIN_PUSH(domain, &a);
  PUSH("inside the default domain");
  DOMAIN_POP(domain); /* nests by itself */
  POP();
  PUSH_WIDE(L"wide \u00fc \u20ac");
  POP();
  PUSH("");
  POP();
  POP(); /* one too many */
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  PUSH(longer);
  POP();
  return 0;
}

static void* worker(void* number) {
  int i;
  for (i = 0; i < 500; ++i) {
    PUSH("outer");
    PUSH("inner");
    POP();
    POP();
    if (i % 50 == 0) pause_us(1000);
  }
  return number;
}

static int threads(void) {
  pthread_t t[4];
  int i;
  for (i = 0; i < 4; ++i) pthread_create(&t[i], NULL, worker, NULL);
  for (i = 0; i < 4; ++i) pthread_join(t[i], NULL);
  return 0;
}

static int forks(char* self) {
  pid_t child;
  PUSH("before the fork");
  child = fork();
  if (child == 0) {
    steps(2, "in the child");
    pause_us(100000);
    execl(self, self, "steps", (char*)NULL);
    _exit(1);
  }
  steps(2, "in the parent");
  POP();
  waitpid(child, NULL, 0);
  return 0;
}

/* ---- forks while other threads are inside of the library ---- */

enum { named_domains = 63, domain_name_bytes = 239 };
static int must_stop;

/* As long as they may be, and alike up to the end: comparing them takes a while, for which the lock is held. */
static const char* domain_name(char* room, int number) {
  memset(room, 'd', domain_name_bytes);
  snprintf(room + domain_name_bytes - 8, 9, "%08d", number);
  return room;
}

static void* looks_domains_up(void* unused) {
  char room[domain_name_bytes + 1];
  domain_name(room, named_domains - 1);
  while (!__atomic_load_n(&must_stop, __ATOMIC_RELAXED)) DOMAIN(room);
  return unused;
}

static void* pushes_once(void* unused) {
  PUSH("in a thread");
  POP();
  return unused;
}

/* Each new thread takes a ring of its own. */
static void* starts_threads(void* unused) {
  while (!__atomic_load_n(&must_stop, __ATOMIC_RELAXED)) {
    pthread_t t;
    if (pthread_create(&t, NULL, pushes_once, NULL) == 0) pthread_join(t, NULL);
    pause_us(2000);
  }
  return unused;
}

/* 0 when every child could mark a range and ended by itself. One that waits for a thread that it does not have is ended
   by its alarm. */
static int forks_while_locked(int count) {
  char room[domain_name_bytes + 1];
  pthread_t t[3];
  int i, failed = 0;
  for (i = 0; i < named_domains; ++i) DOMAIN(domain_name(room, i));
  pthread_create(&t[0], NULL, looks_domains_up, NULL);
  pthread_create(&t[1], NULL, looks_domains_up, NULL);
  pthread_create(&t[2], NULL, starts_threads, NULL);
  for (i = 0; i < count && !failed; ++i) {
    int status = -1;
    pid_t child;
    pause_us(1000);
    child = fork();
    if (child == 0) {
      domain_handle domain;
      attributes a;
      alarm(20);
      domain = DOMAIN(room);
      if (domain == NULL) _exit(1);
      a = attributes_of(0, 1, (void*)REGISTER(domain, "in a child"));
      if (DOMAIN_PUSH(domain, &a) != 0 || DOMAIN_POP(domain) != 0) _exit(2);
      PUSH("in a child");
      POP();
      _exit(0);
    }
    failed = child < 0 || waitpid(child, &status, 0) != child || status != 0;
  }
  __atomic_store_n(&must_stop, 1, __ATOMIC_RELAXED);
  for (i = 0; i < 3; ++i) pthread_join(t[i], NULL);
  return failed;
}

static int flood(long count) {
  long i;
  for (i = 0; i < count; ++i) {
    PUSH("step flood");
    POP();
  }
  return 0;
}

/* Prints a line when it is ready and another when its input has ended. */
static int until_closed(void) {
  char c;
  PUSH("step 0");
  POP();
  puts("ready");
  fflush(stdout);
  while (read(0, &c, 1) > 0) flood(20000);
  flood(20000);
  puts("done");
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "everything") == 0) return everything();
  if (strcmp(what, "steps") == 0) return steps(2, "after exec"), 0;
  if (strcmp(what, "threads") == 0) return threads();
  if (strcmp(what, "forks") == 0) return forks(argv[0]);
  if (strcmp(what, "forks_while_locked") == 0 && argc > 2) return forks_while_locked(atoi(argv[2]));
  if (strcmp(what, "flood") == 0 && argc > 2) return flood(atol(argv[2]));
  if (strcmp(what, "until_closed") == 0) return until_closed();
  return 2;
}
