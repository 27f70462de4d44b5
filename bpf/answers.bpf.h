// How long the connections of the targets waited for their answers, and how long the answers were.
//
// A request is there when its data come to the socket, which is when the kernel wakes whoever waits for them; its answer
// is complete with the last that is sent before the next request comes, or before the connection closes. Nothing tells
// when a Unix socket closes: its answers count, and are timed, with the first that is sent. Only connections that were
// accepted, not those that the targets themselves opened. Included by culprit.bpf.c.
//
// Who asks and who answers run on two CPUs, between which a connection's state moves twice for each request: that is most
// of what looking costs. So where there are many, requests are looked at in windows only. How often a process sends is
// counted always, and tells how many answers there were; a request that came in a window is followed to its answer.

enum { CULPRIT_TCP = 6, CULPRIT_ESTABLISHED = 1, CULPRIT_SYN_RECV = 3, CULPRIT_SIZES = 16 };
enum { CULPRIT_UNIX = 1, CULPRIT_STREAM = 1 };  // AF_UNIX, SOCK_STREAM

struct connection {
  __u64 asked;    /* when the request came */
  __u64 answered; /* when something was sent last for it */
  __u32 bytes;    /* of its answer */
  __u32 tgid;     /* who answers */
  __u32 requests;
  __u32 window;   /* in which a request was seen last */
  __u32 from;     /* the first request of that window */
  __u16 port;     /* 0: a Unix socket */
  __u8 open;      /* a request was seen to come */
  __u8 has_parts; /* of its answer something was sent */
  __u8 awaited;   /* it is one of the unanswered */
  struct {
    __u32 bytes;
    __u32 request;
  } sizes[CULPRIT_SIZES]; /* of answers, and when they came last */
};
struct {
  __uint(type, BPF_MAP_TYPE_SK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct connection);
} connections SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, struct culprit_gap_key);
  __type(value, __u64);
} answer_gaps SEC(".maps");

volatile __u32 unlooked = 0;        // at requests: no window is open
volatile __u32 request_window = 0;  // which one is, or was last
volatile __s32 unanswered = 0;      // requests of that one to targets
__u64 target_ports[1024] = {};      // on which a target answered, by bit

// Of processes whose numbers meet here the sum.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, CULPRIT_SENDS_SLOTS);
  __type(key, __u32);
  __type(value, struct culprit_sends);
} sends SEC(".maps");

// Answers of one size that always come after as many others delimit what the program does for several requests.
static __always_inline void count_gap(const struct connection *c) {
  __u32 slot = c->bytes & (CULPRIT_SIZES - 1);
  if (c->sizes[slot].bytes != c->bytes) return;
  __u32 gap = c->requests - c->sizes[slot].request;
  if (gap > CULPRIT_MOST_GAP) gap = CULPRIT_MOST_GAP;
  if (c->from > c->sizes[slot].request) gap = CULPRIT_UNKNOWN_GAP;
  struct culprit_gap_key key = {.port = c->port, .bytes = c->bytes, .gap = gap};
  __u64 *count = bpf_map_lookup_elem(&answer_gaps, &key);
  __u64 first = 1;
  if (count)
    __sync_fetch_and_add(count, 1);
  else
    bpf_map_update_elem(&answer_gaps, &key, &first, BPF_NOEXIST);
}

static __always_inline struct culprit_times *answers_of(const struct connection *c) {
  return times_in(&answer_times, c->tgid, CULPRIT_ANSWER, c->port);
}

static __always_inline void count_answer(const struct connection *c, __u32 bytes) {
  struct culprit_times *all = answers_of(c);
  // Who sends may be interrupted before it says so, and another request come meanwhile.
  __u64 asked = c->asked;
  __u64 answered = c->answered;
  __u32 bucket = bucket_of(answered > asked ? answered - asked : 0);
  if (!all)
    __sync_fetch_and_add(&losses.times_missed, 1);
  else if (bucket < CULPRIT_TIME_BUCKETS) {
    __sync_fetch_and_add(&all->counts[bucket], 1);
    __sync_fetch_and_add(&all->bytes, bytes);
  }
}

// Of a further part.
static __always_inline void count_bytes(const struct connection *c, __u32 bytes) {
  struct culprit_times *all = answers_of(c);
  if (all) __sync_fetch_and_add(&all->bytes, bytes);
}

static __always_inline void count_send(__s32 tgid) {
  __u32 slot = tgid & (CULPRIT_SENDS_SLOTS - 1);
  struct culprit_sends *own = bpf_map_lookup_elem(&sends, &slot);
  if (!own) return;
  own->all += 1;
  own->seen += !unlooked;
}

static __always_inline void take_answer(struct connection *c) {
  if (!c->has_parts) return;
  if (c->port) count_answer(c, c->bytes);
  count_gap(c);
  // Sizes that share a place: the one that keeps coming has it.
  __u32 slot = c->bytes & (CULPRIT_SIZES - 1);
  if (c->sizes[slot].bytes != c->bytes && c->sizes[slot].bytes && c->requests - c->sizes[slot].request < CULPRIT_MOST_GAP)
    return;
  c->sizes[slot].bytes = c->bytes;
  c->sizes[slot].request = c->requests;
}

