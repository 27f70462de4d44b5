/* The library that a recorded program loads because NVTX_INJECTION64_PATH names it. It runs inside a program that is
   not ours, so: it needs libc alone, never prints, never waits, never fails; what it cannot do it leaves undone. What
   it writes, and where, says ring_format.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "record/nvtx/injection_ring.h"
#include "record/nvtx/nvtx_abi.h"
#include "record/nvtx/ring_format.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- what the callbacks share ---- */

static inline uint8_t depth_byte(uint32_t depth) { return depth < 255 ? (uint8_t)depth : 255; }

static int do_push(struct ring* ring, struct event* e) {
  const uint32_t depth = ring->depth[e->domain]++;
  e->type = CULPRIT_NVTX_PUSH;
  e->depth = depth_byte(depth);
  write_event(ring, e);
  return (int)depth;
}

static int do_pop(struct ring* ring, uint16_t domain) {
  struct event e = {.type = CULPRIT_NVTX_POP, .domain = domain};
  if (ring->depth[domain] == 0) return -2;
  --ring->depth[domain];
  e.depth = depth_byte(ring->depth[domain]);
  write_event(ring, &e);
  return (int)ring->depth[domain];
}

static int push_event(struct event* e) {
  struct ring* ring = take();
  int out;
  if (ring == NULL) return -2;
  out = do_push(ring, e);
  give(ring);
  return out;
}

static void do_mark(struct event* e) {
  struct ring* ring = take();
  if (ring == NULL) return;
  e->type = CULPRIT_NVTX_MARK;
  write_event(ring, e);
  give(ring);
}

static uint64_t do_start(struct event* e) {
  struct ring* ring = take();
  if (ring == NULL) return 0;
  e->type = CULPRIT_NVTX_START;
  /* An event's category would stand in the place of the id: a start carries none. */
  e->flags |= CULPRIT_NVTX_HAS_VALUE;
  e->value = (uint64_t)(uint32_t)ring->shared->tid << 32 | (++ring->next_range & 0xFFFFFFFFu);
  write_event(ring, e);
  give(ring);
  return e->value;
}

static void do_end(uint64_t id, uint16_t domain) {
  struct event e = {.type = CULPRIT_NVTX_END, .flags = CULPRIT_NVTX_HAS_VALUE, .domain = domain, .value = id};
  struct ring* ring;
  if (id == 0 || (ring = take()) == NULL) return;
  write_event(ring, &e);
  give(ring);
}

static void do_name(uint8_t type, uint64_t number, uint16_t domain, struct text name) {
  struct event e = {.type = type, .flags = CULPRIT_NVTX_HAS_VALUE, .domain = domain, .value = number, .text = name};
  struct ring* ring = take();
  if (ring == NULL) return;
  write_event(ring, &e);
  give(ring);
}

static inline uint16_t domain_id(const void* handle) {
  return handle == NULL ? 0 : (uint16_t)((const struct domain*)handle)->id;
}

/* What attributes say; `room` is for a wide message. */
static struct event event_of(const struct nvtx_attributes* a, const void* domain, char* room) {
  struct event e = {.domain = domain_id(domain)};
  if (a == NULL || a->size < sizeof *a) return e;
  if (a->category != 0) {
    e.flags = CULPRIT_NVTX_HAS_VALUE;
    e.value = a->category;
  }
  if (a->payload_type >= NVTX_PAYLOAD_U64 && a->payload_type <= NVTX_PAYLOAD_F32) {
    e.flags |= (uint8_t)a->payload_type;
    e.payload = a->payload_type >= NVTX_PAYLOAD_U32 ? (uint32_t)a->payload : a->payload;
  }
  if (a->message_type == NVTX_MESSAGE_ASCII) e.text = ascii(a->message);
  if (a->message_type == NVTX_MESSAGE_WIDE) e.text = wide(a->message, room);
  if (a->message_type == NVTX_MESSAGE_REGISTERED && a->message != NULL) {
    const struct registered_string* s = a->message;
    e.text.at = s->text;
    e.text.bytes = s->bytes;
    e.text.truncated = s->truncated;
  }
  return e;
}

