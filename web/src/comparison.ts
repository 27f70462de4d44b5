// The page of a comparison, from its outcome to what it stands on.
import { lookAt, saveButton, sentence, type Seen } from "./causes";
import { chart, legend, ns, seconds } from "./charts";
import { h, nameOf, section, svg } from "./dom";
import { change, duration, number, percent, quantiles, signed, withUnit } from "./format";
import { addPlace, type Places } from "./places";
import { table, tableOf, type Field, type RowPlaces } from "./table";
import { timeline, type Timeline } from "./timeline";
import type { Comparison, CycleTime, Finding, Pair, Picture, Report, Row, Verdict, Waterfall, WaterfallLine } from "./data";

const kSides = ["baseline", "candidate"] as const;

export interface Part { id: string; title: string; body: HTMLElement }

function part(id: string, title: string, ...children: (Node | string | null)[]): Part {
  return { id, title, body: section(id, title, ...children) };
}

const nothing = (why: string): HTMLElement => h("p", { class: "note" }, why);

// ---- outcome

function cycleTimes(rows: CycleTime[]): HTMLElement {
  const fields: Field<CycleTime>[] = [
    { title: "Phase", cell: (r) => r.phase },
    { title: "Outcome", cell: (r) => h("span", { class: r.outcome }, r.outcome.replace(/_/g, " ")) },
    { title: "Baseline", numeric: true, cell: (r) => duration(r.baseline_ns) },
    { title: "Candidate", numeric: true, cell: (r) => duration(r.candidate_ns) },
    { title: "Change", numeric: true, cell: (r) => change(r.ratio) },
    { title: "95 % interval", numeric: true, cell: (r) => (r.ci_low === null ? "" : `${change(r.ci_low)} to ${change(r.ci_high)}`) },
    { title: "Would have been seen", numeric: true, cell: (r) => change(r.detectable) },
    { title: "Cycles", numeric: true, cell: (r) => r.n.map(number).join(" / ") },
  ];
  return table(fields, rows, { caption: "Cycle times: geometric means of whole cycles of like work" });
}

function workTable(work: Row, keys: string[], places: Places): HTMLElement {
  const rows: Row[] = [];
  const take = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(take);
    else if (value !== null && typeof value === "object" && "change" in value && "what" in value) rows.push(value as Row);
  };
  for (const key of keys) take(work[key]);
  return sidesTable(rows, "What it did, by its units of work", rowsOf(places, "work"));
}

function outcome(c: Comparison, report: Report, places: Places): Part {
  const details = report.details ?? [];
  const children: (Node | string | null)[] = [
    h("p", {}, h("span", { class: `badge ${c.outcome}` }, c.same_recording ? "the same recording" : c.outcome.replace(/_/g, " "))),
    ...(report.answer ?? []).map((line) => h("p", { class: "answer" }, line)),
    details.length === 0 ? null : h("ul", {}, ...details.map((line) => h("li", {}, line)))];
  if (c.cycle_time.length > 0) children.push(cycleTimes(c.cycle_time));
  // Of sides that ran in turns recordings only say where a difference comes from.
  if (c.work) children.push(workTable(c.work, c.alternation ? ["worked", "parts"] : ["throughput", "worked", "parts", "latency", "waiting"], places));
  const sides = table<(typeof kSides)[number]>(
    [
      { title: "Side", cell: (s) => s },
      { title: "Recordings", numeric: true, cell: (s) => number(c[s].recordings) },
      { title: "Cycles", numeric: true, cell: (s) => number(c[s].cycles) },
      { title: "Median period", numeric: true, cell: (s) => duration(c[s].median_period_ns) },
      { title: "A cycle begins at", cell: (s) => h("span", { class: "files" }, c[s].anchor) },
      { title: c.alternation ? "What ran" : "Files", cell: (s, i) => h("span", { class: "files" }, c.alternation ? c.alternation.sides[i === 0 ? 0 : 1] : c[s].files.join(", ")) },
    ],
    [...kSides], { caption: "What was compared" });
  children.push(sides);
  return part("outcome", "Outcome", ...children);
}

