// Bundles the page into one file that asks nothing of the network: dist/report.html. The program puts its answer where
// @REPORT@ stands. The content-security policy names the one script and the one style sheet by their digests.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "vite";

const output = await build({
  configFile: false,
  logLevel: "warn",
  build: {
    write: false,
    target: "es2020",
    cssCodeSplit: false,
    minify: "esbuild",
    lib: { entry: "src/main.ts", formats: ["iife"], name: "culprit" },
  },
});
const files = output[0].output;
const script = files.find((file) => file.type === "chunk").code.trim();
const style = String(files.find((file) => file.fileName.endsWith(".css")).source).trim();
const digest = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
if (script.includes("</script") || style.includes("</style")) throw new Error("the bundle would end its own element");
const policy = `default-src 'none'; script-src ${digest(script)}; style-src ${digest(style)}; base-uri 'none'; form-action 'none'`;
const licence = readFileSync("node_modules/uplot/LICENSE", "utf-8").trim();
if (licence.includes("--")) throw new Error("the licence cannot stand in a comment");
const page = readFileSync("page.html", "utf-8")
  .replace("@LICENCE@", () => `Holds uPlot.\n\n${licence}`)
  .replace("@POLICY@", () => policy)
  .replace("@STYLE@", () => style)
  .replace("@SCRIPT@", () => script);
mkdirSync("dist", { recursive: true });
writeFileSync("dist/report.html", page);
