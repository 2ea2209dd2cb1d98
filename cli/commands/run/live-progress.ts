/** What a run says while it goes on: a line an event, and behind it how far the run is. */

import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import type { ProgressEvent } from "../../../rollouts/index.ts";
import type { EventLine } from "../../../service/watch/index.ts";
import { say, sayIn } from "../command-line.ts";
import { type Terminal, terminal } from "../terminal.ts";

/** `running`: how many a service has begun that are not over. */
export type LiveProgressEvent = ProgressEvent | { type: "running"; rollouts: number };

/**
 * Prints events as they come. On a terminal how far the run is stands in its last line, with a bar; elsewhere it ends the
 * line of each rollout that is done.
 *
 *     fix-slug/3: done, reward 1 · 12 of 80 done, 57 queued, 2 init, 8 run, 1 grade, mean reward 0.42, 130 tokens/s, about 3 min left
 *
 * `now`: milliseconds of a clock that does not go back.
 */
export function liveProgress(now: () => number = () => performance.now()): (event: LiveProgressEvent) => void {
  const here = terminal();
  if (here.logFormat === "json") return (event) => tellMachine(here, event);
  const { stderr } = here;
  const drawn = stderr.isTTY === true;
  let advance: Advance | null = null;
  return (event) => {
    if (event.type === "planned") advance = new Advance(event.total, event.over, now());
    else if (event.type === "state") advance?.is(event.rollout_id, event.state);
    else if (event.type === "done") advance?.ended(event.record);
    else if (event.type === "running") advance?.elsewhere(event.rollouts);
    const text = textOf(event);
    if (drawn) stderr.write(clearLine);
    if (text !== null) say(`  ${text}${event.type === "done" && advance && !drawn ? ` · ${advance.text(now())}` : ""}`);
    if (drawn && advance && !advance.isOver) stderr.write(`  ${bar(advance.share)} ${advance.text(now())}`);
  };
}

/** What is done is told by the watcher of attempts, with the ids of its records. */
function tellMachine(here: Terminal, event: LiveProgressEvent): void {
  const line = lineOf(event);
  if (line !== null) sayIn(here, line);
}

function lineOf(event: LiveProgressEvent): string | EventLine | null {
  if (event.type === "done" || event.type === "running") return null;
  if (event.type === "note") return event.text;
  const { type, ...facts } = event;
  if (type === "state") return { level: "info", event: "rollout", message: textOf(event) ?? "", ...facts };
  return { level: "info", event: "planned", message: `${event.total} rollouts, ${event.over} of them done before`, ...facts };
}

/** The line's begin, and nothing behind it. */
const clearLine = "\r\x1b[2K";

const barWidth = 20;

function bar(share: number): string {
  const full = Math.floor(share * barWidth);
  return `[${"#".repeat(full)}${".".repeat(barWidth - full)}]`;
}

function textOf(event: LiveProgressEvent): string | null {
  if (event.type === "planned" || event.type === "running") return null;
  if (event.type === "note") return event.text;
  if (event.type === "state")
    return `${event.task_id}/${event.sample_index}${event.attempt > 1 ? ` attempt ${event.attempt}` : ""}: ${event.state}`;
  const { record } = event;
  const error = record.error ?? record.verdict?.error ?? null;
  return `${record.task_id}/${record.sample_index}: done, reward ${record.verdict?.reward ?? "null"}${error ? `, ${error.code}: ${error.message}` : ""}`;
}

const stages = ["init", "run", "post", "teach"] as const;
type Stage = (typeof stages)[number];

/** How far a run is. A rollout is counted once, however many attempts it takes. */
class Advance {
  readonly #total: number;
  readonly #before: number;
  readonly #since: number;
  /** Those that have begun and are not done. */
  readonly #at = new Map<string, Stage>();
  /** Those that run at a service, which does not tell how far each is. */
  #elsewhere = 0;
  readonly #failures = new Map<string, number>();
  #tokens = 0;
  /** Rewards of those that are done. */
  readonly #done = new Map<string, number | null>();
  #rewards = 0;
  #sum = 0;

  constructor(total: number, over: number, since: number) {
    this.#total = total;
    this.#before = over;
    this.#since = since;
  }

  get share(): number {
    return this.#total === 0 ? 1 : (this.#before + this.#done.size) / this.#total;
  }

  get isOver(): boolean {
    return this.share === 1;
  }

  is(rollout: string, stage: Stage): void {
    this.#at.set(rollout, stage);
    this.#count(rollout, -1);
    this.#done.delete(rollout);
  }

  elsewhere(rollouts: number): void {
    this.#elsewhere = rollouts;
  }

  ended({ rollout_id, verdict, error, summary }: RolloutRecord): void {
    this.#at.delete(rollout_id);
    this.#elsewhere = Math.max(0, this.#elsewhere - 1);
    this.#done.set(rollout_id, verdict?.reward ?? null);
    this.#count(rollout_id, 1);
    this.#tokens += summary?.sampled_tokens ?? 0;
    const code = error?.code ?? verdict?.error?.code;
    if (code !== undefined) this.#failures.set(code, (this.#failures.get(code) ?? 0) + 1);
  }

  /** Its reward, where it has one. An attempt that follows takes back that of the one before. */
  #count(rollout: string, times: 1 | -1): void {
    const reward = this.#done.get(rollout) ?? null;
    if (reward === null) return;
    this.#rewards += times;
    this.#sum += times * reward;
  }

  /** The time left is that of those that ended since the run began; unknown before the first. */
  text(now: number): string {
    const left = this.#total - this.#before - this.#done.size;
    const parts = [`${this.#before + this.#done.size} of ${this.#total} done`];
    const elsewhere = Math.min(this.#elsewhere, left);
    const queued = left - this.#at.size - elsewhere;
    if (queued > 0) parts.push(`${queued} queued`);
    for (const stage of stages) {
      const count = [...this.#at.values()].filter((one) => one === stage).length + (stage === "run" ? elsewhere : 0);
      if (count > 0) parts.push(`${count} ${stage === "post" ? "grade" : stage}`);
    }
    if (this.#rewards > 0) parts.push(`mean reward ${(this.#sum / this.#rewards).toFixed(2)}`);
    if (this.#rewards < this.#done.size) parts.push(`${this.#done.size - this.#rewards} without a reward`);
    for (const [code, count] of this.#failures) parts.push(`${count} ${code}`);
    const seconds = (now - this.#since) / 1000;
    if (this.#tokens > 0 && seconds > 0) parts.push(`${Math.round(this.#tokens / seconds)} tokens/s`);
    if (this.#done.size > 0 && left > 0) parts.push(`about ${inWords(((now - this.#since) / this.#done.size) * left)} left`);
    return parts.join(", ");
  }
}

function inWords(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
