// One cycle, lane by lane: drawn on a canvas, because a cycle may hold twenty thousand slices; moved and zoomed by
// mouse and by keys; what is chosen is told as text. Links mark slices of it.
import { color, h } from "./dom";
import { duration, number } from "./format";
import type { Place } from "./places";
import type { Lane, Stretch } from "./data";
import { onTheme } from "./theme";

const kRow = 16;
const kLabel = 190;
const kMostDepth = 12;
const kFill = 0.4; // of the width: the slice that a link leads to

interface Box { begin: number; length: number; name: number; depth: number }
interface Row { lane: Lane; boxes: Box[]; depth: number; top: number }
interface Spot { row: number; box: Box }

/// Which slices are meant.
export interface SliceChoice { name: (name: string) => boolean; lane: (lane: Lane) => boolean }

export interface Timeline {
  element: HTMLElement;
  /// Shows those slices: all are marked, and the first that is not short beside the longest is zoomed to. null: the
  /// cycle has none.
  slices: (id: string, choice: SliceChoice) => Pick<Place, "open"> | null;
}

function rowsOf(stretch: Stretch): Row[] {
  let top = 22;
  return stretch.lanes.map((lane) => {
    const boxes: Box[] = [];
    const open: number[] = []; // ends, outermost first
    for (let i = 0; i + 2 < lane.slices.length; i += 3) {
      const begin = lane.slices[i]!;
      const length = lane.slices[i + 1]!;
      while (open.length > 0 && open[open.length - 1]! <= begin) open.pop();
      boxes.push({ begin, length, name: lane.slices[i + 2]!, depth: Math.min(open.length, kMostDepth - 1) });
      open.push(begin + length);
    }
    const depth = Math.max(1, ...boxes.map((box) => box.depth + 1));
    const row = { lane, boxes, depth, top };
    top += depth * kRow + 6;
    return row;
  });
}

function hue(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; ++i) hash = (hash * 31 + text.charCodeAt(i)) | 0;
  return Math.abs(hash) % 8;
}