// ---- causes

function where(v: Verdict): string {
  const scope = v.scope;
  if (typeof scope["rank"] === "number") return ` in rank ${scope["rank"]}`;
  const name = ["function", "process", "device", "host"].map((key) => scope[key]).find((value) => typeof value === "string");
  const process = typeof scope["function"] === "string" && typeof scope["process"] === "string" ? ` (process ${scope["process"]})` : "";
  return name === undefined || name === null ? "" : ` in ${name}${process}`;
}

function card(v: Verdict, unit: string, decided: boolean, seen: Seen): HTMLElement {
  const list = (title: string, lines: string[]) => (lines.length === 0 ? null : h("div", {}, h("strong", {}, title), h("ul", {}, ...lines.map((line) => sentence(seen, line, v)))));
  const head = v.cause === "unknown" ? "No cause was found" : `${v.cause}${v.detail ? ` (${v.detail})` : ""}${where(v)}`;
  const facts = [
    v.side === "baseline" ? "in the baseline" : null,
    v.cause !== "unknown" && v.state === "latent" ? (decided ? "latent: the steps are not longer by it, as far as is seen" : "latent: it is not decided whether steps are longer by it") : null,
    v.share !== null ? `${percent(v.share, 0)} of what a step takes longer` : null,
    v.impact_ns !== null ? `${duration(v.impact_ns)} per ${unit}` : null,
    v.cause === "unknown" ? null : `confidence ${percent(v.confidence, 0)}`,
  ].filter((fact) => fact !== null);
  return h("article", { class: `card ${v.state}` }, h("h3", {}, head), facts.length === 0 ? null : h("p", { class: "note" }, facts.join("; ")), lookAt(seen, v),
    list("Evidence", v.evidence), list("Against it", v.counter_evidence), v.next_step ? h("p", {}, h("strong", {}, "Next: "), v.next_step) : null);
}

function causes(c: Comparison, seen: Seen): Part {
  const none = c.outcome === "not_comparable" ? "Of runs that cannot be compared no cause is named." : "No cause is named: nothing was called slower, or nothing that is known was in its way.";
  return part("causes", "Causes", c.verdicts.length === 0 ? nothing(none) : h("div", { class: "cards" }, ...c.verdicts.map((v) => card(v, c.work ? "unit of work" : "step", c.outcome !== "inconclusive", seen))));
}

// ---- distributions

function histogram(values: number[], low: number, high: number, bins: number): number[] {
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) {
    const bin = Math.floor(((value - low) / (high - low)) * bins);
    if (bin >= 0 && bin < bins) counts[bin]! += 1 / values.length;
  }
  return counts;
}

export function distribution(phase: string, sides: { name: string; css: string; periods: number[] }[]): HTMLElement {
  const all = sides.flatMap((side) => side.periods).sort((a, b) => a - b);
  const at = (q: number) => all[Math.min(Math.floor(q * all.length), all.length - 1)] ?? 0;
  const low = at(0);
  const high = Math.max(at(0.99) * 1.02, low + 1);
  const cut = all.length > 0 && at(1) > high;
  const bins = Math.min(60, Math.max(10, Math.round(Math.sqrt(all.length) * 2)));
  const edges = Array.from({ length: bins + 1 }, (_, i) => low + ((high - low) * i) / bins);
  return h("div", {},
    chart(
      sides.map((side) => ({ label: side.name, color: side.css, x: edges, y: [...histogram(side.periods, low, high, bins), 0], steps: true })),
      { label: `Distribution of what ${phase} steps took, up to the 99th percentile`, x: ns, y: (v) => `${Number((100 * v).toPrecision(3))} %`, fromZero: true }),
    ...sides.map((side) => {
      const [p50, p90, p99] = quantiles(side.periods, [0.5, 0.9, 0.99]);
      return nothing(`${side.name}: p50 ${duration(p50)}, p90 ${duration(p90)}, p99 ${duration(p99)}`);
    }),
    cut ? nothing("Longer ones than the 99th percentile of all are not drawn.") : null);
}

