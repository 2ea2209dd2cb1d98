/**
 * `npm test`: every test file that this machine can run, each in a process of its own.
 *
 *     npm test                          all but the heavy ones (heavy.ts)
 *     ALIDADE_TEST_HEAVY=1 npm test     all of them
 *     npm test -- reconstruct wire      the files whose path contains one of these
 *     npm test -- '!interop/consumers'  the files whose path does not contain it
 *     ALIDADE_TEST_ALL=1 npm test       all of them; what is left out is a failure (CI)
 *     ALIDADE_TEST_SECOND_TRY=1 npm test  up to three files that fail run once more, each alone; what passes then is named (CI)
 *     ALIDADE_TEST_AGAIN=1 npm test     also slow files that passed here and whose inputs are unchanged (green.ts)
 */
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { run } from "node:test";
import { inspect } from "node:util";
import { messageOf } from "../base/errors.ts";
import { ensureBaseImage } from "../sandboxes/docker/images/made/base-image.ts";
import { type Begun, beginMarks, type FileCounts, type FileResult, noteGreen, recording, sayUnchanged, unchangedFiles } from "./green.ts";
import { heavyOf, sayHeavy } from "./heavy.ts";
import { type LaunchedVllm, launchVllm } from "./interop/vllm/start.ts";
import { missing } from "./needs.ts";
import { notePassed, passedBefore, sayPassed } from "./passed.ts";

const root = join(import.meta.dirname, "..");
const everythingNeeded = process.env.ALIDADE_TEST_ALL === "1";

/** A file with real harnesses takes five minutes on a busy machine, and its tests have limits of their own. This is for what hangs. */
const TEST_LIMIT_MS = 30 * 60_000;
/**
 * Files run side by side: one takes a core for less than half of its time, and waits for the rest. With a container engine fewer,
 * for more than a few fight for it, and their timeouts are not about that.
 */
const CONCURRENCY = (await missing("docker")) === null ? Math.min(4, cpus().length + 1) : Math.min(8, cpus().length * 3);
const HEARTBEAT_MS = 30_000;

/** More than this many files do not fail by chance. */
const MOST_TRIED_AGAIN = 3;

type Outcome = { counts: FileCounts; failures: Failure[]; skips: Skip[]; results: Map<string, FileResult> };
type Failure = { file: string; title: string; error: unknown };
type Skip = { file: string; title: string; reason: string };

// Each test file and each command of theirs loads hundreds of sources. Node keeps what it made of them here, by their
// content, which more than halves what the start of a command costs (1.6 s of CPU without, 0.65 s with).
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), `alidade-tests-${process.getuid?.() ?? "user"}`);

process.exitCode = await main(process.argv.slice(2));

async function main(filters: string[]): Promise<number> {
  const chosen = chooseFiles(filters);
  if (chosen.length === 0) {
    console.error(`No test file's path contains ${filters.map((filter) => `"${filter}"`).join(" or ")}. All of them: ls test/**/*.test.ts`);
    return 1;
  }
  // A file that is named always runs. CI names the files of each stage.
  const keepsMarks = everythingNeeded || filters.every((filter) => filter.startsWith("!"));
  const unchanged = keepsMarks ? await unchangedFiles(chosen) : [];
  const passed = passedBefore(chosen);
  const tooHeavy = heavyOf(chosen, filters);
  const notRun = [
    ...unchanged.map(sayUnchanged),
    ...(passed.length > 0 ? [sayPassed(passed)] : []),
    ...(tooHeavy.length > 0 ? [sayHeavy(tooHeavy)] : []),
  ];
  const out = new Set([...passed, ...tooHeavy, ...unchanged.map(({ file }) => file)]);
  const files = chosen.filter((file) => !out.has(file));
  for (const line of notRun) console.log(line);
  if (files.length === 0) return 0;
  using lists = keepsMarks ? temporaryFolder() : null;
  const begun = lists && beginMarks(lists.path);
  console.log(`${files.length} test files, ${CONCURRENCY} at a time, Node ${process.versions.node}`);
  await buildBaseImage(files);
  await using vllm = await sharedVllm(files);
  Object.assign(process.env, vllm?.env);
  const outcome = await runFiles(files, CONCURRENCY, begun);
  const unsteady = process.env.ALIDADE_TEST_SECOND_TRY === "1" ? await tryAgain(outcome, begun) : [];
  notePassed(outcome.results);
  const code = close(outcome);
  for (const { file, title } of unsteady)
    console.log(`Failed at first, and passed alone: ${file} › ${title}. Its test or its code waits for the clock: mend it.`);
  for (const line of notRun) console.log(line);
  return code;
}

