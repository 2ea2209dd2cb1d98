/**
 * Heavy suites that passed whole on this machine and depend on nothing that has changed since are not run again; the runner says
 * so. A suite names every file that it depends on (`inputs`; test/green.test.ts holds that against its imports), and the
 * mark of a green run lies below ~/.cache/alidade/green, under the hash of their content. A mark is written when the last file of
 * the suite ends: a run that is cut off later leaves it. In a run of all files, a slow file of no suite is a suite of its own,
 * which depends on all that git knows or would add, but not on documents and other tests.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, matchesGlob, posix, relative } from "node:path";
import { cachePlace } from "./interop/place.ts";
import { missing, type Need, needs } from "./needs.ts";

export type Suite = {
  name: string;
  /** Globs of its test files. */
  tests: string[];
  /** Globs of all that it depends on; its pins are among them. Null: everything but documents and other tests. */
  inputs: string[] | null;
  /** A suite whose needs are gone from this machine is run, so that the run says that they are missing. */
  needs: Need[];
};

export type GreenRun = { date: string; commit: string };
export type Unchanged = { suite: Suite; files: string[]; last: GreenRun };
export type FileCounts = { passed: number; failed: number; skipped: number };
export type FileResult = FileCounts & { seconds: number };
/** What is about to run, each with the hash of what it depends on now. A suite that got its mark is taken out. */
export type Begun = Map<Suite, string>;

/** A file of no suite gets no mark when it took less: running it again proves more than it costs. */
const SLOW_S = 15;

const packNeeds = (["pi", "codex", "claude-code", "gemini-cli", "qwen-code", "opencode"] as const).map(
  (name) => `harness:${name}` as const,
);
/** `test/needs.ts` knows all that tests need, a Postgres too. */
const anything = [
  "service/ledger/database-row.ts",
  "service/ledger/postgres/connection/pg-library.ts",
  "package.json",
  "package-lock.json",
  ".node-version",
  "errors.ts",
  "version.ts",
  "test/*.ts",
];
const folders = (names: string): string[] => names.split(" ").map((folder) => `${folder}/**`);
/** The real CLIs against a scripted API: no proxy, no engine and no rollout runs. */
const launching = [...anything, ...folders("base proxy/dialects sandboxes harnesses examples/demo test/fakes test/interop test/harness")];
const recording = [
  ...anything,
  ...folders("base engines proxy reconstruct exporters sandboxes harnesses"),
  ...folders("test/fakes test/interop test/harness test/e2e"),
];
const rollouts = [...recording, "index.ts", ...folders("practice graders tasks rollouts service view cli examples")];
/** Our Python runs inside the trainers. */
const training = [...rollouts, "clients/**"];

export const suites: readonly Suite[] = [
  { name: "consumers", tests: ["test/interop/consumers/*.test.ts"], inputs: training, needs: ["consumers"] },
  { name: "train-online", tests: ["test/e2e/train-online.test.ts"], inputs: training, needs: ["vllm", "consumers", "harness:pi"] },
  { name: "trainers-live", tests: ["test/interop/trainers/live.test.ts"], inputs: training, needs: ["vllm", "consumers"] },
  { name: "harbor", tests: ["test/interop/harbor/live.test.ts"], inputs: rollouts, needs: ["docker", "harbor"] },
  { name: "llama-server", tests: ["test/e2e/llama-server.test.ts"], inputs: recording, needs: ["llama-server"] },
  {
    name: "vllm",
    tests: ["test/e2e/vllm*.test.ts", "test/interop/vllm/*.test.ts"],
    inputs: [...rollouts, "test/graders/judge/*.ts"],
    needs: ["vllm"],
  },
  {
    name: "ray",
    tests: ["test/deploy/ray.test.ts"],
    inputs: [...rollouts, "deploy/ray/*", "test/deploy/ray.test.ts"],
    needs: ["ray", "postgres"],
  },
  { name: "harness-clis", tests: ["test/harness/harnesses.test.ts"], inputs: launching, needs: packNeeds },
  {
    name: "harness-packs",
    tests: ["test/harness/{harbor-folder,keep-alive,sandboxes,websocket}.test.ts", "test/e2e/harnesses.test.ts", "test/e2e/faults.test.ts"],
    inputs: rollouts,
    needs: ["docker", ...packNeeds, "harness:mini-swe-agent"],
  },
];

const repository = join(import.meta.dirname, "..");

/** Test files of the suite, as paths from the root. */
export function filesOf(suite: Suite, root = repository): string[] {
  return globSync(suite.tests, { cwd: root }).sort();
}

/** The files among these that no suite has, each as one. Its needs are all that its text names. */
export function suitesOfFiles(files: string[], known: readonly Suite[] = suites, root = repository): Suite[] {
  const inSuites = new Set(known.flatMap((suite) => filesOf(suite, root)));
  return files
    .filter((file) => !inSuites.has(file))
    .map((file) => {
      const text = readFileSync(join(root, file), "utf8");
      return { name: file.replaceAll("/", "-"), tests: [file], inputs: null, needs: needs.filter((need) => text.includes(`"${need}"`)) };
    });
}

