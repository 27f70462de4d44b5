/* The binary interface between programs with NVTX (version 3) and tools: numbers and layouts only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

enum {
  NVTX_CORE_MARK_EX = 1,
  NVTX_CORE_MARK_A = 2,
  NVTX_CORE_MARK_W = 3,
  NVTX_CORE_START_EX = 4,
  NVTX_CORE_START_A = 5,
  NVTX_CORE_START_W = 6,
  NVTX_CORE_END = 7,
  NVTX_CORE_PUSH_EX = 8,
  NVTX_CORE_PUSH_A = 9,
  NVTX_CORE_PUSH_W = 10,
  NVTX_CORE_POP = 11,
  NVTX_CORE_NAME_CATEGORY_A = 12,
  NVTX_CORE_NAME_CATEGORY_W = 13,
  NVTX_CORE_NAME_THREAD_A = 14,
  NVTX_CORE_NAME_THREAD_W = 15
};
enum {
  NVTX_CORE2_MARK_EX = 1,
  NVTX_CORE2_START_EX = 2,
  NVTX_CORE2_END = 3,
  NVTX_CORE2_PUSH_EX = 4,
  NVTX_CORE2_POP = 5,
  NVTX_CORE2_NAME_CATEGORY_A = 8,
  NVTX_CORE2_NAME_CATEGORY_W = 9,
  NVTX_CORE2_REGISTER_STRING_A = 10,
  NVTX_CORE2_REGISTER_STRING_W = 11,
  NVTX_CORE2_DOMAIN_CREATE_A = 12,
  NVTX_CORE2_DOMAIN_CREATE_W = 13,
  NVTX_CORE2_DOMAIN_DESTROY = 14
};

typedef void (*nvtx_function)(void);

struct nvtx_callbacks {
  size_t struct_size;
  /* Gives the array of pointers to a module's function pointers, and its length; 0 when there is no such module. */
  int (*module_table)(int module, nvtx_function*** table, unsigned* size);
};

typedef const void* (*nvtx_get_table)(uint32_t id);

enum { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_WIDE = 2, NVTX_MESSAGE_REGISTERED = 3 };
enum { NVTX_PAYLOAD_U64 = 1, NVTX_PAYLOAD_I64, NVTX_PAYLOAD_F64, NVTX_PAYLOAD_U32, NVTX_PAYLOAD_I32, NVTX_PAYLOAD_F32 };

struct nvtx_attributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload; /* a union; narrower types occupy its first four bytes */
  int32_t message_type;
  const void* message;
};
