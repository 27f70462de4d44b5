// Elements. Text goes into text nodes only: nothing of a trace is ever markup.

export type Child = Node | string | number | null | undefined | false;
type Properties = Record<string, string | number | boolean | EventListener | undefined>;

function add(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

function set(element: Element, properties: Properties): void {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, properties: Properties = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, properties);
  add(element, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, properties: Properties = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, properties);
  add(element, children);
  return element;
}

/// Names of kernels may have hundreds of characters: the two ends tell them apart, and all of it is there on demand.
export function nameOf(text: string): Node | string {
  const kMost = 80;
  const kEnd = 32;
  if (text.length <= kMost) return text;
  return h("details", { class: "name" }, h("summary", { title: text }, `${text.slice(0, kMost - kEnd)}…${text.slice(-kEnd)}`), text);
}

/// A part of the page with a heading that the contents list names.
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);
}

export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
