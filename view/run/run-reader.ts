/**
 * Holds a run in memory for all pages: its rows (`index.json`), and few trajectories, read by the place of their line.
 * Reads again what the records gained.
 */
import { type FSWatcher, watch } from "node:fs";
import { basename, join, resolve } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { MediaFolder, mediaFolder } from "../../base/media/media-folder.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { DiskStore, type LinePlace, readLine } from "../../proxy/store/index.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { type IndexFile, indexedFiles, openIndex, refreshIndex, type TrajectoryFigures } from "../../rollouts/records/index.ts";
import { countedAttempts } from "./counted-attempts.ts";
import { type Entry, isOpen, toEntries } from "./entries.ts";
import type { EntryTest } from "./filters.ts";
import { type OpenIndexOptions, openIndexApart } from "./open-index-apart.ts";
import { OpenSessions } from "./open-sessions.ts";
import { paced } from "./paced.ts";
import { RecentlyRead } from "./recently-read.ts";
import { sumFidelity } from "./sum-fidelity.ts";
import { RolloutList, type RunFidelity, type ViewedRollout, type ViewedRun } from "./viewed-run.ts";

const mostKept = 3;

export class RunReader implements ViewedRun {
  readonly folder: string;
  readonly name: string;
  readonly note = "";
  readonly #rollouts = new RolloutList();
  #index: IndexFile;
  #places = new Map<string, LinePlace>();
  #records = new Map<string, LinePlace>();
  readonly #kept = new RecentlyRead<Trajectory>(mostKept);
  readonly #open: OpenSessions;
  #version = 0;
  readonly refresh = paced(() => this.#refresh());

  private constructor(folder: string, index: IndexFile) {
    this.folder = folder;
    this.name = basename(resolve(folder));
    this.#index = index;
    this.#open = new OpenSessions(join(folder, "sessions"));
    this.#take(index);
  }

  static async open(folder: string, options?: OpenIndexOptions): Promise<RunReader> {
    return new RunReader(folder, await openIndexApart(folder, options));
  }

  get version(): number {
    return this.#version;
  }

  get rollouts(): readonly ViewedRollout[] {
    return this.#rollouts.all;
  }

  get unread(): string[] {
    const { damaged, sessions } = this.#index;
    const logs = sessions.flatMap(({ damage, tells }) => (tells && damage !== null ? [damage] : []));
    return [...damaged.trajectories, ...damaged.rollouts, ...logs];
  }

  find(id: string): ViewedRollout {
    return this.#rollouts.find(id);
  }

  has(id: string): boolean {
    return this.#rollouts.has(id);
  }

  group(rollout: ViewedRollout): ViewedRollout[] {
    return this.#rollouts.group(rollout);
  }

  /** Writes the current rows to `index.json` for the next reader. */
  async close(): Promise<void> {
    await openIndex(this.folder);
  }

  watch(look: () => void): () => void {
    const watchers: FSWatcher[] = [];
    for (const folder of [this.folder, join(this.folder, "sessions")]) {
      try {
        watchers.push(watch(folder, look).on("error", () => undefined));
      } catch {
        // A run without any record yet has no folder of sessions.
      }
    }
    return () => {
      for (const watcher of watchers) watcher.close();
    };
  }

  async #refresh(): Promise<void> {
    const index = await refreshIndex(this.folder, this.#index);
    const open = this.rollouts.flatMap(({ members }) => members.filter(isOpen).flatMap(({ session_id }) => session_id ?? []));
    const loose = this.#index.sessions.map(({ session_id }) => session_id);
    const hasGrown = await this.#open.readOn([...open, ...loose]);
    if (index !== null || hasGrown) this.#take(index ?? this.#index);
  }

  #take(index: IndexFile): void {
    this.#version++;
    this.#index = index;
    this.#rollouts.take(toEntries(index).map((entry) => this.#open.withCounts(entry)));
    this.#places = new Map(index.trajectories.map(({ figures, place }) => [figures.session_id, place]));
    this.#records = new Map(index.records.map(({ figures, place }) => [recordKey(figures), place]));
    this.#kept.clear();
  }

  trajectory(sessionId: string): Promise<Trajectory> {
    return this.#kept.get(sessionId, () => this.#read(sessionId));
  }

  async picture(_sessionId: string, sha256: string): Promise<Buffer> {
    return new MediaFolder(join(this.folder, "sessions", mediaFolder)).read(sha256);
  }

  async record(entry: Entry): Promise<RolloutRecord | null> {
    if (entry.rollout_id === null) return null;
    const place = this.#records.get(recordKey({ rollout_id: entry.rollout_id, attempt: entry.attempt }));
    return place === undefined ? null : RolloutRecord.parse(await this.#line("rollouts", place));
  }

  /** Counts like `alidade fidelity`. */
  async fidelity(isMeant: EntryTest | null): Promise<RunFidelity> {
    const logs = new Set(await new DiskStore(join(this.folder, "sessions")).list());
    const counted = countedAttempts(this.folder, this.#index, logs, () => undefined);
    const isCounted = ({ rollout_id, session_id }: TrajectoryFigures) =>
      isMeant === null || isMeant(this.find(rollout_id ?? session_id).entry);
    return sumFidelity([...counted.filter(isCounted)]);
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

function recordKey({ rollout_id, attempt }: { rollout_id: string; attempt: number }): string {
  return `${attempt} ${rollout_id}`;
}
