// The few kernel types and fields the programs use, declared by hand. With preserve_access_index the loader takes every
// offset from the BTF of the running kernel, so that the build needs no kernel headers and one object serves all
// kernels. Only fields that are read stand here; `___old` marks a layout of older kernels.
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u64 size_t;

// Values of the kernel's interface to programs (include/uapi/linux/bpf.h), which never change.
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_STACK_TRACE = 7, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_SK_STORAGE = 24, BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_F_USER_STACK = 1 << 8, BPF_F_FAST_STACK_CMP = 1 << 9 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct signal_struct {
  struct {
    int counter;
  } live;
};

struct rq;
struct cfs_rq {
  struct rq *rq;
};
struct sched_entity {
  struct cfs_rq *cfs_rq;
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
  unsigned long fsbase;
};
#endif

struct task_struct {
  struct sched_entity se;
  int pid;
  int tgid;
  int prio;
  unsigned int flags;
  unsigned int __state;
  int wake_cpu;
  char comm[16];
  struct signal_struct *signal;
  struct mm_struct *mm;
#if defined(__TARGET_ARCH_x86)
  struct thread_struct thread;
#endif
};

struct task_struct___old {
  long state;
};

// x86_64 and arm64 name the number of the system call differently.
struct pt_regs {
#if defined(__TARGET_ARCH_x86)
  unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
#elif defined(__TARGET_ARCH_arm64)
  int syscallno;
  unsigned long sp;
#else
#error "bpf/core_types.h: add pt_regs of this architecture"
#endif
};

struct block_device {
  __u32 bd_dev;
};

struct gendisk {
  struct block_device *part0;
};

struct request_queue {
  struct gendisk *disk;
};

struct request {
  struct request_queue *q;
  unsigned int cmd_flags;
  unsigned int __data_len;
  __u64 __sector;
  struct block_device *part;
};

struct sock_common {
  __u16 skc_family;
  __u8 skc_state;
  __u16 skc_num;  // the local port
};

struct sock {
  struct sock_common __sk_common;
  __u16 sk_type;
  __u16 sk_protocol;
  __u32 sk_max_ack_backlog;
};

struct unix_address {
  struct {
    struct {
      int counter;
    } refs;
  } refcnt;
};

struct unix_sock {
  struct unix_address *addr;
};

struct bpf_iter__task {
  struct task_struct *task;
};

#pragma clang attribute pop
