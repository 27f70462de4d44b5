// What the sentences of a cause speak of, and under which names that stands in the page. A sentence is known by a phrase
// that src/diagnose words so, or by a name that stands at its place in it; what is not known has no link.

export interface Subject {
  phrase: string;
  and?: string; // a name that must stand in it, too
  what: string; // for those who only hear the link
  slices?: RegExp; // names of slices in a cycle
  on?: "host" | "device"; // whose slices
  counters?: RegExp; // series over time, and their rows
  rows?: RegExp; // states, parts of a step, calls, settings
  lines?: RegExp; // of the waterfall
  findings?: RegExp; // states that are told like functions
}

const kFileCalls = "(?:f(?:data)?sync|sync|syncfs|msync|sync_file_range|p?(?:read|write)v?2?(?:64)?|pread64|pwrite64|open|openat|rename|renameat2?|unlink|unlinkat|f?truncate|fallocate)";

const kNetworkCalls = "(?:recv(?:from|m?msg)|send(?:to|m?msg)|connect|accept4?|p?poll|p?select6?|epoll_p?wait2?|readv?|writev?|io_uring_enter)";

/// The first one that fits counts: those that say more stand above those that say less.
export const kSubjects: Subject[] = [
  { phrase: "Somebody waited for a CPU", what: "pressure on the CPUs", counters: /^host\.pressure\.cpu\.some$/ },
  { phrase: "Somebody waited for disks", what: "pressure on the disks", counters: /^host\.pressure\.io\.some$/ },
  { phrase: "A CPU quota held the group", what: "time held back by the quota", counters: /^cgroup\.cpu\.throttled_time$/ },
  { phrase: "The quota is", what: "the quota", counters: /^cgroup\.cpu\.quota$/, rows: /^env\.target\.cgroup\.cpu\.quota$/ },
  { phrase: "traces it: ", what: "who traces it", rows: /^env\.target\d*\.traced_by$/ },
  { phrase: "ran meanwhile, and not on the other side", what: "profilers that ran", rows: /^env\.profilers$/ },
  { phrase: "Its threads stood still for", what: "stopped threads", slices: /^(blocked:)?stopped$/, on: "host", rows: /^(blocked in )?stopped$/ },
  { phrase: "may use CPUs", what: "CPUs that it may use", rows: /^env\.target\d*\.cpus_allowed$/ },
  { phrase: "Its control group may use", what: "CPUs of the group", counters: /^cgroup\.cpuset\.cpus$/ },
  { phrase: "Its processes have", what: "threads", counters: /^process\.threads$/ },
  { phrase: "The memory limit of its control group", what: "the limit", counters: /^cgroup\.memory\.limit$/, rows: /^env\.target\d*\.cgroup\.memory\.limit_bytes$/ },
  { phrase: "The group used", what: "memory of the group", counters: /^cgroup\.memory\.used$/ },
  { phrase: "met the limit", what: "allocations that met the limit", counters: /^cgroup\.memory\.limit_hits$/ },
  { phrase: "had just been pushed out", what: "pages read again", counters: /^cgroup\.memory\.refaults$/ },
  { phrase: "Somebody in the group waited for memory", what: "pressure on the memory of the group", counters: /^cgroup\.pressure\.memory\.some$/ },
  { phrase: "The hypervisor ran others", what: "time taken by the hypervisor", counters: /^host\.cpu\.steal$/ },
  { phrase: "No CPU of the machine is left", what: "idle time of the CPUs", counters: /^host\.cpu\.idle$/ },
  { phrase: "The clock of the CPUs", what: "clocks of CPUs", counters: /^host\.cpu\d*\.frequency$/ },
  { phrase: "Their clock is", what: "clocks of CPUs", counters: /^host\.cpu\d*\.frequency$/ },
  { phrase: "were swapped", what: "swapping", counters: /^host\.swap\.(in|out)$/ },
  { phrase: "were read back from swap", what: "swapping", counters: /^host\.swap\.in$/ },
  { phrase: "until memory was freed", what: "waits for memory", counters: /^host\.memory\.reclaim\.stalls$/ },
  { phrase: "It had to read", what: "pages read from a disk", counters: /^target\.faults\.major$/ },
  { phrase: "Fixed steps through memory", what: "fixed steps through memory", counters: /^host\.speed\.memory$/ },
  { phrase: "A segment of its connections", what: "time there and back of connections", counters: /^target\.tcp\.rtt$/ },
  { phrase: "It sent", and: "segments a second again", what: "segments sent again", counters: /^target\.tcp\.retransmits$/ },
  { phrase: "TCP segments a second are sent again", what: "segments sent again", counters: /^host\.tcp\.retransmits$/ },
  { phrase: "degrees hot", what: "temperature", counters: /^(gpu_temp|GPU temperature)$/ },
  { phrase: "The clock of", what: "clock", counters: /^(gpu_sm_frequency|GPU clock|gpu_frequency)$/ },
  { phrase: "Its clock", what: "clock", counters: /^(gpu_sm_frequency|GPU clock|gpu_frequency)$/ },
  { phrase: "was used", what: "use", counters: /^(gpu_usage|GPU usage|process_gpu_usage|GPU process usage)$/ },
  { phrase: "went over", and: "NVLink", what: "traffic over NVLink", counters: /nvlink|gpu_link_/i },
  { phrase: "went over", and: "PCIe", what: "traffic over PCIe", counters: /pcie/i },
  { phrase: "Copies between host and device", what: "copies between host and device", slices: /^Memcpy (HtoD|DtoH)/i, on: "device" },
  { phrase: "Collectives took", what: "collectives", slices: /nccl|rccl/i, on: "device" },
  { phrase: "came last to the collectives", what: "collectives", slices: /nccl|rccl/i, on: "device" },
  { phrase: "idled for", what: "idle time", lines: /^idle/, rows: /^idle$/ },
  { phrase: "is idle for", what: "idle time", rows: /^idle$/ },
  { phrase: "kernels took", what: "kernels", slices: /^(?!Mem(cpy|set))/, on: "device" },
  { phrase: "Kernels that take", what: "kernels", slices: /^(?!Mem(cpy|set))/, on: "device" },
  { phrase: "The same kernels take", what: "kernels", slices: /^(?!Mem(cpy|set))/, on: "device" },
  { phrase: "Collections of garbage", what: "collections of garbage", slices: /^gc generation|function collect>|gc\.collect/, on: "host" },
  { phrase: "for a CPU", what: "run queue", slices: /^runq$/, on: "host", rows: /^(runnable(, in the run queue)?|waiting for a CPU)$/, lines: /^run(q$| queue)/, findings: /^runq$/ },
  { phrase: "for pages", what: "waits for pages", slices: /^blocked(:page_fault|_uninterruptible)$/, on: "host", rows: /^blocked(, uninterruptible| in page_fault| in disk or memory)$/ },
  { phrase: "in futex", what: "waits in futex", slices: /^blocked:futex$/, on: "host", rows: /^(blocked in )?futex$/ },
  { phrase: "in calls that send, receive", what: "waits for the network", slices: new RegExp(`^blocked:${kNetworkCalls}$`), on: "host", rows: new RegExp(`^(blocked in )?${kNetworkCalls}$`) },
  { phrase: "in calls that", what: "waits for files", slices: new RegExp(`^(blocked:)?${kFileCalls}$|^blocked_uninterruptible$`), on: "host", rows: new RegExp(`^(blocked in )?${kFileCalls}(, uninterruptible)?$|^blocked(, uninterruptible| in disk or memory)$`) },
  { phrase: "stood still by a signal", what: "stopped threads", slices: /^(blocked:)?stopped$/, on: "host", rows: /^(blocked in )?stopped$/ },
  { phrase: "on CPUs", what: "time on CPUs", slices: /^oncpu$/, on: "host", rows: /^(on CPU|on a CPU|running)$/ },
  { phrase: "on its CPUs", what: "time on CPUs", slices: /^oncpu$/, on: "host", rows: /^(on CPU|on a CPU|running)$/ },
];

export function subjectOf(sentence: string): Subject | null {
  return kSubjects.find((subject) => sentence.includes(subject.phrase) && sentence.includes(subject.and ?? "")) ?? null;
}

/// Where a sentence names a function, a line of the waterfall, a program or a disk.
const kNames: RegExp[] = [
  /^(.+) takes \S+ instead of /,
  /^(.+) is launched \S+ instead of /,
  /^(.+) in the baseline is (.+) in the candidate$/,
  /^(.+) ran in .+ of the samples$/,
  /in steps of like work, (.+) \S+ instead of \S+ times$/,
  /host was late, and in (.+?)(?:, between functions)?$/,
  /waits for its input in (.+): /,
  /^(.+): \S+ instead of \S+ per step(?: \(.+\))?$/,
  /^A request of (.+) took /,
  /^(.+) by everybody/,
  /^(.+) took .+ CPUs$/,
  /^(.+) is .+ instead of /,
  /^(.+): .+ instead of /,
];

/// The names; of a setting without the "env." that it has in the page.
export function namesIn(sentence: string): string[] {
  const names = kNames.flatMap((pattern) => pattern.exec(sentence)?.slice(1) ?? []);
  return [...new Set(names.filter((name) => name !== undefined))];
}