static void* do_register(struct text text) {
  struct registered_string* out;
  if (__atomic_add_fetch(&g_strings, 1, __ATOMIC_RELAXED) > kMaxStrings) return NULL;
  out = malloc(sizeof *out + text.bytes);
  if (out == NULL) return NULL;
  out->bytes = text.bytes;
  out->truncated = text.truncated;
  if (text.bytes != 0) memcpy(out->text, text.at, text.bytes);
  return out;
}

/* Domains are never freed, and those of one name are one. Beyond kDomains events go to the default domain. */
static void* do_domain(struct text name) {
  struct domain* out = NULL;
  uint32_t i;
  while (__atomic_exchange_n(&g_domain_lock, 1, __ATOMIC_ACQUIRE) != 0) {
  }
  for (i = 1; i < g_domains && out == NULL; ++i)
    if (g_domain[i]->bytes == name.bytes && memcmp(g_domain[i]->name, name.at, name.bytes) == 0) out = g_domain[i];
  if (out == NULL && g_domains < kDomains && (out = malloc(sizeof *out)) != NULL) {
    out->id = g_domains;
    out->bytes = name.bytes;
    if (name.bytes != 0) memcpy(out->name, name.at, name.bytes);
    g_domain[g_domains++] = out;
  }
  __atomic_store_n(&g_domain_lock, 0, __ATOMIC_RELEASE);
  return out;
}

/* ---- the two that programs call most, without detours ---- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a record's head is put together as one number");
_Static_assert(CULPRIT_NVTX_MAX_TEXT % 8 == 0, "texts are copied in words");

/* Whether the longest record fits before the end of the data. */
static inline int has_room(const struct ring* ring) {
  return ((uint32_t)ring->head & (CULPRIT_NVTX_CAPACITY - 1)) <= CULPRIT_NVTX_CAPACITY - CULPRIT_NVTX_MAX_RECORD &&
         ring->head + CULPRIT_NVTX_MAX_RECORD - ring->tail_seen <= CULPRIT_NVTX_CAPACITY;
}

/* Copies a text of up to CULPRIT_NVTX_MAX_TEXT bytes and returns its length. Reads whole words as long as they lie in
   one page; nothing behind the end is handed on. */
