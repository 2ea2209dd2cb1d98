/*
 * Installs the dependencies when they are missing or older than the lock, before `npm test`, `npm run demo` and `npm run train`: a fresh
 * clone needs one command. Runs under any Node from 14 on, for the pinned `node` package that supplies Node 24 is itself
 * among the dependencies. A script of its own, because a shell that has run `node` once keeps the path of the old one.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

if (!upToDate()) install();

/** npm writes node_modules/.package-lock.json when an install is complete, so its age is that of the whole folder. */
function upToDate() {
  const marker = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(marker) || !existsSync(pinnedNode())) return false;
  const installed = statSync(marker).mtimeMs;
  return ["package.json", "package-lock.json"].every(
    (name) => statSync(join(root, name)).mtimeMs <= installed || sameDependencies(name, marker),
  );
}

/** A checkout or an edit of a script makes a file younger without changing what is to be installed. */
function sameDependencies(name, marker) {
  const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  if (name === "package.json") {
    const manifest = JSON.parse(readFileSync(join(root, name), "utf8"));
    const locked = wanted[""];
    return ["dependencies", "devDependencies", "optionalDependencies"].every(
      (kind) => JSON.stringify(manifest[kind]) === JSON.stringify(locked[kind]),
    );
  }
  const installed = JSON.parse(readFileSync(marker, "utf8")).packages;
  // What npm left out (optional, for other platforms) is in the lock only; what it installed must have the locked version.
  return Object.entries(wanted).every(
    ([path, entry]) => path === "" || (installed[path] ? installed[path].version === entry.version : entry.optional || entry.peer),
  );
}

function install() {
  console.log(`Alidade: installing dependencies (npm install, about half a minute) under Node ${process.versions.node} …`);
  const started = Date.now();
  // Not `npm ci`: it refuses locks of packages whose binaries for some platforms are not in the registry at hand.
  // `npm_execpath` is the npm that called this script; a fresh one is looked up on the path.
  const npm = process.env.npm_execpath;
  const flags = ["install", "--no-audit", "--no-fund", "--loglevel=error", "--include=dev"];
  const options = { cwd: root, stdio: "inherit" };
  const result =
    npm && /npm-cli\.[cm]?js$/.test(npm)
      ? spawnSync(process.execPath, [npm, ...flags], options)
      : spawnSync("npm", flags, { ...options, shell: process.platform === "win32" });
  if (result.error || result.status !== 0) {
    const how = result.error
      ? result.error.message
      : `it ended with ${result.status === null ? result.signal : `exit code ${result.status}`}`;
    fail(
      `npm install did not work (${how}). The lines above say why; check that this machine reaches an npm registry (npm ping), then run the command again.`,
    );
  }
  if (!existsSync(pinnedNode()))
    fail(
      "npm installed the packages but not the pinned Node: its install script was not run. Allow it with `npm install --ignore-scripts=false`, or use Node 24 yourself.",
    );
  // npm leaves its marker alone when there was nothing to do; without this every later run would ask it again.
  const now = new Date();
  utimesSync(join(root, "node_modules", ".package-lock.json"), now, now);
  console.log(`Alidade: installed in ${Math.round((Date.now() - started) / 1000)} s.`);
}

/** A system Node that is new enough will do where the pinned one has no binary for this platform. */
function pinnedNode() {
  if (Number(process.versions.node.split(".")[0]) >= 24) return process.execPath;
  return join(root, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node");
}

function fail(sentence) {
  console.error(`Alidade: ${sentence}`);
  process.exit(1);
}
