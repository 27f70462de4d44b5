/* What the programs in the kernel hand to the recorder through the ring buffer and the maps. Included by both sides.
 * Times are CLOCK_MONOTONIC nanoseconds; ids are those of the initial pid namespace. Nothing here can hold an argument
 * of a system call, a path or user data: names of threads (the kernel's 15 characters) and addresses of code only. The one
 * exception is culprit_memory, of which the recorder keeps only the addresses of callers. */
#pragma once

#ifndef __bpf__
#include <linux/types.h>
#endif

enum culprit_record_kind {
  CULPRIT_SWITCH = 1,
  CULPRIT_WAKING = 2,
  CULPRIT_FORK = 3,
  CULPRIT_EXEC = 4,
  CULPRIT_EXIT = 5,
  CULPRIT_SYSCALL = 6,
  CULPRIT_BLOCK = 7,
  CULPRIT_CALLS = 8,
  CULPRIT_SAMPLE = 9,
  CULPRIT_MEMORY = 10,
  CULPRIT_WOKEN_SWITCH = 11,
  CULPRIT_PYTHON_STACK = 12,
  CULPRIT_STACK = 13,
};

enum { CULPRIT_COMM = 16, CULPRIT_STACK_DEPTH = 32, CULPRIT_PID_LIMIT = 1 << 22, CULPRIT_CPU_LIMIT = 1024, CULPRIT_STACK_SLOTS = 4096, CULPRIT_STACK_PLACES = 4 };

/* The name of the agent's thread ("culprit-agent", src/record/collector/agent_name.h), as two words of a little-endian
 * machine: the second without what may stand behind its end. */
#define CULPRIT_AGENT_COMM 0x2d746972706c7563ull
#define CULPRIT_AGENT_COMM_REST 0x0000746e656761ull

/* Begin of every record. */
struct culprit_head {
  __u32 kind;
  __u32 cpu;
  __u64 at;
};

struct culprit_switch {
  struct culprit_head head;
  __s32 prev_tid;
  __s32 prev_tgid;
  __s32 next_tid;
  __s32 next_tgid;
  __s16 prev_prio;
  __s16 next_prio;
  __u32 place;      /* of the program's stack pointer of prev: two waits in one call at one place have one caller */
  __u32 prev_state; /* as the kernel keeps it; 0 when preempted */
  __s32 syscall;    /* in which prev blocks; -1: none or not a target */
  __s32 stack;      /* user stack of prev: id in the map of stacks; negative: none */
  __u32 python;     /* number of its culprit_python_stack; 0: none */
  char prev_comm[CULPRIT_COMM];
  char next_comm[CULPRIT_COMM];
};

/* That was taken of a thread. */
struct culprit_last_stack {
  __u64 at;
  __u64 place;
};

/* A user stack whose place in the map of stacks another one has: such an id is made of what the frames are. */
#define CULPRIT_STACK_APART (1 << 30)
struct culprit_stack {
  struct culprit_head head;
  __s32 id;
  __u32 count;
  __u64 frames[CULPRIT_STACK_DEPTH]; /* innermost first */
};

/* In which context the waker ran: only in CULPRIT_TASK it is surely the cause. A network packet on its way to the same
 * machine is in CULPRIT_SOFTIRQ although its sender is the cause. */
enum culprit_context { CULPRIT_TASK = 0, CULPRIT_SOFTIRQ = 1, CULPRIT_HARDIRQ = 2, CULPRIT_CONTEXT_UNKNOWN = 3 };

struct culprit_waking {
  struct culprit_head head;
  __s32 tid;
  __s32 tgid;
  __s32 waker_tid;
  __s32 waker_tgid;
  __s32 prio;
  __u32 target_cpu;
  __u32 context;
  __u32 is_new; /* a thread's first wake-up */
  char comm[CULPRIT_COMM];
  char waker_comm[CULPRIT_COMM];
};

/* A switch to a thread together with the wake-up it follows: one record where there would be two. */
struct culprit_woken {
  __u64 at;
  __u32 cpu; /* of the waker */
  __u32 target_cpu;
  __s32 waker_tid;
  __s32 waker_tgid;
  __s32 prio;
  __u32 context;
  char waker_comm[CULPRIT_COMM];
};
struct culprit_woken_switch {
  struct culprit_switch to;
  struct culprit_woken woken;
};

