/*
 * Loaded first by every Node process of a test file, while the runner keeps marks (green.ts). Lists each module of the work tree that the
 * process or one of its threads loads. Writes each line at once, so that a kill -9 loses none. The runner names the folder of the lists
 * (`?in=`). The process of a test file hands its own list (`?to=`) to its children. Plain JavaScript, because any version of Node may
 * load it.
 */
import { channel } from "node:diagnostics_channel";
import { openSync, writeSync } from "node:fs";
import module from "node:module";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = new URL("../", import.meta.url).href;
const [, kind, place] = /loaded\.mjs\?(in|to)=(\S+)/.exec(process.env.NODE_OPTIONS ?? "") ?? [];
const list = kind === "to" ? decodeURIComponent(place) : kind === "in" ? beginList(decodeURIComponent(place)) : null;
const file = list === null ? null : openList(list);
if (file !== null) record(file);

/** Returns null in a process that runs no test file. */
function beginList(folder) {
  const test = process.argv[1] ?? "";
  if (!test.endsWith(".test.ts")) return null;
  const own = join(folder, relative(fileURLToPath(root), test).replaceAll("/", "-"));
  process.env.NODE_OPTIONS = process.env.NODE_OPTIONS?.replace(/loaded\.mjs\?in=\S+/, `loaded.mjs?to=${encodeURIComponent(own)}`);
  return own;
}

/**
 * Returns null if the process may not write (`--permission`). green.ts then lists its test file among those that depend on everything.
 */
function openList(path) {
  try {
    return openSync(path, "a", 0o666);
  } catch {
    return null;
  }
}

function record(to) {
  const seen = new Set();
  const write = (line) => {
    if (seen.has(line)) return;
    seen.add(line);
    writeSync(to, `${line}\n`);
  };
  module.registerHooks?.({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      if (found.url.startsWith(root) && !found.url.includes("/node_modules/"))
        write(`module ${decodeURI(found.url.slice(root.length).replace(/[?#].*/, ""))}`);
      return found;
    },
  });
  // Lists each need that the tests asked for (needs.ts).
  channel("alidade:need").subscribe((need) => write(`need ${need}`));
}
