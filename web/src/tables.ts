// The page of every other answer: its tables, with the charts that they make possible.
import { chart, legend, ns, seconds } from "./charts";
import { distribution, evidence, overTime, stretches, type Part } from "./comparison";
import { h, section } from "./dom";
import { number, percent } from "./format";
import type { Places } from "./places";
import { tableOf } from "./table";
import type { Timeline } from "./timeline";
import type { PictureCycles, Report, TableData } from "./data";

export const kRun = "run"; // the only side that there is

function column(data: TableData, ...keys: string[]): number {
  for (const key of keys) {
    const at = data.columns.findIndex((c) => c.key === key);
    if (at >= 0) return at;
  }
  return -1;
}

function numbers(data: TableData, at: number): number[] {
  return data.rows.map((row) => Number(row[at] ?? NaN));
}

/// Cycles: how long they took, and when.
function cycleCharts(drawn: PictureCycles[]): HTMLElement | null {
  if (drawn.length === 0) return null;
  const colors = ["--l0", "--l1", "--l2", "--l3", "--l4"];
  return h("div", {},
    h("h3", {}, "Period over the run"),
    drawn.length < 2 ? null : legend(drawn.map((cycles, i) => [cycles.phase, `l${i}`])),
    chart(drawn.map((cycles, i) => ({ label: cycles.phase, color: colors[i]!, x: cycles.at_ns.map((v) => v / 1e9), y: cycles.period_ns, points: true })),
      { label: "Periods of cycles over time", x: seconds, y: ns }),
    ...drawn.flatMap(({ phase, period_ns }, i) =>
      period_ns.length < 3 ? [] : [h("h3", {}, `Distribution of ${phase}`), distribution(phase, [{ name: `${number(period_ns.length)} cycles`, css: drawn.length < 2 ? "--base" : colors[i]!, periods: period_ns }])]));
}

/// Launches: use of tensor cores against use of DRAM, and the longest.
function launchCharts(data: TableData): HTMLElement | null {
  const compute = column(data, "tensor_share", "tensor", "compute_share", "compute");
  const dram = column(data, "dram_share", "dram");
  if (compute < 0 || dram < 0) return null;
  const points = data.rows.map((_, i) => [numbers(data, dram)[i]!, numbers(data, compute)[i]!] as const).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y)).sort((a, b) => a[0] - b[0]);
  if (points.length === 0) return null;
  return h("div", {}, h("h3", {}, "Use of tensor cores against use of DRAM, a point per row"),
    chart([{ label: "rows", color: "--base", x: points.map((p) => p[0]), y: points.map((p) => p[1]), points: true }],
      { label: "Use of tensor cores against use of DRAM", x: (v) => percent(v, 0), y: (v) => percent(v, 0), fromZero: true, height: 300 }));
}

/// The tables, and where causes are named what was drawn of the run, so that it can be seen.
export function tableParts(report: Report, places: Places): { parts: Part[]; timelines: (Timeline | null)[] } {
  const leads = report.verdicts ? places : undefined;
  const parts = (report.tables ?? []).map((data, i): Part => {
    const title = data.title || data.key.replace(/_/g, " ");
    return { id: `table-${i}`, title, body: section(`table-${i}`, title, data.key === "cycles" ? cycleCharts(report.cycles ?? []) : null, launchCharts(data), data.rows.length === 0 ? h("p", { class: "note" }, "No rows.") : null, data.rows.length > 0 ? tableOf(data, leads) : null, ...(data.rows.length === 0 ? data.notes.map((note) => h("p", { class: "note" }, note)) : [])) };
  });
  const pictures = report.pictures ?? [];
  if (pictures.length === 0) return { parts, timelines: [] };
  const resources = overTime(pictures, [kRun], places);
  if (resources.length > 0) parts.push({ id: "resources", title: "Resources", body: section("resources", "Resources", ...resources) });
  const cycle = stretches(pictures, [kRun]);
  return { parts: [...parts, cycle.part, evidence(pictures, [kRun])], timelines: cycle.timelines };
}
