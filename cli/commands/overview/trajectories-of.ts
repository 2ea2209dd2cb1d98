/** All trajectories of a run folder. */
import { join } from "node:path";
import { AlidadeError } from "../../../base/errors.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import type { LogLine } from "../../../base/schema/session-log.ts";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import type { Attempt, Trajectory } from "../../../base/schema/trajectory.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { eachAttempt, eachTrajectory, readRollouts, tellsOfSession } from "../../../rollouts/records/index.ts";
import { type OnLeftOut, tellDamage, whyUnfinished } from "../../../view/index.ts";

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
      onLeftOut(
        `session ${sessionId} of rollout ${record.rollout_id} is left out: ${whyUnfinished({ state: record.state, has_summary: isLost })}`,
        isLost ? 1 : 0,
      );
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
      if (found && tellsOfSession(entry, found.member)) return found;
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  return null;
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
  return entries.some((entry) => tellsOfSession(entry, member)) ? reconstruct(entries) : null;
}
