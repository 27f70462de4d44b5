import "./style.css";
import { lookAt, sentence, type Seen } from "./causes";
import { redrawAll } from "./charts";
import { comparisonParts } from "./comparison";
import { unpack, type Report } from "./data";
import { h } from "./dom";
import { followAddress, noPlaces } from "./places";
import { kRun, tableParts } from "./tables";
import { onTheme, themeButton } from "./theme";

/// Lines that are indented stand in a card under the one above them. A cause is known by its first evidence.
function headingOf(report: Report, seen: Seen): HTMLElement[] {
  const groups: string[][] = [];
  for (const line of report.heading ?? []) {
    if (line.startsWith("  ") && groups.length > 0) groups[groups.length - 1]!.push(line.trim());
    else groups.push([line]);
  }
  return groups.map(([first, ...inner]) => {
    if (inner.length === 0) return h("p", {}, first);
    const v = report.verdicts?.find((verdict) => verdict.evidence[0] === inner[0]);
    return h("article", { class: "card active" }, h("h3", {}, first), v ? lookAt(seen, v) : null,
      h("ul", {}, ...inner.map((line) => (v && !line.startsWith("Next: ") ? sentence(seen, line, v) : h("li", {}, line)))));
  });
}

function show(page: HTMLElement, report: Report): void {
  const places = noPlaces();
  const { parts, timelines } = report.kind === "comparison" ? { parts: comparisonParts(report, places), timelines: [] } : tableParts(report, places);
  const what = report.kind === "comparison" ? `${report.comparison!.outcome.replace(/_/g, " ")}: ${report.files.join(" against ")}` : report.files.join(", ");
  document.title = `Culprit ${report.verb}: ${what}`;
  const theme = themeButton();
  page.replaceChildren(
    h("header", {}, h("h1", {}, `Culprit ${report.verb}`), h("span", { class: "note" }, `version ${report.version}`), h("span", { class: "spread" }), theme),
    h("p", { class: "files" }, report.files.join(report.kind === "comparison" ? " against " : ", ")),
    ...headingOf(report, { places, findings: [], pictures: report.pictures ?? [], timelines, sides: [kRun] }),
    parts.length < 2 ? "" : h("nav", { "aria-label": "Contents" }, h("ul", {}, ...parts.map((part) => h("li", {}, h("a", { href: `#${part.id}` }, part.title))))),
    ...parts.map((part) => part.body));
  page.setAttribute("aria-busy", "false");
  onTheme(redrawAll);
  followAddress(places);
}

async function start(): Promise<void> {
  const page = document.getElementById("page")!;
  try {
    show(page, await unpack(document.getElementById("report")!.textContent ?? ""));
  } catch (error) {
    page.replaceChildren(h("p", { class: "error", role: "alert" }, `The report cannot be shown: ${error instanceof Error ? error.message : String(error)}`));
    page.setAttribute("aria-busy", "false");
  }
}

void start();