/* The wake-up of a thread that has not got a CPU yet. Threads whose tids share a place: who comes first has it, the others'
 * wake-ups are records of their own. */
enum { CULPRIT_WAKE_SLOTS = 1 << 14 };
struct culprit_wake_slot {
  __s32 tid; /* 0: empty */
  __s32 tgid;
  struct culprit_woken woken;
};

/* Fork of a thread (tgid == parent_tgid) or a process, exec, exit. */
struct culprit_task {
  struct culprit_head head;
  __s32 tid;
  __s32 tgid;
  __s32 parent_tid;  /* fork; at exec the tid before */
  __s32 parent_tgid; /* fork */
  __u32 group_dead;  /* exit: it was the last thread of its process */
  __u32 pad;
  char comm[CULPRIT_COMM];
};

/* One long system call; head.at is its end. */
struct culprit_syscall {
  struct culprit_head head;
  __u64 begin;
  __s32 tid;
  __s32 tgid;
  __s32 nr;
  __s32 error; /* errno, 0 when it succeeded */
};

/* The calls of one number that a thread made since the begin; told about once a second when there are new ones, and when
 * the thread ends. */
struct culprit_call_total {
  __s32 nr;
  __u32 pad;
  __u64 count;
  __u64 timed; /* of them; the times are of these */
  __u64 total_ns;
  __u64 max_ns;
};
struct culprit_calls {
  struct culprit_head head;
  __s32 tid;
  __s32 tgid;
  struct culprit_call_total total;
};
/* A thread that makes more different calls than it has places keeps the further ones in the map of totals. */
enum { CULPRIT_CALL_PLACES = 64, CULPRIT_CALL_TRIES = 8 };

/* One request of a block device; head.at is its completion. */
struct culprit_block {
  struct culprit_head head;
  __u64 begin;
  __u64 sector;
  __u32 bytes;
  __u32 device; /* major << 20 | minor */
  __u32 operation;
  __s32 tid; /* who issued it; 0: unknown (not a target) */
  __s32 tgid;
  __u32 pad;
};

/* What a thread was doing when the clock of its CPU asked. Only the frames that are there are handed over: the kernel's
 * first, then the program's, each innermost first. */
enum { CULPRIT_KERNEL_FRAMES = 64, CULPRIT_USER_FRAMES = 127 };
struct culprit_sample {
  struct culprit_head head;
  __s32 tid;
  __s32 tgid;
  __u32 kernel_frames;
  __u32 user_frames;
  __u32 python; /* number of its culprit_python_stack; 0: none */
  __u32 asks;   /* of that clock since the last at which a stack was taken, this one too: it stands for them */
  char comm[CULPRIT_COMM];
  __u64 frames[CULPRIT_KERNEL_FRAMES + CULPRIT_USER_FRAMES];
};

/* What finding the callers of the next sample of this CPU takes where code keeps no frame pointers: the thread's registers
 * as DWARF numbers them, and the bytes from its stack pointer on. Only so many bytes as were there are handed over. */
enum { CULPRIT_REGISTERS = 17, CULPRIT_MEMORY_STEP = 1024, CULPRIT_MEMORY_STEPS = 16 };
struct culprit_memory {
  struct culprit_head head; /* at the time of the sample */
  __s32 tid;
  __s32 tgid;
  __u32 size;
  __u32 pad;
  __u64 registers[CULPRIT_REGISTERS];
  __u8 bytes[CULPRIT_MEMORY_STEP * CULPRIT_MEMORY_STEPS];
};

/* Where a version of CPython keeps the frames of its threads: offsets in bytes, all that is read of a frame within its
 * first 72. */
#define CULPRIT_NO_CFRAME (~0u)
#define CULPRIT_EEXIST (-17) /* of a map that has the key */
struct culprit_python {
  __u64 threads;    /* address of the pointer to the first thread */
  __u64 generation; /* stacks of another one have other numbers */
  __u32 thread_next;
  __u32 thread_ident;
  __u32 thread_frame;
  __u32 cframe_frame; /* CULPRIT_NO_CFRAME: thread_frame is the frame itself */
  __u32 frame_back;
  __u32 frame_code;
  __u32 frame_entry; /* the byte that tells how it was called */
  __u32 pad;
};

