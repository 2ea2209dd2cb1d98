/** What a run says while it goes on: a line an event, and behind it how far the run is. */
import type { ProgressEvent } from "../../rollouts/index.ts";
import type { EventLine } from "../../watch/event-line.ts";
import { say, sayIn } from "../command-line.ts";
import { type Terminal, terminal } from "../terminal.ts";

/**
 * Prints events as they come. On a terminal how far the run is stands in its last line, with a bar; elsewhere it ends the
 * line of each rollout that is done.
 *
 *     fix-slug/3: done, reward 1 · 12 of 80 done, mean reward 0.42, 3 min left
 *
 * `now`: milliseconds of a clock that does not go back.
 */
export function liveProgress(now: () => number = () => performance.now()): (event: ProgressEvent) => void {
  const here = terminal();
  if (here.logFormat === "json") return (event) => tellMachine(here, event);
  const { stderr } = here;
  const drawn = stderr.isTTY === true;
  let advance: Advance | null = null;
  return (event) => {
    if (event.type === "planned") advance = new Advance(event.total, event.over, now());
    else if (event.type === "state") advance?.is(event.rollout_id, event.state === "run");
    else if (event.type === "done") advance?.ended(event.record.rollout_id, event.record.verdict?.reward ?? null);
    const text = textOf(event);
    if (drawn) stderr.write(clearLine);
    if (text !== null) say(`  ${text}${event.type === "done" && advance && !drawn ? ` · ${advance.text(now())}` : ""}`);
    if (drawn && advance && !advance.isOver) stderr.write(`  ${bar(advance.share)} ${advance.text(now())}`);
  };
}

/** What is done is told by the watcher of attempts, with the ids of its records. */
function tellMachine(here: Terminal, event: ProgressEvent): void {
  const line = lineOf(event);
  if (line !== null) sayIn(here, line);
}

function lineOf(event: ProgressEvent): string | EventLine | null {
  if (event.type === "done") return null;
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

function textOf(event: ProgressEvent): string | null {
  if (event.type === "planned") return null;
  if (event.type === "note") return event.text;
  if (event.type === "state")
    return `${event.task_id}/${event.sample_index}${event.attempt > 1 ? ` attempt ${event.attempt}` : ""}: ${event.state}`;
  const { record } = event;
  const error = record.error ?? record.verdict?.error ?? null;
  return `${record.task_id}/${record.sample_index}: done, reward ${record.verdict?.reward ?? "null"}${error ? `, ${error.code}: ${error.message}` : ""}`;
}

/** How far a run is. A rollout is counted once, however many attempts it takes. */
class Advance {
  readonly #total: number;
  readonly #before: number;
  readonly #since: number;
  readonly #running = new Set<string>();
  #ended = 0;
  #rewards = 0;
  #sum = 0;

  constructor(total: number, over: number, since: number) {
    this.#total = total;
    this.#before = over;
    this.#since = since;
  }

  get share(): number {
    return this.#total === 0 ? 1 : (this.#before + this.#ended) / this.#total;
  }

  get isOver(): boolean {
    return this.share === 1;
  }

  is(rollout: string, running: boolean): void {
    if (running) this.#running.add(rollout);
    else this.#running.delete(rollout);
  }

  ended(rollout: string, reward: number | null): void {
    this.#running.delete(rollout);
    this.#ended += 1;
    if (reward === null) return;
    this.#rewards += 1;
    this.#sum += reward;
  }

  /** The time left is that of those that ended since the run began; unknown before the first. */
  text(now: number): string {
    const left = this.#total - this.#before - this.#ended;
    const parts = [`${this.#before + this.#ended} of ${this.#total} done`];
    if (this.#running.size > 0) parts.push(`${this.#running.size} running`);
    if (this.#rewards > 0) parts.push(`mean reward ${(this.#sum / this.#rewards).toFixed(2)}`);
    if (this.#rewards < this.#ended) parts.push(`${this.#ended - this.#rewards} without a reward`);
    if (this.#ended > 0 && left > 0) parts.push(`about ${inWords(((now - this.#since) / this.#ended) * left)} left`);
    return parts.join(", ");
  }
}

function inWords(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
