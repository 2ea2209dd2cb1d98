/**
 * Patterns and databases are read in a process of their own, which is killed when it takes too long: a work chooses the
 * text and the file, and a pattern that backtracks or a view that never ends would hold this one.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { AlidadeError } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";

export type ChildQuestion =
  | { kind: "pattern"; pattern: string; texts: string[] }
  /** `file`: a database on this machine that is nothing but a copy. */
  | { kind: "query"; file: string; query: string }
  /** Two of them: one database as it was and as it is. */
  | ({ kind: "diff" } & RowsQuestion);

/** Which rows of two databases differ. `except`: what may. */
export type RowsQuestion = { before: string; after: string; except: MayDiffer[] };

/** Rows of a table that may differ; all of them without `where`. `columns`: only there; else they may also come and go. */
export type MayDiffer = { table: string; where?: string | undefined; columns?: string[] | undefined };

/** A start of Node on a machine that is fully loaded. */
const startSeconds = 60;
/** A pattern or a query that says something about a work takes milliseconds. */
const answerSeconds = 10;
const megabytes = 256;

/** The answers that came, in their order; `whole` where it was not ended before its last one. Throws `grader_error` where it cannot start. */
export async function askChild(question: ChildQuestion, signal: AbortSignal): Promise<{ answers: unknown[]; whole: boolean }> {
  signal.throwIfAborted();
  const file = new URL(`./answer-child${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
  const child = spawn(process.execPath, [`--max-old-space-size=${megabytes}`, fileURLToPath(file)], {
    stdio: ["pipe", "pipe", "ignore"],
    env: {},
  });
  const gone = once(child, "close").catch(() => undefined);
  const stop = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await readAnswers(child, question, signal);
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
    await gone;
  }
}

async function readAnswers(
  child: ChildProcess,
  question: ChildQuestion,
  signal: AbortSignal,
): Promise<{ answers: unknown[]; whole: boolean }> {
  let timer = setTimeout(() => child.kill("SIGKILL"), startSeconds * 1_000);
  const { promise: failed, reject } = Promise.withResolvers<never>();
  child.once("error", reject);
  child.stdin?.on("error", () => {}); // its end is seen on stdout
  child.stdin?.end(JSON.stringify(question));
  try {
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    const next = (): Promise<IteratorResult<string>> => Promise.race([lines.next(), failed]);
    if ((await next()).value !== "ready") throw new Error("it ended before it could read its question");
    clearTimeout(timer);
    timer = setTimeout(() => child.kill("SIGKILL"), answerSeconds * 1_000);
    const answers: unknown[] = [];
    for (let line = await next(); !line.done; line = await next()) {
      if (line.value === "end") return { answers, whole: true };
      answers.push(readJson(line.value));
    }
    signal.throwIfAborted();
    return { answers, whole: false };
  } catch (cause) {
    signal.throwIfAborted();
    throw new AlidadeError("grader_error", "the process that reads patterns and databases could not be started", { cause });
  } finally {
    clearTimeout(timer);
  }
}
