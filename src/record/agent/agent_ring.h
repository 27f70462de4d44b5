/* What the agent inside a recorded process and the recorder share: one page of header, the recorder's configuration, a
   ring of records. C and C++.

   The memory belongs to the process that is recorded, which may write anything into it: the recorder reads each value
   once, checks it, and never follows a pointer. The agent writes `head`, `state`, `dropped` and records, the recorder
   the rest; positions only grow, their place in the data is the value modulo the capacity. A record is never split:
   what does not fit before the end of the data is skipped by a record of type CULPRIT_AGENT_PAD. Without room a record
   is dropped and counted. */
#pragma once

#include <stdint.h>

#define CULPRIT_AGENT_MAGIC 0x544E474154504C43u /* "CLPTAGNT" */

enum {
  CULPRIT_AGENT_VERSION = 1,
  CULPRIT_AGENT_HEADER_BYTES = 4096,
  CULPRIT_AGENT_CONFIG_BYTES = 61440,
  CULPRIT_AGENT_CAPACITY = 1 << 20,
  CULPRIT_AGENT_BYTES = CULPRIT_AGENT_HEADER_BYTES + CULPRIT_AGENT_CONFIG_BYTES + CULPRIT_AGENT_CAPACITY,
  CULPRIT_AGENT_ARGUMENTS = 8,
  CULPRIT_AGENT_MAX_TEXT = 1024,
  CULPRIT_AGENT_MAX_RECORD = 24 + CULPRIT_AGENT_MAX_TEXT
};

/* What the agent does. */
enum culprit_agent_state {
  CULPRIT_AGENT_STARTING = 0,
  CULPRIT_AGENT_RUNNING = 1, /* its functions are watched, or looked for */
  CULPRIT_AGENT_STOPPED = 2, /* nothing of the process is changed any more */
  CULPRIT_AGENT_FAILED = 3   /* why says a record of type CULPRIT_AGENT_MESSAGE */
};

struct culprit_agent_header {
  uint64_t magic;
  uint32_t version;
  uint32_t capacity;
  uint32_t config_bytes;
  uint32_t state;  /* enum culprit_agent_state */
  uint64_t cpu_ns; /* that the agent's own thread has taken */
  uint64_t stack;  /* of the borrowed thread: the agent gives it back when `returned` */
  uint64_t stack_bytes;
  uint32_t begun;         /* 1: a thread of the agent runs; else it could not be started */
  uint32_t thread;        /* its id, in the process's pid namespace */
  uint64_t running_since; /* CLOCK_MONOTONIC; before `state` says so */
  uint8_t unused_0[56];   /* what different sides write lies on different cache lines */
  uint64_t head;
  uint64_t dropped;
  uint8_t unused_1[112];
  uint64_t tail;
  uint64_t alive;    /* CLOCK_MONOTONIC of the recorder; an agent that sees it stand still ends */
  uint32_t stop;     /* the recorder asks the agent to end; a futex */
  uint32_t returned; /* the borrowed thread is back where it was */
  uint8_t unused_2[104];
};

enum culprit_agent_type {
  CULPRIT_AGENT_PAD = 0,
  CULPRIT_AGENT_BEGIN = 1,    /* value: the function; arguments follow */
  CULPRIT_AGENT_END = 2,      /* value: the function */
  CULPRIT_AGENT_FUNCTION = 3, /* value: the function, text: "qualified name\0file\0line\0what was asked for" */
  CULPRIT_AGENT_MESSAGE = 4,  /* text, for the user */
  CULPRIT_AGENT_GC_BEGIN = 5, /* value: the generation */
  CULPRIT_AGENT_GC_END = 6,   /* one argument: objects that were freed */
  CULPRIT_AGENT_TYPES = 7
};

enum {
  CULPRIT_AGENT_RAISED = 1, /* the function ended by an exception */
  CULPRIT_AGENT_AWAITS =
      2, /* an END that a BEGIN of the same call may follow: a generator or coroutine gave its thread away */
  CULPRIT_AGENT_RESUMED = 4,    /* a BEGIN that follows one: the call has begun before */
  CULPRIT_AGENT_BEHIND_LOST = 8 /* of any record: those right before it were dropped */
};

struct culprit_agent_record {
  uint16_t size; /* with this head, a multiple of 8 */
  uint8_t type;
  uint8_t flags;
  int32_t tid;
  uint64_t time;
  uint32_t value;
  uint16_t text_bytes;
  uint8_t arguments; /* how many int64 follow */
  uint8_t missing;   /* bit per argument: it was no plain integer */
};

/* Filled in by the recorder in its copy of the library, before the process loads it. */
struct culprit_agent_parameters {
  uint64_t magic;
  int32_t ring_fd;  /* of the shared memory; the agent closes it */
  int32_t agent_fd; /* the library itself; the agent closes it */
  uint64_t pthread_create;
  uint64_t pthread_detach;
  uint64_t dlsym;
};
