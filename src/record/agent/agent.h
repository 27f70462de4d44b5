/* What the two halves of the agent share. Nothing here may call a function that is not in the agent: pointers to those
   of the process come from the recorder (dlsym among them). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent_ring.h"

/* The memory shared with the recorder; NULL when nobody records. */
extern struct culprit_agent_header* culprit_agent_shared;

/* The compiler asks for these, too. */
void* memcpy(void* restrict to, const void* restrict from, size_t bytes);
void* memset(void* to, int value, size_t bytes);

int64_t culprit_agent_now(void);
int32_t culprit_agent_thread(void);
long culprit_agent_call(long number, long a, long b, long c, long d);
void* culprit_agent_symbol(const char* name);

/* Arguments are int64 values; text may be NULL. Only one thread of the process at a time: whoever holds Python's lock.
 */
void culprit_agent_write(uint8_t type, uint8_t flags, int32_t tid, uint32_t value, const int64_t* arguments,
                         uint8_t count, uint8_t missing, const char* text, size_t text_bytes);

/* Runs in the agent's own thread. True when there is Python; false with a message written. */
int culprit_python_begin(void);
/* In a child that was forked: nobody listens there. */
void culprit_python_in_child(void);
/* Now and then: functions that were imported since. */
void culprit_python_look(void);
/* Gives everything back, and the shared memory up: after it no thread of the process writes. */
void culprit_python_end(void);
