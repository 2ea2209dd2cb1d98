/**
 * What a folder remembers of processes that died at work in it. Three files in `deaths/`:
 *
 *     running.json    what runs now; gone after an orderly end, so that a process that finds it follows a death
 *     crashes.jsonl   each exception that no step awaited, with its stack
 *     deaths.jsonl    each death, what ran at that moment, and what was concluded from it
 *
 * A process that runs out of memory is ended by V8, which leaves another mark (`fatal-mark.ts`). A death without a mark came from
 * outside (kill -9, the kernel, the power), and is no work's own doing.
 */
import { randomUUID } from "node:crypto";
import { appendFileSync, mkdirSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { readJson, tryJson } from "../../schema/read-json.ts";
import { openFatalMark, takeFatalMark } from "./fatal-mark.ts";
import { type Blame, type Death, judgeDeaths, nameOf } from "./judge-deaths.ts";

const privateFile = { mode: 0o600 };
/** Thousands of stacks. What is older is kept once more, under another name. */
const mostCrashBytes = 4 * 1024 * 1024;
/** Stacks of one name: work that throws at each byte that comes would fill the disk. */
const mostCrashesOfOne = 10;
const mostStack = 8_000;
const mostWhy = 500;

const Running = z.strictObject({
  life: z.string(),
  pid: z.number(),
  began: z.string(),
  running: z.array(z.string()),
  waiting: z.array(z.string()).default([]),
  queued: z.array(z.string()).default([]),
});

const Crash = z.strictObject({
  at: z.string(),
  life: z.string(),
  name: z.string().nullable(),
  ended: z.boolean(),
  message: z.string(),
  stack: z.string(),
});

const Entry = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("death"),
    at: z.string(),
    life: z.string(),
    by: z.enum(["crash", "kill"]),
    culprit: z.string().nullable(),
    why: z.string(),
    running: z.array(z.string()),
    // Older records have none of these.
    waiting: z.array(z.string()).default([]),
    queued: z.array(z.string()).default([]),
    calls: z.record(z.string(), z.number()).default({}),
  }),
  z.strictObject({ type: z.literal("forgiven"), at: z.string(), names: z.array(z.string()) }),
]);

/** Maps an attempt to the calls that it has finished, as far as the records show. */
export type CountCalls = (attempts: readonly string[]) => Promise<ReadonlyMap<string, number>>;

export class DeathRecord implements Disposable {
  readonly #folder: string;
  readonly #life = randomUUID();
  readonly #began = new Date().toISOString();
  /** Attempts that are claimed and not over, the running ones included. */
  readonly #claimed = new Set<string>();
  readonly #running = new Set<string>();
  readonly #queued = new Set<string>();
  readonly #crashes = new Map<string | null, number>();
  /** The death that was found; null after an orderly end. */
  readonly found: Death | null;
  readonly #entries: z.infer<typeof Entry>[];
  readonly #mark: Disposable;

  private constructor(folder: string, entries: z.infer<typeof Entry>[], found: Death | null, mark: Disposable) {
    this.#folder = folder;
    this.#mark = mark;
    this.#entries = entries;
    this.found = found;
  }

  /** The caller holds the lock of `folder`. `countCalls` counts the calls of running attempts; without it, no progress is known. */
  static async open(folder: string, countCalls?: CountCalls): Promise<DeathRecord> {
    const own = join(folder, "deaths");
    mkdirSync(own, { recursive: true, mode: 0o700 });
    const entries = await linesOf(join(own, "deaths.jsonl"), (value) => Entry.parse(value));
    const last = await deathIn(own, countCalls);
    // On a full disk the file of what ran stays, and is found once more.
    const isNew = last !== null && !entries.some((entry) => entry.type === "death" && entry.life === last.life);
    const record = new DeathRecord(own, entries, isNew ? last : null, await openFatalMark(own));
    if (isNew) record.#add({ type: "death", at: new Date().toISOString(), ...last });
    record.#write();
    return record;
  }

