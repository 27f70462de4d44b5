// The programs Culprit runs in the kernel: BTF tracepoints only, because kprobes, fentry and tracefs are often missing.
//
// A program first asks whether the process is a target (one bit of a bitmap by tgid) and returns at once when it is not.
// Records go to one ring buffer without waking the recorder, which looks every 50 ms; only when more than wake_bytes wait
// it is woken. Nobody waits here: what does not fit is dropped and counted.
#include "core_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "records.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { TASK_DEAD_BITS = 0x80 };
enum { KERNEL_ERRNO_LIMIT = 4095 };

// Set by the loader.
const volatile __u32 has_prev_state = 0;  // sched_switch has a fourth argument (Linux 5.18)
const volatile __u32 take_stacks = 0;
const volatile __u64 stack_pause_ns = 1000000;
const volatile __u64 wake_bytes = 1 << 20;
const volatile __u64 long_syscall_ns = 1000000;
const volatile __u64 long_block_ns = 1000000;
const volatile __s64 preempt_count_at = 0;  // of a CPU, from its run queue; 0: not known
const volatile __u32 take_memory = 0;  // of samples, to find callers without frame pointers
const volatile __u64 all_timed = 8192;  // begins and ends of calls of one number between two tellings: further ones are timed one in eight

// Changed while running.
volatile __u32 call_window = 0;  // in which system calls are timed; one that began in another window is not
volatile __u32 untimed = 0;      // calls of this window are not timed
volatile __u32 uncounted = 0;    // no window is open
volatile __u32 cut = 0;          // threads are asked after a window: a call that has begun in it and not ended is cut
volatile __u32 over = 0;         // the recording: until all programs are detached the busiest ones tell nothing more
volatile __u32 take_every = 1;   // of the asks of a CPU's clock: a stack is taken at one in so many
volatile __s32 measured = 0;     // thread of the recorder that measures what counting a call costs; its calls are told to nobody
volatile __u32 woken = 0;  // the recorder was woken and has not looked yet: once is enough, each time is an interrupt
__u64 targets[CULPRIT_PID_LIMIT / 64] = {};
struct culprit_losses losses = {};
struct culprit_function asked = {};
struct culprit_last_stack last_stacks[CULPRIT_STACK_SLOTS * CULPRIT_STACK_PLACES] = {};  // by tid and place, shared when two meet

struct culprit_cpu cpus[CULPRIT_CPU_LIMIT] = {};
struct culprit_wake_slot wakes[CULPRIT_WAKE_SLOTS] = {};

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} ring SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_STACK_TRACE);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, CULPRIT_STACK_DEPTH * sizeof(__u64));
  __uint(max_entries, 16384);
} stacks SEC(".maps");

// Of a thread, kept with it: found without a hash, and gone with it.
struct call_place {
  struct culprit_call_total total; /* count 0: empty */
  __u64 told;                      /* count and timed together when they were told last */
};
struct thread_calls {
  __u64 begin; /* of the call it is in; 0: none that was seen to begin, or it is not timed */
  __s32 nr;
  __u32 place; /* of the call it is in; CULPRIT_CALL_PLACES: in the map of totals */
  __u32 window;
  __u32 pad;
  struct call_place places[CULPRIT_CALL_PLACES];
};
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct thread_calls);
} thread_calls SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, struct culprit_syscall_key);
  __type(value, struct culprit_total);
} syscall_totals SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct culprit_sample);
} sample_room SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct culprit_memory);
} memory_room SEC(".maps");

struct open_request {
  __u64 begin;
  __u64 sector;
  __u32 bytes;
  __u32 device;
  __u32 operation;
  __s32 tid;
  __s32 tgid;
  __u32 pad;
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, __u64);
  __type(value, struct open_request);
} open_requests SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, struct culprit_block_key);
  __type(value, struct culprit_total);
} block_totals SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct culprit_times_key);
  __type(value, struct culprit_times);
} times SEC(".maps");
struct culprit_times no_times = {};

// Of answers apart: their number is the program's, and is read often.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 512);
  __type(key, struct culprit_times_key);
  __type(value, struct culprit_times);
} answer_times SEC(".maps");

