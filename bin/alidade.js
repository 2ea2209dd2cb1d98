#!/usr/bin/env node
/*
 * The launcher: plain JavaScript that any Node from 14 on can parse, so that one that is too old gets a sentence
 * instead of a syntax error. In a checkout it runs cli/cli.ts, in the published package what tsc made of it.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { version, engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const wanted = Number(/\d+/.exec(engines.node)[0]);
// A checkout may also hold a dist/ of yesterday; the source is what was tested.
const source = join(root, "cli", "cli.ts");
const pinnedNode = join(root, "node_modules", "node", "bin", "node");

if (process.argv.length === 3 && ["--version", "-V"].includes(process.argv[2])) console.log(version);
else if (Number(process.versions.node.split(".")[0]) >= wanted) runHere();
else if (existsSync(source) && existsSync(pinnedNode)) runUnder(pinnedNode);
else fail(`alidade needs Node ${wanted} or newer, and this is Node ${process.versions.node}. Install a newer one: https://nodejs.org`);

function runHere() {
  // The rows of a run make V8's space for new objects grow to 134 MB, and it never shrinks. With this flag it stays at 2 MB, at the
  // same CPU time. Set the flag before the compile cache, which has one folder for each set of flags.
  if (process.argv[2] === "view") setFlagsFromString("--semi-space-growth-factor=1");
  // What Node made of the sources once it keeps, in a folder of this user's: that halves the start of every verb.
  if (module.enableCompileCache) module.enableCompileCache(join(cacheRoot(), "compiled"));
  import(pathToFileURL(existsSync(source) ? source : join(root, "dist", "cli", "cli.js")).href).catch((error) => {
    if (error.code === "ERR_MODULE_NOT_FOUND" && existsSync(source) && !existsSync(join(root, "node_modules")))
      return fail(`alidade's dependencies are not installed. Run npm install in ${root}`);
    console.error(error);
    process.exitCode = 1;
  });
}

/** As base/host/cache-folder.ts has it. */
function cacheRoot() {
  const { ALIDADE_CACHE, XDG_CACHE_HOME } = process.env;
  if (ALIDADE_CACHE) return resolve(ALIDADE_CACHE);
  return join(XDG_CACHE_HOME ? resolve(XDG_CACHE_HOME) : join(homedir(), ".cache"), "alidade");
}

/** Runs this file again under a newer Node; signals go in, the exit code comes out. */
function runUnder(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`alidade could not start ${node}: ${error.message}`));
  // Signals are 1 to 15 here; a shell reports them as 128 and the number.
  child.on("exit", (code, signal) => {
    process.exitCode = code === null ? 128 + ({ SIGHUP: 1, SIGINT: 2, SIGKILL: 9 }[signal] || 15) : code;
  });
}

function fail(sentence) {
  console.error(sentence);
  process.exitCode = 1;
}
