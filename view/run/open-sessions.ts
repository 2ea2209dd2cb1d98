/**
 * Counts what open sessions sample. It reads each log on from its last position. Which tokens are trained is known only
 * when the session is over.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { LogEntry, type LogLine } from "../../base/schema/session-log.ts";
import { type LinePlace, readJsonLines } from "../../proxy/store/index.ts";
import type { Entry } from "./entries.ts";

type Counts = { turns: number; sampled_tokens: number; bytes: number; last: LinePlace | undefined };

export class OpenSessions {
  readonly #folder: string;
  readonly #counts = new Map<string, Counts>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns whether any log grew. Forgets sessions that are not named. */
  async readOn(sessionIds: readonly string[]): Promise<boolean> {
    let hasGrown = false;
    const named = new Set(sessionIds);
    for (const id of this.#counts.keys()) if (!named.has(id)) this.#counts.delete(id);
    for (const id of named) if (await this.#readOn(id)) hasGrown = true;
    return hasGrown;
  }

  /** Returns the entry with its session's counts, if they exceed those of the entry. */
  withCounts(entry: Entry): Entry {
    const counts = entry.session_id === null ? undefined : this.#counts.get(entry.session_id);
    if (counts === undefined || counts.turns <= (entry.turns ?? 0)) return entry;
    const { turns, sampled_tokens } = counts;
    return { ...entry, turns, sampled_tokens, trainable_tokens: null, excluded: {}, matches: {}, causes: {} };
  }

  async #readOn(id: string): Promise<boolean> {
    const path = join(this.#folder, `${id}.jsonl`);
    const size = (await stat(path).catch(() => null))?.size ?? 0;
    const counts = this.#counts.get(id) ?? { turns: 0, sampled_tokens: 0, bytes: 0, last: undefined };
    if (size === counts.bytes) return false;
    counts.bytes = size;
    this.#counts.set(id, counts);
    const take = (value: unknown, place: LinePlace): void => {
      counts.last = place;
      count(counts, LogEntry.parse(value));
    };
    // Skip a damaged line; the session's own page reports it.
    for await (const _ of readJsonLines<void>(path, take, () => undefined, counts.last));
    return true;
  }
}

function count(counts: Counts, entry: LogLine): void {
  if (entry.type === "call_begun") counts.turns++;
  // What is replayed was sampled by another rollout.
  if (entry.type === "call_finished" && entry.replayed_from === undefined)
    counts.sampled_tokens += entry.sampled_ids?.length ?? entry.usage?.sampled_tokens ?? 0;
}