function cyclesPart(pictures: Picture[]): Part {
  const phases = [...new Set(pictures.flatMap((p) => p.steps.map((steps) => steps.phase)))];
  if (phases.length === 0) return part("cycles", "Cycle times", nothing("There are no cycles to draw: nothing repeats, or the answer was made of tables."));
  const children: Node[] = [
    nothing("What a step took, as the outcome counts it: of devices the time of the one that idles least, else from begin to begin, without waits for work; of several ranks the slowest."),
    legend([["baseline", "base"], ["candidate", "cand"]])];
  for (const phase of phases) {
    const of = pictures.map((p) => p.steps.find((steps) => steps.phase === phase));
    const sides = of.map((cycles, s) => ({ name: kSides[s]!, css: s === 0 ? "--base" : "--cand", periods: cycles?.period_ns ?? [], at: cycles?.at_ns ?? [] }));
    const thinned = of.some((cycles) => cycles && cycles.all > cycles.period_ns.length);
    children.push(
      h("h3", {}, phase),
      h("div", { class: "two" },
        h("div", {}, h("p", { class: "note" }, `Share of steps by what they took (${sides.map((side, s) => number(of[s]?.all ?? side.periods.length)).join(" and ")} whole ones${thinned ? ", evenly thinned" : ""})`), distribution(phase, sides.filter((side) => side.periods.length > 0))),
        h("div", {}, h("p", { class: "note" }, "Over the recording"),
          chart(sides.filter((side) => side.periods.length > 0).map((side) => ({ label: side.name, color: side.css, x: side.at.map((v) => v / 1e9), y: side.periods, points: true })),
            { label: `What ${phase} steps took, over time`, x: seconds, y: ns }))));
  }
  return part("cycles", "Cycle times", ...children);
}

// ---- waterfall

function lineName(line: WaterfallLine): string {
  if (line.state === "function") return line.function || "(without a name)";
  return line.function ? `${line.state}: ${line.function}` : line.state;
}

