/** Decides what dead processes left behind and what is in use, and counts the removals. */
import { messageOf } from "../errors.ts";
import { isOwnerAlive } from "./owner.ts";

/** In words. */
export type Reaped = {
  removed: string[];
  /** What is there still, and why. */
  failed: string[];
};

/** Notes the result of one removal; a failure does not stop the others. */
export async function removeInto(
  reaped: Reaped,
  what: string,
  { only_look = false }: Pick<ReapOptions, "only_look">,
  remove: () => Promise<void>,
): Promise<void> {
  try {
    if (!only_look) await remove();
    reaped.removed.push(what);
  } catch (error) {
    reaped.failed.push(`${what}: ${messageOf(error)}`);
  }
}

export type ReapOptions = {
  /** Nothing is removed; `removed` says what would be. */
  only_look?: boolean;
  /** What is younger is left alone: a run that was killed a moment ago may be gone on with, and removes what it left itself. */
  min_age_ms?: number;
  /** Also what living processes of this host own. */
  all?: boolean;
  /**
   * The run that this process continues, with its folder locked. Everything that any other process left of this run is
   * removed, also from another boot or container.
   */
  run?: string;
};

export type Belongings = {
  run_id: string;
  /** `pid:start` of the process that made it. */
  owner: string;
  /** Where that process ran; see `hostId`. */
  host: string;
  /** Milliseconds since 1970. */
  lease: number;
  /** The same, of its making; left out where that is unknown. */
  made?: number;
};

/**
 * Why it may be removed, in words; null: leave it. What another host made is left alone until its lease is over, for
 * from here nothing shows whether its owner lives.
 */
export async function reasonToRemove(
  found: Belongings,
  host: string,
  { all = false, run, min_age_ms = 0 }: ReapOptions,
): Promise<string | null> {
  if (found.made !== undefined && Date.now() - found.made < min_age_ms) return null;
  if (found.lease < Date.now()) return "its lease is over";
  if (found.host !== host) return found.run_id === run ? "its run goes on in another process" : null;
  if (!(await isOwnerAlive(found.owner))) return `its owner, process ${found.owner.split(":")[0]}, is gone`;
  return all ? "all were asked for" : null;
}
