/**
 * Holds the newest results of a service's set in memory, as pages read a run: rows of the ledger, and few trajectories, read
 * from the blobs when a page asks for one.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { sumCounts } from "../../base/statistics/sum-counts.ts";
import { type Blobs, getAllPacked, mediaOf, unpackPictures } from "../../service/blobs/index.ts";
import { resultPages } from "../../service/index.ts";
import type { Ledger, ResultRow, SetSpec, SetState } from "../../service/ledger/index.ts";
import type { Entry } from "../run/entries.ts";
import type { EntryTest } from "../run/filters.ts";
import { paced } from "../run/paced.ts";
import { RecentlyRead } from "../run/recently-read.ts";
import { RolloutList, type RunFidelity, type ViewedRollout, type ViewedRun } from "../run/viewed-run.ts";
import { toEntry } from "./to-entry.ts";

/** A row takes about 2 kB, and the service has other work: 20 MB a set. */
const mostRows = 10_000;
const mostKept = 3;
const awayMs = 5_000;

type ReadRow = { entry: Entry; payload: ResultRow["payload"] };
type PackedAt = NonNullable<ReadRow["payload"]>;
type KeptAttempt = { trajectory: Trajectory; record: RolloutRecord | null };

export type SetPlace = { ledger: Ledger; blobs: Blobs };

export class SetReader implements ViewedRun {
  readonly name: string;
  readonly unread: readonly string[] = [];
  readonly #place: SetPlace;
  readonly #spec: SetSpec;
  readonly #set: string;
  #state: SetState;
  readonly #list = new RolloutList();
  #rows: ReadRow[] = [];
  /** By session and by rollout. */
  #byName = new Map<string, ReadRow>();
  #cursor: string | null = null;
  #version = 0;
  readonly #kept = new RecentlyRead<KeptAttempt>(mostKept);
  readonly refresh = paced(() => this.#refresh());

  private constructor(place: SetPlace, state: SetState) {
    this.#place = place;
    this.#set = state.set_id;
    this.#spec = state.spec;
    this.#state = state;
    this.name = state.key;
  }

  /** Throws `not_found`. */
  static async open(place: SetPlace, set: string): Promise<SetReader> {
    const reader = new SetReader(place, await place.ledger.set(set));
    await reader.#refresh();
    return reader;
  }

  get version(): number {
    return this.#version;
  }

  get rollouts(): readonly ViewedRollout[] {
    return this.#list.all;
  }

  get note(): string {
    const { rollouts, expired } = this.#state;
    const open = (["running", "queued", "held"] as const).filter((name) => rollouts[name] > 0).map((name) => `${rollouts[name]} ${name}`);
    const ended = rollouts.completed + rollouts.failed + rollouts.cancelled;
    const gone = expired?.rollouts ?? 0;
    const left = ended - gone - this.#rows.length;
    return [
      ...open,
      ...(left > 0 ? [`${left} older results are not shown`] : []),
      ...(gone > 0 ? [`${gone} results are expired`] : []),
    ].join(" · ");
  }

  find(id: string): ViewedRollout {
    return this.#list.find(id);
  }

  has(id: string): boolean {
    return this.#list.has(id);
  }

  group(rollout: ViewedRollout): ViewedRollout[] {
    return this.#list.group(rollout);
  }

  watch(look: () => void): () => void {
    const left = new AbortController();
    void this.#follow(look, left.signal);
    return () => left.abort(new AlidadeError("cancelled", "no page listens"));
  }

  async trajectory(sessionId: string): Promise<Trajectory> {
    const row = this.#byName.get(sessionId);
    if (row === undefined || row.payload === null)
      throw new AlidadeError("not_found", `nothing was recorded of session "${sessionId.slice(0, 200)}"`, { param: "id" });
    return (await this.#attempt(row.payload)).trajectory;
  }

  async picture(sessionId: string, sha256: string): Promise<Buffer> {
    const payload = this.#byName.get(sessionId)?.payload ?? null;
    const pictures = payload === null ? [] : unpackPictures(await getAllPacked(this.#place.blobs, payload));
    return mediaOf(pictures).read(sha256);
  }

  async record({ rollout_id }: Entry): Promise<RolloutRecord | null> {
    const payload = this.#byName.get(rollout_id ?? "")?.payload ?? null;
    return payload === null ? null : (await this.#attempt(payload)).record;
  }

  async fidelity(isMeant: EntryTest | null): Promise<RunFidelity> {
    const meant = this.#rows.filter(({ entry }) => isMeant === null || isMeant(entry)).map(({ entry }) => entry);
    const sampled = meant.reduce((sum, { sampled_tokens }) => sum + (sampled_tokens ?? 0), 0);
    const excluded = sumCounts(meant.map((entry) => entry.excluded));
    const trained = sampled - Object.values(excluded).reduce((sum, tokens) => sum + tokens, 0);
    const causes = Object.entries(sumCounts(meant.map((entry) => entry.causes))).map(([cause, calls]) => ({ cause, calls }));
    return {
      calls: meant.reduce((sum, { turns }) => sum + (turns ?? 0), 0),
      matches: sumCounts(meant.map(({ matches }) => matches)),
      tokens: { sampled, trained, excluded },
      causes: causes as RunFidelity["causes"],
    };
  }

  async #refresh(): Promise<void> {
    const { ledger } = this.#place;
    const state = await ledger.set(this.#set);
    const expired = state.expired?.rollouts ?? 0;
    const before = JSON.stringify(this.#state.rollouts);
    let hasChanged = this.#version === 0 || JSON.stringify(state.rollouts) !== before;
    // Rows leave from the front, and nothing says which: read all that is left.
    if (expired !== (this.#state.expired?.rollouts ?? 0)) {
      [this.#rows, this.#cursor, hasChanged] = [[], null, true];
    }
    this.#state = state;
    for await (const page of resultPages(ledger, this.#set, this.#cursor, new AbortController().signal)) {
      this.#rows.push(...page.map(({ row }) => ({ entry: toEntry(row, this.#spec), payload: row.payload })));
      if (this.#rows.length > mostRows) this.#rows = this.#rows.slice(-mostRows);
      this.#cursor = page.at(-1)?.cursor ?? this.#cursor;
      hasChanged = true;
    }
    if (hasChanged) this.#take();
  }

  #take(): void {
    this.#version++;
    this.#list.take(this.#rows.map(({ entry }) => entry));
    this.#byName = new Map(
      this.#rows.flatMap((row) =>
        [row.entry.rollout_id, row.entry.session_id].flatMap((name) => (name === null ? [] : [[name, row] as const])),
      ),
    );
  }

  #attempt(payload: PackedAt): Promise<KeptAttempt> {
    return this.#kept.get(payload.key, async () => {
      const [trajectory = "null", record = "null"] = await getAllPacked(this.#place.blobs, payload);
      // A node of an earlier version kept no record there.
      const found = readJson(record);
      return { trajectory: Trajectory.parse(readJson(trajectory)), record: found === null ? null : RolloutRecord.parse(found) };
    });
  }

  async #follow(look: () => void, signal: AbortSignal): Promise<void> {
    const { ledger } = this.#place;
    for (let seen = ledger.version; !signal.aborted; ) {
      try {
        seen = await ledger.changed(seen, signal, this.#set);
        look();
      } catch {
        // The ledger is away, or no page listens any more.
        await sleep(awayMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}
