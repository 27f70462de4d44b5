// How long the connections of the targets waited for their answers, and how long the answers were.
//
// A request is there when its data come to the socket, which is when the kernel wakes whoever waits for them; its answer
// is complete with the last that is sent before the next request comes, or before the connection closes. Nothing tells
// when a Unix socket closes: its answers count, and are timed, with the first that is sent. Only connections that were
// accepted, not those that the targets themselves opened. Included by culprit.bpf.c.

enum { CULPRIT_TCP = 6, CULPRIT_ESTABLISHED = 1, CULPRIT_SYN_RECV = 3, CULPRIT_SIZES = 16 };
enum { CULPRIT_UNIX = 1, CULPRIT_STREAM = 1 };  // AF_UNIX, SOCK_STREAM
// Of a connection: so many requests are all timed, further ones one in eight, which count eight times.
enum { CULPRIT_TIMED_REQUESTS = 1024, CULPRIT_REQUESTS_OF_ONE = 8 };

struct connection {
  __u64 asked;    /* when the request came; 0: it is not timed */
  __u64 answered; /* when something was sent last for it */
  __u32 bytes;    /* of its answer */
  __u32 tgid;     /* who answers */
  __u32 requests;
  __u16 port;     /* 0: a Unix socket */
  __u8 open;      /* a request was seen to come */
  __u8 has_parts; /* of its answer something was sent */
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

static __always_inline __u32 weight_of(const struct connection *c) {
  return c->requests < CULPRIT_TIMED_REQUESTS ? 1 : CULPRIT_REQUESTS_OF_ONE;
}

static __always_inline int request_is_timed(const struct connection *c) {
  return c->requests < CULPRIT_TIMED_REQUESTS || c->requests * 2654435769u < 1u << 29;
}

// Answers of one size that always come after as many others delimit what the program does for several requests.
static __always_inline void count_gap(struct connection *c, __u32 weight) {
  __u32 slot = c->bytes & (CULPRIT_SIZES - 1);
  if (c->sizes[slot].bytes != c->bytes) return;
  __u32 gap = c->requests - c->sizes[slot].request;
  struct culprit_gap_key key = {.port = c->port, .bytes = c->bytes, .gap = gap < CULPRIT_MOST_GAP ? gap : CULPRIT_MOST_GAP};
  __u64 *count = bpf_map_lookup_elem(&answer_gaps, &key);
  __u64 first = weight;
  if (count)
    __sync_fetch_and_add(count, weight);
  else
    bpf_map_update_elem(&answer_gaps, &key, &first, BPF_NOEXIST);
}

static __always_inline void count_answer(const struct connection *c, __u32 bytes, __u32 weight) {
  struct culprit_times_key key = {.tgid = c->tgid, .nr = CULPRIT_ANSWER, .device = c->port};
  struct culprit_times *all = bpf_map_lookup_elem(&answer_times, &key);
  if (!all) {
    bpf_map_update_elem(&answer_times, &key, &no_times, BPF_NOEXIST);
    all = bpf_map_lookup_elem(&answer_times, &key);
  }
  // Who sends may be interrupted before it says so, and another request come meanwhile.
  __u64 asked = c->asked;
  __u64 answered = c->answered;
  __u32 bucket = bucket_of(answered > asked ? answered - asked : 0);
  if (!all)
    __sync_fetch_and_add(&losses.times_missed, weight);
  else if (bucket < CULPRIT_TIME_BUCKETS) {
    __sync_fetch_and_add(&all->counts[bucket], weight);
    __sync_fetch_and_add(&all->bytes, (__u64)bytes * weight);
  }
}

// Of a further part.
static __always_inline void count_bytes(const struct connection *c, __u32 bytes, __u32 weight) {
  struct culprit_times_key key = {.tgid = c->tgid, .nr = CULPRIT_ANSWER, .device = c->port};
  struct culprit_times *all = bpf_map_lookup_elem(&answer_times, &key);
  if (all) __sync_fetch_and_add(&all->bytes, (__u64)bytes * weight);
}

static __always_inline void take_answer(struct connection *c) {
  if (!c->has_parts) return;
  if (c->asked) {
    __u32 weight = weight_of(c);
    if (c->port) count_answer(c, c->bytes, weight);
    count_gap(c, weight);
  }
  // Sizes that share a place: the one that keeps coming has it.
  __u32 slot = c->bytes & (CULPRIT_SIZES - 1);
  if (c->sizes[slot].bytes != c->bytes && c->sizes[slot].bytes && c->requests - c->sizes[slot].request < CULPRIT_MOST_GAP)
    return;
  c->sizes[slot].bytes = c->bytes;
  c->sizes[slot].request = c->requests;
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

// Data came to a socket. Most sockets are of others: one look-up. Nothing else tells that a Unix socket is accepted, nor
// whose it is: all that were get a place.
SEC("tp_btf/sk_data_ready")
int on_data_ready(__u64 *ctx) {
  struct sock *sk = (struct sock *)ctx[0];
  struct connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
  if (!c && !over && is_accepted_unix(sk))
    c = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!c || over || (c->open && !c->has_parts)) return 0;
  take_answer(c);
  c->requests += 1;
  c->open = 1;
  c->has_parts = 0;
  c->bytes = 0;
  c->answered = 0;
  c->asked = request_is_timed(c) ? bpf_ktime_get_ns() : 0;
  return 0;
}

SEC("tp_btf/sock_send_length")
int on_sent(__u64 *ctx) {
  struct task_struct *task = bpf_get_current_task_btf();
  if (over || !is_target(task->tgid)) return 0;
  __s32 bytes = (__s32)ctx[1];
  struct sock *sk = (struct sock *)ctx[0];
  if (bytes <= 0) return 0;
  struct connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
  if (!c) {
    // Who was accepted has the backlog of who listened.
    if (sk->sk_protocol != CULPRIT_TCP || !sk->sk_max_ack_backlog) return 0;
    c = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (c) c->port = sk->__sk_common.skc_num;
    return 0;
  }
  if (!c->open) return 0;
  int first = !c->has_parts;
  c->tgid = task->tgid;
  c->has_parts = 1;
  c->bytes += bytes;
  if (!c->asked) return 0;
  c->answered = bpf_ktime_get_ns();
  if (c->port) return 0;
  if (first)
    count_answer(c, bytes, weight_of(c));
  else
    count_bytes(c, bytes, weight_of(c));
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
    if (!c) return 0;
    take_answer(c);
    c->has_parts = 0;
    c->open = 0;
  }
  return 0;
}
