/** Makes a run's index (index-file.ts), or brings it up to date: of a file that only grew it reads what is new. */

import { createHash } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import { RolloutRecord, type Verdict } from "../../base/schema/rollout.ts";
import type { LogLine } from "../../base/schema/session-log.ts";
import { readTrajectory, type Trajectory } from "../../base/schema/trajectory.ts";
import { DiskStore, type LinePlace, privateFileMode, readJsonLines, readLine } from "../../proxy/store/index.ts";
import { ownTokens, reconstruct } from "../../reconstruct/index.ts";
import { attemptFidelityOf } from "./attempt-fidelity.ts";
import {
  type IndexFile,
  indexedFiles,
  indexLayout,
  indexName,
  isSame,
  type LooseSession,
  looseSessions,
  mostAgents,
  type RecordFigures,
  type SeenFile,
  type TrajectoryFigures,
  type VerdictFigures,
} from "./index-file.ts";
import { writeIndexLines } from "./index-lines.ts";
import { between, phaseSeconds } from "./phase-seconds.ts";
import { attemptKey } from "./run-records.ts";

/**
 * `known`: an index of earlier, which is changed. Where the folder cannot be written the index is only returned.
 * `isLive`: it is not written, and open sessions that are known are not read again: the caller reads on in them.
 */
export async function updateIndex(folder: string, known: IndexFile | null, { isLive = false } = {}): Promise<IndexFile> {
  const index = known !== null && (await isContinued(folder, known)) ? known : emptyIndex();
  index.files.trajectories = await readOn(
    join(folder, indexedFiles.trajectories),
    index.files.trajectories,
    index.damaged.trajectories,
    (value, place) => {
      index.trajectories.push({ place, figures: figuresOf(readTrajectory(value)) });
    },
  );
  const records = new Map(index.records.map((one) => [attemptKey(one.figures), one]));
  index.files.rollouts = await readOn(join(folder, indexedFiles.rollouts), index.files.rollouts, index.damaged.rollouts, (value, place) => {
    const figures = recordFiguresOf(RolloutRecord.parse(value));
    records.set(attemptKey(figures), { place, figures });
  });
  index.records = [...records.values()];
  index.sessions = await readLoose(folder, index, isLive);
  if (!isLive) await writeIndex(folder, index);
  return index;
}

function emptyIndex(): IndexFile {
  return {
    layout: indexLayout,
    files: { trajectories: null, rollouts: null },
    trajectories: [],
    records: [],
    sessions: [],
    damaged: { trajectories: [], rollouts: [] },
  };
}

/** Whether both files begin as they did. */
async function isContinued(folder: string, { files }: IndexFile): Promise<boolean> {
  for (const [key, name] of Object.entries(indexedFiles)) {
    const seen = files[key as keyof typeof indexedFiles];
    if (seen !== null && !(await hasGrownOnly(join(folder, name), seen))) return false;
  }
  return true;
}

/** Rewritten files are others (another inode), shorter, changed in place (as long as before), or end their old part otherwise. */
async function hasGrownOnly(path: string, seen: SeenFile): Promise<boolean> {
  const now = await stat(path).catch(() => null);
  if (now === null || now.ino !== seen.inode || now.size < seen.bytes) return false;
  if (now.size === seen.bytes) return isSame(seen, now);
  return hashOfLine(await readLine(path, seen.last)) === seen.last_hash;
}

function hashOfLine(line: Buffer): string {
  return createHash("sha256").update(line).digest("hex");
}

/** Lines that are damaged cost themselves. What is appended meanwhile is read now, or the next time. */
async function readOn(
  path: string,
  before: SeenFile | null,
  damaged: string[],
  take: (value: unknown, place: LinePlace) => void,
): Promise<SeenFile | null> {
  const now = await stat(path).catch(() => null);
  if (now === null) return null;
  let last = before?.last ?? { number: 0, offset: 0, bytes: 0 };
  const lines = readJsonLines<void>(
    path,
    (value, place) => {
      last = place;
      take(value, place);
    },
    (_line, { message }, place) => {
      last = place;
      damaged.push(message);
    },
    before?.last,
  );
  for await (const _ of lines);
  return { inode: now.ino, bytes: now.size, changed: now.mtimeMs, last, last_hash: hashOfLine(await readLine(path, last)) };
}