function waterfall(w: Waterfall, which: number, places: Places): HTMLElement {
  const kMost = 14;
  const kLeast = 0.005; // of the largest change: smaller ones are no bar that could be seen
  const largest = Math.max(...w.lines.map((line) => Math.abs(line.change_ns)), 0);
  const seen = w.lines.filter((line) => Math.abs(line.change_ns) >= kLeast * largest).slice(0, kMost);
  const shown = seen.length + 1 >= w.lines.length ? w.lines.slice(0, kMost) : seen;
  const rest = w.lines.filter((line) => !shown.includes(line));
  const sum = (pick: (line: WaterfallLine) => number) => rest.reduce((total, line) => total + pick(line), 0);
  interface Step { name: string; pair: Pair<number>; change: number; byCalls: number; from: number; whole?: boolean }
  const steps: Step[] = [{ name: "Baseline", pair: [w.ns_per_cycle[0], w.ns_per_cycle[0]], change: 0, byCalls: 0, from: 0, whole: true }];
  let at = w.ns_per_cycle[0];
  for (const line of shown) {
    steps.push({ name: lineName(line), pair: line.ns_per_cycle, change: line.change_ns, byCalls: line.by_calls_ns ?? 0, from: at });
    at += line.change_ns;
  }
  const more = `${rest.length} more`;
  if (rest.length > 0) {
    steps.push({ name: more, pair: [sum((l) => l.ns_per_cycle[0]), sum((l) => l.ns_per_cycle[1])], change: sum((l) => l.change_ns), byCalls: sum((l) => l.by_calls_ns ?? 0), from: at });
    at += sum((l) => l.change_ns);
  }
  steps.push({ name: "Candidate", pair: [w.ns_per_cycle[1], w.ns_per_cycle[1]], change: w.ns_per_cycle[1] - w.ns_per_cycle[0], byCalls: 0, from: 0, whole: true });
  const moving = steps.filter((step) => !step.whole);
  const lows = moving.flatMap((step) => [step.from, step.from + step.change]).concat(w.ns_per_cycle);
  const high = Math.max(...lows);
  const spread = high - Math.min(...lows);
  const low = Math.max(0, Math.min(...lows) - Math.max(spread, high * 0.02) * 0.25);
  const place = (value: number) => (100 * (value - low)) / Math.max(high - low, 1);
  const bar = (step: Step): HTMLElement => {
    const mark = h("i", { class: step.whole ? "whole" : step.change < 0 ? "less" : undefined });
    const begin = step.whole ? low : Math.min(step.from, step.from + step.change);
    const end = step.whole ? step.pair[1] : Math.max(step.from, step.from + step.change);
    mark.style.left = `${place(begin)}%`;
    mark.style.width = `${Math.max(place(end) - place(begin), 0)}%`;
    return h("div", { class: "bars", "aria-hidden": "true" }, mark);
  };
  const fields: Field<Step>[] = [
    { title: "Where", cell: (s) => (s.whole ? h("strong", {}, s.name) : nameOf(s.name)) },
    { title: "Baseline", numeric: true, cell: (s) => (s.whole && s.name === "Candidate" ? "" : duration(s.pair[0])) },
    { title: "Candidate", numeric: true, cell: (s) => (s.whole && s.name === "Baseline" ? "" : duration(s.pair[1])) },
    { title: "Change", numeric: true, cell: (s) => (s.whole && s.name === "Baseline" ? "" : signed(s.change)) },
    { title: "By calls", numeric: true, cell: (s) => (s.whole || Math.abs(s.byCalls) < 1 ? "" : signed(s.byCalls)) },
    { title: "", cell: bar },
  ];
  const place_ = w.device < 0 ? "the thread of the cycles" : `device ${w.device}`;
  const leads: RowPlaces<Step> = { places, kind: "line", prefix: `waterfall-${which}`, title: "in the waterfall", about: (s) => (s.whole || s.name === more ? "" : s.name) };
  return table(fields, steps, { caption: `${w.phase}, ${place_}: mean of ${w.cycles.map(number).join(" and ")} cycles. The bars begin at ${duration(low)}`, page: 100, leads });
}

function waterfalls(c: Comparison, places: Places): Part {
  const notes = "Every nanosecond of a cycle counts once: in a function and none that it called, between functions, in the run queue, blocked, or idle.";
  const missing = c.notes.some((note) => note.startsWith("Profile tables hold sums of each cycle"))
    ? "Profile tables hold sums of each cycle only, so there is no ledger of both sides."
    : "There is no ledger of both sides: it needs whole cycles of like work with functions, devices or scheduling.";
  return part("waterfall", "Where the difference comes from",
    ...(c.waterfall.length === 0 ? [nothing(missing)] : [nothing(notes), ...c.waterfall.map((w, i) => waterfall(w, i, places))]));
}

// ---- findings

function spark(values: (number[] | undefined)[]): Node | string {
  const both = values.flatMap((v) => v ?? []);
  if (both.length === 0) return "";
  const high = Math.max(...both, 1);
  const line = (v: number[]) => v.map((value, i) => `${i === 0 ? "M" : "L"}${((119 * i) / Math.max(v.length - 1, 1)).toFixed(1)},${(21 - (20 * value) / high).toFixed(1)}`).join("");
  return svg("svg", { class: "spark", viewBox: "0 0 120 22", role: "img", "aria-label": `time per cycle over the cycles, up to ${duration(high)}` },
    ...values.map((v, s) => (v && v.length > 0 ? svg("path", { class: s === 0 ? "base" : "cand", d: line(v) }) : null)));
}

