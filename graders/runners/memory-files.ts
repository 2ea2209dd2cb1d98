/**
 * The hidden tests as this process has them: they came over stdin and lie nowhere on the disk, where code that they load
 * could read them and answer by what it finds.
 */
import { existsSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Absolute path -> source. */
export type MemoryFiles = ReadonlyMap<string, string>;

type LoadedSource = { format: "module" | "commonjs" | "json"; source: string; shortCircuit: true };
export type Elsewhere = (path: string, how: "import" | "require") => LoadedSource | null;

export function memoryFiles(files: Record<string, string>): MemoryFiles {
  return new Map(Object.entries(files).map(([path, source]) => [resolve(path), source]));
}

const endings = ["", ".js", ".json", ".cjs", ".mjs", "/index.js"];

/** Makes `import` and `require` find them. `elsewhere` may answer for any other file. */
export function loadFromMemory(memory: MemoryFiles, elsewhere: Elsewhere = () => null): void {
  registerHooks({
    resolve(specifier, context, next) {
      const path = pathOf(specifier, context.parentURL);
      const found = path === null ? undefined : endings.map((ending) => path + ending).find((one) => memory.has(one));
      return found === undefined ? next(specifier, context) : { url: pathToFileURL(found).href, shortCircuit: true };
    },
    load(url, context, next) {
      if (!url.startsWith("file:")) return next(url, context);
      const path = fileURLToPath(url);
      const source = memory.get(path);
      if (source !== undefined) return { format: formatOf(path, source, memory), source, shortCircuit: true };
      return elsewhere(path, context.conditions.includes("require") ? "require" : "import") ?? next(url, context);
    },
  });
}

function pathOf(specifier: string, parent: string | undefined): string | null {
  if (specifier.startsWith("file:")) return fileURLToPath(specifier);
  if (specifier.startsWith("/")) return specifier;
  if (!/^\.\.?(\/|$)/.test(specifier) || !parent?.startsWith("file:")) return null;
  return resolve(dirname(fileURLToPath(parent)), specifier);
}

function formatOf(path: string, source: string, memory: MemoryFiles): LoadedSource["format"] {
  if (path.endsWith(".json")) return "json";
  if (path.endsWith(".mjs")) return "module";
  if (path.endsWith(".cjs")) return "commonjs";
  return typeOf(dirname(path), memory) ?? (/^\s*(import|export)\b/m.test(source) ? "module" : "commonjs");
}

/** What the nearest package.json says; null where it says nothing. */
function typeOf(folder: string, memory: MemoryFiles): "module" | "commonjs" | null {
  for (let at = folder; ; at = dirname(at)) {
    const path = join(at, "package.json");
    const text = memory.get(path) ?? (existsSync(path) ? readFileSync(path, "utf8") : null);
    // No other key of a package.json has one of these as its value.
    if (text !== null) return (/"type"\s*:\s*"(module|commonjs)"/.exec(text)?.[1] as "module" | "commonjs" | undefined) ?? null;
    if (at === dirname(at)) return null;
  }
}
