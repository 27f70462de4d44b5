// A cycle as a Chrome JSON trace, which trace viewers read.
import type { Stretch } from "./data";

export function asTrace(stretch: Stretch, name: string): void {
  const events: object[] = [];
  stretch.lanes.forEach((lane, tid) => {
    events.push({ ph: "M", name: "thread_name", pid: 1, tid, args: { name: lane.name } }, { ph: "M", name: "thread_sort_index", pid: 1, tid, args: { sort_index: tid } });
    for (let i = 0; i + 2 < lane.slices.length; i += 3)
      events.push({ ph: "X", pid: 1, tid, cat: lane.kind, name: stretch.names[lane.slices[i + 2]!], ts: lane.slices[i]! / 1000, dur: lane.slices[i + 1]! / 1000 });
  });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify({ displayTimeUnit: "ns", traceEvents: events })], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
