/** A service over Postgres and nodes in processes of their own: what is killed with -9 in the middle loses and doubles nothing. */
import assert from "node:assert/strict";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { postgresFor } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { clusterAt, reader, submit } from "../fakes/processes/cluster-at.ts";
import { solve } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("nodes-e2e");
const cluster = postgresFor();
/** Starts of the command line and a dozen rollouts, on a machine with other work. */
const timeout = 300_000;

const clusterOf = async (t: TestContext, name: string, reply?: (request: WireRequest) => ScriptedReply, callsAtOnce?: number) =>
  clusterAt(t, join(scratch, name), await cluster(), reply, callsAtOnce);

test("a node and Postgres are killed with -9 in the middle, and each rollout has one result with its trajectory", {
  timeout,
}, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const at = await clusterOf(t, "killed");
  const set = await submit(at, 6);
  const { lines, read } = reader(at, set);
  // The second one shares no disk with the service.
  let [first, second] = await Promise.all([at.node("one"), at.farNode("two")]);
  await at.service.until(() => at.engine.requests.length >= 3);
  await first.kill("SIGKILL");
  const works = join(at.place, "one/node/blobs");
  await mkdir(join(works, ".draft-of-the-dead"), { recursive: true });
  // Under the name of the dead one: what that had is queued again at once.
  first = await at.node("one");
  await at.service.until(async () => (await read()) >= 3);
  await at.postgres.kill();
  await at.postgres.startServer();
  await at.service.until(async () => (await read()) >= 6);
  await second.kill("SIGKILL");
  second = await at.farNode("two");
  await at.service.until(async () => (await read()) >= 12);
  assert.equal(await read(), 12);
  assert.equal(new Set(lines.map(({ result }) => result.rollout_id)).size, 12, "none is doubled");
  assert.ok(lines.every(({ result, trajectories }) => result.state === "completed" && result.reward === 1 && trajectories.length === 1));
  assert.ok(
    lines.some(({ result }) => result.attempt > 1),
    "what ran on a killed node ran again",
  );
  assert.ok(
    (await readdir(works)).every((name) => name.endsWith(".tar.gz")),
    "no draft of a work is left",
  );
  const status = await cli(["status", "-o", join(at.place, "runs"), "--json"]);
  const { health, sets } = jsonOf<{ health: { nodes: { name: string }[] }; sets: { rollouts: { completed: number } }[] }>(status);
  assert.deepEqual([sets[0]?.rollouts.completed, health.nodes.length], [12, 2]);
  const spoken = await cli(["status", "-o", join(at.place, "runs")]);
  assert.match(spoken.stdout, /\bs +0 +0 +0 +12 +0 +0 +6 +6\b/);
  for (const one of [first, second, at.service]) assert.equal((await one.kill("SIGTERM")).code, 0, one.stderr);
});

test("a node without the service's folder is refused, and one that is told to end ends what it has begun", {
  timeout,
}, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const gate = Promise.withResolvers<void>();
  const at = await clusterOf(t, "drained", (request) => ({ ...solve(request), ...(request.tools && { before: gate.promise }) }));
  for (const [folder, reason] of [
    [join(at.place, "elsewhere"), /elsewhere: it is not the place of a service/],
    ["gs://bucket", /gs:\/\/bucket: give a folder .* s3:\/\/bucket\/prefix, or/],
  ] as const) {
    const args = ["--trajectories", folder, "--wait-seconds", "0", "-c", join(at.place, "run.yaml"), "-o", join(at.place, "refused")];
    const { code, stderr } = await cli(["node", "--join", at.ledger, ...args]);
    assert.deepEqual([code, reason.test(stderr)], [2, true], stderr);
  }
  const set = await submit(at, 9);
  const node = await at.node("one");
  await at.service.until(() => at.engine.requests.length >= 1);
  const ended = node.kill("SIGTERM");
  await node.until(() => node.stderr.includes("stopping"));
  gate.resolve();
  assert.equal((await ended).code, 0);
  const { lines, read } = reader(at, set);
  const { rollouts } = JSON.parse((await at.ask("GET", `/sets/${set}`)).text) as { rollouts: Record<string, number> };
  await at.service.until(async () => (await read()) === rollouts.completed);
  assert.ok(lines.length >= 1 && lines.length < 18, `${lines.length} of 18: it ended what it had, and claimed no more`);
  assert.ok(lines.every(({ result }) => result.attempt === 1 && result.state === "completed"));
  assert.deepEqual([rollouts.running, rollouts.failed], [0, 0]);
});

