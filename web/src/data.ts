// What the program hands over, and how it is unpacked: gzip in base64, so that no text of a trace can be markup.

export type Pair<T> = [T, T];
export type Num = number | null;

export interface Column {
  title: string;
  key: string;
  type: "text" | "name" | "count" | "time" | "percent" | "number" | "bytes";
  precision: number;
}

export interface TableData {
  title: string;
  key: string;
  columns: Column[];
  rows: (string | number | null)[][];
  notes: string[];
}

export interface CycleTime {
  phase: string;
  outcome: string;
  baseline_ns: Num;
  candidate_ns: Num;
  ratio: Num;
  ci_low: Num;
  ci_high: Num;
  tolerance: number;
  detectable: Num;
  n: Pair<number>;
}

export interface Verdict {
  cause: string;
  detail: string;
  scope: Record<string, string | number | null>;
  side: string;
  state: string;
  impact_ns: Num;
  share: Num;
  confidence: number;
  evidence: string[];
  counter_evidence: string[];
  next_step: string;
}

export interface Finding {
  phase: string;
  rank: number;
  pid: Pair<Num>;
  function: string;
  short_name: string;
  was: string; // what the baseline calls it; "": the same
  kind: string;
  device: string;
  status: string;
  rests_on: string;
  impact_ns_per_cycle: Num;
  ci: Pair<Num>;
  ns_per_cycle: Pair<number>;
  calls: Pair<number>;
  per_call_ns: Pair<Num>;
  work_ratio: Num;
  parent: string;
}

export interface WaterfallLine {
  state: string;
  function: string;
  ns_per_cycle: Pair<number>;
  calls: Pair<Num>;
  change_ns: number;
  by_calls_ns: Num;
}

export interface Waterfall {
  phase: string;
  device: number;
  cycles: Pair<number>;
  ns_per_cycle: Pair<number>;
  lines: WaterfallLine[];
}

export type Row = Record<string, unknown>;

export interface Side {
  files: string[];
  recordings: number;
  cycles: number;
  median_period_ns: Num;
  method: string;
  anchor: string;
  how: string;
}

export interface Comparison {
  outcome: string;
  why: string;
  same_recording: boolean;
  comparability: { level: string; reasons: string[]; remedy: string; differences: Row[] };
  baseline: Side;
  candidate: Side;
  cycle_time: CycleTime[];
  waterfall: Waterfall[];
  verdicts: Verdict[];
  findings: Finding[];
  resources: Row[];
  environment_diff: Row[];
  assumptions: string[];
  notes: string[];
  alternation?: { sides: Pair<string> };
  data_quality: Record<string, { events: number; events_lost: number; losses: Row[] }>;
  host?: Record<string, unknown>;
  work?: Row;
  [more: string]: unknown;
}

/// Cycles of one phase: begins relative to the first of the recording, and periods.
export interface PictureCycles {
  phase: string;
  all: number;
  at_ns: number[];
  period_ns: number[];
}

export interface Series {
  metric: string;
  device: string;
  unit: string;
  moved: boolean;
  at_ns: number[];
  mean: number[];
  low: number[];
  high: number[];
}

export interface Lane {
  name: string;
  kind: string;
  slices: number[]; // begin, duration, name: three numbers each; ns from the begin of the stretch
}

export interface Stretch {
  phase: string;
  rank: number; // -1: not known
  number: number;
  begin_ns: number; // of the trace
  unix_ns: string; // of the begin; "" when the clock is not known
  length_ns: number;
  period_ns: number;
  names: string[];
  lanes: Lane[];
  left_out: number;
  lanes_left_out: number;
}

export interface Picture {
  file: string;
  others: number; // further recordings of the side, not drawn
  cycles: PictureCycles[];
  steps: PictureCycles[]; // what each took instead of its period
  series: Series[];
  series_left_out: number;
  sparks: { finding: number; ns: number[] }[];
  stretch: Stretch | null;
}

export interface Report {
  kind: "comparison" | "tables";
  verb: string;
  version: string;
  files: string[];
  comparison?: Comparison;
  answer?: string[]; // the outcome in sentences, as the text report begins with them
  details?: string[];
  notes?: string[];
  pictures?: Picture[];
  heading?: string[]; // two spaces before a line: it belongs to what stands above
  cycles?: PictureCycles[];
  verdicts?: Verdict[]; // those of the heading, in its order
  tables?: TableData[];
}

/// Characters that are not seen, or that turn the text around them, as the program's text shows them.
function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (c) => {
    const code = c.charCodeAt(0);
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

export async function unpack(text: string): Promise<Report> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old for the report (no DecompressionStream)");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text(), (_, value: unknown) => (typeof value === "string" ? visible(value) : value)) as Report;
}
