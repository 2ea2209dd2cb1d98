/** What is left when all is over: is a result lost or doubled, is a trajectory what its node recorded, does a sandbox remain? */
import { hash } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readJson } from "../../../base/schema/read-json.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { countBy, reconstruct } from "../../../reconstruct/index.ts";
import { FolderBlobs, getPacked } from "../../../service/blobs/index.ts";
import type { ResultRow } from "../../../service/ledger/index.ts";
import { cliProcess, jsonOf } from "../../../test/fakes/processes/cli.ts";
import { volumesOf } from "./containers.ts";
import { type Checkpoint, type KillCluster, nodeNames } from "./kill-cluster.ts";

export type KillAudit = {
  submitted: number;
  lost: number;
  doubled: number;
  /** How rollouts ended -> how many. */
  outcomes: Record<string, number>;
  /** Attempts that a rollout took -> rollouts. */
  attempts: Record<string, number>;
  /** Sentences about trajectories that cannot be read, or are not what was recorded or taken. */
  wrong: string[];
  /** Containers, volumes and folders that are there behind `alidade reap`. */
  left: string[];
  /** The same before it. */
  leftBeforeReap: number;
};

/** Nodes and service have ended, and Postgres is there. */
export async function auditKills(cluster: KillCluster, submitted: number): Promise<KillAudit> {
  const rows = ((await cluster.ask("SELECT entry FROM results ORDER BY xid, seq")) ?? []).map(({ entry }) =>
    readJson(String(entry)),
  ) as ResultRow[];
  const open = (await cluster.ask("SELECT id FROM rollouts WHERE state <> 'done'")) ?? [];
  const { taken } = await cluster.checkpoint();
  const counted = counts(taken.map(({ rollout_id }) => rollout_id));
  const before = await leftovers(cluster);
  const reaped = await cliProcess(["reap", "--json"], { env: { TMPDIR: join(cluster.place, "tmp") } });
  const wrong = await Promise.all(rows.map((row) => wrongWith(cluster.place, row, taken)));
  return {
    submitted,
    lost: submitted - Object.keys(counted).length,
    doubled: Object.values(counted).reduce((sum, times) => sum + times - 1, 0) + Math.max(0, rows.length - submitted),
    outcomes: counts(rows.map(({ state, error, reward }) => `${state}${error ? `, ${error.code}` : ""}, reward ${reward}`)),
    attempts: counts(rows.map(({ attempt }) => String(attempt))),
    wrong: [
      ...wrong.flat(),
      ...open.map(({ id }) => `${id} is not over`),
      ...jsonOf<{ failed: string[] }>(reaped).failed,
      ...orderOf(rows, taken),
    ],
    left: await leftovers(cluster),
    leftBeforeReap: before.length,
  };
}

/** The trainer takes rows in the ledger's order. */
function orderOf(rows: ResultRow[], taken: Checkpoint["taken"]): string[] {
  const [theirs, own] = [taken, rows].map((list) => list.map(({ rollout_id, attempt }) => `${rollout_id}#${attempt}`));
  return isDeepStrictEqual(theirs, own) ? [] : ["the trainer's rows are not those of the ledger in their order"];
}

async function wrongWith(place: string, row: ResultRow, taken: Checkpoint["taken"]): Promise<string[]> {
  const say = (why: string): string => `${row.rollout_id}#${row.attempt}: ${why}`;
  if (row.payload === null) return row.state === "completed" ? [say("it is completed and has no trajectory")] : [];
  try {
    const trajectory = Trajectory.parse(readJson(await getPacked(new FolderBlobs(join(place, "shared")), row.payload)));
    const recorded = reconstruct(await logOf(place, row.session_id ?? ""));
    const given = taken.find(({ rollout_id }) => rollout_id === row.rollout_id)?.tokens;
    return [
      ...(isDeepStrictEqual(plain(trajectory), plain(recorded)) ? [] : [say("its trajectory is not what the log of its session says")]),
      ...(isDeepStrictEqual(given, [digest(trajectory)]) ? [] : [say("the trainer was given other tokens")]),
      ...(trajectory.attempt === row.attempt ? [] : [say(`its trajectory is of attempt ${trajectory.attempt}`)]),
    ];
  } catch (error) {
    return [say(String(error))];
  }
}

/** What a session's log says of it; what the rollout around it says (reward, place in the group) is not in there. */
function plain({ session_id, calls, nodes, traces, messages, tools }: Trajectory) {
  return { session_id, calls, nodes, traces, messages, tools };
}

function digest({ nodes }: Trajectory): string {
  return hash("sha256", JSON.stringify(nodes.map(({ token_ids }) => token_ids)));
}

/** The log of the node that made it. */
async function logOf(place: string, session: string) {
  for (const name of nodeNames) {
    const sessions = join(place, `runs-${name}`, "node", "sessions");
    if (await stat(join(sessions, `${session}.jsonl`)).catch(() => null)) return new DiskStore(sessions).read(session);
  }
  throw new Error(`no node has the log of ${session}`);
}

/** Containers, volumes, mounts, temporary files, and drafts of files that were not written to their end. */
async function leftovers(cluster: KillCluster): Promise<string[]> {
  const ledger = (await cluster.ledger()) ?? "none";
  const files = await readdir(join(cluster.place, "tmp"));
  const all = await readdir(cluster.place, { recursive: true });
  return [
    ...(await cluster.containers(true)).map((id) => `container ${id.slice(0, 12)}`),
    ...(await volumesOf(ledger)).map((name) => `volume ${name}`),
    ...files.map((name) => `temporary ${name}`),
    ...all.filter((path) => /\.(new|part|tmp|draft)$/.test(path) && !path.startsWith("tmp/")).map((path) => `draft ${path}`),
  ];
}

function counts(words: readonly string[]): Record<string, number> {
  return countBy(words.toSorted(), (word) => word);
}
