/**
 * Heavy suites that passed whole on this machine and depend on nothing that has changed since are not run again; the runner says
 * so. A suite names every file that it depends on (`inputs`; test/green.test.ts holds that against its imports), and the
 * mark of a green run lies below ~/.cache/alidade/green, under the hash of their content.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, matchesGlob } from "node:path";
import { cachePlace } from "./interop/place.ts";
import { missing, type Need } from "./needs.ts";

export type Suite = {
  name: string;
  /** Globs of its test files. */
  tests: string[];
  /** Globs of all that it depends on; its pins are among them. */
  inputs: string[];
  /** A suite whose needs are gone from this machine is run, so that the run says that they are missing. */
  needs: Need[];
};

export type GreenRun = { date: string; commit: string };
export type Unchanged = { suite: Suite; files: string[]; last: GreenRun };
export type FileCounts = { passed: number; failed: number; skipped: number };

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

/** Is it one of the suite's inputs? Documents are not. */
export function isInput(suite: Suite, path: string): boolean {
  return !path.endsWith(".md") && suite.inputs.some((glob) => matchesGlob(path, glob));
}

/** The hash over paths and content of the inputs, and over the Node that runs them. */
export function inputHash(suite: Suite, root = repository): string {
  const hash = createHash("sha256").update(`${process.version} ${process.arch}`);
  const entries = globSync(suite.inputs, { cwd: root, withFileTypes: true, exclude: ["**/node_modules/**", "**/__pycache__/**"] });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  for (const path of paths.filter((one) => !one.endsWith(".md")).sort())
    hash.update(`\0${path.slice(root.length)}\0`).update(readFileSync(path));
  return hash.digest("hex").slice(0, 16);
}

/** The suites that need not run again: all of their files are in `files`, their needs are here, and this content was green. */
export async function unchangedSuites(files: string[], known: readonly Suite[] = suites, root = repository): Promise<Unchanged[]> {
  if (process.env.ALIDADE_TEST_AGAIN === "1") return [];
  const found: Unchanged[] = [];
  for (const suite of known) {
    const own = filesOf(suite, root);
    const last = own.length > 0 && own.every((file) => files.includes(file)) ? lastGreen(suite, root) : null;
    if (last !== null && (await Promise.all(suite.needs.map(missing))).every((reason) => reason === null))
      found.push({ suite, files: own, last });
  }
  return found;
}

/** The suites whose files are all about to run, each with the hash of what it depends on now. */
export function beginSuites(files: string[], known: readonly Suite[] = suites, root = repository): Map<Suite, string> {
  const whole = known.filter((suite) => filesOf(suite, root).every((file) => files.includes(file)));
  return new Map(whole.map((suite) => [suite, inputHash(suite, root)]));
}

/** Marks each suite whose files all ran and passed with nothing left out. */
export function noteGreen(results: Map<string, FileCounts>, begun: Map<Suite, string>, root = repository): void {
  for (const [suite, before] of begun) {
    const ran = filesOf(suite, root).map((file) => results.get(file));
    if (!ran.every((one) => one !== undefined && one.passed > 0 && one.failed === 0 && one.skipped === 0)) continue;
    // Edited while it ran: what was green is not what lies here.
    if (inputHash(suite, root) !== before) continue;
    const place = markOf(suite, before);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, JSON.stringify({ date: new Date().toISOString(), commit: commitOf(root) } satisfies GreenRun));
  }
}

export function sayUnchanged({ suite, files, last }: Unchanged): string {
  return `Not run again: ${suite.name} (${files.join(", ")}): nothing that it depends on has changed since it passed whole on ${last.date} at commit ${last.commit}. To run it: ALIDADE_TEST_AGAIN=1 npm test`;
}

function lastGreen(suite: Suite, root: string): GreenRun | null {
  try {
    return JSON.parse(readFileSync(markOf(suite, inputHash(suite, root)), "utf8")) as GreenRun;
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