static inline uint32_t copy_text(uint8_t* to, const char* from, uint8_t* truncated) {
  uint32_t n = 0;
  for (; n < CULPRIT_NVTX_MAX_TEXT; n += 8) {
    uint64_t word = 0;
    uint64_t zeros;
    if (((uintptr_t)(from + n) & 4095) <= 4096 - 8) {
      memcpy(&word, from + n, 8);
    } else {
      uint32_t i;
      for (i = 0; i < 8 && from[n + i] != 0; ++i) word |= (uint64_t)(uint8_t)from[n + i] << 8 * i;
    }
    zeros = (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
    if (zeros != 0) {
      word &= ((zeros & -zeros) >> 7) - 1;
      memcpy(to + n, &word, 8);
      return n + (uint32_t)__builtin_ctzll(zeros) / 8;
    }
    memcpy(to + n, &word, 8);
  }
  *truncated = from[n] != 0;
  return n;
}

static inline void finish_record(struct ring* ring, uint8_t* at, uint64_t head, uint64_t time) {
  memcpy(at, &head, 8);
  memcpy(at + 8, &time, 8);
  ring->head += head & 0xFFFF;
  __atomic_store_n(&ring->shared->head, ring->head, __ATOMIC_RELEASE);
}

static int push_a(const char* message) {
  struct ring* ring = take();
  int out;
  if (RARE(ring == NULL)) return -2;
  if (RARE(message == NULL || !has_room(ring))) {
    struct event e = {.text = ascii(message)};
    out = do_push(ring, &e);
  } else {
    uint8_t* at = ring->data + (ring->head & (CULPRIT_NVTX_CAPACITY - 1));
    uint8_t truncated = 0;
    const uint64_t bytes = copy_text(at + 16, message, &truncated);
    const uint32_t depth = ring->depth[0]++;
    out = (int)depth;
    finish_record(ring, at,
                  ((16 + bytes + 7) & ~(uint64_t)7) | (uint64_t)CULPRIT_NVTX_PUSH << 16 |
                      (uint64_t)(truncated ? CULPRIT_NVTX_TRUNCATED : 0) << 24 | bytes << 32 |
                      (uint64_t)depth_byte(depth) << 40,
                  now());
  }
  give(ring);
  return out;
}

static int pop(void) {
  struct ring* ring = take();
  int out = -2;
  if (RARE(ring == NULL)) return out;
  if (RARE(ring->depth[0] == 0 || !has_room(ring))) {
    out = do_pop(ring, 0);
  } else {
    const uint64_t time = now();
    out = (int)--ring->depth[0];
    finish_record(ring, ring->data + (ring->head & (CULPRIT_NVTX_CAPACITY - 1)),
                  16 | (uint64_t)CULPRIT_NVTX_POP << 16 | (uint64_t)depth_byte((uint32_t)out) << 40, time);
  }
  give(ring);
  return out;
}

/* ---- the callbacks ---- */

static void mark_ex(const struct nvtx_attributes* a) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = event_of(a, NULL, room);
  do_mark(&e);
}
static void mark_a(const char* message) {
  struct event e = {.text = ascii(message)};
  do_mark(&e);
}
static void mark_w(const wchar_t* message) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = {.text = wide(message, room)};
  do_mark(&e);
}
static uint64_t start_ex(const struct nvtx_attributes* a) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = event_of(a, NULL, room);
  return do_start(&e);
}
static uint64_t start_a(const char* message) {
  struct event e = {.text = ascii(message)};
  return do_start(&e);
}
static uint64_t start_w(const wchar_t* message) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = {.text = wide(message, room)};
  return do_start(&e);
}
static void end(uint64_t id) { do_end(id, 0); }
static int push_ex(const struct nvtx_attributes* a) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = event_of(a, NULL, room);
  return push_event(&e);
}
static int push_w(const wchar_t* message) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = {.text = wide(message, room)};
  return push_event(&e);
}
static void name_category_a(uint32_t category, const char* name) {
  do_name(CULPRIT_NVTX_CATEGORY_NAME, category, 0, ascii(name));
}
static void name_category_w(uint32_t category, const wchar_t* name) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  do_name(CULPRIT_NVTX_CATEGORY_NAME, category, 0, wide(name, room));
}
static void name_thread_a(uint32_t tid, const char* name) { do_name(CULPRIT_NVTX_THREAD_NAME, tid, 0, ascii(name)); }
static void name_thread_w(uint32_t tid, const wchar_t* name) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  do_name(CULPRIT_NVTX_THREAD_NAME, tid, 0, wide(name, room));
}

static void domain_mark_ex(void* domain, const struct nvtx_attributes* a) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = event_of(a, domain, room);
  do_mark(&e);
}
static uint64_t domain_start_ex(void* domain, const struct nvtx_attributes* a) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = event_of(a, domain, room);
  return do_start(&e);
}
static void domain_end(void* domain, uint64_t id) { do_end(id, domain_id(domain)); }
static int domain_push_ex(void* domain, const struct nvtx_attributes* a) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  struct event e = event_of(a, domain, room);
  return push_event(&e);
}
static int domain_pop(void* domain) {
  struct ring* ring = take();
  int out;
  if (ring == NULL) return -2;
  out = do_pop(ring, domain_id(domain));
  give(ring);
  return out;
}
static void domain_name_category_a(void* domain, uint32_t category, const char* name) {
  do_name(CULPRIT_NVTX_CATEGORY_NAME, category, domain_id(domain), ascii(name));
}
static void domain_name_category_w(void* domain, uint32_t category, const wchar_t* name) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  do_name(CULPRIT_NVTX_CATEGORY_NAME, category, domain_id(domain), wide(name, room));
}
static void* register_a(void* domain, const char* text) {
  (void)domain;
  return do_register(ascii(text));
}
static void* register_w(void* domain, const wchar_t* text) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  (void)domain;
  return do_register(wide(text, room));
}
static void* domain_create_a(const char* name) { return do_domain(ascii(name)); }
static void* domain_create_w(const wchar_t* name) {
  char room[CULPRIT_NVTX_MAX_TEXT];
  return do_domain(wide(name, room));
}
static void domain_destroy(void* domain) { (void)domain; }

