// The marks of culprit_annotate.h: three USDT probes that hand name and time to the recorder. Like the other programs it
// first asks whether the process is a target, and drops and counts what finds no room. How deep a thread is in its steps
// is known here, so that a record that found no room costs its own step alone.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/usdt.bpf.h>
#include "annotate_records.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 dropped = 0;
volatile __u32 enabled = 0;  // all probes of a program begin and end to record in one moment

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __s32);
  __type(value, __u8);
} annotate_targets SEC(".maps");

// The places of a file are found by one probe after the other; nothing is recorded before the last is in place, else
// steps would begin and not end. The key is the cookie of the file's probes.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, CULPRIT_ANNOTATE_FILES);
  __type(key, __u32);
  __type(value, __u8);
} annotate_complete_files SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, __u32);
} annotate_depths SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4 << 20);
} annotate_ring SEC(".maps");

// Of the step that begins or ends, 0 of an end whose begin was before the recording.
static __always_inline __u32 depth_of(__u32 kind) {
  __u32 *depth = bpf_task_storage_get(&annotate_depths, bpf_get_current_task_btf(), 0,
                                      kind == CULPRIT_STEP_BEGUN ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
  if (!depth) return 0;
  if (kind == CULPRIT_STEP_BEGUN) return ++*depth;
  return *depth > 0 ? (*depth)-- : 0;
}

static __always_inline int write(struct pt_regs *ctx, __u32 kind) {
  __u64 id = bpf_get_current_pid_tgid();
  __s32 tgid = id >> 32;
  __u32 file = bpf_usdt_cookie(ctx);
  __u8 *is_complete = bpf_map_lookup_elem(&annotate_complete_files, &file);
  struct culprit_annotation *record;
  __u32 depth = 0;
  long name = 0;
  if (!enabled || !is_complete || !*is_complete || !bpf_map_lookup_elem(&annotate_targets, &tgid)) return 0;
  if (kind != CULPRIT_MARKED) {
    depth = depth_of(kind);
    if (depth == 0 && kind == CULPRIT_STEP_ENDED) return 0;
    if (depth == 0 || depth > CULPRIT_ANNOTATE_DEPTH) {
      if (kind == CULPRIT_STEP_BEGUN) __sync_fetch_and_add(&dropped, 1);
      return 0;
    }
  }
  record = bpf_ringbuf_reserve(&annotate_ring, sizeof(*record), 0);
  if (!record) {
    __sync_fetch_and_add(&dropped, 1);
    return 0;
  }
  record->at = bpf_ktime_get_ns();
  record->tgid = tgid;
  record->tid = (__s32)id;
  record->kind = kind;
  record->depth = depth;
  record->text_bytes = 0;
  if (kind != CULPRIT_STEP_ENDED)
    record->text_bytes = bpf_usdt_arg(ctx, 0, &name) == 0
                             ? (int)bpf_probe_read_user_str(record->text, sizeof(record->text), (void *)name)
                             : -1;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  return 0;
}

SEC("usdt")
int on_step_begin(struct pt_regs *ctx) { return write(ctx, CULPRIT_STEP_BEGUN); }

SEC("usdt")
int on_step_end(struct pt_regs *ctx) { return write(ctx, CULPRIT_STEP_ENDED); }

SEC("usdt")
int on_mark(struct pt_regs *ctx) { return write(ctx, CULPRIT_MARKED); }
