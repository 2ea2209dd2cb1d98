/**
 * The new verdicts of a run that is graded again, in `regrade.jsonl` in its folder until all are there: a grading that is
 * broken off leaves the run's rewards as they were, and goes on where it ended.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { Verdict } from "../../base/schema/rollout.ts";
import { Time } from "../../base/schema/session-log.ts";
import { Appender, readJsonLines } from "../../proxy/store/index.ts";

const NewVerdict = z.strictObject({
  rollout_id: z.string(),
  attempt: z.number().int(),
  /** The work and the task by which it was graded: another task is another grading. */
  work_sha256: z.string(),
  task_hash: z.string(),
  verdict: Verdict,
  time: Time,
});
export type NewVerdict = z.infer<typeof NewVerdict>;

export class RegradeJournal implements AsyncDisposable {
  readonly #file: string;
  readonly #lines: Appender;
  readonly #found: Map<string, NewVerdict>;

  private constructor(file: string, lines: Appender, found: Map<string, NewVerdict>) {
    this.#file = file;
    this.#lines = lines;
    this.#found = found;
  }

  static async open(folder: string): Promise<RegradeJournal> {
    const file = join(folder, "regrade.jsonl");
    const found = new Map<string, NewVerdict>();
    for await (const one of readJsonLines(file, (value) => NewVerdict.parse(value))) found.set(keyOf(one), one);
    return new RegradeJournal(file, await Appender.open(file), found);
  }

  /** What an earlier process found for the same work and task. */
  get(one: Pick<NewVerdict, "rollout_id" | "attempt" | "work_sha256" | "task_hash">): NewVerdict | undefined {
    return this.#found.get(keyOf(one));
  }

  async add(one: NewVerdict): Promise<void> {
    await this.#lines.append(`${JSON.stringify(one)}\n`);
  }

  /** Once its verdicts are the run's. */
  async remove(): Promise<void> {
    await rm(this.#file, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lines[Symbol.asyncDispose]();
  }
}

function keyOf({ rollout_id, attempt, work_sha256, task_hash }: Omit<NewVerdict, "verdict" | "time">): string {
  return JSON.stringify([rollout_id, attempt, work_sha256, task_hash]);
}