// It is known of connections and ports on which a target has answered before.
static __always_inline void await_answer(struct connection *c) {
  if (!c->tgid && !(c->port && target_ports[(c->port >> 6) & 1023] >> (c->port & 63) & 1)) return;
  __sync_fetch_and_add(&unanswered, 1);
  c->awaited = 1;
}

// Its answer has begun, or will never.
static __always_inline void is_answered(struct connection *c) {
  if (c->awaited && c->window == request_window) __sync_fetch_and_sub(&unanswered, 1);
  c->awaited = 0;
}

// It is complete though no other request was seen.
static __always_inline void end_answer(struct connection *c) {
  if (c->open && !c->has_parts) is_answered(c);
  take_answer(c);
  c->has_parts = 0;
  c->open = 0;
}

// Who was accepted shares the address of who listens. Who asked has none, or one of its own. Not seen: the only one left
// of who listens no more.
static __always_inline int is_accepted_unix(struct sock *sk) {
  if (sk->__sk_common.skc_family != CULPRIT_UNIX || sk->sk_type != CULPRIT_STREAM) return 0;
  if (sk->__sk_common.skc_state != CULPRIT_ESTABLISHED) return 0;
  struct unix_sock *local = bpf_skc_to_unix_sock(sk);
  if (!local) return 0;
  struct unix_address *address = local->addr;
  return address && address->refcnt.refs.counter > 1;
}

// Who was accepted has the backlog of who listened.
static __always_inline int is_accepted_tcp(struct sock *sk) {
  return sk->sk_protocol == CULPRIT_TCP && sk->sk_max_ack_backlog;
}

// Data came to a socket. Most sockets are of others: one look-up. Nothing else tells that a Unix socket is accepted, nor
// whose it is: all that were get a place.
SEC("tp_btf/sk_data_ready")
int on_data_ready(__u64 *ctx) {
  if (unlooked || over) return 0;
  struct sock *sk = (struct sock *)ctx[0];
  struct connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
  if (!c && is_accepted_unix(sk))
    c = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!c || (c->open && !c->has_parts && c->window == request_window)) return 0;
  take_answer(c);
  c->requests += 1;
  if (c->window != request_window) {
    c->window = request_window;
    c->from = c->requests;
  }
  await_answer(c);
  c->open = 1;
  c->has_parts = 0;
  c->bytes = 0;
  c->answered = 0;
  c->asked = bpf_ktime_get_ns();
  return 0;
}

static __always_inline void add_part(struct connection *c, __s32 tgid, __s32 bytes) {
  int first = !c->has_parts;
  if (first) is_answered(c);
  if (!c->tgid && c->port) __sync_fetch_and_or(&target_ports[(c->port >> 6) & 1023], 1ull << (c->port & 63));
  c->tgid = tgid;
  c->has_parts = 1;
  c->bytes += bytes;
  c->answered = bpf_ktime_get_ns();
  if (c->port) return;
  if (first)
    count_answer(c, bytes);
  else
    count_bytes(c, bytes);
}

SEC("tp_btf/sock_send_length")
int on_sent(__u64 *ctx) {
  struct task_struct *task = bpf_get_current_task_btf();
  if (over || !is_target(task->tgid)) return 0;
  __s32 bytes = (__s32)ctx[1];
  if (bytes <= 0) return 0;
  count_send(task->tgid);
  __u32 closed = unlooked;
  if (closed && unanswered <= 0) return 0;
  struct sock *sk = (struct sock *)ctx[0];
  struct connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
  if (!c && !closed && is_accepted_tcp(sk)) {
    c = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (c) c->port = sk->__sk_common.skc_num;
    return 0;
  }
  if (!c || !c->open) return 0;
  // Behind its window nobody sees whether this belongs to another request; and in a later one it does not, unless that
  // waits longer than any other.
  int is_over = closed || c->window != request_window;
  if (c->window == request_window && !(closed && c->has_parts)) add_part(c, task->tgid, bytes);
  if (is_over) end_answer(c);
  return 0;
}

SEC("tp_btf/inet_sock_set_state")
int on_connection(__u64 *ctx) {
  struct sock *sk = (struct sock *)ctx[0];
  int before = (int)ctx[1];
  int after = (int)ctx[2];
  struct connection *c = 0;
  if (before == CULPRIT_SYN_RECV && after == CULPRIT_ESTABLISHED) {
    if (sk->sk_protocol != CULPRIT_TCP) return 0;
    c = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (c) c->port = sk->__sk_common.skc_num;
  } else if (before == CULPRIT_ESTABLISHED) {
    c = bpf_sk_storage_get(&connections, sk, 0, 0);
    if (c) end_answer(c);
  }
  return 0;
}
