/* The ring through which a recorded program hands its NVTX events to the recorder. C and C++: the injected library
   writes it, the collector reads it.

   Each thread of the program has a ring of its own, a file "PID-TID-CREATED.ring" in the folder that the variable
   CULPRIT_NVTX_DIR names: one page of header, then a power of two of data. The thread alone writes `head` and records,
   the recorder alone writes `tail`; both only grow, a position in the data is the value modulo the capacity. A record
   is never split: what does not fit before the end of the data is skipped with a record of type CULPRIT_NVTX_PAD. When
   there is no room the thread drops the record and counts it. */
#pragma once

#include <stdint.h>

#define CULPRIT_NVTX_DIR_VARIABLE "CULPRIT_NVTX_DIR"
#define CULPRIT_NVTX_MAGIC 0x5854564E504C5543u /* "CULPNVTX" */

enum {
  CULPRIT_NVTX_VERSION = 1,
  CULPRIT_NVTX_HEADER_BYTES = 4096,
  CULPRIT_NVTX_CAPACITY = 256 * 1024,
  CULPRIT_NVTX_MAX_TEXT = 240,
  CULPRIT_NVTX_MAX_RECORD = 16 + 16 + CULPRIT_NVTX_MAX_TEXT
};

enum culprit_nvtx_clock { CULPRIT_NVTX_CLOCK_MONOTONIC = 0, CULPRIT_NVTX_CLOCK_TSC = 1 };

struct culprit_nvtx_header {
  uint64_t magic;
  uint32_t version;
  uint32_t capacity;
  int32_t pid;
  int32_t tid;
  uint32_t clock;       /* enum culprit_nvtx_clock */
  uint32_t finished;    /* the thread has ended */
  uint8_t unused_0[96]; /* what different sides write lies on different cache lines */
  uint64_t head;        /* written by the thread */
  uint64_t dropped;     /* records that found no room */
  uint8_t unused_1[112];
  uint64_t tail; /* written by the recorder */
};

enum culprit_nvtx_type {
  CULPRIT_NVTX_PAD = 0,
  CULPRIT_NVTX_PUSH = 1,
  CULPRIT_NVTX_POP = 2,
  CULPRIT_NVTX_MARK = 3,
  CULPRIT_NVTX_START = 4,           /* value: id of the range */
  CULPRIT_NVTX_END = 5,             /* value: id of the range */
  CULPRIT_NVTX_THREAD_NAME = 6,     /* value: thread id */
  CULPRIT_NVTX_CATEGORY_NAME = 7,   /* value: number of the category */
  CULPRIT_NVTX_DOMAIN_NAME = 8,     /* comes before the first use of a domain in this ring */
  CULPRIT_NVTX_REGISTERED_TYPES = 9 /* one more than the last */
};

/* Flags. */
enum {
  CULPRIT_NVTX_PAYLOAD_MASK = 7, /* NVTX's payload type, 0: none; the payload is the second value */
  CULPRIT_NVTX_HAS_VALUE = 8,    /* category of an event, or what the type says */
  CULPRIT_NVTX_TRUNCATED = 16    /* the text was longer */
};

struct culprit_nvtx_record {
  uint16_t size; /* with this head, a multiple of 8 */
  uint8_t type;
  uint8_t flags;
  uint8_t text_bytes;
  uint8_t depth;   /* of push and pop: how many ranges of this domain lie around it, 255: so many or more */
  uint16_t domain; /* 0: the default one */
  uint64_t time;
  /* uint64_t value, when flagged; uint64_t payload, when flagged; text */
};
