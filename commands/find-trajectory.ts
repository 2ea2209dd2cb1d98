/** Finds what a person names: a rollout, a session, or a trajectory, in a run folder or the newest one. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../errors.ts";
import { reconstruct } from "../reconstruct/index.ts";
import { eachAttempt, eachTrajectory, readRollouts } from "../rollouts/index.ts";
import type { RolloutRecord } from "../schema/rollout.ts";
import type { LogLine } from "../schema/session-log.ts";
import type { SessionSpec } from "../schema/session-spec.ts";
import type { Attempt, Trajectory } from "../schema/trajectory.ts";
import { DiskStore, hasTornEnd } from "../store/index.ts";

/**
 * The run folder itself, or the newest below `runs/` with a record. A run that was refused at its start (no engine, no
 * task) leaves an empty folder, which is skipped. Throws `not_found`.
 */
export async function runFolderOf(folder: string | undefined): Promise<string> {
  if (folder !== undefined) {
    if (await isRun(folder)) return folder;
    const exists = await stat(folder).catch(() => null);
    throw new AlidadeError("not_found", exists ? `${folder} holds no run: it has no sessions/` : `there is no folder ${folder}`, {
      param: "run",
    });
  }
  const names = await readdir("runs").catch((): string[] => []);
  const runs = await Array.fromAsync(names, async (name) => ((await hasRecords(join("runs", name))) ? [join("runs", name)] : []));
  const dated = await Promise.all(runs.flat().map(async (path) => ({ path, time: (await stat(path)).mtimeMs })));
  const newest = dated.sort((a, b) => b.time - a.time || (a.path < b.path ? 1 : -1))[0];
  if (!newest)
    throw new AlidadeError("not_found", "there is no run below runs/ here that recorded anything: name its folder with --run", {
      param: "run",
    });
  return newest.path;
}

async function isRun(folder: string): Promise<boolean> {
  for (const name of ["sessions", "trajectories.jsonl"]) if (await stat(join(folder, name)).catch(() => null)) return true;
  return false;
}

async function hasRecords(folder: string): Promise<boolean> {
  const written = await stat(join(folder, "trajectories.jsonl")).catch(() => null);
  const sessions = await readdir(join(folder, "sessions")).catch((): string[] => []);
  return sessions.length > 0 || (written !== null && written.size > 0);
}

/**
 * The last attempt of a rollout, a session (also one that no trajectory was written of: of `serve`, or of a process that
 * died), or what alone has an id that begins so. Throws `not_found` with what there is. `onDamage` is told of each line of
 * the run that cannot be read.
 */
