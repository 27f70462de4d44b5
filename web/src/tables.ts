// The page of every other answer: its tables, with the charts that they make possible.
import { chart, legend, ns, seconds } from "./charts";
import { distribution, type Part } from "./comparison";
import { h, section } from "./dom";
import { cell, percent } from "./format";
import { table } from "./table";
import type { Report, TableData } from "./data";

const kNumeric = new Set(["count", "time", "percent", "number", "bytes"]);

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
function cycleCharts(data: TableData): HTMLElement | null {
  const [begin, period, phase, marks] = [column(data, "begin_ns"), column(data, "period_ns"), column(data, "phase"), column(data, "marks")];
  if (begin < 0 || period < 0) return null;
  const colors = ["--l0", "--l1", "--l2", "--l3", "--l4"];
  const kept = data.rows.filter((row) => typeof row[period] === "number" && (marks < 0 || row[marks] === null || row[marks] === ""));
  const phases = [...new Set(kept.map((row) => String(phase < 0 ? "" : row[phase])))].slice(0, colors.length);
  const first = Math.min(...kept.map((row) => Number(row[begin])));
  const of = (name: string) => kept.filter((row) => phase < 0 || String(row[phase]) === name).sort((a, b) => Number(a[begin]) - Number(b[begin]));
  return h("div", {},
    h("h3", {}, "Period over the run"),
    phases.length < 2 ? null : legend(phases.map((name, i) => [name, `l${i}`])),
    chart(phases.map((name, i) => ({ label: name, color: colors[i]!, x: of(name).map((row) => (Number(row[begin]) - first) / 1e9), y: of(name).map((row) => Number(row[period])), points: true })),
      { label: "Periods of cycles over time", x: seconds, y: ns }),
    ...phases.flatMap((name) => {
      const periods = of(name).map((row) => Number(row[period]));
      return periods.length < 3 ? [] : [h("h3", {}, `Distribution of ${name || "periods"}`), distribution(name, [{ name, css: "--base", periods }])];
    }));
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

function tableOf(data: TableData): HTMLElement {
  const used = data.columns.map((c, i) => ({ c, i })).filter(({ i }) => data.rows.some((row) => row[i] !== null && row[i] !== ""));
  return table(
    used.map(({ c, i }) => ({ title: c.title, numeric: kNumeric.has(c.type), sort: (row: TableData["rows"][number]) => row[i] ?? null, cell: (row: TableData["rows"][number]) => cell(c, row[i]) })),
    data.rows, { caption: `${data.title || data.key}: ${data.rows.length} rows`, filter: (row) => row.filter((v) => typeof v === "string").join(" "), notes: data.notes });
}

export function tableParts(report: Report): Part[] {
  return (report.tables ?? []).map((data, i) => {
    const title = data.title || data.key.replace(/_/g, " ");
    return { id: `table-${i}`, title, body: section(`table-${i}`, title, cycleCharts(data), launchCharts(data), data.rows.length === 0 ? h("p", { class: "note" }, "No rows.") : null, data.rows.length > 0 ? tableOf(data) : null, ...(data.rows.length === 0 ? data.notes.map((note) => h("p", { class: "note" }, note)) : [])) };
  });
}
