/**
 * Skips slow test files that passed whole on this machine, if their inputs are unchanged; the runner says so. Inputs of a file are the
 * modules that its processes loaded (loaded.mjs lists them). All other files that git tracks or would add are inputs too, but not other
 * modules, documents and other tests. Modules in `unseen` are always inputs, because more than a recorded Node may read them. A file that
 * looks at the tree itself depends on everything (`ofModules`, `ofAll`). The last three marks of a file lie below ~/.cache/alidade/green.
 * A mark is written when the file ends, so a run that is cut off later keeps it.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, matchesGlob } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { cachePlace } from "./interop/place.ts";
import { missing, needs } from "./needs.ts";

export type FileCounts = { passed: number; failed: number; skipped: number };
export type FileResult = FileCounts & { seconds: number };
/** The content of every path when the run began, and the folder with each test file's list of modules. */
export type Begun = { contents: Contents; lists: string };
/** Hashes by path. */
type Contents = ReadonlyMap<string, string>;

const Mark = z.object({
  date: z.string(),
  commit: z.string(),
  /** Hash over the inputs that are not loaded modules. */
  rest: z.string(),
  /** Hashes of the loaded modules, by path. */
  modules: z.record(z.string(), z.string()),
  /** Needs that the tests asked for. If one is gone, the file runs, so that the run reports it. */
  needs: z.array(z.enum(needs)),
});
type Mark = z.infer<typeof Mark>;
export type Unchanged = { file: string; last: Mark };

/** A faster file gets no mark: running it again proves more than it costs. */
const SLOW_S = 15;
const KEPT = 3;

const isModule = /\.[cm]?[jt]s$/;
/** Modules that run in containers, in browsers or in processes with a clean environment, or that tests copy. */
export const unseen: readonly string[] = [
  "bin/**",
  "cli/commands/init/skeletons/**",
  "examples/**",
  "graders/**",
  "practice/**",
  "sandboxes/**",
  "tasks/**/service/**",
  "test/fakes/rollouts/*-harness.ts",
  "test/interop/**",
  "view/assets/**",
  // Imported by some of these.
  "base/errors.ts",
  "base/schema/{exact,read}-json.ts",
  "base/wire/{joined,sse}.ts",
];
/** Tests that pack or mount the work tree, copy modules of it, or start `alidade` in a clean environment. */
export const ofModules: readonly string[] = [
  "test/{bootstrap,green,public}.test.ts",
  "test/base/host/deaths/last-guard.test.ts",
  "test/deploy/*.test.ts",
  "test/docker/from-git.test.ts",
  "test/view/colour.test.ts",
];
/** Tests that read sources, documents or other tests. Every file of the repository counts as their input. */
export const ofAll: readonly string[] = [
  "test/{docs,heavy,house,package}.test.ts",
  "test/bench/readme-figures.test.ts",
  "test/{contracts,interop/harbor,proxy/continuity}/*-{page,readme}.test.ts",
];

const repository = join(import.meta.dirname, "..");

/** Returns the files that need not run again: they passed whole on the same inputs, and their needs are here. */
export async function unchangedFiles(files: string[], root = repository): Promise<Unchanged[]> {
  if (process.env.ALIDADE_TEST_AGAIN === "1") return [];
  const contents = contentsOf(root);
  const found: Unchanged[] = [];
  for (const file of files) {
    const last = marksOf(file).find((mark) => holds(mark, file, contents, root));
    if (last !== undefined && (await Promise.all(last.needs.map(missing))).every((reason) => reason === null)) found.push({ file, last });
  }
  return found;
}

function holds(mark: Mark, file: string, contents: Contents, root: string): boolean {
  return (
    Object.entries(mark.modules).every(([path, hash]) => contents.get(path) === hash) && mark.rest === hashOfRest(file, contents, root)
  );
}

export function beginMarks(lists: string, root = repository): Begun {
  return { contents: contentsOf(root), lists };
}

/** Returns NODE_OPTIONS for the processes of test files. Replaces an outer recorder, if a test of this runner started the run. */
export function recording(lists: string): string {
  const recorder = `${pathToFileURL(join(import.meta.dirname, "loaded.mjs")).href}?in=${encodeURIComponent(lists)}`;
  const others = process.env.NODE_OPTIONS?.replace(/--import \S+\/loaded\.mjs\?\S+/, "").trim();
  return [others, "--import", recorder].filter(Boolean).join(" ");
}

