/*
 * Makes dist/, which is what is published: Node strips no types below node_modules. tsc turns the sources into
 * JavaScript with declarations; the data that they read at run time is copied to the same place beside them.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");

rmSync(dist, { recursive: true, force: true });
compile();
const copied = copyData();
console.log(`dist/ is built; ${copied} data files copied.`);

function compile() {
  const tsc = spawnSync(process.execPath, [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.build.json"], {
    cwd: root,
    stdio: "inherit",
  });
  if (tsc.status !== 0) {
    console.error("The build stopped: tsc found the errors above.");
    process.exit(1);
  }
}

/** Everything in the built folders that is not TypeScript: plays, tasks, forwarders, pages, runners in Python. */
function copyData() {
  const { include } = JSON.parse(readFileSync(join(root, "tsconfig.build.json"), "utf8"));
  const folders = include.filter((entry) => !entry.includes("*") && existsSync(join(root, entry)));
  const files = folders
    .flatMap((folder) => globSync(`${folder}/**/*`, { cwd: root }))
    .filter((path) => !/\.ts$|__pycache__/.test(path) && statSync(join(root, path)).isFile());
  for (const path of files) {
    mkdirSync(dirname(join(dist, path)), { recursive: true });
    copyFileSync(join(root, path), join(dist, path));
  }
  return files.length;
}