function findings(c: Comparison, pictures: Picture[], places: Places): Part {
  if (c.findings.length === 0) return part("findings", "Findings", nothing("No functions were compared: the sides have no cycles, or cycles without functions."));
  const numbers = new Map(c.findings.map((f, i) => [f, i]));
  const sparks = pictures.map((p) => new Map(p.sparks.map((s) => [s.finding, s.ns])));
  const ranks = c.findings.some((f) => f.rank > 0);
  const processes = new Set(c.findings.map((f) => f.pid.join())).size > new Set(c.findings.map((f) => f.rank)).size;
  // A short name that stands for several functions does not tell them apart.
  const meant = new Map<string, string>();
  const unclear = new Set<string>();
  for (const f of c.findings) {
    const other = meant.get(f.short_name);
    if (other !== undefined && other !== f.function) unclear.add(f.short_name);
    meant.set(f.short_name, f.function);
  }
  const basis: Record<string, string> = { time: "by its time", against_others: "by its time against all others of the same steps", calls: "by its calls on one side alone", per_call: "by how long a call takes", recordings: "by the recordings of each side" };
  const name = (f: Finding): string => (f.short_name === "" || unclear.has(f.short_name) ? f.function : f.short_name);
  const fields: Field<Finding>[] = [
    { title: "Function", sort: name, cell: (f) => (name(f) === f.function ? nameOf(f.function) : h("span", { title: f.function }, nameOf(name(f)))) },
    { title: "Phase", sort: (f) => f.phase, cell: (f) => f.phase },
    { title: "On", sort: (f) => f.device, cell: (f) => h("span", { class: "whole-line" }, ranks ? `${f.device}, rank ${f.rank}` : f.device) },
    { title: "Status", sort: (f) => f.status, cell: (f) => h("span", { class: f.status === "changed" || f.status === "new" ? "warn whole-line" : "whole-line", title: f.status === "unknown" ? "" : basis[f.rests_on] ?? "" }, f.status === "unknown" ? "not decided" : f.status) },
    { title: "Impact per cycle", numeric: true, sort: (f) => f.impact_ns_per_cycle, cell: (f) => h("span", { title: f.ci[0] === null ? "" : `95 % interval ${signed(f.ci[0])} to ${signed(f.ci[1])}` }, signed(f.impact_ns_per_cycle)) },
    { title: "Baseline", numeric: true, sort: (f) => f.ns_per_cycle[0], cell: (f) => duration(f.ns_per_cycle[0]) },
    { title: "Candidate", numeric: true, sort: (f) => f.ns_per_cycle[1], cell: (f) => duration(f.ns_per_cycle[1]) },
    { title: "Per call", numeric: true, sort: (f) => f.work_ratio, cell: (f) => (f.work_ratio === null ? "" : `x${f.work_ratio.toFixed(2)}`) },
    { title: "Calls", numeric: true, sort: (f) => f.calls[1] - f.calls[0], cell: (f) => f.calls.map(number).join(" / ") },
  ];
  if (processes) fields.splice(1, 0, { title: "Process", sort: (f) => f.pid[1] ?? f.pid[0], cell: (f) => [...new Set(f.pid.filter((pid) => pid !== null))].join(", ") });
  if (sparks.some((s) => s.size > 0)) fields.push({ title: "Over the cycles", cell: (f) => spark(sparks.map((s) => s.get(numbers.get(f)!))) });
  return part("findings", "Findings",
    legend([["baseline", "base"], ["candidate", "cand"]]),
    table(fields, c.findings, { caption: "Functions by what they make of a cycle", filter: (f) => `${f.function} ${f.short_name} ${f.phase} ${f.device} ${f.status} ${f.kind} ${f.parent}`,
      leads: { places, kind: "finding", prefix: "finding", title: "in the findings", about: (f) => f.function } }));
}

// ---- resources and host

const text = (row: Row, key: string): string => (row[key] === undefined || row[key] === null ? "" : String(row[key]));

/// Rows of numbers of both sides, by what they are of.
function rowsOf(places: Places, of: string): RowPlaces<Row> {
  const device = (row: Row): string => (typeof row["rank"] === "number" && row["rank"] >= 0 ? `${text(row, "device")}, rank ${row["rank"]}` : text(row, "device"));
  return { places, kind: "row", prefix: `row-${of}`, title: "in numbers", about: (row) => text(row, "what") || text(row, "metric"), device };
}

