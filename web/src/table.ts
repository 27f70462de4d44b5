// Tables that stay fast with many rows: sorted by their headings, filtered by a box, shown a page at a time.
import { h, nameOf } from "./dom";
import { cell, number } from "./format";
import type { TableData } from "./data";

export interface Field<R> {
  title: string;
  /// What it is sorted by; absent: it is not.
  sort?: (row: R) => string | number | null;
  cell: (row: R, number: number) => Node | string;
  numeric?: boolean;
}

export interface TableOptions<R> {
  caption: string;
  filter?: (row: R) => string;
  page?: number;
  notes?: string[];
}

type Order = { field: number; down: boolean } | null;

function compare(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

export function table<R>(fields: Field<R>[], rows: R[], options: TableOptions<R>): HTMLElement {
  const page = options.page ?? 50;
  let order: Order = null;
  let words: string[] = [];
  let shown = page;
  const texts = options.filter ? rows.map((row) => options.filter!(row).toLowerCase()) : [];

  const body = h("tbody");
  const count = h("p", { class: "note", "aria-live": "polite" });
  const more = h("button", { type: "button", class: "no-print", click: () => { shown += 10 * page; draw(); } }, "More rows");

  const chosen = (): R[] => {
    const kept = words.length === 0 ? rows.slice() : rows.filter((_, i) => words.every((word) => texts[i]!.includes(word)));
    const sort = order === null ? undefined : fields[order.field]!.sort;
    if (sort) kept.sort((a, b) => (order!.down ? -1 : 1) * compare(sort(a), sort(b)));
    return kept;
  };

  const draw = (): void => {
    const kept = chosen();
    body.replaceChildren(
      ...kept.slice(0, shown).map((row, i) => h("tr", {}, ...fields.map((field) => h("td", { class: field.numeric ? "number" : undefined }, field.cell(row, i))))),
    );
    const left = kept.length - Math.min(shown, kept.length);
    more.hidden = left === 0;
    count.textContent = left > 0 || words.length > 0 ? `${Math.min(shown, kept.length)} of ${rows.length} rows` : "";
  };

  const headings = fields.map((field, i) => {
    const heading = h("th", { scope: "col", class: field.numeric ? "number" : undefined });
    if (!field.sort) {
      heading.append(field.title);
      return heading;
    }
    heading.append(
      h("button", {
        type: "button",
        class: "sort",
        title: `Sort by ${field.title}`,
        click: () => {
          order = order?.field === i ? { field: i, down: !order.down } : { field: i, down: field.numeric === true };
          headings.forEach((other, k) => (k === i ? other.setAttribute("aria-sort", order!.down ? "descending" : "ascending") : other.removeAttribute("aria-sort")));
          draw();
        },
      }, field.title),
    );
    return heading;
  });

  const box = h("div", { class: "table" });
  if (options.filter && rows.length > 15) {
    const input = h("input", {
      type: "search",
      placeholder: "Filter",
      "aria-label": `Filter ${options.caption}`,
      input: () => {
        words = input.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
        shown = page;
        draw();
      },
    });
    box.append(h("p", { class: "no-print" }, input));
  }
  box.append(
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.caption },
      h("table", {}, h("caption", {}, options.caption), h("thead", {}, h("tr", {}, ...headings)), body)),
    count,
    more,
    ...(options.notes ?? []).map((note) => h("p", { class: "note" }, note)),
  );
  draw();
  return box;
}

const kNumeric = new Set(["count", "time", "percent", "number", "bytes"]);

/// A table of the program, without the columns that nothing stands in.
export function tableOf(data: TableData): HTMLElement {
  const used = data.columns.map((c, i) => ({ c, i })).filter(({ i }) => data.rows.some((row) => row[i] !== null && row[i] !== ""));
  return table(
    used.map(({ c, i }) => ({ title: c.title, numeric: kNumeric.has(c.type), sort: (row: TableData["rows"][number]) => row[i] ?? null, cell: (row: TableData["rows"][number]) => (c.type === "name" ? nameOf(cell(c, row[i])) : cell(c, row[i])) })),
    data.rows, { caption: `${data.title || data.key}: ${number(data.rows.length)} ${data.rows.length === 1 ? "row" : "rows"}`, filter: (row) => row.filter((v) => typeof v === "string").join(" "), notes: data.notes });
}
