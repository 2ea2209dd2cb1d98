/** Finds which attempts of a run a report counts. It reads only the run's index. */
import type { IndexFile, LooseSession, TrajectoryFigures } from "../../rollouts/records/index.ts";

/** Told of what is left out, in a sentence, and how many rollouts that are which no other sentence counts. */
export type OnLeftOut = (message: string, rollouts: number) => void;

/**
 * Yields the attempt of each trajectory, and of each session that has neither trajectory nor record. Reports each
 * omission: damaged lines and logs, and sessions of unfinished attempts, which have no reward yet. `logs`: sessions with a
 * log in the folder.
 */
export function* countedAttempts(
  folder: string,
  index: IndexFile,
  logs: ReadonlySet<string>,
  onLeftOut: OnLeftOut,
): Generator<TrajectoryFigures> {
  // Counts unreadable lines, minus the sessions found in their place.
  let lost = index.damaged.trajectories.length;
  for (const message of index.damaged.trajectories) onLeftOut(message, 0);
  const written = new Set<string>();
  for (const { figures } of index.trajectories) {
    written.add(figures.session_id);
    tellDamage(figures, onLeftOut);
    yield figures;
  }
  for (const message of index.damaged.rollouts) onLeftOut(message, 0);
  for (const { figures: record } of index.records) {
    const { session_id, rollout_id, has_summary } = record;
    if (session_id === null || written.has(session_id) || !logs.has(session_id)) continue;
    if (has_summary) lost--;
    onLeftOut(`session ${session_id} of rollout ${rollout_id} is left out: ${whyUnfinished(record)}`, has_summary ? 1 : 0);
  }
  for (const session of index.sessions.toSorted(byOpening)) {
    const figures = countedSession(session, index.damaged.rollouts.length > 0, onLeftOut);
    if (figures === null) continue;
    lost--;
    tellDamage(figures, onLeftOut);
    yield figures;
  }
  if (lost > 0) onLeftOut(`${lost} of the trajectories of ${folder} cannot be read, and no session of theirs is there`, lost);
}

function countedSession({ session_id, figures, damage, tells }: LooseSession, hasLostRecords: boolean, onLeftOut: OnLeftOut) {
  if (!tells) return null;
  if (damage !== null) onLeftOut(damage, 1);
  if (figures === null) return null;
  if (!hasLostRecords || figures.rollout_id === null) return figures;
  onLeftOut(`session ${session_id} of rollout ${figures.rollout_id} is left out: no record that can be read says what it is worth`, 1);
  return null;
}

/** Orders sessions by their opening time. The random ids decide only within one millisecond. */
function byOpening(one: LooseSession, other: LooseSession): number {
  const [first, second] = [one.opened ?? Number.POSITIVE_INFINITY, other.opened ?? Number.POSITIVE_INFINITY];
  return first === second ? (one.session_id < other.session_id ? -1 : 1) : first - second;
}

export function whyUnfinished({ state, has_summary }: { state: string; has_summary: boolean }): string {
  if (state !== "done") return "it is not over: go on with its run by --resume";
  return has_summary ? "its trajectory cannot be read: --resume runs the rollout again" : "no trajectory could be made of it";
}

/** Tells which calls or lines are left out because the log is damaged. The rest of the session counts. */
export function tellDamage({ session_id, fidelity }: { session_id: string; fidelity: Damaged }, onLeftOut: OnLeftOut): void {
  for (const { call_id, reason } of fidelity.damaged)
    onLeftOut(`${call_id === null ? "a line" : `call ${call_id}`} of session ${session_id} is left out: ${reason}`, 0);
}

type Damaged = { damaged: readonly { call_id: string | null; reason: string }[] };