test("a fence holds both nodes, also one that is killed and begins again behind it, and rows have the names of their weights", {
  timeout,
}, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const gate = Promise.withResolvers<void>();
  const at = await clusterOf(t, "fenced", (request) => ({ ...solve(request), ...(request.tools && { before: gate.promise }) }));
  const told = async (method: string, path: string, body: unknown) => {
    const { status, text } = await at.ask(method, path, body);
    assert.equal(status, 200, text);
    return JSON.parse(text);
  };
  const one = { version: "one", step: 1 };
  const two = { version: "two", step: 2 };
  await told("PUT", "/control/policy", one);
  const [first, second] = await Promise.all([at.node("one"), at.node("two")]);
  await at.service.until(async () => (await told("GET", "/nodes", undefined)).nodes.length === 2);
  // A node claims ahead of what it runs; two are left for the other one.
  const groups = (JSON.parse(first.stdout) as { slots: number }).slots / 2 + 1;
  const set = await submit(at, Math.ceil(groups));
  const asked = () => at.engine.requests.filter(({ tools }) => tools).length;
  await at.service.until(() => asked() === 4);
  const pausing = told("POST", "/control/pause", { fence: "trainer", timeout_seconds: 120 });
  const count = async (sql: string) => Number((await at.postgres.ask("fenced", sql))[0]?.count);
  const control = "(SELECT value::json FROM facts WHERE name = 'control')";
  const isShut = `json_array_length(${control}->'fences') = 1 AND report::json->>'order' = ${control}->>'order'`;
  await at.service.until(async () => (await count(`SELECT count(*) FROM nodes WHERE ${isShut}`)) === 2);
  gate.resolve();
  const paused = await pausing;
  assert.deepEqual([paused.drained, paused.nodes.length], [true, 2]);
  const before = asked();
  await first.kill("SIGKILL");
  const again = await at.node("one");
  await at.service.until(async () => (await count("SELECT count(*) FROM rollouts WHERE state = 'running' AND attempt = 2")) > 0);
  assert.deepEqual((await told("POST", "/control/pause", { fence: "trainer", timeout_seconds: 120 })).nodes, paused.nodes);
  await told("PUT", "/control/policy", { ...two, fence: "trainer" });
  assert.equal(asked(), before, "nothing is sampled behind the fence");
  const resumed = await told("POST", "/control/resume", { fence: "trainer" });
  assert.deepEqual(Object.keys(resumed.prefix_cache), paused.nodes);
  const { lines, read } = reader(at, set);
  await at.service.until(async () => (await read()) >= 2 * Math.ceil(groups));
  const sampledWith = (policies: unknown) => lines.filter(({ result }) => isDeepStrictEqual(result.policies, policies));
  const [spanning, after] = [sampledWith([one, two]), sampledWith([two])];
  // Those of the killed node go on from the call that they had finished under the first weights.
  assert.deepEqual([spanning.length, after.length], [4, lines.length - 4]);
  assert.deepEqual(spanning.map(({ result: { attempt, resume } }) => [attempt, resume?.how ?? null]).toSorted(), [
    [1, null],
    [1, null],
    [2, "replay"],
    [2, "replay"],
  ]);
  for (const node of [again, second, at.service]) assert.equal((await node.kill("SIGTERM")).code, 0, node.stderr);
});

test("an engine is never given more calls at once than it takes over both nodes, and a node that goes gives its places back", {
  timeout,
}, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const gate = Promise.withResolvers<void>();
  let [now, most] = [0, 0];
  const reply = (request: WireRequest): ScriptedReply => {
    if (!request.tools) return solve(request);
    now += 1;
    most = Math.max(most, now);
    return { ...solve(request), before: gate.promise.then(() => setImmediate()).finally(() => void now--) };
  };
  const at = await clusterOf(t, "places", reply, 2);
  const granted = async (): Promise<Record<string, number>> => {
    const { text } = await at.ask("GET", "/metrics");
    const lines = text.matchAll(/^alidade_engine_places_granted\{engine="vllm",node="([^"]+)"\} (\d+)$/gm);
    return Object.fromEntries([...lines].map((line) => [line[1], Number(line[2])]));
  };
  const nodes = await Promise.all(["one", "two"].map((folder) => at.node(folder)));
  await at.service.until(async () => Object.values(await granted()).join() === "1,1");
  const set = await submit(at, 4);
  await at.service.until(() => now === 2);
  await at.service.until(async () => /_waiting\{engine="vllm",node="[^"]+"\} [1-9]/.test((await at.ask("GET", "/metrics")).text));
  assert.deepEqual([now, most], [2, 2]);
  gate.resolve();
  const { lines, read } = reader(at, set);
  await at.service.until(async () => (await read()) >= 8);
  assert.deepEqual([most, lines.length, lines.filter(({ result }) => result.reward === 1).length], [2, 8, 8]);
  await nodes[1]?.kill("SIGTERM");
  await at.service.until(async () => Object.values(await granted()).join() === "2");
  assert.equal((await nodes[0]?.kill("SIGTERM"))?.code, 0);
});
