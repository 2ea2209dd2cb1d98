/*
 * Runs before the published package is installed: says in one sentence that this Node is too old, where npm itself only
 * warns. In a checkout an older Node may install, for it brings the pinned one along (bootstrap.mjs).
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const wanted = Number(/\d+/.exec(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).engines.node)[0]);

if (!existsSync(join(root, "cli/cli.ts")) && Number(process.versions.node.split(".")[0]) < wanted) {
  console.error(
    `alidade needs Node ${wanted} or newer, and this is Node ${process.versions.node}. Install a newer one: https://nodejs.org`,
  );
  process.exitCode = 1;
}
