/** Finds what a person names in a run folder: a rollout, a session, or a trajectory. */
import { join } from "node:path";
import { AlidadeError } from "../../errors.ts";
import { type IndexFile, indexedFiles, type TrajectoryFigures } from "../../rollouts/run-index/index-file.ts";
import { openIndex } from "../../rollouts/run-index.ts";
import { readJson } from "../../schema/read-json.ts";
import { RolloutRecord } from "../../schema/rollout.ts";
import { Trajectory } from "../../schema/trajectory.ts";
import { DiskStore } from "../../store/disk.ts";
import { hasTornEnd, readLine } from "../../store/json-lines.ts";
import type { OnLeftOut } from "../overview/trajectories-of.ts";

/**
 * The last attempt of a rollout, a session (also one that no trajectory was written of: of `serve`, or of a process that
 * died), or what alone has an id that begins so; without a name the only one of the run. Throws `not_found` with what there
 * is. `onDamage` is told of each line of the run that cannot be read.
 */
export async function findTrajectory(
  folder: string,
  given: string | undefined,
  onDamage: OnLeftOut = () => undefined,
): Promise<Trajectory> {
  const index = await openIndex(folder);
  for (const message of index.damaged.trajectories) onDamage(message, 0);
  const read = async ({ place }: IndexFile["trajectories"][number]): Promise<Trajectory> =>
    Trajectory.parse(readJson((await readLine(join(folder, indexedFiles.trajectories), place)).toString("utf8")));
  const store = new DiskStore(join(folder, "sessions"));
  const written = new Set(index.trajectories.map(({ figures }) => figures.session_id));
  const sessions = (await store.list()).filter((id) => !written.has(id)).toSorted();
  const known = [...new Set(index.trajectories.map(({ figures }) => figures.rollout_id ?? figures.session_id)), ...sessions];
  const name = given ?? onlyOne(folder, known);
  const exact = index.trajectories.findLast(({ figures }) => namesOf(figures).includes(name));
  if (exact) return read(exact);
  if (sessions.includes(name)) return rebuilt(store, name);
  const near = index.trajectories.findLast(({ figures }) => namesOf(figures).some((id) => id.startsWith(name)));
  const alike = new Set(index.trajectories.flatMap(({ figures }) => namesOf(figures).find((id) => id.startsWith(name)) ?? []));
  const begun = sessions.filter((id) => id.startsWith(name));
  if (alike.size + begun.length === 1) return near ? read(near) : rebuilt(store, begun[0] as string);
  const there = { alike: [...alike, ...begun], known, damaged: index.damaged.trajectories.length };
  throw new AlidadeError("not_found", await whyNone(folder, name, there), { param: "rollout" });
}

/** The last record of the trajectory's rollout and attempt; null where there is none that can be read. */
export async function findRecord(folder: string, { rollout_id, attempt }: Trajectory): Promise<RolloutRecord | null> {
  const { records } = await openIndex(folder);
  const found = records.findLast(({ figures }) => figures.rollout_id === rollout_id && figures.attempt === attempt);
  if (found === undefined) return null;
  return RolloutRecord.parse(readJson((await readLine(join(folder, indexedFiles.rollouts), found.place)).toString("utf8")));
}

function namesOf({ rollout_id, session_id, trajectory_id, task_id, sample_index }: TrajectoryFigures): string[] {
  return [rollout_id ?? "", session_id, trajectory_id, `${task_id}/${sample_index}`];
}

function onlyOne(folder: string, known: string[]): string {
  const [name] = known;
  if (name !== undefined && known.length === 1) return name;
  const what = name === undefined ? "no rollout or session" : `${known.length} rollouts and sessions; name one: ${listed(known)}`;
  throw new AlidadeError("not_found", `${folder} holds ${what}`, { param: "rollout" });
}

type There = { alike: string[]; known: string[]; damaged: number };

async function whyNone(folder: string, name: string, { alike, known, damaged }: There): Promise<string> {
  if (alike.length > 0) return `"${name}" is the beginning of ${listed(alike)}: write more of it`;
  const what = known.length > 0 ? `; it has ${listed(known)}` : "";
  const torn = await hasTornEnd(join(folder, "trajectories.jsonl"));
  const lost = torn ? "; the last line of its trajectories.jsonl was cut off, so what it told is not here: name its session" : "";
  const unread = damaged > 0 ? `; ${damaged} of its trajectories cannot be read: name the session` : "";
  return `${folder} holds no rollout or session "${name}"${what}${lost}${unread}`;
}

/** A run may have thousands. */
const mostNamed = 20;

function listed(names: string[]): string {
  const more = names.length - mostNamed;
  return `${names.slice(0, mostNamed).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** What reconstructs is loaded for a session that has no trajectory yet, for to load it takes longer than to show one. */
async function rebuilt(store: DiskStore, sessionId: string): Promise<Trajectory> {
  const { reconstruct } = await import("../../reconstruct/reconstruct.ts");
  return reconstruct(await store.read(sessionId));
}