/** Is it one of the suite's inputs? Documents are not. */
export function isInput(suite: Suite, path: string): boolean {
  if (suite.inputs === null) return isInputOfFile(path, suite.tests);
  return !path.endsWith(".md") && suite.inputs.some((glob) => matchesGlob(path, glob));
}

/** The suites that need not run again: all of their files are in `files`, their needs are here, and this content was green. */
export async function unchangedSuites(files: string[], known: readonly Suite[] = suites, root = repository): Promise<Unchanged[]> {
  if (process.env.ALIDADE_TEST_AGAIN === "1") return [];
  const found: Unchanged[] = [];
  for (const [suite, hash] of beginSuites(files, known, root)) {
    const last = lastGreen(suite, hash);
    if (last !== null && (await Promise.all(suite.needs.map(missing))).every((reason) => reason === null))
      found.push({ suite, files: filesOf(suite, root), last });
  }
  return found;
}

/** The suites whose files are all among these. */
export function beginSuites(files: string[], known: readonly Suite[] = suites, root = repository): Begun {
  const whole = known.filter((suite) => {
    const own = filesOf(suite, root);
    return own.length > 0 && own.every((file) => files.includes(file));
  });
  return new Map(hashInputs(whole, root));
}

/** Marks each suite whose files have all run and passed with nothing left out. To be called whenever results came in. */
export function noteGreen(results: ReadonlyMap<string, FileResult>, begun: Begun, root = repository): void {
  const green = [...begun.keys()].filter((suite) => {
    const ran = filesOf(suite, root).map((file) => results.get(file));
    const slow = suite.inputs !== null || ran.some((one) => one !== undefined && one.seconds >= SLOW_S);
    return slow && ran.every((one) => one !== undefined && one.passed > 0 && one.failed === 0 && one.skipped === 0);
  });
  if (green.length === 0) return;
  for (const [suite, hash] of hashInputs(green, root)) {
    const before = begun.get(suite);
    begun.delete(suite);
    // Edited while it ran: what was green is not what lies here.
    if (hash !== before) continue;
    const place = markOf(suite, hash);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, JSON.stringify({ date: new Date().toISOString(), commit: commitOf(root) } satisfies GreenRun));
  }
}

/** Each suite with the hash over paths and content of its inputs, and over the Node that runs them. */
function hashInputs(chosen: readonly Suite[], root: string): [Suite, string][] {
  const contents = new Map<string, string>();
  const contentOf = (path: string): string => {
    const known =
      contents.get(path) ??
      createHash("sha256")
        .update(readOrEmpty(join(root, path)))
        .digest("hex");
    contents.set(path, known);
    return known;
  };
  const everything = chosen.some(({ inputs }) => inputs === null) ? pathsOfGit(root) : [];
  return chosen.map((suite) => {
    const paths = suite.inputs === null ? everything : pathsOfGlobs(suite.inputs, root);
    const hash = createHash("sha256").update(`${process.version} ${process.arch}`);
    for (const path of paths.filter((one) => isInput(suite, one)).sort()) hash.update(`\0${path}\0${contentOf(path)}`);
    return [suite, hash.digest("hex").slice(0, 16)];
  });
}

function pathsOfGlobs(globs: string[], root: string): string[] {
  const entries = globSync(globs, { cwd: root, withFileTypes: true, exclude: ["**/node_modules/**", "**/__pycache__/**"] });
  return entries.filter((entry) => entry.isFile()).map((entry) => posix.join(relative(root, entry.parentPath), entry.name));
}

/** Documents are inputs of the tests that read them, which are quick or say so by their text. */
function isInputOfFile(path: string, tests: string[]): boolean {
  if (path.endsWith(".test.ts")) return tests.includes(path);
  return !path.endsWith(".md") || (path.startsWith("docs/guides/") && tests.includes("test/guides.test.ts"));
}

/** All that is tracked, and what would be. */
function pathsOfGit(root: string): string[] {
  const command = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  return [...new Set(execFileSync("git", command, { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean))];
}

/** A tracked file may have been deleted. */
function readOrEmpty(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}

export function sayUnchanged({ suite, files, last }: Unchanged): string {
  return `Not run again: ${suite.name} (${files.join(", ")}): nothing that it depends on has changed since it passed whole on ${last.date} at commit ${last.commit}. To run it: ALIDADE_TEST_AGAIN=1 npm test`;
}

function lastGreen(suite: Suite, hash: string): GreenRun | null {
  try {
    return JSON.parse(readFileSync(markOf(suite, hash), "utf8")) as GreenRun;
  } catch {
    return null;
  }
}

function markOf(suite: Suite, hash: string): string {
  return cachePlace("green", `${suite.name}-${hash}`);
}

/** For people: the content decides, and work that is not committed is part of it. */
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
