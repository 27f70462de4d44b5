/* A small client of NVTX (version 3) for programs that are built where NVIDIA's headers are not installed. C99 and C++.

   It follows the public contract of NVTX tools: when NVTX_INJECTION64_PATH names a library, that library's
   InitializeInjectionNvtx2 gets a function that hands out tables; the tool puts its own functions into the tables of
   pointers that it is interested in; a pointer it left alone costs a load and a branch. Every file that
   includes this header has a state of its own. */
#ifndef NVTX_CLIENT_H_
#define NVTX_CLIENT_H_

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Numbers of the callbacks within their module. */
enum {
  NVTX_CLIENT_CORE = 1,
  NVTX_CLIENT_CORE2 = 5,
  NVTX_CLIENT_SLOTS = 16,
  NVTX_CLIENT_MARK_EX = 1,
  NVTX_CLIENT_MARK = 2,
  NVTX_CLIENT_START_EX = 4,
  NVTX_CLIENT_START = 5,
  NVTX_CLIENT_END = 7,
  NVTX_CLIENT_PUSH_EX = 8,
  NVTX_CLIENT_PUSH = 9,
  NVTX_CLIENT_POP = 11,
  NVTX_CLIENT_NAME_CATEGORY = 12,
  NVTX_CLIENT_NAME_THREAD = 14,
  NVTX_CLIENT_DOMAIN_MARK_EX = 1,
  NVTX_CLIENT_DOMAIN_START_EX = 2,
  NVTX_CLIENT_DOMAIN_END = 3,
  NVTX_CLIENT_DOMAIN_PUSH_EX = 4,
  NVTX_CLIENT_DOMAIN_POP = 5,
  NVTX_CLIENT_DOMAIN_NAME_CATEGORY = 8,
  NVTX_CLIENT_REGISTER_STRING = 10,
  NVTX_CLIENT_DOMAIN_CREATE = 12,
  NVTX_CLIENT_DOMAIN_DESTROY = 14,
};

typedef void (*nvtx_client_function)(void);

typedef struct { /* what NVTX calls event attributes, version 3, 48 bytes */
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  union {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
  } payload;
  int32_t message_type; /* 1: ascii, 3: handle of a registered string */
  const void* message;
} nvtx_client_attributes;

static nvtx_client_function nvtx_client_core[NVTX_CLIENT_SLOTS], nvtx_client_core2[NVTX_CLIENT_SLOTS];
static nvtx_client_function* nvtx_client_core_table[NVTX_CLIENT_SLOTS + 1];
static nvtx_client_function* nvtx_client_core2_table[NVTX_CLIENT_SLOTS + 1];
static int nvtx_client_ready;
static pthread_once_t nvtx_client_once = PTHREAD_ONCE_INIT;

static int nvtx_client_table(int module, nvtx_client_function*** table, unsigned* size) {
  if (module != NVTX_CLIENT_CORE && module != NVTX_CLIENT_CORE2) return 0;
  if (table) *table = module == NVTX_CLIENT_CORE ? nvtx_client_core_table : nvtx_client_core2_table;
  if (size) *size = NVTX_CLIENT_SLOTS;
  return 1;
}

static void nvtx_client_tool_version(uint32_t version) { (void)version; }

static const void* nvtx_client_export(uint32_t id) {
  static const struct {
    size_t size;
    int (*table)(int, nvtx_client_function***, unsigned*);
  } callbacks = {sizeof callbacks, nvtx_client_table};
  static const struct {
    size_t size;
    uint32_t version, reserved;
    void (*set)(uint32_t);
  } version = {sizeof version, 3, 0, nvtx_client_tool_version};
  return id == 1 ? (const void*)&callbacks : id == 3 ? (const void*)&version : NULL;
}

static void nvtx_client_load(void) {
  const char* path = getenv(sizeof(void*) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH");
  void* library = path ? dlopen(path, RTLD_LAZY) : NULL;
  int i;
  for (i = 1; i < NVTX_CLIENT_SLOTS; ++i) {
    nvtx_client_core_table[i] = &nvtx_client_core[i];
    nvtx_client_core2_table[i] = &nvtx_client_core2[i];
  }
  if (library) {
    union {
      void* object;
      int (*call)(const void* (*)(uint32_t));
    } init;
    init.object = dlsym(library, "InitializeInjectionNvtx2");
    if (!init.object || init.call(nvtx_client_export) == 0) {
      for (i = 0; i < NVTX_CLIENT_SLOTS; ++i) nvtx_client_core[i] = nvtx_client_core2[i] = NULL;
      dlclose(library);
    }
  }
  __atomic_store_n(&nvtx_client_ready, 1, __ATOMIC_RELEASE);
}

/* The tool's function for a callback of the core (or core2) module; NULL when it has none. */
static inline nvtx_client_function nvtx_client_callback(int module, int id) {
  if (!__atomic_load_n(&nvtx_client_ready, __ATOMIC_ACQUIRE)) pthread_once(&nvtx_client_once, nvtx_client_load);
  return (module == NVTX_CLIENT_CORE ? nvtx_client_core : nvtx_client_core2)[id];
}

static inline int nvtx_client_push(const char* name) {
  const nvtx_client_function f = nvtx_client_callback(NVTX_CLIENT_CORE, NVTX_CLIENT_PUSH);
  return f ? ((int (*)(const char*))f)(name) : -2;
}
static inline int nvtx_client_pop(void) {
  const nvtx_client_function f = nvtx_client_callback(NVTX_CLIENT_CORE, NVTX_CLIENT_POP);
  return f ? ((int (*)(void))f)() : -2;
}
static inline void nvtx_client_mark(const char* name) {
  const nvtx_client_function f = nvtx_client_callback(NVTX_CLIENT_CORE, NVTX_CLIENT_MARK);
  if (f) ((void (*)(const char*))f)(name);
}

#endif
