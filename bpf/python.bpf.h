// The functions in which a thread of a Python program is, followed in the memory of its interpreter as the program itself
// has it mapped, while the thread stands still: nothing is stopped for it, and nothing is put into it. The layout comes
// from the recorder, which knows the version. Included by culprit.bpf.c.

enum { CULPRIT_PYTHON_THREADS = 2048, CULPRIT_PYTHON_HEAD = 72 /* of a frame, in which all that is needed stands */ };

volatile __u32 any_python = 0;
volatile __u32 python_keep = ~0u;  // of 2^32: switches at which the stack is taken
__u64 python_asked = 0;            // switches at which it could have been

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, __u32); /* tgid */
  __type(value, struct culprit_python);
} pythons SEC(".maps");

// The interpreter's state of a thread, so that it is searched once.
struct python_thread {
  __u64 state; /* 0: it has none */
  __u64 looked_at;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32); /* tid */
  __type(value, struct python_thread);
} python_threads SEC(".maps");

// Stacks whose frames the recorder has got.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, __u64); /* tgid << 32 | id */
  __type(value, __u32);
} python_told SEC(".maps");

struct python_room {
  struct culprit_python_stack stack;
  __u8 head[128]; /* of a frame */
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct python_room);
} python_room SEC(".maps");

static __always_inline __u64 user_word(__u64 at) {
  __u64 word = 0;
  bpf_probe_read_user(&word, sizeof(word), (void *)at);
  return word;
}

static __always_inline __u64 head_word(const struct python_room *room, __u32 at) {
  return *(const __u64 *)(room->head + (at & 63));
}

static __noinline __u64 python_state_of(const struct culprit_python *python, __u32 tid, __u64 ident, __u64 now) {
  struct python_thread *known = bpf_map_lookup_elem(&python_threads, &tid);
  if (known) {
    if (known->state && user_word(known->state + python->thread_ident) == ident) return known->state;
    if (!known->state && now - known->looked_at < 1000000000) return 0;
  }
  struct python_thread found = {.looked_at = now};
  __u64 state = user_word(python->threads);
  for (__u32 i = 0; i < CULPRIT_PYTHON_THREADS && state; ++i) {
    if (user_word(state + python->thread_ident) == ident) {
      found.state = state;
      break;
    }
    state = user_word(state + python->thread_next);
  }
  bpf_map_update_elem(&python_threads, &tid, &found, BPF_ANY);
  return found.state;
}

// The stack of the running thread: its number, which the recorder has got with its frames; 0: none.
// `some`: of a random share of the times at which it is asked for.
static __noinline __u32 python_stack(__u32 tgid, __u32 tid, __u64 ident, __u64 now, __u32 some) {
  struct culprit_python *python = bpf_map_lookup_elem(&pythons, &tgid);
  __u32 zero = 0;
  struct python_room *room = bpf_map_lookup_elem(&python_room, &zero);
  if (!python || !room) return 0;
  __u64 state = python_state_of(python, tid, ident, now);
  if (!state) return 0;
  if (some) {
    __sync_fetch_and_add(&python_asked, 1);
    if (bpf_get_prandom_u32() > python_keep) return 0;
  }
  __u64 frame = user_word(state + python->thread_frame);
  if (frame && python->cframe_frame != CULPRIT_NO_CFRAME) frame = user_word(frame + python->cframe_frame);
  __u64 hash = python->generation;
  __u32 count = 0;
  for (__u32 i = 0; i < CULPRIT_PYTHON_FRAMES && frame; ++i) {
    if (bpf_probe_read_user(room->head, CULPRIT_PYTHON_HEAD, (void *)frame)) break;
    __u64 word = (head_word(room, python->frame_code) & CULPRIT_CODE) | (__u64)room->head[python->frame_entry & 127] << 56;
    room->stack.frames[i] = word;
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
    count = i + 1;
    frame = head_word(room, python->frame_back);
  }
  if (!count || count > CULPRIT_PYTHON_FRAMES) return 0;
  __u32 id = (__u32)(hash ^ (hash >> 32));
  if (!id) id = 1;
  __u64 key = (__u64)tgid << 32 | id;
  long told = bpf_map_update_elem(&python_told, &key, &zero, BPF_NOEXIST);
  if (told == CULPRIT_EEXIST) return id;
  if (told) {
    __sync_fetch_and_add(&losses.stacks_missed, 1);
    return 0;
  }
  fill_head(&room->stack.head, CULPRIT_PYTHON_STACK, now);
  room->stack.tgid = tgid;
  room->stack.id = id;
  room->stack.count = count;
  room->stack.cut = frame != 0;
  if (bpf_ringbuf_output(&ring, &room->stack, __builtin_offsetof(struct culprit_python_stack, frames) + count * sizeof(__u64),
                         BPF_RB_NO_WAKEUP)) {
    bpf_map_delete_elem(&python_told, &key);
    __sync_fetch_and_add(&losses.stacks_missed, 1);
    return 0;
  }
  return id;
}

#if defined(__TARGET_ARCH_x86)
// glibc's name of a thread is the address at which its own data lie.
static __always_inline __u64 ident_of(struct task_struct *task) { return task->thread.fsbase; }
#else
static __always_inline __u64 ident_of(struct task_struct *task) { return 0; }
#endif

static __always_inline __u32 python_stack_of(struct task_struct *task, __u64 now, __u32 some) {
  __u64 ident = any_python ? ident_of(task) : 0;
  return ident ? python_stack(task->tgid, task->pid, ident, now, some) : 0;
}
