// Links from what a cause says to where that can be seen in the page: the slices of a cycle, a resource over time, a row.
import { h } from "./dom";
import { number } from "./format";
import { addPlace, linkTo, type Kind, type Place, type Places } from "./places";
import { namesIn, subjectOf } from "./subjects";
import type { Timeline } from "./timeline";
import { asTrace } from "./viewer";
import type { Finding, Lane, Picture, Verdict } from "./data";

/// What of the page causes are looked for in. All places must be there; those of slices come when they are linked to.
export interface Seen {
  places: Places;
  findings: Finding[];
  pictures: Picture[];
  timelines: (Timeline | null)[]; // of the pictures
  sides: string[]; // their names; one alone is the run itself
}

/// "GPU 7", "GPU", the only one; null: the cause sits on none.
function deviceOf(v: Verdict): string | null {
  const text = v.scope["device"];
  return typeof text === "string" ? (/^GPU(?: \d+)?/.exec(text)?.[0] ?? null) : null;
}

function rankOf(v: Verdict): number | null {
  const rank = v.scope["rank"];
  return typeof rank === "number" && rank >= 0 ? rank : null;
}

/// What a place of "GPU 3, rank 1" says against a cause there or elsewhere; the only device of a run has no number.
function isOn(place: string, v: Verdict): boolean {
  const found = /^(GPU(?: \d+)?)(?:, rank (\d+))?/.exec(place);
  if (!found) return true;
  const device = deviceOf(v);
  const rank = rankOf(v);
  if (rank !== null && found[2] !== undefined && Number(found[2]) !== rank) return false;
  return device === null || device === "GPU" || found[1] === "GPU" || found[1] === device;
}

function isLaneOf(lane: Lane, device: string): boolean {
  return lane.kind === "stream" && (device === "GPU" || lane.name.startsWith(`${device} `));
}

/// How functions are called in profiles: without addresses of objects, and ranges without their numbers.
function profileNames(name: string): string[] {
  return [name, name.replace(/ at 0x[0-9a-f]+(?=>|$)/gi, ""), name.replace(/[0-9]+/g, "N")];
}

function sideOf(seen: Seen, v: Verdict): number {
  return seen.pictures.length > 1 && v.side !== "baseline" ? 1 : 0;
}

function slicesOf(seen: Seen, side: number, v: Verdict, about: string, device: string, name: (name: string) => boolean, lane: (lane: Lane) => boolean): Place | null {
  const timeline = seen.timelines[side];
  const drawn = seen.pictures[side]?.stretch?.rank ?? -1;
  const rank = rankOf(v);
  if (!timeline || (rank !== null && drawn >= 0 && drawn !== rank)) return null;
  const title = seen.sides.length > 1 ? `in the cycle of the ${seen.sides[side]}` : "in the cycle";
  const all = [...seen.places.all.values()].filter((place) => place.kind === "slices");
  const known = all.find((place) => place.title === title && place.about === about && place.device === device);
  if (known) return known;
  const id = `slices-${all.length}`;
  const found = timeline.slices(id, { name, lane });
  if (!found) return null;
  const place: Place = { id, kind: "slices", title, about, device, ...found };
  addPlace(seen.places, place);
  return place;
}

function placesOf(seen: Seen, kind: Kind, is: (place: Place) => boolean, most: number): Place[] {
  return [...seen.places.all.values()].filter((place) => place.kind === kind && is(place)).slice(0, most);
}

/// A function by its name or short name: its slices on these sides, its row, its line, and where samples count it.
function ofFunction(seen: Seen, name: string, v: Verdict, sides: number[]): Place[] {
  const rank = rankOf(v);
  const all = seen.findings.map((finding, i) => ({ finding, i })).filter(({ finding }) => finding.function === name || finding.short_name === name);
  const ofRank = all.filter(({ finding }) => rank === null || finding.rank === rank);
  const size = (f: Finding): number => Math.abs(f.impact_ns_per_cycle ?? 0);
  const most = (ofRank.length > 0 ? ofRank : all).reduce<{ finding: Finding; i: number } | null>((best, one) => (best && size(best.finding) >= size(one.finding) ? best : one), null);
  const device = most && most.finding.device !== "Host" ? most.finding.device : "";
  // A short name may stand for several functions: the one that is meant is the one that most moved of.
  const names = (side: number): Set<string> => new Set(most ? [side === 0 && most.finding.was !== "" ? most.finding.was : most.finding.function] : [name]);
  const found: (Place | null)[] = [];
  if (!most || most.finding.kind !== "between")
    for (const side of sides) {
      const meant = names(side);
      found.push(slicesOf(seen, side, v, name, device, (of) => profileNames(of).some((text) => meant.has(text)), (lane) => (device !== "" ? isLaneOf(lane, device) : !most || lane.kind !== "stream")));
    }
  if (most) found.push(...placesOf(seen, "finding", (place) => place.id === `finding-${most.i}`, 1));
  const full = most?.finding.function ?? name;
  found.push(...placesOf(seen, "line", (place) => place.about === full || place.about.endsWith(`: ${full}`), 1));
  found.push(...placesOf(seen, "row", (place) => place.about === name || place.about === full || place.about === `env.${name}`, 1));
  return found.filter((place) => place !== null);
}