static __always_inline int is_target(__u32 tgid) {
  tgid &= CULPRIT_PID_LIMIT - 1;
  return (targets[tgid / 64] >> (tgid % 64)) & 1;
}

// The recorder's own thread inside a target, by the name that it gives itself first of all: none of the program's.
static __always_inline int is_agent(struct task_struct *task) {
  const __u64 *name = (const __u64 *)&task->comm[0];
  const __u64 *rest = (const __u64 *)&task->comm[8];
  return *name == CULPRIT_AGENT_COMM && (*rest & 0xffffffffffffull) == CULPRIT_AGENT_COMM_REST;
}

static __always_inline int is_watched(struct task_struct *task) { return is_target(task->tgid) && !is_agent(task); }

static __always_inline void set_target(__u32 tgid, int on) {
  tgid &= CULPRIT_PID_LIMIT - 1;
  __u64 bit = 1ull << (tgid % 64);
  if (on)
    __sync_fetch_and_or(&targets[tgid / 64], bit);
  else
    __sync_fetch_and_and(&targets[tgid / 64], ~bit);
}

static __always_inline __u64 submit_flags(void) {
  if (woken || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) <= wake_bytes) return BPF_RB_NO_WAKEUP;
  woken = 1;
  return BPF_RB_FORCE_WAKEUP;
}

// A thread that blocks again and again at one place gives its stack once within this time: walking it costs more than all
// the rest. At several places by turns it does for each of them, up to four times as often where two meet.
static __always_inline int stack_is_due(__u32 tid, __u64 place, __u64 now) {
  __u32 slot = (tid & (CULPRIT_STACK_SLOTS - 1)) * CULPRIT_STACK_PLACES + ((place >> 4 ^ place >> 7) & (CULPRIT_STACK_PLACES - 1));
  struct culprit_last_stack *last = &last_stacks[slot & (CULPRIT_STACK_SLOTS * CULPRIT_STACK_PLACES - 1)];
  if (now - last->at < (last->place == place ? stack_pause_ns : stack_pause_ns / 4)) return 0;
  last->at = now;
  last->place = place;
  return 1;
}

static __always_inline void fill_head(struct culprit_head *head, __u32 kind, __u64 at) {
  head->kind = kind;
  head->cpu = bpf_get_smp_processor_id();
  head->at = at;
}

static __always_inline void copy_comm(char *to, struct task_struct *task) {
  __u64 *words = (__u64 *)to;
  words[0] = *(__u64 *)&task->comm[0];
  words[1] = *(__u64 *)&task->comm[8];
}

static __always_inline __u32 state_of(struct task_struct *task) {
  if (bpf_core_field_exists(task->__state)) return task->__state;
  struct task_struct___old *old = (void *)task;
  return BPF_CORE_READ(old, state);
}

// The system call in which a task that is not running stands; -1 for interrupts, faults and kernel threads.
static __always_inline __s32 syscall_of(struct task_struct *task) {
  struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
  return (__s32)BPF_CORE_READ(regs, orig_ax);
#else
  return BPF_CORE_READ(regs, syscallno);
#endif
}

// Of the program, where it entered the kernel.
static __always_inline __u64 stack_pointer_of(struct task_struct *task) {
  struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
  return BPF_CORE_READ(regs, sp);
}

static __always_inline struct culprit_cpu *this_cpu(void) {
  return &cpus[bpf_get_smp_processor_id() & (CULPRIT_CPU_LIMIT - 1)];
}

// Timers and devices wake threads from interrupts. The CPU's preemption count tells; where the loader does not know where
// it is, the programs below tell, for which each interrupt pays.
enum { IN_SOFTIRQ = 1 << 8, IN_HARDIRQ = 0xff << 16 };

static __always_inline __u32 context_of(struct task_struct *waker) {
  if (preempt_count_at && bpf_core_field_exists(waker->se.cfs_rq) && bpf_core_field_exists(struct cfs_rq, rq)) {
    __u32 count = 0;
    bpf_probe_read_kernel(&count, sizeof(count), (char *)waker->se.cfs_rq->rq + preempt_count_at);
    return count & IN_HARDIRQ ? CULPRIT_HARDIRQ : count & IN_SOFTIRQ ? CULPRIT_SOFTIRQ : CULPRIT_TASK;
  }
  struct culprit_cpu *cpu = this_cpu();
  return cpu->in_hardirq ? CULPRIT_HARDIRQ : cpu->in_softirq ? CULPRIT_SOFTIRQ : CULPRIT_TASK;
}