/** Marks a file that ran long enough and passed without a skipped test. Call it when its process has ended. */
export function noteGreen(file: string, result: FileResult, { contents: before, lists }: Begun, root = repository): void {
  const { passed, failed, skipped, seconds } = result;
  if (seconds < SLOW_S || passed === 0 || failed > 0 || skipped > 0) return;
  const lines = readOrEmpty(join(lists, flat(file)))
    .toString()
    .split("\n");
  const after = contentsOf(root);
  // A path in neither is a test's own scratch file, or a package.
  const modules = valuesOf("module").filter((path) => before.has(path) || after.has(path));
  // The recorder did not run, or the tree was edited meanwhile: the file did not pass on the present tree.
  if (!modules.includes(file) || modules.some((path) => before.get(path) !== after.get(path))) return;
  const rest = hashOfRest(file, after, root);
  if (rest !== hashOfRest(file, before, root)) return;
  const mark: Mark = {
    date: new Date().toISOString(),
    commit: commitOf(root),
    rest,
    modules: Object.fromEntries(modules.sort().map((path) => [path, after.get(path) ?? ""])),
    needs: needs.filter((need) => valuesOf("need").includes(need)),
  };
  const others = marksOf(file).filter((other) => !holds(other, file, after, root));
  const place = placeOf(file);
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(`${place}.new`, JSON.stringify([mark, ...others].slice(0, KEPT)));
  renameSync(`${place}.new`, place);

  function valuesOf(kind: string): string[] {
    return [...new Set(lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1)))];
  }
}

/** Hashes the inputs of a test file besides its loaded modules, and the Node that runs it. */
function hashOfRest(file: string, contents: Contents, root: string): string {
  const text = readOrEmpty(join(root, file)).toString();
  const [all, modules] = [isAmong(ofAll, file), isAmong(ofModules, file)];
  const hash = createHash("sha256").update(`${process.version} ${process.arch} ${commonHash(contents)} ${widthOfRun()}`);
  for (const [path, content] of contents)
    if (all || (modules && isModule.test(path) && !path.endsWith(".test.ts")) || isDocumentOf(text, path))
      hash.update(`\0${path}\0${content}`);
  return hash.digest("hex").slice(0, 16);
}

/** Settings that change how much a test does, and with which parts. Other settings choose which tests run. */
const widths = ["FUZZ_SEED", "FUZZ_SESSIONS", "PODMAN", "REMOTE", "SCREENS", "SGLANG_URL", "TURNS"];
const widthOfRun = () => widths.map((name) => process.env[`ALIDADE_TEST_${name}`] ?? "").join(" ");

const commonHashes = new WeakMap<Contents, string>();

/** Hashes the inputs that all test files have in common. */
function commonHash(contents: Contents): string {
  const kept = commonHashes.get(contents);
  if (kept !== undefined) return kept;
  const hash = createHash("sha256");
  for (const [path, content] of contents) if (isCommonInput(path)) hash.update(`\0${path}\0${content}`);
  const made = hash.digest("hex");
  commonHashes.set(contents, made);
  return made;
}

export function isCommonInput(path: string): boolean {
  return isModule.test(path) ? isAmong(unseen, path) && !path.endsWith(".test.ts") : !path.endsWith(".md");
}

/** A test's text names the documents that it reads, or their folder. */
function isDocumentOf(text: string, path: string): boolean {
  return path.endsWith(".md") && (text.includes(path) || (path.includes("/") && text.includes(`"${dirname(path)}"`)));
}

function isAmong(globs: readonly string[], path: string): boolean {
  return globs.some((glob) => matchesGlob(path, glob));
}

const known = new Map<string, { stamp: string; hash: string }>();

/** Hashes all files that git tracks or would add. Leaves out tracked files that were deleted. */
function contentsOf(root: string): Contents {
  const command = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const paths = [...new Set(execFileSync("git", command, { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean))].sort();
  return new Map(
    paths.flatMap((path) => {
      const hash = hashAt(join(root, path));
      return hash === null ? [] : [[path, hash] as const];
    }),
  );
}

/** Returns null if there is no file. */
function hashAt(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile()) return null;
  const stamp = `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
  const before = known.get(path);
  if (before?.stamp === stamp) return before.hash;
  const hash = createHash("sha256").update(readOrEmpty(path)).digest("hex").slice(0, 16);
  known.set(path, { stamp, hash });
  return hash;
}

function readOrEmpty(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}

export function sayUnchanged({ file, last }: Unchanged): string {
  return `Not run again: ${file}: nothing that it depends on has changed since it passed whole on ${last.date} at commit ${last.commit}. To run it: ALIDADE_TEST_AGAIN=1 npm test`;
}

/** Returns the latest first; [] if there is no readable file. */
function marksOf(file: string): Mark[] {
  try {
    return z.array(Mark).parse(JSON.parse(readFileSync(placeOf(file), "utf8")));
  } catch {
    return [];
  }
}

function placeOf(file: string): string {
  return cachePlace("green", `${flat(file)}.json`);
}

/** Names the list of a test file as loaded.mjs does. */
function flat(file: string): string {
  return file.replaceAll("/", "-");
}

/** Only shown to people: the file contents decide, and may include uncommitted changes. */
function commitOf(root: string): string {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "unknown";
  }
}