function sidesTable(rows: Row[], caption: string, leads: RowPlaces<Row>): HTMLElement {
  const value = (row: Row, s: 0 | 1): number | null => {
    const v = row[kSides[s]] ?? (Array.isArray(row["value"]) ? (row["value"] as unknown[])[s] : null);
    return typeof v === "number" ? v : null;
  };
  const name = (row: Row) => [text(row, "what") || text(row, "metric"), text(row, "device")].filter((t) => t !== "").join(", ");
  const moved = (row: Row): number | null => {
    const [a, b] = [value(row, 0), value(row, 1)];
    return a === null || b === null || a === 0 ? null : b / a;
  };
  return table<Row>(
    [
      { title: "What", sort: name, cell: name },
      { title: "Baseline", numeric: true, sort: (r) => value(r, 0), cell: (r) => withUnit(value(r, 0), text(r, "unit")) },
      { title: "Candidate", numeric: true, sort: (r) => value(r, 1), cell: (r) => withUnit(value(r, 1), text(r, "unit")) },
      { title: "Change", numeric: true, sort: moved, cell: (r) => change(moved(r)) },
    ],
    rows, { caption, filter: name, leads });
}

function resources(c: Comparison, pictures: Picture[], places: Places): Part {
  const children: Node[] = [];
  const host = (c.host ?? {}) as Record<string, unknown>;
  const lists: [string, string][] = [["step_thread", "The thread of the steps"], ["states", "What all threads did"], ["beside", "Programs beside it"], ["counters", "Counters of the host that moved"]];
  for (const [key, caption] of lists) if (Array.isArray(host[key]) && (host[key] as Row[]).length > 0) children.push(sidesTable(host[key] as Row[], caption, rowsOf(places, key.replace(/_/g, "-"))));
  if (c.resources.length > 0) children.push(sidesTable(c.resources, "Resources of devices and processes that moved, while whole cycles ran", rowsOf(places, "resource")));
  children.push(...overTime(pictures, [...kSides], places));
  if (children.length === 0) children.push(nothing("No resources were recorded on either side."));
  return part("resources", "Resources", ...children);
}

/// Series of one run, or of both sides beside each other.
export function overTime(pictures: Picture[], sides: string[], places: Places): Node[] {
  const names = [...new Map(pictures.flatMap((p) => p.series).map((s) => [`${s.metric} ${s.device}`, s])).values()].sort((a, b) => Number(b.moved) - Number(a.moved));
  if (names.length === 0) return [];
  const box = h("div");
  let shown = 0;
  const more = h("button", { type: "button", class: "no-print" }, "More");
  const boxes: HTMLElement[] = [];
  const add = (): void => {
    for (const series of names.slice(shown, shown + 6)) boxes.push(seriesCharts(series.metric, series.device, series.unit, pictures, sides));
    box.append(...boxes.slice(shown));
    shown += 6;
    more.hidden = shown >= names.length;
    more.textContent = `${names.length - shown} more`;
  };
  more.addEventListener("click", add);
  add();
  names.forEach((series, i) => {
    const wanted = (): HTMLElement => {
      while (shown <= i) add();
      boxes[i]!.id = `series-${i}`;
      boxes[i]!.tabIndex = -1;
      return boxes[i]!;
    };
    addPlace(places, { id: `series-${i}`, kind: "series", title: "over time", about: series.metric, device: series.device, wanted, open: () => ({ at: wanted(), focus: wanted() }) });
  });
  const out = pictures.reduce((sum, p) => sum + p.series_left_out, 0);
  return [h("h3", {}, "Over time"), sides.length < 2 ? null : legend([["baseline", "base"], ["candidate", "cand"]]), nothing("Means, lowest and highest values of short stretches; vertical lines are begins of cycles, drawn where there are few enough to tell them apart."), box, more,
    out > 0 ? nothing(`${number(out)} more series are not drawn.`) : null].filter((child) => child !== null);
}