SEC("tp_btf/hrtimer_expire_entry")
int on_timer_entry(__u64 *ctx) {
  this_cpu()->in_hardirq = 1;
  return 0;
}
SEC("tp_btf/hrtimer_expire_exit")
int on_timer_exit(__u64 *ctx) {
  this_cpu()->in_hardirq = 0;
  return 0;
}
SEC("tp_btf/irq_handler_entry")
int on_irq_entry(__u64 *ctx) {
  this_cpu()->in_hardirq = 1;
  return 0;
}
SEC("tp_btf/irq_handler_exit")
int on_irq_exit(__u64 *ctx) {
  this_cpu()->in_hardirq = 0;
  return 0;
}
SEC("tp_btf/softirq_entry")
int on_softirq_entry(__u64 *ctx) {
  this_cpu()->in_softirq = 1;
  return 0;
}
SEC("tp_btf/softirq_exit")
int on_softirq_exit(__u64 *ctx) {
  this_cpu()->in_softirq = 0;
  return 0;
}

#include "python.bpf.h"

static __always_inline struct culprit_wake_slot *wake_slot_of(__s32 tid) { return &wakes[tid & (CULPRIT_WAKE_SLOTS - 1)]; }

// Where another stack has the place of this one in the map.
static __always_inline __s32 stack_apart(__u64 *ctx, __u64 at) {
  struct culprit_stack *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) return -1;
  long size = bpf_get_stack(ctx, record->frames, sizeof(record->frames), BPF_F_USER_STACK);
  if (size <= 0) {
    bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
    return -1;
  }
  __u32 count = (__u32)size / sizeof(__u64);
  __u64 hash = count;
  for (__u32 i = 0; i < CULPRIT_STACK_DEPTH && i < count; ++i) {
    hash = (hash ^ record->frames[i]) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  fill_head(&record->head, CULPRIT_STACK, at);
  record->id = CULPRIT_STACK_APART | (__s32)(hash & (CULPRIT_STACK_APART - 1));
  record->count = count;
  __s32 id = record->id;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  return id;
}

static __always_inline void fill_switch(__u64 *ctx, struct culprit_switch *record, __u32 kind, int from) {
  struct task_struct *prev = (struct task_struct *)ctx[1];
  struct task_struct *next = (struct task_struct *)ctx[2];
  fill_head(&record->head, kind, bpf_ktime_get_ns());
  record->prev_tid = prev->pid;
  record->prev_tgid = prev->tgid;
  record->next_tid = next->pid;
  record->next_tgid = next->tgid;
  record->prev_prio = prev->prio;
  record->next_prio = next->prio;
  __u32 state = 0;
  if (!ctx[0]) state = has_prev_state ? (__u32)ctx[3] : state_of(prev);
  record->prev_state = state;
  record->place = 0;
  record->syscall = -1;
  record->stack = -1;
  record->python = 0;
  copy_comm(record->prev_comm, prev);
  copy_comm(record->next_comm, next);
  if (from && state && !(state & TASK_DEAD_BITS)) {
    record->syscall = syscall_of(prev);
    // One that ends has no stack any more when it waits for its files to be closed.
    if (take_stacks && prev->mm) record->place = (__u32)stack_pointer_of(prev);
    if (record->place && stack_is_due(prev->pid, record->place, record->head.at)) {
      __s32 stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK | BPF_F_FAST_STACK_CMP);
      if (stack == CULPRIT_EEXIST) stack = stack_apart(ctx, record->head.at);
      record->stack = stack;
      if (stack < 0) __sync_fetch_and_add(&losses.stacks_missed, 1);
      record->python = python_stack_of(prev, record->head.at, 1);
    }
  }
}

SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx) {
  struct task_struct *prev = (struct task_struct *)ctx[1];
  struct task_struct *next = (struct task_struct *)ctx[2];
  struct culprit_cpu *cpu = this_cpu();
  if (over) return 0;
  int from = is_watched(prev);
  int to = is_watched(next);
  if (!from && !to && !cpu->instead) return 0;
  // A thread of a target, too: by the time it leaves it may have become an agent.
  cpu->instead = (from || to) ? next->pid : 0;

  struct culprit_wake_slot *slot = wake_slot_of(next->pid);
  if (to && slot->tid == next->pid) {
    struct culprit_woken_switch *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (record) {
      fill_switch(ctx, &record->to, CULPRIT_WOKEN_SWITCH, from);
      record->woken = slot->woken;
      bpf_ringbuf_submit(record, submit_flags());
    } else {
      __sync_fetch_and_add(&losses.ring_full_sched, 2);
    }
    slot->tid = 0;
    return 0;
  }
  struct culprit_switch *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) {
    __sync_fetch_and_add(&losses.ring_full_sched, 1);
    return 0;
  }
  fill_switch(ctx, record, CULPRIT_SWITCH, from);
  bpf_ringbuf_submit(record, submit_flags());
  return 0;
}

// Waits with the thread for its CPU. False when another thread has the place, or this one has not been told yet.
static __always_inline int keep_wake(struct task_struct *task, struct task_struct *waker) {
  struct culprit_wake_slot *slot = wake_slot_of(task->pid);
  if (__sync_val_compare_and_swap(&slot->tid, 0, -1) != 0) return 0;
  slot->tgid = task->tgid;
  slot->woken.at = bpf_ktime_get_ns();
  slot->woken.cpu = bpf_get_smp_processor_id();
  slot->woken.target_cpu = bpf_core_field_exists(task->wake_cpu) ? task->wake_cpu : slot->woken.cpu;
  slot->woken.waker_tid = waker->pid;
  slot->woken.waker_tgid = waker->tgid;
  slot->woken.prio = task->prio;
  slot->woken.context = context_of(waker);
  copy_comm(slot->woken.waker_comm, waker);
  __sync_val_compare_and_swap(&slot->tid, -1, task->pid);
  return 1;
}

static __always_inline int waking(struct task_struct *task, __u32 is_new) {
  if (over || !is_watched(task)) return 0;
  struct task_struct *waker = bpf_get_current_task_btf();
  if (!is_new && keep_wake(task, waker)) return 0;
  struct culprit_waking *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) {
    __sync_fetch_and_add(&losses.ring_full_sched, 1);
    return 0;
  }
  fill_head(&record->head, CULPRIT_WAKING, bpf_ktime_get_ns());
  record->tid = task->pid;
  record->tgid = task->tgid;
  record->waker_tid = waker->pid;
  record->waker_tgid = waker->tgid;
  record->prio = task->prio;
  record->target_cpu = bpf_core_field_exists(task->wake_cpu) ? task->wake_cpu : record->head.cpu;
  record->context = context_of(waker);
  record->is_new = is_new;
  copy_comm(record->comm, task);
  copy_comm(record->waker_comm, waker);
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  return 0;
}

SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx) { return waking((struct task_struct *)ctx[0], 0); }

SEC("tp_btf/sched_wakeup_new")
int on_wakeup_new(__u64 *ctx) { return waking((struct task_struct *)ctx[0], 1); }

static __always_inline int task_record(__u32 kind, struct task_struct *task, __s32 parent_tid, __s32 parent_tgid,
                                       __u32 group_dead) {
  struct culprit_task *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) {
    __sync_fetch_and_add(&losses.ring_full_sched, 1);
    return 0;
  }
  fill_head(&record->head, kind, bpf_ktime_get_ns());
  record->tid = task->pid;
  record->tgid = task->tgid;
  record->parent_tid = parent_tid;
  record->parent_tgid = parent_tgid;
  record->group_dead = group_dead;
  record->pad = 0;
  copy_comm(record->comm, task);
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx) {
  struct task_struct *parent = (struct task_struct *)ctx[0];
  struct task_struct *child = (struct task_struct *)ctx[1];
  if (!is_target(parent->tgid)) {
    // A pid is used again: whatever its bit says was about somebody else.
    if (child->pid == child->tgid && is_target(child->tgid)) set_target(child->tgid, 0);
    return 0;
  }
  if (child->tgid != parent->tgid) set_target(child->tgid, 1);
  return task_record(CULPRIT_FORK, child, parent->pid, parent->tgid, 0);
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx) {
  struct task_struct *task = (struct task_struct *)ctx[0];
  if (!is_target(task->tgid)) return 0;
  return task_record(CULPRIT_EXEC, task, (__s32)ctx[1], task->tgid, 0);
}