  /** Where stacks are. */
  get crashFile(): string {
    return join(this.#folder, "crashes.jsonl");
  }

  judge(): Blame {
    return judgeDeaths(this.#entries);
  }

  /** Run again what was set aside: what is known of these names counts no more. */
  forgive(names: string[]): void {
    if (names.length > 0) this.#add({ type: "forgiven", at: new Date().toISOString(), names });
  }

  /** Claims the attempt for this process. Returns false if it was claimed already. */
  claims(attempt: string): boolean {
    if (this.#claimed.has(attempt)) return false;
    this.#claimed.add(attempt);
    this.#write();
    return true;
  }

  /** Marks the attempt as running. */
  begins(attempt: string): void {
    if (this.#running.has(attempt)) return;
    this.#claimed.add(attempt);
    this.#running.add(attempt);
    this.#write();
  }

  /** Marks the attempt as waiting. */
  rests(attempt: string): void {
    if (this.#running.delete(attempt)) this.#write();
  }

  /** Marks the attempt as one that waits for its turn. */
  queues(attempt: string): void {
    this.#queued.add(attempt);
    this.#write();
  }

  /** Ends that mark. */
  leavesQueue(attempt: string): void {
    if (this.#queued.delete(attempt)) this.#write();
  }

  /** Gives up the claim. */
  leaves(attempt: string): void {
    this.#running.delete(attempt);
    if (this.#claimed.delete(attempt)) this.#write();
  }

  /** `ended`: the process ends by it. What is thrown for a full disk is no reason to end anything. */
  crashed(error: unknown, name: string | null, ended: boolean): void {
    const count = (this.#crashes.get(name) ?? 0) + 1;
    this.#crashes.set(name, count);
    if (count > mostCrashesOfOne && !ended) return;
    const { message, stack = "" } = error instanceof Error ? error : new Error(String(error));
    const what = { message: message.slice(0, mostStack), stack: stack.slice(0, mostStack) };
    const crash = { at: new Date().toISOString(), life: this.#life, name, ended, ...what };
    try {
      if ((statSync(this.crashFile, { throwIfNoEntry: false })?.size ?? 0) > mostCrashBytes)
        renameSync(this.crashFile, `${this.crashFile}.old`);
      appendFileSync(this.crashFile, `${JSON.stringify(crash)}\n`, privateFile);
    } catch {}
  }

  /** An orderly end. */
  [Symbol.dispose](): void {
    this.#mark[Symbol.dispose]();
    rmSync(join(this.#folder, "running.json"), { force: true });
    try {
      rmdirSync(this.#folder);
    } catch {} // There was a death or a crash, which stays on record.
  }

  #add(entry: z.infer<typeof Entry>): void {
    this.#entries.push(entry);
    try {
      appendFileSync(join(this.#folder, "deaths.jsonl"), `${JSON.stringify(entry)}\n`, privateFile);
    } catch {} // A full disk: this process knows it, and what comes next waits for space.
  }

  /** Synchronous, for nothing may begin before it is written down; ten microseconds to the page cache, which outlives the process. */
  #write(): void {
    const file = join(this.#folder, "running.json");
    const [running, queued] = [[...this.#running], [...this.#queued]];
    const waiting = [...this.#claimed].filter((attempt) => !this.#running.has(attempt) && !this.#queued.has(attempt));
    const text = JSON.stringify({ life: this.#life, pid: process.pid, began: this.#began, running, waiting, queued });
    try {
      writeFileSync(`${file}.new`, `${text}\n`, privateFile);
      renameSync(`${file}.new`, file);
    } catch {} // A full disk: work goes on, and a death now is less well known.
  }
}

/** null: the last process ended in order, or none was there, or nothing ran. */
async function deathIn(folder: string, countCalls?: CountCalls): Promise<(Death & { life: string }) | null> {
  const fatal = await takeFatalMark(folder);
  const text = await readFile(join(folder, "running.json"), "utf8").catch(() => null);
  const last = text === null ? undefined : Running.safeParse(tryJson(text)).data;
  if (last === undefined || last.running.length + last.waiting.length + last.queued.length === 0) return null;
  const crashes = await linesOf(join(folder, "crashes.jsonl"), (value) => Crash.parse(value));
  const end = crashes.findLast(({ life, ended }) => ended && life === last.life);
  const { life, running, waiting, queued } = last;
  // If the calls cannot be counted, no progress is assumed.
  const counted = (await countCalls?.(running).catch(() => undefined)) ?? new Map<string, number>();
  const found = { life, running, waiting, queued, calls: Object.fromEntries(counted) };
  if (end !== undefined) return { ...found, by: "crash", culprit: end.name && nameOf(end.name), why: end.message.slice(0, mostWhy) };
  if (fatal !== null) return { ...found, by: "crash", culprit: null, why: fatal };
  return { ...found, by: "kill", culprit: null, why: "it was killed, or the machine went down" };
}

/** A line that was torn by a death is left out. */
async function linesOf<T>(file: string, parse: (value: unknown) => T): Promise<T[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    if (line === "") return [];
    try {
      return [parse(readJson(line))];
    } catch {
      return [];
    }
  });
}
