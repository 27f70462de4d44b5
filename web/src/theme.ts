// Light or dark: as the system has it, until the button is used.
import { h } from "./dom";

const listeners: (() => void)[] = [];

export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

function show(theme: string): void {
  document.documentElement.dataset["theme"] = theme;
  for (const listener of listeners) listener();
}

export function themeButton(): HTMLElement {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  show(dark.matches ? "dark" : "light");
  let before = "light";
  window.addEventListener("beforeprint", () => { before = document.documentElement.dataset["theme"] ?? "light"; show("light"); });
  window.addEventListener("afterprint", () => show(before));
  dark.addEventListener("change", () => show(dark.matches ? "dark" : "light"));
  return h("button", { type: "button", class: "no-print", click: () => show(document.documentElement.dataset["theme"] === "dark" ? "light" : "dark") }, "Light or dark");
}