// Tells what is new; gives the number of calls that found no room in the ring.
static __always_inline __u64 tell_calls(struct task_struct *task, struct thread_calls *own) {
  __u64 untold = 0;
  for (__u32 i = 0; i < CULPRIT_CALL_PLACES; ++i) {
    struct call_place *place = &own->places[i];
    __u64 news = place->total.count + place->total.timed;
    if (news == place->told) continue;
    struct culprit_calls *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
      untold += place->total.count;
      continue;
    }
    fill_head(&record->head, CULPRIT_CALLS, bpf_ktime_get_ns());
    record->tid = task->pid;
    record->tgid = task->tgid;
    record->total = place->total;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    place->told = news;
  }
  return untold;
}

static __always_inline struct culprit_times *times_in(void *map, __s32 tgid, __s32 nr, __u32 device) {
  struct culprit_times_key key = {.tgid = tgid, .nr = nr, .device = device};
  struct culprit_times *all = bpf_map_lookup_elem(map, &key);
  if (all) return all;
  bpf_map_update_elem(map, &key, &no_times, BPF_NOEXIST);
  return bpf_map_lookup_elem(map, &key);
}

static __always_inline struct culprit_times *times_of(__s32 tgid, __s32 nr, __u32 device) {
  struct culprit_times *all = times_in(&times, tgid, nr, device);
  if (!all) __sync_fetch_and_add(&losses.times_missed, 1);
  return all;
}

// Read once a second by the recorder. What does not fit then is told the next time: these are totals.
SEC("iter/task")
int on_ask(struct bpf_iter__task *ctx) {
  struct task_struct *task = ctx->task;
  if (!task || !is_watched(task)) return 0;
  struct thread_calls *own = bpf_task_storage_get(&thread_calls, task, 0, 0);
  if (!own) return 0;
  if (cut && own->begin && own->window == call_window) {
    own->begin = 0;
    struct culprit_times *all = times_of(task->tgid, own->nr, 0);
    if (all) __sync_fetch_and_add(&all->unended, 1);
  }
  tell_calls(task, own);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx) {
  struct task_struct *task = (struct task_struct *)ctx[0];
  if (!is_target(task->tgid)) return 0;
  struct task_struct *current = bpf_get_current_task_btf();
  struct thread_calls *own = is_agent(current) ? 0 : bpf_task_storage_get(&thread_calls, current, 0, 0);
  __u64 untold = own ? tell_calls(current, own) : 0;
  if (untold) __sync_fetch_and_add(&losses.totals_missed, untold);
  // The bit stays: the last switch of the thread is still to come. The recorder clears it.
  return task_record(CULPRIT_EXIT, task, 0, 0, task->signal->live.counter == 0);
}

static __always_inline void add_total(struct culprit_total *total, __u64 duration, __u64 bytes) {
  __sync_fetch_and_add(&total->count, 1);
  __sync_fetch_and_add(&total->total_ns, duration);
  __sync_fetch_and_add(&total->bytes, bytes);
  if (duration > total->max_ns) total->max_ns = duration;
}

// Reading the clock twice is a third of what a call costs. The golden ratio spreads those that are timed evenly over the
// calls of one number, whatever the rhythm of the program.
static __always_inline int is_timed(const struct call_place *place) {
  return place->total.count + place->total.timed - place->told < all_timed ||
         (__u32)place->total.count * 2654435769u < 1u << 29;
}