/* ---- the door ---- */

static void once(void) {
  const char* folder;
  if (__atomic_exchange_n(&g_once, 1, __ATOMIC_ACQ_REL) != 0) return;
  g_clock = choose_clock();
  folder = getenv(CULPRIT_NVTX_DIR_VARIABLE);
  pthread_atfork(NULL, NULL, after_fork);
  if (folder != NULL && folder[0] == '/' && strlen(folder) < sizeof g_folder) strcpy(g_folder, folder);
}

struct entry {
  unsigned id;
  nvtx_function function;
};

static void install(const struct nvtx_callbacks* callbacks, int module, const struct entry* entries, size_t count) {
  nvtx_function** table = NULL;
  unsigned size = 0;
  size_t i;
  if (callbacks->module_table(module, &table, &size) == 0 || table == NULL) return;
  for (i = 0; i < count; ++i)
    if (entries[i].id < size && table[entries[i].id] != NULL) *table[entries[i].id] = entries[i].function;
}

#define ENTRY(id, function) \
  { id, (nvtx_function)(function) }
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Called once for every shared object of the program that has an NVTX of its own. Nonzero: we take part. */
EXPORT int InitializeInjectionNvtx2(nvtx_get_table get_table) {
  static const struct entry core[] = {
      ENTRY(NVTX_CORE_MARK_EX, mark_ex),
      ENTRY(NVTX_CORE_MARK_A, mark_a),
      ENTRY(NVTX_CORE_MARK_W, mark_w),
      ENTRY(NVTX_CORE_START_EX, start_ex),
      ENTRY(NVTX_CORE_START_A, start_a),
      ENTRY(NVTX_CORE_START_W, start_w),
      ENTRY(NVTX_CORE_END, end),
      ENTRY(NVTX_CORE_PUSH_EX, push_ex),
      ENTRY(NVTX_CORE_PUSH_A, push_a),
      ENTRY(NVTX_CORE_PUSH_W, push_w),
      ENTRY(NVTX_CORE_POP, pop),
      ENTRY(NVTX_CORE_NAME_CATEGORY_A, name_category_a),
      ENTRY(NVTX_CORE_NAME_CATEGORY_W, name_category_w),
      ENTRY(NVTX_CORE_NAME_THREAD_A, name_thread_a),
      ENTRY(NVTX_CORE_NAME_THREAD_W, name_thread_w),
  };
  static const struct entry core2[] = {
      ENTRY(NVTX_CORE2_MARK_EX, domain_mark_ex),
      ENTRY(NVTX_CORE2_START_EX, domain_start_ex),
      ENTRY(NVTX_CORE2_END, domain_end),
      ENTRY(NVTX_CORE2_PUSH_EX, domain_push_ex),
      ENTRY(NVTX_CORE2_POP, domain_pop),
      ENTRY(NVTX_CORE2_NAME_CATEGORY_A, domain_name_category_a),
      ENTRY(NVTX_CORE2_NAME_CATEGORY_W, domain_name_category_w),
      ENTRY(NVTX_CORE2_REGISTER_STRING_A, register_a),
      ENTRY(NVTX_CORE2_REGISTER_STRING_W, register_w),
      ENTRY(NVTX_CORE2_DOMAIN_CREATE_A, domain_create_a),
      ENTRY(NVTX_CORE2_DOMAIN_CREATE_W, domain_create_w),
      ENTRY(NVTX_CORE2_DOMAIN_DESTROY, domain_destroy),
  };
  const struct nvtx_callbacks* callbacks = get_table == NULL ? NULL : get_table(NVTX_TABLE_CALLBACKS);
  if (callbacks == NULL || callbacks->struct_size < sizeof *callbacks || callbacks->module_table == NULL) return 0;
  once();
  if (g_folder[0] == 0) return 0; /* nobody records: the program keeps its empty callbacks */
  install(callbacks, NVTX_MODULE_CORE, core, COUNT(core));
  install(callbacks, NVTX_MODULE_CORE2, core2, COUNT(core2));
  return 1;
}
