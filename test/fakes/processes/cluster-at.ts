/** A cluster for a test file: a Postgres, an engine and a service over both, with nodes that are started as it wants. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { TestContext } from "node:test";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../engines/scripted-engine.ts";
import { runFile, solve, writeTask } from "../rollouts/small-task.ts";
import { type RunningCli, startCli } from "./cli.ts";

export type ClusterLine = {
  cursor: string;
  result: { rollout_id: string; state: string; reward: number; attempt: number; policies: unknown[]; resume: { how: string } | null };
  trajectories: unknown[];
};

export type Cluster = Awaited<ReturnType<typeof clusterAt>>;

/** `env`: what service and nodes are given to reach it. */
export type LedgerPlace = { url(schema: string): string; env?: Record<string, string> };

/**
 * In a folder `place` that is made; `callsAtOnce`: of the engine, over all nodes. `node` starts one in a folder of its own, below it;
 * `farNode` one that sends its trajectories to the service.
 */
export async function clusterAt<P extends LedgerPlace>(
  t: TestContext,
  place: string,
  postgres: P,
  reply: (request: WireRequest) => ScriptedReply = solve,
  callsAtOnce?: number,
) {
  await mkdir(place);
  await writeTask(place, "fix-slug");
  const engine = await ScriptedEngine.start(reply);
  t.after(() => engine[Symbol.asyncDispose]());
  await writeFile(join(place, "run.yaml"), runFile({ engine: engine.url, tasks: [join(place, "fix-slug")], callsAtOnce }));
  const start = async (args: string[], env?: Record<string, string>): Promise<RunningCli> => {
    const running = startCli([...args, "-c", "run.yaml", "--json"], { cwd: place, env: { ...postgres.env, ...env } });
    t.after(() => running[Symbol.asyncDispose]());
    await running.until(() => running.stdout.includes("\n"));
    return running;
  };
  const ledger = postgres.url(basename(place));
  const service = await start(["service", "-p", "0", "--ledger", ledger, "--trajectories", "shared"]);
  const { url, token } = JSON.parse(await readFile(join(place, "runs/service/service.json"), "utf8")) as { url: string; token: string };
  const joined = (folder: string, trajectories: string, env?: Record<string, string>) =>
    start(["node", "--join", ledger, "--trajectories", trajectories, "-o", folder, "--concurrency", "2"], env);
  const node = (folder: string) => joined(folder, "shared");
  const farNode = (folder: string) => joined(folder, url, { ALIDADE_SERVICE_TOKEN: token });
  const ask = async (method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: text }),
    });
    return { status: response.status, text: await response.text() };
  };
  return { place, engine, postgres, ledger, service, node, farNode, ask };
}

/** A set with so many groups of two. */
export async function submit({ ask }: Pick<Cluster, "ask">, groups: number): Promise<string> {
  const { set_id } = JSON.parse((await ask("PUT", "/sets/s", { samples: 2 })).text) as { set_id: string };
  const lines = Array.from({ length: groups }, (_, at) => JSON.stringify({ group_key: `g${at}`, task: "fix-slug" }));
  assert.equal((await ask("POST", `/sets/${set_id}/groups`, lines.join("\n"))).status, 200);
  return set_id;
}

/** The results of a set of so many rollouts whose nodes were drained: some are completed, the others wait, and none is lost. */
export async function drainedResults({ ask }: Pick<Cluster, "ask">, set: string, asked: number): Promise<ClusterLine[]> {
  const { rollouts } = JSON.parse((await ask("GET", `/sets/${set}`)).text) as { rollouts: Record<string, number> };
  const { text } = await ask("GET", `/sets/${set}/results?payload=trajectory`);
  const lines = text.split("\n").flatMap((line) => (line ? [JSON.parse(line) as ClusterLine] : []));
  assert.ok(lines.length > 0 && lines.length < asked, `${lines.length} of ${asked}`);
  const { completed, queued, running, failed } = rollouts;
  assert.deepEqual(
    { completed, queued, running, failed },
    { completed: lines.length, queued: asked - lines.length, running: 0, failed: 0 },
  );
  for (const { result, trajectories } of lines) assert.deepEqual([result.reward, trajectories.length], [1, 1]);
  return lines;
}

/** What a trainer does: a page behind its cursor, again where the service has no ledger for the moment. */
export function reader({ ask }: Cluster, set: string) {
  const lines: ClusterLine[] = [];
  const read = async (): Promise<number> => {
    const after = lines.at(-1)?.cursor;
    const { status, text } = await ask("GET", `/sets/${set}/results?payload=trajectory&limit=3${after ? `&after=${after}` : ""}`);
    if (status === 200) lines.push(...text.split("\n").flatMap((line) => (line ? [JSON.parse(line) as ClusterLine] : [])));
    return lines.length;
  };
  return { lines, read };
}
