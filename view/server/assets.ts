/** The files that pages load: our own, and uPlot's from its package. Each has a fixed type. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

const packages = createRequire(import.meta.url);
const ours = (name: string) => () => join(import.meta.dirname, "../assets", name);
const uplot = (name: string) => () => packages.resolve(`uplot/dist/${name}`);

const assets: ReadonlyMap<string, { type: string; path: () => string }> = new Map([
  ["page.css", { type: "text/css; charset=utf-8", path: ours("page.css") }],
  ["page.js", { type: "text/javascript; charset=utf-8", path: ours("page.js") }],
  ["icon.svg", { type: "image/svg+xml", path: ours("icon.svg") }],
  ["uplot.js", { type: "text/javascript; charset=utf-8", path: uplot("uPlot.iife.min.js") }],
  ["uplot.css", { type: "text/css; charset=utf-8", path: uplot("uPlot.min.css") }],
]);

export const assetNames = [...assets.keys()];

/** null: no such file. */
export async function readAsset(name: string): Promise<{ type: string; bytes: Buffer } | null> {
  const asset = assets.get(name);
  return asset === undefined ? null : { type: asset.type, bytes: await readFile(asset.path()) };
}
