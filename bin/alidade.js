#!/usr/bin/env node
/*
 * The launcher: plain JavaScript that any Node from 14 on can parse, so that one that is too old gets a sentence
 * instead of a syntax error. In a checkout it runs cli.ts, in the published package what tsc made of it.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const wanted = Number(/\d+/.exec(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).engines.node)[0]);
// A checkout may also hold a dist/ of yesterday; the source is what was tested.
const source = join(root, "cli.ts");
const pinnedNode = join(root, "node_modules", "node", "bin", "node");

if (Number(process.versions.node.split(".")[0]) >= wanted) runHere();
else if (existsSync(source) && existsSync(pinnedNode)) runUnder(pinnedNode);
else fail(`alidade needs Node ${wanted} or newer, and this is Node ${process.versions.node}. Install a newer one: https://nodejs.org`);

function runHere() {
  import(pathToFileURL(existsSync(source) ? source : join(root, "dist", "cli.js")).href).catch((error) => {
    if (error.code === "ERR_MODULE_NOT_FOUND" && existsSync(source) && !existsSync(join(root, "node_modules")))
      return fail(`alidade's dependencies are not installed. Run npm install in ${root}`);
    console.error(error);
    process.exitCode = 1;
  });
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