/** Makes a folder to which processes of any user may write. */
function temporaryFolder(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), "alidade-loaded-"));
  chmodSync(path, 0o777);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

function chooseFiles(filters: string[]): string[] {
  const all = globSync("test/**/*.test.ts", { cwd: root }).sort();
  const without = filters.filter((filter) => filter.startsWith("!")).map((filter) => filter.slice(1));
  const wanted = filters.filter((filter) => !filter.startsWith("!"));
  const chosen = all
    .filter((file) => wanted.length === 0 || wanted.some((filter) => file.includes(filter)))
    .filter((file) => !without.some((filter) => file.includes(filter)));
  // Those that wait for the shared vLLM come last: it takes a minute to load, beside the others.
  return [...chosen.filter((file) => !usesVllm(file)), ...chosen.filter(usesVllm)];
}

/** Once a machine, and not in some test's own time. Where it cannot be made, the tests say so. */
async function buildBaseImage(files: string[]): Promise<void> {
  if (!files.some((file) => mentions(file, '"docker"')) || (await missing("docker")) !== null) return;
  const making = ensureBaseImage({ signal: AbortSignal.timeout(TEST_LIMIT_MS), progress: (line) => console.log(line) });
  await making.catch((error: unknown) => console.error(messageOf(error)));
}

function usesVllm(file: string): boolean {
  return mentions(file, "startVllm(");
}

function mentions(file: string, text: string): boolean {
  return readFileSync(join(root, file), "utf8").includes(text);
}

/** One server for all files that want it. Where it is not installed, `need` says so in each of them. */
async function sharedVllm(files: string[]): Promise<LaunchedVllm | undefined> {
  if (process.env.ALIDADE_TEST_VLLM_URL || !files.some(usesVllm) || (await missing("vllm")) !== null) return undefined;
  return await launchVllm();
}

/**
 * Failed files, alone and once more. Real servers on a shared machine fail rarely for its load; a file that fails twice is broken.
 * Puts what they came to into `outcome`; returns the failures that were not seen again.
 */
async function tryAgain(outcome: Outcome, begun: Begun | null): Promise<Failure[]> {
  const files = [...outcome.results].filter(([, { failed }]) => failed > 0).map(([file]) => file);
  if (files.length === 0 || files.length > MOST_TRIED_AGAIN) return [];
  console.log(`\nOnce more, alone: ${files.join(", ")}`);
  const again = await runFiles(files, 1, begun);
  const before = outcome.failures.filter(({ file }) => files.includes(file));
  for (const file of files) {
    const [first, second] = [outcome.results.get(file), again.results.get(file)];
    if (first && second) for (const kind of ["passed", "failed", "skipped"] as const) outcome.counts[kind] += second[kind] - first[kind];
    if (second) outcome.results.set(file, second);
  }
  outcome.failures = again.failures;
  outcome.skips = [...outcome.skips.filter(({ file }) => !files.includes(file)), ...again.skips];
  return before.filter(({ file }) => again.results.get(file)?.failed === 0);
}