/// Of both sides alike, so that the eye may compare them.
function rangeOf(values: number[]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  const room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
}

function seriesCharts(metric: string, device: string, unit: string, pictures: Picture[], sides: string[]): HTMLElement {
  const of = pictures.map((p) => p.series.find((s) => s.metric === metric && s.device === device));
  const range = rangeOf(of.flatMap((series) => (series ? [...series.low, ...series.high] : [])));
  return h("div", {}, h("p", {}, `${metric}${device ? `, ${device}` : ""}`),
    h("div", { class: sides.length < 2 ? undefined : "two" },
      ...of.map((series, s) =>
        h("div", {}, sides.length < 2 ? null : nothing(sides[s]!),
          series
            ? chart([{ label: sides[s]!, color: s === 0 ? "--base" : "--cand", x: series.at_ns.map((v) => v / 1e9), y: series.mean, low: series.low, high: series.high }],
                { label: `${metric} of ${device || "the run"} over time, ${sides[s]}`, x: seconds, y: (v) => withUnit(v, unit), height: 150, range, marks: pictures[s]!.cycles.flatMap((cycles) => cycles.at_ns.map((v) => v / 1e9)) })
            : nothing(`Not recorded in the ${sides[s]}.`)))));
}

// ---- a cycle of each side

export function stretches(pictures: Picture[], sides: string[]): { part: Part; timelines: (Timeline | null)[] } {
  const children: Node[] = [];
  const timelines = pictures.map((p, s): Timeline | null => {
    const stretch = p.stretch;
    if (sides.length > 1) children.push(h("h3", {}, `${sides[s]!.charAt(0).toUpperCase()}${sides[s]!.slice(1)}`));
    if (!stretch) {
      children.push(nothing("There is no whole cycle to show."));
      return null;
    }
    const drawn = timeline(stretch, `A ${stretch.phase} cycle of the ${sides[s]}`);
    const left = [stretch.left_out > 0 ? `${number(stretch.left_out)} shortest slices` : "", stretch.lanes_left_out > 0 ? `${number(stretch.lanes_left_out)} quiet lanes` : ""].filter((t) => t !== "");
    children.push(
      nothing(`Cycle ${number(stretch.number)} (${stretch.phase}) of ${p.file}: ${duration(stretch.period_ns)}, the nearest to the median${left.length > 0 ? `; left out: ${left.join(" and ")}` : ""}.`),
      drawn.element);
    return drawn;
  });
  if (children.length === 0) children.push(nothing("There are no traces behind this answer."));
  return { part: part("timeline", sides.length > 1 ? "A cycle of each side" : "A cycle", ...children), timelines };
}

export function evidence(pictures: Picture[], sides: string[]): Part {
  const rows = pictures.flatMap((p, s) => (p.stretch ? [{ p, s, stretch: p.stretch }] : []));
  if (rows.length === 0) return part("evidence", "In a trace viewer", nothing("There is no cycle to open in a trace viewer."));
  const said = h("span", { class: "note", "aria-live": "polite" });
  return part("evidence", "In a trace viewer",
    h("p", {}, "Save a cycle as a trace and open it in ", h("a", { href: "https://ui.perfetto.dev", rel: "noopener noreferrer", target: "_blank" }, "ui.perfetto.dev"), " (by its \"Open trace file\", which reads it in the browser), or open the whole recording there and go to the time below."),
    ...rows.map(({ p, s, stretch }) =>
      h("div", {}, h("h3", {}, `Cycle ${number(stretch.number)} of the ${sides[s]}`),
        h("dl", {}, h("dt", {}, "File"), h("dd", {}, p.file),
          h("dt", {}, "From"), h("dd", {}, `${stretch.begin_ns} ns of the trace${stretch.unix_ns ? `, ${stretch.unix_ns} ns since 1970` : ""}`),
          h("dt", {}, "Length"), h("dd", {}, `${stretch.length_ns} ns`)),
        h("p", { class: "tools no-print" },
          saveButton(p, sides[s]!),
          h("button", { type: "button", click: () => { navigator.clipboard?.writeText(stretch.unix_ns || String(stretch.begin_ns)).then(() => { said.textContent = "copied"; }, () => { said.textContent = "this browser does not let the page copy"; }); } }, "Copy the time")))),
    said);
}