/// What one sentence speaks of.
function ofSentence(seen: Seen, sentence: string, v: Verdict): Place[] {
  const side = sideOf(seen, v);
  const found: (Place | null)[] = namesIn(sentence).flatMap((name) => [
    ...ofFunction(seen, name, v, [side]), ...placesOf(seen, "line", (place) => place.about === name, 1)]);
  // Counters are told by their names.
  found.push(...placesOf(seen, "series", (place) => place.about.includes(".") && sentence.includes(place.about), 2));
  const subject = subjectOf(sentence);
  if (subject) {
    const device = subject.on === "device" ? (deviceOf(v) ?? "GPU") : "";
    if (subject.slices) found.push(slicesOf(seen, side, v, subject.what, device, (name) => subject.slices!.test(name), (lane) => (device !== "" ? isLaneOf(lane, device) : lane.kind !== "stream")));
    if (subject.counters)
      for (const kind of ["series", "row"] as const) found.push(...placesOf(seen, kind, (place) => subject.counters!.test(place.about) && isOn(place.device, v), 2));
    if (subject.rows) found.push(...placesOf(seen, "row", (place) => subject.rows!.test(place.about), 2));
    if (subject.findings) found.push(...placesOf(seen, "finding", (place) => subject.findings!.test(place.about), 1));
    if (subject.lines) found.push(...placesOf(seen, "line", (place) => subject.lines!.test(place.about), 1));
  }
  return [...new Set(found.filter((place) => place !== null))];
}

/// Where the cause itself sits, on both sides.
function ofScope(seen: Seen, v: Verdict): Place[] {
  const side = sideOf(seen, v);
  const sides = seen.pictures.length > 1 ? [side, 1 - side] : [side];
  const name = v.scope["function"];
  if (typeof name === "string") return ofFunction(seen, name, v, sides);
  if (v.scope["kind"] === "rank") return placesOf(seen, "row", (place) => /\brank (\d+)/.exec(place.device)?.[1] === String(rankOf(v)), 2);
  const device = deviceOf(v);
  return device === null ? [] : sides.map((s) => slicesOf(seen, s, v, `work on ${device}`, device, () => true, (lane) => isLaneOf(lane, device))).filter((place) => place !== null);
}

function linked(seen: Seen, found: Place[]): HTMLElement | null {
  return found.length === 0 ? null : h("span", { class: "see" }, ...found.map((place) => linkTo(seen.places, place)));
}

/// A sentence with the links that it has.
export function sentence(seen: Seen, text: string, v: Verdict): HTMLElement {
  return h("li", {}, text, linked(seen, ofSentence(seen, text, v)));
}

/// Saves the drawn cycle of a side.
export function saveButton(picture: Picture, side: string): HTMLElement | null {
  const stretch = picture.stretch;
  return stretch && h("button", { type: "button", class: "no-print", click: () => asTrace(stretch, `culprit-${side}-cycle-${stretch.number}.json`) }, "Save this cycle as a trace");
}

/// Where the cause can be seen, and the cycle in which it can; null: nothing of it can be seen.
export function lookAt(seen: Seen, v: Verdict): HTMLElement | null {
  const side = sideOf(seen, v);
  const scope = ofScope(seen, v);
  const links = linked(seen, scope);
  const inCycle = [...scope, ...v.evidence.flatMap((text) => ofSentence(seen, text, v))].some((place) => place.kind === "slices");
  const picture = seen.pictures[side];
  const save = inCycle && picture ? saveButton(picture, seen.sides[side]!) : null;
  if (save && picture?.stretch) save.setAttribute("aria-label", `Save this cycle as a trace: ${number(picture.stretch.number)} of the ${seen.sides[side]}`);
  return links || save ? h("p", { class: "tools look" }, links ? h("strong", {}, "See it") : null, links, save) : null;
}
