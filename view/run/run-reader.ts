/**
 * Holds a run in memory for all pages: its rows (`index.json`), and few trajectories, read by the place of their line.
 * Reads again what the records gained.
 */
import { join } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { DiskStore, type LinePlace, readLine } from "../../proxy/store/index.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { type IndexFile, indexedFiles, openIndex, refreshIndex } from "../../rollouts/records/index.ts";
import { asOne, type Entry, isOpen, membersOf, toEntries } from "./entries.ts";
import { OpenSessions } from "./open-sessions.ts";

/**
 * `id`: the name in its address, which is its session's id, or its own if it has no session. `members`: the sessions of a
 * team, else one.
 */
export type ViewedRollout = { id: string; entry: Entry; members: Entry[] };

const lookAgainMs = 500;

/** Keeps the trajectories read last: pages ask for many windows of tokens in a row. */
const mostKept = 3;

export class RunReader {
  readonly folder: string;
  #index: IndexFile;
  #rollouts: ViewedRollout[] = [];
  #byId = new Map<string, ViewedRollout>();
  #places = new Map<string, LinePlace>();
  #records = new Map<string, LinePlace>();
  readonly #kept = new Map<string, Promise<Trajectory>>();
  readonly #open: OpenSessions;
  #version = 0;
  #looked = Date.now();
  #refreshing: Promise<void> | null = null;

  private constructor(folder: string, index: IndexFile) {
    this.folder = folder;
    this.#index = index;
    this.#open = new OpenSessions(join(folder, "sessions"));
    this.#take(index);
  }

  static async open(folder: string): Promise<RunReader> {
    return new RunReader(folder, await openIndex(folder));
  }

  /** Another one whenever rows changed. */
  get version(): number {
    return this.#version;
  }

  get index(): IndexFile {
    return this.#index;
  }

  /** The last attempt of each rollout, in the order of the run. */
  get rollouts(): readonly ViewedRollout[] {
    return this.#rollouts;
  }

  /** Reads what the records gained, at most twice a second, however often it is called. */
  refresh(): Promise<void> {
    if (this.#refreshing === null && Date.now() - this.#looked < lookAgainMs) return Promise.resolve();
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#looked = Date.now();
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** Writes the current rows to `index.json` for the next reader. */
  async close(): Promise<void> {
    await openIndex(this.folder);
  }

  async #refresh(): Promise<void> {
    const index = await refreshIndex(this.folder, this.#index);
    const open = this.#rollouts.flatMap(({ members }) => members.filter(isOpen).flatMap(({ session_id }) => session_id ?? []));
    const loose = this.#index.sessions.map(({ session_id }) => session_id);
    const hasGrown = await this.#open.readOn([...open, ...loose]);
    if (index !== null || hasGrown) this.#take(index ?? this.#index);
  }

  #take(index: IndexFile): void {
    this.#version++;
    this.#index = index;
    this.#rollouts = membersOf(toEntries(index).map((entry) => this.#open.withCounts(entry))).map(toRollout);
    this.#byId = new Map(this.#rollouts.flatMap((rollout) => namesOf(rollout).map((name) => [name, rollout] as const)));
    this.#places = new Map(index.trajectories.map(({ figures, place }) => [figures.session_id, place]));
    this.#records = new Map(index.records.map(({ figures, place }) => [recordKey(figures), place]));
    this.#kept.clear();
  }

  /** Finds a rollout by the id in its address, its own id, or a session's id. Throws `not_found`. */
  find(id: string): ViewedRollout {
    const found = this.#byId.get(id);
    if (found === undefined) throw new AlidadeError("not_found", `this run holds no rollout "${id.slice(0, 200)}"`, { param: "id" });
    return found;
  }

  /** Tells whether `find` finds the id. */
  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** Returns the rollouts of its group; without a group, only itself. */
  group({ entry, ...rollout }: ViewedRollout): ViewedRollout[] {
    if (entry.group_id === null) return [{ entry, ...rollout }];
    const isSibling = (one: Entry): boolean => one.group_id === entry.group_id && one.task_id === entry.task_id;
    return this.#rollouts
      .filter((one) => isSibling(one.entry))
      .toSorted((a, b) => (a.entry.sample_index ?? 0) - (b.entry.sample_index ?? 0));
  }

  /** Throws `not_found` if nothing of the session is recorded. */
  async trajectory(sessionId: string): Promise<Trajectory> {
    const known = this.#kept.get(sessionId);
    const read = known ?? this.#read(sessionId);
    this.#kept.delete(sessionId);
    this.#kept.set(sessionId, read);
    if (this.#kept.size > mostKept) this.#kept.delete(this.#kept.keys().next().value ?? "");
    try {
      return await read;
    } catch (error) {
      this.#kept.delete(sessionId);
      throw error;
    }
  }

  /** null if there is none. */
  async record(entry: Entry): Promise<RolloutRecord | null> {
    if (entry.rollout_id === null) return null;
    const place = this.#records.get(recordKey({ rollout_id: entry.rollout_id, attempt: entry.attempt }));
    return place === undefined ? null : RolloutRecord.parse(await this.#line("rollouts", place));
  }

  async #read(sessionId: string): Promise<Trajectory> {
    const place = this.#places.get(sessionId);
    if (place !== undefined) return Trajectory.parse(await this.#line("trajectories", place));
    const entries = await new DiskStore(join(this.folder, "sessions")).read(sessionId);
    if (entries.length === 0) throw new AlidadeError("not_found", `nothing was recorded of session "${sessionId}"`, { param: "id" });
    return reconstruct(entries);
  }

  async #line(file: keyof typeof indexedFiles, place: LinePlace): Promise<unknown> {
    return readJson((await readLine(join(this.folder, indexedFiles[file]), place)).toString("utf8"));
  }
}

function toRollout(members: Entry[]): ViewedRollout {
  const entry = asOne(members);
  return { id: entry.session_id ?? entry.rollout_id ?? "", entry, members };
}

function namesOf({ entry, members }: ViewedRollout): string[] {
  return [entry.rollout_id ?? "", ...members.map(({ session_id }) => session_id ?? "")].filter((name) => name !== "");
}

function recordKey({ rollout_id, attempt }: { rollout_id: string; attempt: number }): string {
  return `${attempt} ${rollout_id}`;
}
