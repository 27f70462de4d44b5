// Numbers as people read them, in the same forms as the program's text.
import type { Column } from "./data";

export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return "";
  const size = Math.abs(ns);
  if (size >= 1e9) return `${(ns / 1e9).toFixed(3)} s`;
  if (size >= 1e6) return `${(ns / 1e6).toFixed(3)} ms`;
  if (size >= 1e3) return `${(ns / 1e3).toFixed(3)} us`;
  return `${Math.round(ns)} ns`;
}

/// With as many digits as tell the ticks of an axis apart.
export function tick(ns: number): string {
  const [size, unit]: [number, string] = Math.abs(ns) >= 1e9 ? [1e9, "s"] : Math.abs(ns) >= 1e6 ? [1e6, "ms"] : Math.abs(ns) >= 1e3 ? [1e3, "us"] : [1, "ns"];
  return `${Number((ns / size).toPrecision(5))} ${unit}`;
}

/// Between neighbours along the line through them, as the program does it.
export function quantiles(values: number[], shares: number[]): (number | null)[] {
  const sorted = values.slice().sort((a, b) => a - b);
  return shares.map((share) => {
    if (sorted.length === 0) return null;
    const place = share * (sorted.length - 1);
    const low = sorted[Math.floor(place)]!;
    const high = sorted[Math.ceil(place)]!;
    return low + (high - low) * (place - Math.floor(place));
  });
}

export function signed(ns: number | null | undefined): string {
  const text = duration(ns);
  return text !== "" && (ns ?? 0) > 0 ? `+${text}` : text;
}

export function percent(share: number | null | undefined, digits = 1): string {
  return share === null || share === undefined || !Number.isFinite(share) ? "" : `${(100 * share).toFixed(digits)} %`;
}

export function change(ratio: number | null | undefined): string {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) return "";
  const text = percent(ratio - 1);
  return ratio > 1 ? `+${text}` : text;
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    ++unit;
  }
  return `${unit === 0 ? size : size.toFixed(2)} ${units[unit]}`;
}

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (size >= 1e4 || (Number.isInteger(value) && size >= 1000)) return Math.round(value).toLocaleString("en-US");
  if (Number.isInteger(value)) return String(value);
  return size >= 100 ? value.toFixed(1) : String(Number(value.toPrecision(3)));
}

export function withUnit(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined) return "";
  switch (unit) {
    case "fraction":
      return percent(value, 2);
    case "Hz":
      return `${number(value / 1e6)} MHz`;
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return `${bytes(value)}/s`;
    case "ns":
    case "ns per step":
      return duration(value);
    case "count/s":
      return `${number(value)} /s`;
    default:
      return unit === "" || unit === "count" ? number(value) : `${number(value)} ${unit}`;
  }
}

export function cell(column: Column, value: string | number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  switch (column.type) {
    case "time":
      return duration(value);
    case "percent":
      return percent(value, 2);
    case "bytes":
      return bytes(value);
    case "count":
      return Math.round(value).toLocaleString("en-US");
    case "number":
      return value.toFixed(column.precision);
    default:
      return String(value);
  }
}