/* The functions of a Python program in which a thread was, innermost first: addresses of code objects, and in the highest
 * byte the frame's own. Told once of each stack of a process. */
enum { CULPRIT_PYTHON_FRAMES = 128 };
#define CULPRIT_CODE 0x00ffffffffffffffull
struct culprit_python_stack {
  struct culprit_head head;
  __s32 tgid;
  __u32 id;
  __u32 count;
  __u32 cut; /* there are more */
  __u64 frames[CULPRIT_PYTHON_FRAMES];
};

/* Totals since the begin. Of system calls only those without a place in their thread. */
struct culprit_syscall_key {
  __s32 tid;
  __s32 nr;
};
struct culprit_total {
  __u64 count;
  __u64 total_ns;
  __u64 max_ns;
  __u64 bytes; /* of requests */
  __u64 timed; /* of the calls; requests are all timed */
  __s32 tgid;
  __u32 pad;
};
struct culprit_block_key {
  __u32 device;
  __u32 operation;
  __s32 tgid; /* who issued it; 0: the kernel, or no target */
};

/* How durations spread, since the begin: of a system call of a process, of a kind of request to a disk. Eight buckets for each
 * doubling of nanoseconds (src/stats/log_buckets.h). */
enum { CULPRIT_TIME_BUCKETS = 312 };
struct culprit_times_key {
  __s32 tgid;
  __s32 nr;     /* of the call, or the operation */
  __u32 device; /* 0: a system call, or answers over Unix sockets */
};
struct culprit_times {
  __u32 counts[CULPRIT_TIME_BUCKETS];
  __u32 unended; /* calls that were to be timed and had not ended with the window in which they began */
  __u64 bytes;   /* of the answers */
};

/* In the place of a call's number: how long a connection waited for an answer; the device is the local port. */
enum { CULPRIT_ANSWER = -2 };

/* How often a process sent something over a socket, and how often of that while requests were looked at. Its place is its
 * number modulo CULPRIT_SENDS_SLOTS. */
enum { CULPRIT_SENDS_SLOTS = 4096 };
struct culprit_sends {
  __u64 all;
  __u64 seen;
};

/* After how many others an answer of as many bytes came again on its connection. */
enum { CULPRIT_MOST_GAP = 64, CULPRIT_UNKNOWN_GAP = 0 };
struct culprit_gap_key {
  __u32 port; /* 0: Unix sockets */
  __u32 bytes;
  __u32 gap; /* 1: at once; CULPRIT_MOST_GAP: so many or more; CULPRIT_UNKNOWN_GAP: requests in between were not looked at */
};

/* What the programs keep of a CPU. */
struct culprit_cpu {
  /* The thread that ran next after a recorded switch: its leaving is recorded too, also of one that is no target, so that
   * the file knows how long it ran instead. */
  __u32 instead;
  /* Inside an interrupt: whoever is current then did not cause what happens. */
  __u32 in_hardirq;
  __u32 in_softirq;
  __u32 asks; /* of its clock at which no stack was taken, since the last at which one was */
  __u32 pad[12]; /* CPUs share no cache line */
};

/* A question of the recorder: what is the kernel's function at this address called? */
enum { CULPRIT_FUNCTION_NAME = 128 };
struct culprit_function {
  __u64 address;
  char name[CULPRIT_FUNCTION_NAME]; /* "name", "name [module]", or the address again where nobody knows */
};

/* Losses, counted in the kernel. */
struct culprit_losses {
  __u64 ring_full_sched;
  __u64 ring_full_syscalls;
  __u64 ring_full_samples;
  __u64 stacks_missed;     /* the kernel could not give them, or the ring was full for those without a place in the map */
  __u64 totals_missed;     /* calls or requests that are in no total: the map was full, or the ring when a thread ended */
  __u64 requests_missed;   /* the map of open block requests is full */
  __u64 times_missed;      /* calls, requests or answers whose time is in no distribution: their map is full */
};