static __always_inline void count_in_map(struct task_struct *task, __s32 nr) {
  struct culprit_syscall_key key = {.tid = task->pid, .nr = nr};
  struct culprit_total *total = bpf_map_lookup_elem(&syscall_totals, &key);
  struct culprit_total one = {.count = 1, .tgid = task->tgid};
  if (total && total->tgid == task->tgid)
    total->count += 1;
  else if (bpf_map_update_elem(&syscall_totals, &key, &one, BPF_ANY))
    __sync_fetch_and_add(&losses.totals_missed, 1);
}

// Only the thread itself writes into its places. A thread that has none yet gets none while memory is short, nor while
// the recorder was interrupted on this CPU as it looked for another thread's: its calls are counted, untimed.
SEC("tp_btf/sys_enter")
int on_sys_enter(__u64 *ctx) {
  struct task_struct *task = bpf_get_current_task_btf();
  int watched = is_watched(task);  // first: the thread that measures what counting costs pays for it, too
  if ((uncounted || over || !watched) && task->pid != measured) return 0;
  struct thread_calls *own = bpf_task_storage_get(&thread_calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  __s32 nr = (__s32)ctx[1];
  if (!own) {
    if (task->pid == measured) return 0;
    count_in_map(task, nr);
    if (!untimed) __sync_fetch_and_add(&losses.times_missed, 1);
    return 0;
  }
  own->nr = nr;
  own->window = call_window;
  own->place = CULPRIT_CALL_PLACES;
  __u32 first = ((__u32)nr * 2654435769u) >> 26;
  for (__u32 i = 0; i < CULPRIT_CALL_TRIES; ++i) {
    __u32 at = (first + i) & (CULPRIT_CALL_PLACES - 1);
    struct call_place *place = &own->places[at];
    if (place->total.count && place->total.nr != nr) continue;
    own->begin = !untimed && is_timed(place) ? bpf_ktime_get_ns() : 0;
    own->place = at;
    place->total.nr = nr;
    place->total.count += 1;
    return 0;
  }
  count_in_map(task, nr);
  own->begin = untimed ? 0 : bpf_ktime_get_ns();
  return 0;
}

static __always_inline __u32 bucket_of(__u64 ns) {
  if (ns < 8) return (__u32)ns;
  __u32 power = 0;
  __u64 rest = ns;
  if (rest >> 32) power += 32, rest >>= 32;
  if (rest >> 16) power += 16, rest >>= 16;
  if (rest >> 8) power += 8, rest >>= 8;
  if (rest >> 4) power += 4, rest >>= 4;
  if (rest >> 2) power += 2, rest >>= 2;
  if (rest >> 1) power += 1;
  __u32 bucket = (power - 2) * 8 + ((ns >> (power - 3)) & 7);
  return bucket < CULPRIT_TIME_BUCKETS ? bucket : CULPRIT_TIME_BUCKETS - 1;
}

// Only of what is timed: a look-up and an addition.
static __always_inline void count_time(__s32 tgid, __s32 nr, __u32 device, __u64 duration) {
  struct culprit_times *all = times_of(tgid, nr, device);
  if (!all) return;
  __u32 bucket = bucket_of(duration);
  if (bucket < CULPRIT_TIME_BUCKETS) __sync_fetch_and_add(&all->counts[bucket], 1);
}

static __always_inline void time_in_map(struct task_struct *task, __s32 nr, __u64 duration) {
  struct culprit_syscall_key key = {.tid = task->pid, .nr = nr};
  struct culprit_total *total = bpf_map_lookup_elem(&syscall_totals, &key);
  if (!total) return;
  total->timed += 1;
  total->total_ns += duration;
  if (duration > total->max_ns) total->max_ns = duration;
}

SEC("tp_btf/sys_exit")
int on_sys_exit(__u64 *ctx) {
  struct task_struct *task = bpf_get_current_task_btf();
  int watched = is_watched(task);
  if ((over || !watched) && task->pid != measured) return 0;
  struct thread_calls *own = bpf_task_storage_get(&thread_calls, task, 0, 0);
  if (!own || !own->begin || own->window != call_window) return 0;
  __u64 now = bpf_ktime_get_ns();
  __u64 begin = own->begin;
  __u64 duration = now - begin;
  own->begin = 0;
  __u32 at = own->place;
  if (at < CULPRIT_CALL_PLACES) {
    struct culprit_call_total *total = &own->places[at].total;
    total->timed += 1;
    total->total_ns += duration;
    if (duration > total->max_ns) total->max_ns = duration;
  } else {
    time_in_map(task, own->nr, duration);
  }
  // Told to nobody, but it takes as long.
  count_time(task->pid == measured ? 0 : task->tgid, own->nr, 0, duration);
  if (task->pid == measured) return 0;
  if (duration < long_syscall_ns) return 0;
  struct culprit_syscall *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) {
    __sync_fetch_and_add(&losses.ring_full_syscalls, 1);
    return 0;
  }
  fill_head(&record->head, CULPRIT_SYSCALL, now);
  record->begin = begin;
  record->tid = task->pid;
  record->tgid = task->tgid;
  record->nr = own->nr;
  __s64 value = (__s64)ctx[1];
  record->error = value < 0 && value >= -KERNEL_ERRNO_LIMIT ? (__s32)-value : 0;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  return 0;
}

