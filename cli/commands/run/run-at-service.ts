/**
 * A run whose rollouts a service makes: its tasks are a set, whose key is the run's id, and what comes of it is written into the
 * run's folder as a run on this machine writes it. Each result is written before the cursor moves, so that a process that is
 * killed at any time loses and doubles nothing when the run goes on.
 */
import { join } from "node:path";
import { z } from "zod";
import { AlidadeError } from "../../../base/errors.ts";
import { MediaFolder, mediaFolder } from "../../../base/media/media-folder.ts";
import { RolloutRecord } from "../../../base/schema/rollout.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { version } from "../../../base/version.ts";
import { noteLeftOut } from "../../../rollouts/accepted/index.ts";
import { RunFolder } from "../../../rollouts/index.ts";
import { attemptKey, lastByTask } from "../../../rollouts/records/index.ts";
import { type DeliveredResult, RolloutSet, type ServiceClient } from "../../../service/index.ts";
import type { SetSpec } from "../../../service/ledger/index.ts";
import type { Config } from "../../config.ts";
import type { CountsOfSet } from "../overview/earlier-runs.ts";
import { clientAt } from "../service/ask-service.ts";
import type { AskedService } from "./described-run.ts";
import { type Following, keepFollowing, readFollowing } from "./following.ts";
import { type GroupToSend, groupsToSend, sendGroups } from "./groups-to-send.ts";
import type { LiveProgressEvent } from "./live-progress.ts";
import { recordOfResult } from "./record-of-result.ts";
import { placeOf } from "./service-flags.ts";

export type RunAtService = { config: Config; path: string; runId: string; service: AskedService };

type FollowHow = { signal: AbortSignal; onProgress: (event: LiveProgressEvent) => void };
/** What is in the folder. `unbegun`: rollouts that were cancelled before their first attempt. */
type Followed = { records: RolloutRecord[]; leftOut: string[]; unbegun: number };

/**
 * Until the set is over and all of it is in the folder; when the signal fires, with what has come. `isCancelled`: what is not over
 * is cancelled first. A service that is away is waited for, but not at the beginning.
 */
export async function runAtService(run: RunAtService, isCancelled: boolean, how: FollowHow): Promise<Followed> {
  const { path, runId: run_id, config, service } = run;
  const place = placeOf(service);
  await using first = await clientAt(place, { patience: 0 });
  await using client = await clientAt(place, { patience: Number.POSITIVE_INFINITY });
  const before = await readFollowing(path);
  const asked = before === null && !isCancelled ? await firstAsked(run, first, how) : null;
  const set =
    before === null ? await first.set(run_id, service.set as Partial<SetSpec>, how.signal) : await knownSet(first, before, how.signal);
  await using folder = await RunFolder.open(path);
  await folder.describe({ run_id, alidade_version: version, config, service });
  const following = before ?? { set_id: set.id, cursor: null, unbegun: 0, left_out: asked?.leftOut ?? [] };
  await keepFollowing(path, following);
  const patient = new RolloutSet(client, { set_id: set.id, key: set.key, spec: set.spec });
  try {
    await handIn({ run, folder, set: patient, client, following }, asked, isCancelled, how);
    await follow({ run, folder, set: patient, client, following }, how);
  } catch (error) {
    if (error !== how.signal.reason) throw error;
  }
  const records = [...(await lastByTask(path)).values()].flat();
  return { records, leftOut: following.left_out, unbegun: following.unbegun };
}

/** `following` is changed as the run goes on, and kept after each change. */
type FollowedSet = { run: RunAtService; folder: RunFolder; set: RolloutSet; client: ServiceClient; following: Following };

type ServedLine = DeliveredResult<Record<string, unknown>>;
type TasksToHandIn = { groups: GroupToSend[]; leftOut: string[] };

/** The service is asked before the tasks are looked at, for these may take long. */
async function firstAsked({ config }: RunAtService, client: ServiceClient, { signal, onProgress }: FollowHow): Promise<TasksToHandIn> {
  const known = await client.tasks(signal);
  const leftOut: string[] = [];
  const note = (text: string): void => onProgress({ type: "note", text });
  const onLeftOut = noteLeftOut(note, leftOut);
  const countsOfSet: CountsOfSet = async (id, pass) => {
    const { tasks } = await (await client.setOf(id, signal)).passRates({ pass });
    return new Map(tasks.map(({ task_id, measured, passed }) => [task_id, { measured, passed }]));
  };
  return { groups: await groupsToSend(config, known, { note, onLeftOut, signal, countsOfSet }), leftOut };
}

