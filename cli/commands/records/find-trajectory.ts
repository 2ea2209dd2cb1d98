/** Finds what a person names in a run folder: a rollout, a session, or a trajectory. */
import { join } from "node:path";
import { AlidadeError } from "../../../base/errors.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import { RolloutRecord } from "../../../base/schema/rollout.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { DiskStore, hasTornEnd, readLine } from "../../../proxy/store/index.ts";
import { type IndexFile, indexedFiles, openIndex, type TrajectoryFigures } from "../../../rollouts/records/index.ts";
import type { OnLeftOut } from "../../../view/index.ts";

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
  const figures = new Map(index.sessions.map((one) => [one.session_id, one.figures]));
  const sessions = (await store.list()).filter((id) => !written.has(id)).toSorted();
  const kept = index.trajectories.map((one) => foundAs(one.figures, () => read(one)));
  const open = sessions.map((id) => foundSession(id, figures.get(id) ?? null, () => rebuilt(store, id))).toSorted(byAttempt);
  const found = [...open, ...kept];
  const known = [...new Set([...kept, ...open].map(({ shown }) => shown))];
  const name = given ?? onlyOne(folder, known);
  const exact = found.findLast(({ names }) => names.includes(name));
  if (exact) return exact.read();
  const begun = found.filter(({ names }) => names.some((id) => id.startsWith(name)));
  const alike = new Set(begun.flatMap(({ names }) => names.find((id) => id.startsWith(name)) ?? []));
  const [near] = begun.slice(-1);
  if (near && alike.size === 1) return near.read();
  const there = { alike: [...alike], known, damaged: index.damaged.trajectories.length };
  throw new AlidadeError("not_found", await whyNone(folder, name, there), { param: "rollout" });
}

/** The last record of the trajectory's rollout and attempt; null where there is none that can be read. */
export async function findRecord(folder: string, { rollout_id, attempt }: Trajectory): Promise<RolloutRecord | null> {
  const { records } = await openIndex(folder);
  const found = records.findLast(({ figures }) => figures.rollout_id === rollout_id && figures.attempt === attempt);
  if (found === undefined) return null;
  return RolloutRecord.parse(readJson((await readLine(join(folder, indexedFiles.rollouts), found.place)).toString("utf8")));
}

/** What a name may mean. `names`: all that it is known by; `shown`: the one of them that is listed. */
type NamedSession = { names: string[]; shown: string; attempt: number; read: () => Promise<Trajectory> };

function foundAs(figures: TrajectoryFigures, read: NamedSession["read"]): NamedSession {
  const { rollout_id, session_id, trajectory_id, task_id, sample_index, attempt } = figures;
  const names = [rollout_id ?? "", session_id, trajectory_id, `${task_id}/${sample_index}`];
  return { names, shown: rollout_id ?? session_id, attempt, read };
}

/** `figures`: null where the log cannot be read, and of an attempt that has a record. */
function foundSession(id: string, figures: TrajectoryFigures | null, read: NamedSession["read"]): NamedSession {
  return figures === null ? { names: [id], shown: id, attempt: 0, read } : foundAs(figures, read);
}

const byAttempt = (one: NamedSession, other: NamedSession): number => one.attempt - other.attempt;

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
  const { reconstruct } = await import("../../../reconstruct/index.ts");
  return reconstruct(await store.read(sessionId));
}