// Run by the recorder. Reading /proc/kallsyms costs a tenth of a second and megabytes for the few hundred names that are
// seen.
SEC("syscall")
int on_name(void *ctx) {
  static const char format[] = "%ps";
  __u64 arguments[] = {asked.address};
  return (int)bpf_snprintf(asked.name, sizeof(asked.name), format, arguments, sizeof(arguments));
}

#if defined(__TARGET_ARCH_x86)
static __always_inline void give_memory(struct task_struct *task, __u64 at) {
  __u32 zero = 0;
  struct culprit_memory *memory = bpf_map_lookup_elem(&memory_room, &zero);
  if (!memory) return;
  struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
  fill_head(&memory->head, CULPRIT_MEMORY, at);
  memory->tid = task->pid;
  memory->tgid = task->tgid;
  __u64 *to = memory->registers;
  to[0] = BPF_CORE_READ(regs, ax);
  to[1] = BPF_CORE_READ(regs, dx);
  to[2] = BPF_CORE_READ(regs, cx);
  to[3] = BPF_CORE_READ(regs, bx);
  to[4] = BPF_CORE_READ(regs, si);
  to[5] = BPF_CORE_READ(regs, di);
  to[6] = BPF_CORE_READ(regs, bp);
  to[7] = BPF_CORE_READ(regs, sp);
  to[8] = BPF_CORE_READ(regs, r8);
  to[9] = BPF_CORE_READ(regs, r9);
  to[10] = BPF_CORE_READ(regs, r10);
  to[11] = BPF_CORE_READ(regs, r11);
  to[12] = BPF_CORE_READ(regs, r12);
  to[13] = BPF_CORE_READ(regs, r13);
  to[14] = BPF_CORE_READ(regs, r14);
  to[15] = BPF_CORE_READ(regs, r15);
  to[16] = BPF_CORE_READ(regs, ip);
  __u64 from = to[7];
  __u32 steps = 0;
  for (; steps < CULPRIT_MEMORY_STEPS; ++steps)
    if (bpf_probe_read_user(memory->bytes + steps * CULPRIT_MEMORY_STEP, CULPRIT_MEMORY_STEP,
                            (void *)(from + steps * CULPRIT_MEMORY_STEP)))
      break;
  memory->size = steps * CULPRIT_MEMORY_STEP;
  __u32 size = __builtin_offsetof(struct culprit_memory, bytes) + memory->size;
  if (size > sizeof(*memory)) return;
  if (bpf_ringbuf_output(&ring, memory, size, BPF_RB_NO_WAKEUP)) __sync_fetch_and_add(&losses.ring_full_samples, 1);
}
#else
static __always_inline void give_memory(struct task_struct *task, __u64 at) {}
#endif