export function timeline(stretch: Stretch, label: string): Timeline {
  const rows = rowsOf(stretch);
  const last = rows[rows.length - 1];
  const height = last ? last.top + last.depth * kRow + 8 : 40;
  const canvas = h("canvas", { class: "timeline", tabindex: 0, role: "application", "aria-label": `${label}: arrow keys move, plus and minus zoom, 0 shows all, up and down choose a lane, n and p the next and previous slice, Escape takes marks away` });
  canvas.style.height = `${height}px`;
  const said = h("p", { class: "said note", "aria-live": "polite" }, "Click a slice, or use the keys: arrows, + and -, 0, n and p.");
  let from = 0;
  let to = stretch.length_ns;
  let lane = 0;
  let chosen: Box | null = null;
  let marks: Spot[] = [];
  let marked = new Set<Box>();

  const clampView = (): void => {
    const length = Math.min(Math.max(to - from, 10), stretch.length_ns);
    from = Math.min(Math.max(from, 0), stretch.length_ns - length);
    to = from + length;
  };
  const x = (at: number, width: number): number => kLabel + ((at - from) / (to - from)) * (width - kLabel);

  const draw = (): void => {
    canvas.dataset["from"] = String(from);
    canvas.dataset["to"] = String(to);
    const width = canvas.clientWidth;
    if (width === 0) return;
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const c = canvas.getContext("2d");
    if (!c) return;
    c.scale(scale, scale);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.fillStyle = color("--back");
    c.fillRect(0, 0, width, height);
    const text = color("--text");
    const palette = Array.from({ length: 8 }, (_, i) => color(`--l${i}`));
    c.strokeStyle = color("--line");
    c.fillStyle = color("--faint");
    for (let i = 0; i <= 5; ++i) {
      const at = from + ((to - from) * i) / 5;
      const px = x(at, width);
      c.fillText(duration(at), Math.min(px + 3, width - 62), 10);
      c.beginPath();
      c.moveTo(px, 0);
      c.lineTo(px, height);
      c.stroke();
    }
    rows.forEach((row, r) => {
      c.fillStyle = r === lane ? color("--focus") : text;
      c.save();
      c.beginPath();
      c.rect(0, row.top, kLabel - 6, row.depth * kRow);
      c.clip();
      c.fillText(row.lane.name, 4, row.top + kRow / 2);
      c.restore();
      let lastPx = -1;
      for (const box of row.boxes) {
        if (box.begin + box.length < from || box.begin > to) continue;
        const begin = Math.max(x(box.begin, width), kLabel);
        const end = Math.min(x(box.begin + box.length, width), width);
        if (end <= kLabel) continue;
        const size = Math.max(end - begin, 1);
        const faint = marked.size > 0 && !marked.has(box);
        if (size <= 1 && Math.floor(begin) === lastPx && box !== chosen && !marked.has(box)) continue;
        lastPx = size <= 1 ? Math.floor(begin) : -1;
        const name = stretch.names[box.name] ?? "";
        const top = row.top + box.depth * kRow;
        c.fillStyle = palette[hue(name)]!;
        c.globalAlpha = faint ? 0.25 : 1;
        c.fillRect(begin, top, size, kRow - 2);
        c.globalAlpha = 1;
        if (box === chosen || marked.has(box)) {
          c.strokeStyle = text;
          c.lineWidth = box === chosen ? 2 : 1;
          c.strokeRect(begin, top, size, kRow - 2);
          c.lineWidth = 1;
        }
        if (size > 40) {
          c.save();
          c.beginPath();
          c.rect(begin + 2, top, size - 4, kRow - 2);
          c.clip();
          c.fillStyle = faint ? text : "#ffffff";
          c.fillText(name, begin + 4, top + kRow / 2 - 1);
          c.restore();
        }
      }
    });
  };

  const say = (box: Box, row: Row): void => {
    chosen = box;
    const mark = marks.findIndex((spot) => spot.box === box);
    const among = mark < 0 ? "" : `; ${number(mark + 1)} of ${number(marks.length)} that are marked`;
    said.textContent = `${stretch.names[box.name] ?? ""}: ${duration(box.length)}, from ${duration(box.begin)} on, ${row.lane.name}${among}`;
  };
  const zoom = (factor: number, at: number): void => {
    from = at - (at - from) * factor;
    to = at + (to - at) * factor;
    clampView();
    draw();
  };
  const move = (ns: number): void => {
    const length = to - from;
    from = Math.min(Math.max(from + ns, 0), stretch.length_ns - length);
    to = from + length;
    draw();
  };
  /// The next one of its lane, or of all that are marked.
  const step = (by: number): void => {
    const choices = marks.length > 0 ? marks : (rows[lane]?.boxes ?? []).map((box) => ({ row: lane, box }));
    if (choices.length === 0) return;
    const at = choices.findIndex((choice) => choice.box === chosen);
    const choice = choices[Math.min(Math.max(at < 0 ? 0 : at + by, 0), choices.length - 1)]!;
    const next = choice.box;
    lane = choice.row;
    say(next, rows[lane]!);
    const y = canvas.getBoundingClientRect().top + rows[lane]!.top;
    if (y < 0 || y + kRow > window.innerHeight) window.scrollBy(0, y - window.innerHeight / 3);
    if (next.begin < from || next.begin > to) {
      const length = to - from;
      from = next.begin - length / 4;
      to = from + length;
      clampView();
    }
    draw();
  };

  const unmark = (): void => {
    marks = [];
    marked = new Set();
    clear.hidden = true;
    said.textContent = "No slices are marked.";
    draw();
  };

  canvas.addEventListener("keydown", (event) => {
    const length = to - from;
    const keys: Record<string, () => void> = {
      ArrowLeft: () => move(-length / 5),
      ArrowRight: () => move(length / 5),
      ArrowUp: () => { lane = Math.max(lane - 1, 0); chosen = null; said.textContent = rows[lane]?.lane.name ?? ""; draw(); },
      ArrowDown: () => { lane = Math.min(lane + 1, rows.length - 1); chosen = null; said.textContent = rows[lane]?.lane.name ?? ""; draw(); },
      "+": () => zoom(0.5, (from + to) / 2),
      "=": () => zoom(0.5, (from + to) / 2),
      "-": () => zoom(2, (from + to) / 2),
      "0": () => { from = 0; to = stretch.length_ns; draw(); },
      n: () => step(1),
      p: () => step(-1),
      Escape: unmark,
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  const timeAt = (event: MouseEvent): number => {
    const box = canvas.getBoundingClientRect();
    return from + ((event.clientX - box.left - kLabel) / (box.width - kLabel)) * (to - from);
  };
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
    event.preventDefault();
    zoom(event.deltaY + event.deltaX < 0 ? 0.8 : 1.25, timeAt(event));
  }, { passive: false });
  let drag: { x: number; moved: boolean } | null = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag || Math.abs(event.clientX - drag.x) < 3) return;
    move(((drag.x - event.clientX) / (canvas.clientWidth - kLabel)) * (to - from));
    drag = { x: event.clientX, moved: true };
  });
  canvas.addEventListener("pointerup", (event) => {
    const clicked = drag && !drag.moved;
    drag = null;
    if (!clicked) return;
    const y = event.clientY - canvas.getBoundingClientRect().top;
    const at = timeAt(event);
    const near = ((to - from) / canvas.clientWidth) * 2;
    rows.forEach((row, r) => {
      const depth = Math.floor((y - row.top) / kRow);
      if (depth < 0 || depth >= row.depth) return;
      const hit = row.boxes.find((box) => box.depth === depth && box.begin - near <= at && at <= box.begin + box.length + near);
      if (!hit) return;
      lane = r;
      say(hit, row);
    });
    draw();
  });
  new ResizeObserver(draw).observe(canvas);
  onTheme(draw);
  const button = (text: string, title: string, act: () => void) => h("button", { type: "button", title, "aria-label": title, click: act }, text);
  const clear = button("No marks", "Take the marks away", () => { unmark(); canvas.focus({ preventScroll: true }); });
  clear.hidden = true;
  const drawing = h("div", { class: "drawing" }, canvas);

  const slices = (id: string, choice: SliceChoice): Pick<Place, "open"> | null => {
    const names = stretch.names.map(choice.name);
    const spots: Spot[] = rows.flatMap((row, r) => (choice.lane(row.lane) ? row.boxes.filter((box) => names[box.name]).map((box) => ({ row: r, box })) : []));
    spots.sort((a, b) => a.box.begin - b.box.begin || a.row - b.row);
    const longest = spots.reduce((most, spot) => Math.max(most, spot.box.length), 0);
    const first = spots.find((spot) => spot.box.length >= longest / 2);
    if (!first) return null;
    // So that the browser itself, and a printed page, know where the link leads.
    const at = h("span", { id, class: "anchor" });
    at.style.top = `${rows[first.row]!.top}px`;
    drawing.append(at);
    return {
      open: () => {
        marks = spots;
        marked = new Set(spots.map((spot) => spot.box));
        clear.hidden = false;
        lane = first.row;
        const shown = first.box.length / kFill;
        from = first.box.begin + first.box.length / 2 - shown / 2;
        to = from + shown;
        clampView();
        say(first.box, rows[lane]!);
        draw();
        return { at, focus: canvas };
      },
    };
  };
  const element = h("div", {},
    h("div", { class: "tools no-print" },
      button("+", "Zoom in", () => zoom(0.5, (from + to) / 2)), button("-", "Zoom out", () => zoom(2, (from + to) / 2)),
      button("All", "Show the whole cycle", () => { from = 0; to = stretch.length_ns; draw(); }),
      clear, h("span", { class: "note" }, "Control or Shift and the wheel zoom, too; drag to move.")),
    said, drawing);
  return { element, slices };
}