// ---- what it stands on

function generic(rows: Row[], caption: string, leads?: RowPlaces<Row>): HTMLElement {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const text = (value: unknown): string =>
    value === null || value === undefined ? "" : Array.isArray(value) ? value.map(text).join(" / ") : typeof value === "number" ? number(value) : typeof value === "object" ? JSON.stringify(value) : String(value);
  return table<Row>(keys.map((key) => ({ title: key.replace(/_/g, " "), sort: (r) => text(r[key]), cell: (r) => text(r[key]) })), rows, { caption, filter: (r) => keys.map((key) => text(r[key])).join(" "), leads });
}

function basis(c: Comparison, report: Report, places: Places): Part {
  const pictures = report.pictures ?? [];
  const list = (title: string, lines: string[]) => (lines.length === 0 ? null : h("div", {}, h("h3", {}, title), h("ul", {}, ...lines.map((line) => h("li", {}, line)))));
  const children: (Node | null)[] = [
    h("p", {}, `Comparable: ${c.comparability.level.replace(/_/g, " ")}. `, c.comparability.remedy),
    list("Reasons", c.comparability.reasons),
    c.comparability.differences.length > 0 ? generic(c.comparability.differences, "What the runs differ in") : null,
    c.environment_diff.length > 0 ? generic(c.environment_diff, "Environment that differs", { places, kind: "row", prefix: "environment", title: "in the environment", about: (row) => text(row, "key") }) : nothing("Nothing that was recorded of the environment differs."),
  ];
  for (const side of kSides) {
    const quality = c.data_quality[side];
    if (!quality) continue;
    children.push(h("h3", {}, `Data of the ${side}`), h("p", {}, `${number(quality.events)} events, ${number(quality.events_lost)} lost.`));
    if (c[side].how) children.push(h("p", {}, `${c[side].cycles > 0 ? "Cycles" : "No cycles"}: ${c[side].how}`));
    if (quality.losses.length > 0) children.push(generic(quality.losses, "Losses and repairs"));
  }
  pictures.forEach((p, s) => {
    if (p.others > 0) children.push(nothing(`Of the ${kSides[s]} the first recording is drawn, ${p.file}; ${number(p.others)} more count in the numbers.`));
  });
  children.push(list("Assumptions", c.assumptions), list("Notes", report.notes ?? c.notes));
  return part("basis", "What this stands on", ...children);
}

/// Of profile tables: what the tool that made them would say.
function ranking(report: Report): Part | null {
  const table = (report.tables ?? []).find((t) => t.key === "suspicion");
  return table ? part("ranking", table.title, tableOf(table)) : null;
}

function collected(report: Report, places: Places): Part | null {
  const tables = (report.tables ?? []).filter((t) => t.key !== "suspicion");
  return tables.length === 0 ? null : part("collected", "Requests, system calls, waits, disks and samples", ...tables.map((t) => tableOf(t, places)));
}

export function comparisonParts(report: Report, places: Places): Part[] {
  const c = report.comparison!;
  const pictures = report.pictures ?? [];
  const first = outcome(c, report, places);
  if (c.same_recording) return [first, basis(c, report, places)];
  const sides = [...kSides];
  const cycle = stretches(pictures, sides);
  const behind = [cyclesPart(pictures), waterfalls(c, places), findings(c, pictures, places), resources(c, pictures, places), ranking(report), collected(report, places), cycle.part, evidence(pictures, sides), basis(c, report, places)];
  // Made last: what is there to be seen is known now.
  const named = causes(c, { places, findings: c.findings, pictures, timelines: cycle.timelines, sides });
  return [first, named, ...behind].filter((p): p is Part => p !== null);
}
