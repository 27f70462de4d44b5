// Tables that stay fast with many rows: sorted by their headings, filtered by a box, shown a page at a time.
import { h, nameOf } from "./dom";
import { cell, number } from "./format";
import { addPlace, type Kind, type Places } from "./places";
import type { TableData } from "./data";

export interface Field<R> {
  title: string;
  /// What it is sorted by; absent: it is not.
  sort?: (row: R) => string | number | null;
  cell: (row: R, number: number) => Node | string;
  numeric?: boolean;
}

/// What a row shows; "" for `about`: nothing that evidence speaks of.
export interface RowPlaces<R> {
  places: Places;
  kind: Kind;
  prefix: string; // of the ids
  title: string;
  about: (row: R) => string;
  device?: (row: R) => string;
}

export interface TableOptions<R> {
  caption: string;
  filter?: (row: R) => string;
  page?: number;
  notes?: string[];
  leads?: RowPlaces<R>;
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
  const ids = new Map<R, string>(); // of rows that something leads to: they are drawn beyond the page, too
  const drawn = new Map<R, HTMLElement>();
  let input: HTMLInputElement | null = null;
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
    const now = kept.filter((row, i) => i < shown || ids.has(row));
    drawn.clear();
    now.forEach((row, i) =>
      drawn.set(row, h("tr", { id: ids.get(row), tabindex: ids.has(row) ? -1 : undefined }, ...fields.map((field) => h("td", { class: field.numeric ? "number" : undefined }, field.cell(row, i))))));
    body.replaceChildren(...drawn.values());
    more.hidden = now.length === kept.length;
    count.textContent = now.length < kept.length || words.length > 0 ? `${now.length} of ${rows.length} rows` : "";
  };
  const lead = (to: RowPlaces<R>): void => rows.forEach((row, i) => {
    const about = to.about(row);
    if (about === "") return;
    const id = `${to.prefix}-${i}`;
    const wanted = (): void => {
      if (ids.has(row)) return;
      ids.set(row, id);
      draw();
    };
    addPlace(to.places, {
      id, kind: to.kind, title: to.title, about, device: to.device?.(row) ?? "", wanted,
      open: () => {
        wanted();
        if (!drawn.has(row)) {
          words = [];
          if (input) input.value = "";
          draw();
        }
        const at = drawn.get(row)!;
        return { at, focus: at };
      },
    });
  });

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
    const search = h("input", {
      type: "search",
      placeholder: "Filter",
      "aria-label": `Filter ${options.caption}`,
      input: () => {
        words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
        shown = page;
        draw();
      },
    });
    input = search;
    box.append(h("p", { class: "no-print" }, search));
  }
  box.append(
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.caption },
      h("table", {}, h("caption", {}, options.caption), h("thead", {}, h("tr", {}, ...headings)), body)),
    count,
    more,
    ...(options.notes ?? []).map((note) => h("p", { class: "note" }, note)),
  );
  draw();
  if (options.leads) lead(options.leads);
  return box;
}

const kNumeric = new Set(["count", "time", "percent", "number", "bytes"]);

/// What the rows of a table of the program are of: where there is a "what", that says it, and "where" of which device.
function rowsOf(data: TableData, places: Places): RowPlaces<TableData["rows"][number]> {
  const what = data.columns.findIndex((c) => c.key === "what");
  const where = data.columns.findIndex((c) => c.key === "where");
  return { places, kind: "row", prefix: `row-${data.key.replace(/_/g, "-")}`, title: "in numbers", about: (row) => String(row[Math.max(what, 0)] ?? ""), device: (row) => (where < 0 ? "" : String(row[where] ?? "")) };
}

/// A table of the program, without the columns that nothing stands in; with `places` evidence may lead to its rows.
export function tableOf(data: TableData, places?: Places): HTMLElement {
  const used = data.columns.map((c, i) => ({ c, i })).filter(({ i }) => data.rows.some((row) => row[i] !== null && row[i] !== ""));
  return table(
    used.map(({ c, i }) => ({ title: c.title, numeric: kNumeric.has(c.type), sort: (row: TableData["rows"][number]) => row[i] ?? null, cell: (row: TableData["rows"][number]) => (c.type === "name" ? nameOf(cell(c, row[i])) : cell(c, row[i])) })),
    data.rows, { caption: `${data.title || data.key}: ${number(data.rows.length)} ${data.rows.length === 1 ? "row" : "rows"}`, filter: (row) => row.filter((v) => typeof v === "string").join(" "), notes: data.notes, leads: places ? rowsOf(data, places) : undefined });
}