function figuresOf(trajectory: Trajectory): TrajectoryFigures {
  const { session_id, trajectory_id, rollout_id, attempt, member, reward, stop_reason, mask_reason, labels, fidelity } = trajectory;
  const calls = trajectory.calls.filter(({ other_policy }) => !other_policy);
  const begun = calls.map(({ times }) => times.begun);
  const ended = calls.map(({ times }) => Math.max(times.begun, times.finished ?? 0, times.answered ?? 0));
  const policies = calls.flatMap(({ policy }) => policy.end ?? policy.start ?? []);
  const temperatures = new Set(calls.filter(({ output }) => output !== null).map(({ sampling }) => sampling.temperature ?? null));
  return {
    session_id,
    trajectory_id,
    rollout_id,
    attempt,
    member,
    task_id: trajectory.task.id,
    group_id: trajectory.group.id,
    sample_index: trajectory.group.sample_index,
    harness: trajectory.harness.name,
    reward,
    stop_reason,
    mask_reason,
    turns: trajectory.calls.length,
    ...ownTokens(fidelity),
    trainable_tokens: fidelity.trainable_tokens,
    temperature: temperatures.size === 1 ? ([...temperatures][0] ?? null) : null,
    policies: [...new Map(policies.map((policy) => [JSON.stringify([policy.version, policy.step]), policy])).values()],
    labels,
    begun: begun.length === 0 ? null : Math.min(...begun),
    seconds: begun.length === 0 ? null : (Math.max(...ended) - Math.min(...begun)) / 1000,
    harness_version: trajectory.harness.version,
    agents: [...new Set(trajectory.calls.map(({ agent }) => agent))].slice(0, mostAgents),
    largest_prompt: trajectory.calls.reduce<number | null>((most, call) => longer(most, call.prompt_length), null),
    matches: fidelity.matches,
    causes: fidelity.causes,
    fidelity: attemptFidelityOf(trajectory),
  };
}

function longer(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

function recordFiguresOf(record: RolloutRecord): RecordFigures {
  const { rollout_id, attempt, session_id, task_id, group_id, sample_index, harness, state, mask_reason, verdict, times } = record;
  const error = record.error ?? verdict?.error ?? null;
  return {
    rollout_id,
    attempt,
    session_id,
    task_id,
    group_id,
    sample_index,
    harness,
    state,
    reward: verdict?.reward ?? null,
    end: error?.code ?? record.stop_reason,
    mask_reason,
    begun: times.queued ?? null,
    seconds: between(times.run, times.teach ?? times.done),
    phases: phaseSeconds(times),
    harness_version: record.harness_version,
    verdict: verdict && verdictFiguresOf(verdict),
    why_null: verdict?.reward == null && error !== null ? error.message.slice(0, mostWords).toWellFormed() : null,
    has_summary: record.summary !== null,
  };
}

/** Characters of an error and of a test's name that a row holds; the record holds all of them. */
const mostWords = 300;
const mostFailed = 3;

/** Graders of tests tell these; others and plug-ins tell something else. */
const TestEvidence = z.looseObject({
  required: z.number().nullish().catch(null),
  failed_count: z.number().nullish().catch(null),
  failed: z
    .array(z.looseObject({ name: z.string() }))
    .nullish()
    .catch(null),
});

function verdictFiguresOf({ status, evidence }: Verdict): VerdictFigures {
  const { required, failed_count, failed } = TestEvidence.parse(evidence);
  return {
    status,
    required: required ?? null,
    failed_count: failed_count ?? null,
    failed: (failed ?? []).slice(0, mostFailed).map(({ name }) => name.slice(0, mostWords).toWellFormed()),
  };
}

/** Those that are as they were are not read again. */
async function readLoose(folder: string, index: IndexFile, isLive: boolean): Promise<LooseSession[]> {
  const store = new DiskStore(join(folder, "sessions"));
  const before = new Map(index.sessions.map((one) => [one.session_id, one]));
  return Array.fromAsync(await looseSessions(folder, index), async (session_id) => {
    const { size: bytes, mtimeMs: changed } = await stat(join(store.folder, `${session_id}.jsonl`));
    const seen = before.get(session_id);
    if (seen !== undefined && (isLive || (seen.bytes === bytes && seen.changed === changed))) return seen;
    return { session_id, bytes, changed, ...(await readSession(store, session_id)) };
  });
}

async function readSession(store: DiskStore, session_id: string): Promise<Pick<LooseSession, "figures" | "damage" | "opened" | "tells">> {
  let [opened, tells]: [number | null, boolean] = [null, true];
  try {
    const entries = await store.read(session_id);
    const member = entries[0]?.type === "opened" ? entries[0].spec.member : null;
    opened = entries.find((entry) => entry.type !== "damaged")?.time ?? null;
    tells = entries.some((entry) => tellsOfSession(entry, member));
    return { figures: figuresOf(reconstruct(entries)), damage: null, opened, tells };
  } catch (error) {
    return { figures: null, damage: `session ${session_id} is left out: ${messageOf(error)}`, opened, tells };
  }
}

async function writeIndex(folder: string, index: IndexFile): Promise<void> {
  const draft = join(folder, `${indexName}.${process.pid}.new`);
  try {
    await writeDraft(draft, index);
    await rename(draft, join(folder, indexName));
  } catch {
    // A folder that is not ours to write, or a full disk: the next reader takes as long as this one.
    await rm(draft, { force: true }).catch(() => undefined);
  }
}

async function writeDraft(path: string, index: IndexFile): Promise<void> {
  await using file = await open(path, "w", privateFileMode);
  await writeIndexLines(file, index);
}

/** Whether a line makes its session one to count. A session without calls tells nothing, unless it carries a team's reward. */
export function tellsOfSession(entry: LogLine, member: string | null): boolean {
  const type = entry.type === "damaged" ? entry.entry_type : entry.type;
  return type === "call_begun" || (entry.type === "rewarded" && member !== null);
}