export async function findTrajectory(folder: string, name: string, onDamage: OnLeftOut = () => undefined): Promise<Trajectory> {
  let exact: Trajectory | null = null;
  let near: Trajectory | null = null;
  const alike = new Set<string>();
  const known = new Set<string>();
  const written = new Set<string>();
  let damaged = 0;
  const tell = ({ message }: AlidadeError): void => {
    damaged++;
    onDamage(message, 0);
  };
  for await (const one of eachTrajectory(folder, tell)) {
    const ids = [one.rollout_id ?? "", one.session_id, one.trajectory_id, `${one.task.id}/${one.group.sample_index}`];
    known.add(one.rollout_id ?? one.session_id);
    written.add(one.session_id);
    const id = ids.find((each) => each.startsWith(name));
    if (ids.includes(name)) exact = one;
    else if (id !== undefined) {
      alike.add(id);
      near = one;
    }
  }
  if (exact) return exact;
  const store = new DiskStore(join(folder, "sessions"));
  const sessions = (await store.list()).filter((id) => !written.has(id)).toSorted();
  if (sessions.includes(name)) return reconstruct(await store.read(name));
  const begun = sessions.filter((id) => id.startsWith(name));
  if (alike.size + begun.length === 1) return near ?? reconstruct(await store.read(begun[0] as string));
  const there = { alike: [...alike, ...begun], known: [...known, ...sessions], damaged };
  throw new AlidadeError("not_found", await whyNone(folder, name, there), { param: "rollout" });
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

/** Told of what is left out, in a sentence, and how many rollouts that are which no other sentence counts. */
export type OnLeftOut = (message: string, rollouts: number) => void;

/**
 * Every trajectory of a run folder. Sessions without one (from `serve`) are reconstructed from their logs. Each omission is
 * reported: a damaged line or log, and the session of an unfinished attempt, which has no reward yet.
 */
export async function* trajectoriesOf(folder: string, onLeftOut: OnLeftOut): AsyncGenerator<Trajectory> {
  const seen = new Set<string>();
  // Lines that cannot be read, less the sessions that were found to stand for them.
  let lost = 0;
  const onLostLine = ({ message }: AlidadeError): void => {
    lost++;
    onLeftOut(message, 0);
  };
  for await (const trajectory of eachTrajectory(folder, onLostLine)) {
    seen.add(trajectory.session_id);
    tellDamage(trajectory, onLeftOut);
    yield trajectory;
  }
  const store = new DiskStore(join(folder, "sessions"));
  const onLostRecord = ({ message }: AlidadeError): void => onLeftOut(message, 0);
  for await (const { sessionId, record, hasLostRecords } of unfinished(folder, store, seen, onLostRecord)) {
    if (record) {
      const isLost = record.summary !== null;
      if (isLost) lost--;
      onLeftOut(`session ${sessionId} of rollout ${record.rollout_id} is left out: ${whyUnfinished(record)}`, isLost ? 1 : 0);
      continue;
    }
    const trajectory = await rebuilt(store, sessionId).catch((error: unknown) => {
      if (!isDamage(error)) throw error;
      onLeftOut(`session ${sessionId} is left out: ${error.message}`, 1);
      return null;
    });
    if (!trajectory) continue;
    if (hasLostRecords && trajectory.rollout_id !== null) {
      onLeftOut(
        `session ${sessionId} of rollout ${trajectory.rollout_id} is left out: no record that can be read says what it is worth`,
        1,
      );
      continue;
    }
    lost--;
    tellDamage(trajectory, onLeftOut);
    yield trajectory;
  }
  if (lost > 0) onLeftOut(`${lost} of the trajectories of ${folder} cannot be read, and no session of theirs is there`, lost);
}

function whyUnfinished({ state, summary }: RolloutRecord): string {
  if (state !== "done") return "it is not over: go on with its run by --resume";
  return summary === null ? "no trajectory could be made of it" : "its trajectory cannot be read: --resume runs the rollout again";
}

/** What a log holds no more costs its calls; the session goes on without them. */
function tellDamage({ session_id, fidelity }: Trajectory, onLeftOut: OnLeftOut): void {
  for (const { call_id, reason } of fidelity.damaged)
    onLeftOut(`${call_id === null ? "a line" : `call ${call_id}`} of session ${session_id} is left out: ${reason}`, 0);
}

/**
 * A first look at what `trajectoriesOf` will give, for an export that has to know a rollout's last attempt before it
 * writes the first: of a log it reads as far as its first call.
 */
export async function* attemptsOf(folder: string): AsyncGenerator<Attempt> {
  const seen = new Set<string>();
  for await (const attempt of eachAttempt(folder)) {
    seen.add(attempt.session_id);
    yield attempt;
  }
  const store = new DiskStore(join(folder, "sessions"));
  for await (const { sessionId, record, hasLostRecords } of unfinished(folder, store, seen, () => undefined)) {
    const attempt = record ? null : await attemptIn(store.entries(sessionId));
    if (attempt && !(hasLostRecords && attempt.rollout_id !== null)) yield attempt;
  }
}

/**
 * Sessions that no trajectory was written of, in the order in which they were opened; with the record of their attempt,
 * where there is one, and whether some of the run's records cannot be read.
 */
async function* unfinished(
  folder: string,
  store: DiskStore,
  printed: ReadonlySet<string>,
  onLostRecord: (error: AlidadeError) => void,
): AsyncGenerator<{ sessionId: string; record: RolloutRecord | undefined; hasLostRecords: boolean }> {
  let hasLostRecords = false;
  const onDamage = (error: AlidadeError): void => {
    hasLostRecords = true;
    onLostRecord(error);
  };
  const records = new Map((await readRollouts(folder, onDamage)).map((record) => [record.session_id, record]));
  const opened: { sessionId: string; time: number }[] = [];
  for (const sessionId of await store.list())
    if (!printed.has(sessionId)) opened.push({ sessionId, time: await openedAt(store, sessionId) });
  // Their ids are chance, and decide only between those of one millisecond, so that each export has the same order.
  opened.sort((a, b) => a.time - b.time || (a.sessionId < b.sessionId ? -1 : 1));
  for (const { sessionId } of opened) yield { sessionId, record: records.get(sessionId), hasLostRecords };
}

/** Unix time in milliseconds; a log that does not say it comes last; reading it reports the damage. */
async function openedAt(store: DiskStore, sessionId: string): Promise<number> {
  for await (const entry of store.entries(sessionId)) if (entry.type !== "damaged") return entry.time;
  return Number.POSITIVE_INFINITY;
}

/** Null where there is nothing to report, or the damage comes earlier in the log. */
async function attemptIn(entries: AsyncIterable<LogLine>): Promise<Attempt | null> {
  let found: Attempt | null = null;
  try {
    for await (const entry of entries) {
      if (entry.type === "opened") found = toAttempt(entry.session_id, entry.spec);
      if (found && tells(entry, found.member)) return found;
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  return null;
}

/** A session without calls is skipped, unless it carries a team's reward. */
function tells(entry: LogLine, member: string | null): boolean {
  const type = entry.type === "damaged" ? entry.entry_type : entry.type;
  return type === "call_begun" || (entry.type === "rewarded" && member !== null);
}

function toAttempt(session_id: string, { rollout_id, attempt, member, task_id, group_id }: SessionSpec): Attempt {
  return { session_id, rollout_id, attempt, member, task: { id: task_id }, group: { id: group_id } };
}

function isDamage(error: unknown): error is AlidadeError {
  return error instanceof AlidadeError && error.code === "store_error";
}

async function rebuilt(store: DiskStore, sessionId: string): Promise<Trajectory | null> {
  const entries = await store.read(sessionId);
  const member = entries[0]?.type === "opened" ? entries[0].spec.member : null;
  return entries.some((entry) => tells(entry, member)) ? reconstruct(entries) : null;
}
