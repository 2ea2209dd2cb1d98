/**
 * The scores of a run that a teacher is at, in a file of the run's folder until they are part of its trajectories. Each teacher has
 * a file of its own (`score-<hash>.jsonl`), so that one that was broken off goes on where it ended, whatever scored meanwhile.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { hashOf } from "../../base/schema/ids.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { Teacher, TeacherScore, type Trajectory } from "../../base/schema/trajectory.ts";
import { Appender, type LinePlace, readJsonLines, readLine } from "../../proxy/store/index.ts";

const Entry = z.strictObject({ trajectory_id: z.string(), teacher: Teacher, scores: z.array(z.tuple([z.string(), TeacherScore])) });

export type Scored = { teacher: Teacher; scores: Map<string, TeacherScore> };

/** What makes two teachers one: the same weights at the same address, as far as is known. */
export type TeacherName = Pick<Teacher, "engine" | "url" | "model" | "weight_version" | "top_k">;

/** Has the kept one said all that is asked now? */
export function hasScored(kept: TeacherName, asked: TeacherName): boolean {
  return keyOf({ ...kept, top_k: 1 }) === keyOf({ ...asked, top_k: 1 }) && (kept.top_k ?? 0) >= (asked.top_k ?? 0);
}

/** Scores stay on the disk: those of a run may be larger than memory. */
export class ScoreJournal implements AsyncDisposable {
  readonly #file: string;
  readonly #lines: Appender;
  readonly #places: Map<string, LinePlace>;

  private constructor(file: string, lines: Appender, places: Map<string, LinePlace>) {
    this.#file = file;
    this.#lines = lines;
    this.#places = places;
  }

  static async open(folder: string, teacher: TeacherName): Promise<ScoreJournal> {
    const file = join(folder, `score-${hashOf(keyOf(teacher)).slice(0, 12)}.jsonl`);
    const places = new Map<string, LinePlace>();
    const placed = readJsonLines(file, (value, place) => ({ id: Entry.parse(value).trajectory_id, place }));
    for await (const { id, place } of placed) places.set(id, place);
    return new ScoreJournal(file, await Appender.open(file), places);
  }

  has({ trajectory_id }: Pick<Trajectory, "trajectory_id">): boolean {
    return this.#places.has(trajectory_id);
  }

  /** What an earlier process was told, or this one; null: nothing that fits the trajectory's nodes. */
  async read({ trajectory_id, nodes }: Pick<Trajectory, "trajectory_id" | "nodes">): Promise<Scored | null> {
    const place = this.#places.get(trajectory_id);
    if (place === undefined) return null;
    const { teacher, scores } = Entry.parse(readJson((await readLine(this.#file, place)).toString("utf8")));
    const lengths = new Map(nodes.map(({ node_id, token_ids }) => [node_id, token_ids.length]));
    return scores.every(([id, { logprobs }]) => lengths.get(id) === logprobs.length) ? { teacher, scores: new Map(scores) } : null;
  }

  async add({ trajectory_id }: Pick<Trajectory, "trajectory_id">, { teacher, scores }: Scored): Promise<void> {
    const offset = this.#lines.size;
    const entry = { trajectory_id, teacher, scores: [...scores] } satisfies z.infer<typeof Entry>;
    await this.#lines.append(`${JSON.stringify(entry)}\n`);
    this.#places.set(trajectory_id, { number: this.#places.size + 1, offset, bytes: this.#lines.size - offset });
  }

  /** Once its scores are the run's. */
  async remove(): Promise<void> {
    await rm(this.#file, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lines[Symbol.asyncDispose]();
  }
}

function keyOf({ engine, url, model, weight_version, top_k = 0 }: TeacherName): string {
  return JSON.stringify([engine, url, model, weight_version, top_k]);
}