/** Throws `not_found` where another ledger answers now: a set that is made anew would make all rollouts again. */
async function knownSet(client: ServiceClient, { set_id }: Following, signal: AbortSignal): Promise<RolloutSet> {
  try {
    return await client.setOf(set_id, signal);
  } catch (error) {
    if (!(error instanceof AlidadeError) || error.status !== 404) throw error;
    throw new AlidadeError(
      "not_found",
      `the service has no set ${set_id}, which this run follows: name the service that has it by --service`,
      {
        cause: error,
        param: "service",
      },
    );
  }
}

/** All of the run's tasks, and no more: the set is over when they are. One that was handed in is not touched. */
async function handIn(
  { run, set, client, following }: FollowedSet,
  asked: TasksToHandIn | null,
  isCancelled: boolean,
  how: FollowHow,
): Promise<void> {
  const { signal, onProgress } = how;
  if (!(await set.state(signal)).is_drained) {
    if (!isCancelled) {
      const { groups, leftOut } = asked ?? (await firstAsked(run, client, how));
      following.left_out = leftOut;
      const note = (text: string): void => onProgress({ type: "note", text });
      await sendGroups(set, groups, noteLeftOut(note, following.left_out), signal);
      await keepFollowing(run.path, following);
    }
    await set.drain(signal);
  }
  if (isCancelled) await set.cancel({ reason: "alidade run --cancel" });
}

async function follow({ run, folder, set, following }: FollowedSet, { signal, onProgress }: FollowHow): Promise<void> {
  const { found } = folder;
  for (const text of found.damaged) onProgress({ type: "note", text });
  const { rollouts } = await set.state(signal);
  const total = Object.values(rollouts).reduce((sum, count) => sum + count, 0);
  onProgress({ type: "planned", total, over: found.done.size + following.unbegun });
  const onState = ({ rollouts: { running } }: { rollouts: { running: number } }): void =>
    onProgress({ type: "running", rollouts: running });
  const asked = { payload: "record", wait: liveSeconds, after: following.cursor, onState, signal } as const;
  for await (const line of set.results(asked)) {
    const record = line.result.attempt === 0 ? null : await written(folder, set, line);
    if (record === null) following.unbegun += 1;
    following.cursor = line.cursor;
    await keepFollowing(run.path, following);
    if (record !== null) onProgress({ type: "done", record });
  }
}

/** How old the count of those that run may be on a terminal. */
const liveSeconds = 5;

/** A line that is served again is not written again. */
async function written(folder: RunFolder, { spec }: RolloutSet, line: ServedLine): Promise<RolloutRecord> {
  const { trajectory, record: made } = partsOf(line);
  const record = made ?? recordOfResult(line.result, trajectory, spec.harness);
  const key = attemptKey(record);
  if (trajectory !== null && !folder.found.kept.has(key)) {
    const media = new MediaFolder(join(folder.path, "sessions", mediaFolder));
    for (const [sha256, base64] of Object.entries(line.pictures ?? {})) media.keep(sha256, Buffer.from(base64, "base64"));
    await folder.keep(trajectory);
  }
  if (!folder.found.done.has(key)) await folder.record(record);
  return record;
}

function partsOf({ result, trajectories, records }: ServedLine): {
  trajectory: Trajectory | null;
  record: RolloutRecord | null;
} {
  const parts = z.object({ trajectory: Trajectory.nullable(), record: RolloutRecord.nullable() });
  const read = parts.safeParse({ trajectory: trajectories?.[0] ?? null, record: records?.[0] ?? null });
  if (read.success) return read.data;
  const { path, message } = read.error.issues[0] ?? { path: [], message: "invalid" };
  throw new AlidadeError(
    "store_error",
    `what the service delivers of rollout ${result.rollout_id} cannot be read (${path.join(".")}: ${message}): give this machine the service's version of Alidade`,
    { cause: read.error },
  );
}