async function runFiles(files: string[], concurrency: number, begun: Begun | null): Promise<Outcome> {
  const failures: Failure[] = [];
  const skips: Skip[] = [];
  const results = new Map<string, FileResult>();
  const counts: FileCounts = { passed: 0, failed: 0, skipped: 0 };
  const output = new Map<string, string[]>();
  const running = new Map<string, number>();
  const seconds = new Map<string, number>();
  const heartbeat = startHeartbeat(running);

  const events = run({
    files: files.map((file) => join(root, file)),
    cwd: root,
    concurrency,
    timeout: TEST_LIMIT_MS,
    execArgv: ["--import", join(import.meta.dirname, "end-of-file.ts")],
    env: begun === null ? process.env : { ...process.env, NODE_OPTIONS: recording(begun.lists) },
  });
  for await (const { type, data } of events) {
    const file = "file" in data && data.file ? relative(root, data.file) : "";
    const isFile = "name" in data && data.name === join(root, file);
    if (type === "test:dequeue" && isFile) running.set(file, Date.now());
    else if (type === "test:complete" && isFile) {
      clock(file);
    } else if (type === "test:stdout" || type === "test:stderr") {
      output.set(file, [...(output.get(file) ?? []), data.message]);
    } else if (type === "test:fail" && data.details.type !== "suite") {
      failures.push({ file, title: isFile ? "(the file itself)" : data.name, error: data.details.error.cause ?? data.details.error });
      if (isFile) reportFile(file, { passed: 0, failed: 1, skipped: 0 });
    } else if (type === "test:pass" && data.skip !== undefined && data.details.type !== "suite") {
      skips.push({ file, title: data.name, reason: typeof data.skip === "string" ? data.skip : "" });
    } else if (type === "test:summary") {
      const { passed, failed, cancelled, skipped, todo } = data.counts;
      const seen = { passed: passed + todo, failed: failed + cancelled, skipped };
      if (file === "") Object.assign(counts, seen);
      else reportFile(file, seen);
    }
  }
  clearInterval(heartbeat);
  // A file whose process ended with an error after its tests has no summary: what is left open after a failed test does that.
  for (const file of files.filter((one) => !results.has(one))) {
    const failed = failures.filter((failure) => failure.file === file).length;
    reportFile(file, { passed: 0, failed: Math.max(1, failed), skipped: 0 });
  }
  return { counts, failures, skips, results };

  /** Seconds of a file. Reports come in the order of the files, so it may have ended before its own is due. */
  function clock(file: string): number {
    const since = running.get(file);
    if (since !== undefined) seconds.set(file, (Date.now() - since) / 1000);
    running.delete(file);
    return seconds.get(file) ?? 0;
  }

  function reportFile(file: string, counted: FileCounts): void {
    const { passed, failed, skipped } = counted;
    const seconds = clock(file);
    const result = { ...counted, seconds };
    results.set(file, result);
    if (begun !== null) noteGreen(file, result, begun);
    const parts = [`${passed} passed`, failed > 0 ? `${failed} failed` : "", skipped > 0 ? `${skipped} left out` : ""].filter(Boolean);
    console.log(`${failed > 0 ? "✖" : "✔"} ${file}  ${parts.join(", ")}  ${seconds.toFixed(1)} s`);
    if (failed === 0) return;
    for (const failure of failures.filter((one) => one.file === file))
      console.log(`\n  ✖ ${failure.title}\n${indent(describe(failure.error))}\n`);
    const said = output.get(file)?.join("") ?? "";
    if (said.trim() !== "") console.log(`  What it printed:\n${indent(said)}\n`);
  }
}

/** Message, own frames and cause; an assertion's other fields are in its message already. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return inspect(error, { depth: 6 });
  const own = (error.stack ?? error.message).split("\n").filter((line) => !/^\s+at .*\(?node:internal/.test(line));
  return own.join("\n") + (error.cause === undefined ? "" : `\nCause: ${inspect(error.cause, { depth: 6 })}`);
}

/** A run that is silent for minutes looks dead; says what it is at. */
function startHeartbeat(running: Map<string, number>): NodeJS.Timeout {
  return setInterval(() => {
    const names = [...running].map(([file, since]) => `${file} (${Math.round((Date.now() - since) / 1000)} s)`);
    if (names.length > 0) console.log(`… at ${names.join(", ")}`);
  }, HEARTBEAT_MS);
}

/** The closing lines; the last one is the count. Returns the exit code. */
function close({ counts, failures, skips }: Outcome): number {
  console.log("");
  for (const [reason, titles] of groupByReason(skips)) {
    const [what, add] = splitAtLast(reason, "; ");
    console.log(`Left out: ${titles.length} ${titles.length === 1 ? "test" : "tests"} (${what})${add === "" ? "" : `. To add: ${add}`}`);
  }
  if (skips.length > 0 && everythingNeeded) console.log("With ALIDADE_TEST_ALL=1 nothing may be left out.");
  for (const { file, title } of failures) console.log(`Failed: ${file} › ${title}`);
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  return counts.failed > 0 || counts.passed === 0 || (everythingNeeded && counts.skipped > 0) ? 1 : 0;
}

function groupByReason(skips: Skip[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { file, title, reason } of skips) {
    const name = reason || "no reason given";
    groups.set(name, [...(groups.get(name) ?? []), `${file} › ${title}`]);
  }
  return groups;
}

function splitAtLast(text: string, separator: string): [string, string] {
  const at = text.lastIndexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, "    ");
}