// By the clock of each CPU.
SEC("perf_event")
int on_sample(void *ctx) {
  // Whoever runs, so that all time counts, and once.
  struct culprit_cpu *cpu = this_cpu();
  __u32 asks = cpu->asks + 1;
  if (asks < take_every) {
    cpu->asks = asks;
    return 0;
  }
  cpu->asks = 0;
  struct task_struct *task = bpf_get_current_task_btf();
  if (!is_watched(task)) return 0;
  __u32 zero = 0;
  struct culprit_sample *sample = bpf_map_lookup_elem(&sample_room, &zero);
  if (!sample) return 0;
  fill_head(&sample->head, CULPRIT_SAMPLE, bpf_ktime_get_ns());
  if (take_memory) give_memory(task, sample->head.at);
  sample->tid = task->pid;
  sample->tgid = task->tgid;
  sample->python = python_stack_of(task, sample->head.at, 0);
  sample->asks = asks;
  copy_comm(sample->comm, task);
  long kernel = bpf_get_stack(ctx, sample->frames, CULPRIT_KERNEL_FRAMES * sizeof(__u64), 0);
  if (kernel < 0) kernel = 0;
  long user = bpf_get_stack(ctx, (char *)sample->frames + kernel, CULPRIT_USER_FRAMES * sizeof(__u64), BPF_F_USER_STACK);
  if (user < 0) user = 0;
  sample->kernel_frames = (__u64)kernel / sizeof(__u64);
  sample->user_frames = (__u64)user / sizeof(__u64);
  if (bpf_ringbuf_output(&ring, sample, __builtin_offsetof(struct culprit_sample, frames) + kernel + user,
                         submit_flags()))
    __sync_fetch_and_add(&losses.ring_full_samples, 1);
  return 0;
}

// A flush that the kernel makes of several has no partition, but a disk.
static __always_inline __u32 device_of(struct request *request) {
  struct block_device *part = request->part;
  if (part) return part->bd_dev;
  struct request_queue *queue = request->q;
  if (!queue || !bpf_core_field_exists(queue->disk)) return 0;
  struct gendisk *disk = queue->disk;
  if (!disk) return 0;
  struct block_device *whole = disk->part0;
  return whole ? whole->bd_dev : 0;
}

SEC("tp_btf/block_rq_issue")
int on_block_issue(__u64 *ctx) {
  struct request *request = (struct request *)ctx[0];
  __u64 key = (__u64)request;
  struct open_request open = {};
  open.begin = bpf_ktime_get_ns();
  open.sector = request->__sector;
  open.bytes = request->__data_len;
  open.operation = request->cmd_flags & 0xff;
  open.device = device_of(request);
  struct task_struct *task = bpf_get_current_task_btf();
  if (is_watched(task)) {
    open.tid = task->pid;
    open.tgid = task->tgid;
  }
  if (bpf_map_update_elem(&open_requests, &key, &open, BPF_ANY)) __sync_fetch_and_add(&losses.requests_missed, 1);
  return 0;
}

SEC("tp_btf/block_rq_complete")
int on_block_complete(__u64 *ctx) {
  __u64 key = ctx[0];
  struct open_request *open = bpf_map_lookup_elem(&open_requests, &key);
  if (!open) return 0;
  __u64 now = bpf_ktime_get_ns();
  __u64 duration = now - open->begin;
  struct culprit_block_key total_key = {.device = open->device, .operation = open->operation, .tgid = open->tgid};
  struct culprit_total *total = bpf_map_lookup_elem(&block_totals, &total_key);
  if (total) {
    add_total(total, duration, open->bytes);
  } else {
    struct culprit_total first = {.count = 1, .total_ns = duration, .max_ns = duration, .bytes = open->bytes};
    if (bpf_map_update_elem(&block_totals, &total_key, &first, BPF_NOEXIST))
      __sync_fetch_and_add(&losses.totals_missed, 1);
  }
  // Without a device the time would be a system call's.
  if (open->device) count_time(open->tgid, open->operation, open->device, duration);
  if (open->tgid || duration >= long_block_ns) {
    struct culprit_block *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (record) {
      fill_head(&record->head, CULPRIT_BLOCK, now);
      record->begin = open->begin;
      record->sector = open->sector;
      record->bytes = open->bytes;
      record->device = open->device;
      record->operation = open->operation;
      record->tid = open->tid;
      record->tgid = open->tgid;
      record->pad = 0;
      bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    } else {
      __sync_fetch_and_add(&losses.ring_full_syscalls, 1);
    }
  }
  bpf_map_delete_elem(&open_requests, &key);
  return 0;
}

#include "answers.bpf.h"
