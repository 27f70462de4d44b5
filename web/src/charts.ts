// Charts in the page's colours. They are drawn anew when the colours or the width change.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { color, h } from "./dom";
import { tick } from "./format";

export interface Line {
  label: string;
  color: string; // a name of a colour of the page
  x: number[];
  y: (number | null)[];
  low?: number[];
  high?: number[];
  points?: boolean;
  steps?: boolean;
}

export interface ChartOptions {
  label: string; // for those who do not see it
  x: (value: number) => string;
  y: (value: number) => string;
  height?: number;
  marks?: number[]; // vertical lines
  fromZero?: boolean;
  range?: [number, number]; // of y; absent: that of the lines
}

const redraws: (() => void)[] = [];

/// Draws all charts again, in the colours that hold now.
export function redrawAll(): void {
  for (const redraw of redraws) redraw();
}

let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (Math.abs(window.innerWidth - width) < 20) return;
  width = window.innerWidth;
  redrawAll();
});

function joined(lines: Line[]): uPlot.AlignedData {
  const tables = lines.flatMap((line) => {
    const columns: uPlot.AlignedData = [line.x, line.y];
    if (line.low && line.high) columns.push(line.low, line.high);
    return [columns];
  });
  return tables.length === 1 ? tables[0]! : uPlot.join(tables);
}

function seriesOf(lines: Line[]): uPlot.Series[] {
  const all: uPlot.Series[] = [{}];
  for (const line of lines) {
    const stroke = color(line.color);
    const main: uPlot.Series = { label: line.label, stroke, width: line.points ? 0 : 1.5, spanGaps: true };
    main.points = line.points ? { show: true, size: 4, fill: stroke, stroke } : { show: false };
    if (line.points) main.paths = () => null;
    if (line.steps) main.paths = uPlot.paths.stepped!({ align: 1 });
    all.push(main);
    if (line.low && line.high)
      for (const edge of ["lowest", "highest"])
        all.push({ label: `${line.label}, ${edge}`, stroke: `${stroke}66`, width: 0.5, spanGaps: true, points: { show: false } });
  }
  return all;
}

export function chart(lines: Line[], options: ChartOptions): HTMLElement {
  const box = h("figure", { class: "chart", role: "img", "aria-label": options.label });
  const height = options.height ?? 220;
  box.style.minHeight = `${height}px`; // so that nothing moves when it is drawn
  let plot: uPlot | null = null;
  const rangeOfY = (): uPlot.Scale.Range | undefined => {
    if (options.range) return options.range;
    if (options.fromZero) return (_: uPlot, __: number, high: number): uPlot.Range.MinMax => [0, high > 0 ? high * 1.05 : 1];
    return undefined;
  };
  const draw = (): void => {
    plot?.destroy();
    const range = rangeOfY();
    const axis = { stroke: color("--text"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    plot = new uPlot({
      width: Math.max(box.clientWidth, 300),
      height,
      scales: { x: { time: false }, ...(range ? { y: { range } } : {}) },
      series: seriesOf(lines),
      axes: [
        { ...axis, space: 90, size: 34, values: (_, values) => values.map(options.x) },
        { ...axis, size: 80, values: (_, values) => values.map(options.y) },
      ],
      legend: { show: false },
      cursor: { drag: { x: true, y: false } },
      hooks: {
        drawClear: [(u) => {
          if (!options.marks || options.marks.length > 400) return;
          u.ctx.save();
          u.ctx.strokeStyle = color("--mark");
          u.ctx.beginPath();
          for (const mark of options.marks) {
            const x = Math.round(u.valToPos(mark, "x", true));
            if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
            u.ctx.moveTo(x + 0.5, u.bbox.top);
            u.ctx.lineTo(x + 0.5, u.bbox.top + u.bbox.height);
          }
          u.ctx.stroke();
          u.ctx.restore();
        }],
      },
    }, joined(lines), box);
  };
  redraws.push(draw);
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    draw();
  });
  seen.observe(box);
  window.addEventListener("beforeprint", () => plot ?? draw());
  return box;
}

export const ns = tick;
export const seconds = (value: number): string => `${Number(value.toPrecision(6))} s`;

/// What colour is which side.
export function legend(entries: [string, string][]): HTMLElement {
  return h("p", { class: "legend" }, ...entries.map(([name, css]) => h("span", { class: `key ${css}` }, name)));
}
