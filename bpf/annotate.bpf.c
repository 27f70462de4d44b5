// The marks of culprit_annotate.h: three USDT probes that hand name and time to the recorder. Like the other programs it
// first asks whether the process is a target, and drops and counts what finds no room.
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

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4 << 20);
} annotate_ring SEC(".maps");

static __always_inline int write(struct pt_regs *ctx, __u32 kind) {
  __u64 id = bpf_get_current_pid_tgid();
  __s32 tgid = id >> 32;
  struct culprit_annotation *record;
  long name = 0;
  if (!enabled || !bpf_map_lookup_elem(&annotate_targets, &tgid)) return 0;
  record = bpf_ringbuf_reserve(&annotate_ring, sizeof(*record), 0);
  if (!record) {
    __sync_fetch_and_add(&dropped, 1);
    return 0;
  }
  record->at = bpf_ktime_get_ns();
  record->tgid = tgid;
  record->tid = (__s32)id;
  record->kind = kind;
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
