/**
 * A rollout that is slower than its group is parked, and one of the next group of its task goes on from it, at a real `alidade service`
 * that is killed with -9 in between.
 */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { LogEntry } from "../../base/schema/session-log.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { ServiceClient } from "../../service/index.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { until } from "../fakes/machine/until.ts";
import { type RunningCli, startCli } from "../fakes/processes/cli.ts";
import { runFile, writeTask } from "../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("parked");
/** Two starts of the command line, a cut, and eight rollouts, on a machine with other work. */
const timeout = 300_000;

const turnOf = ({ messages }: WireRequest): number => messages.filter(({ role }) => role === "assistant").length;

/** `leaving`: the service may die while it still ends the rollout; `waiting`: it dies behind that. */
for (const killedWhen of ["leaving", "waiting"] as const)
  test(`what a parked rollout had sampled is in the next group of its task, once, though the service is killed while it is ${killedWhen}`, {
    timeout,
  }, async (t) => {
    const forever = new Promise<never>(() => undefined);
    let isFirst = true;
    const asked: number[] = [];
    const reply = (request: WireRequest): ScriptedReply => {
      const turn = turnOf(request);
      if (request.probe || !request.tools?.length) return { text: "yes" };
      asked.push(turn);
      const command = [`echo "attempt $$" > seen.txt`, "echo yes > done.txt; date +%N"][turn];
      if (command !== undefined) return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };
      const isHeld = isFirst;
      isFirst = false;
      return { text: "done", ...(isHeld && { before: forever }) };
    };
    await using engine = await ScriptedEngine.start(reply);
    const place = join(scratch, killedWhen);
    await mkdir(place);
    await writeTask(place, "slow");
    await writeFile(join(place, "run.yaml"), runFile({ engine: engine.url, tasks: [join(place, "slow")] }));
    const start = async (): Promise<RunningCli> => {
      const running = startCli(["service", "-c", "run.yaml", "-p", "0", "--json", "--concurrency", "4"], { cwd: place });
      t.after(() => running[Symbol.asyncDispose]());
      await running.until(() => running.stdout.includes("\n"));
      return running;
    };
    let service = await start();
    const connect = () => ServiceClient.of(join(place, "runs", "service"));
    const straggler_cut = { share: 0.75, seconds: 1, rest: "park" } as const;
    const setOf = (client: ServiceClient) => client.set("s", { samples: 4, straggler_cut, max_version_lag: 1, groups_per_step: 1 });
    const name = (client: ServiceClient, step: number) => client.weights({ version: `v${step}`, step }, async () => undefined);

    let first: Awaited<ReturnType<typeof setOf>>;
    {
      await using client = connect();
      await name(client, 1);
      first = await setOf(client);
      await first.submit([{ group_key: "one", task: "slow" }]);
      const isDue = async () => {
        const { groups, parked } = await first.state();
        return killedWhen === "leaving" ? groups.whole === 1 : parked?.waiting === 1;
      };
      await until(isDue, { ms: 120_000, said: async () => `${JSON.stringify(await first.state())} ${service.stderr}` });
      assert.equal((await first.state()).rollouts.running, 0, "it holds no slot");
    }
    assert.deepEqual(asked.splice(0).toSorted(), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    await service.kill("SIGKILL");
    service = await start();

    await using client = connect();
    const set = await setOf(client);
    assert.equal((await set.state()).parked?.waiting, 1, "the service that died knew it");
    await name(client, 2);
    await set.submit([{ group_key: "two", task: "slow" }]);
    await set.drain();
    const groups = [];
    for await (const group of set.groups({ payload: "trajectory" })) groups.push(group);
    assert.deepEqual(asked.toSorted(), [0, 0, 0, 1, 1, 1, 2, 2, 2, 2], "no finished call of it is sampled again");
    const [one, two] = groups;
    assert.ok(one && two && groups.length === 2);
    assert.deepEqual(one.results.map(({ state }) => state).toSorted(), ["cancelled", "completed", "completed", "completed"]);
    const parked = one.results.find(({ state }) => state === "cancelled");
    assert.deepEqual([parked?.mask_reason, parked?.biases], ["parked", ["straggler_cut", "straggler_park"]]);

    assert.deepEqual(
      two.results.map(({ reward, state }) => [reward, state]),
      Array.from({ length: 4 }, () => [1, "completed"]),
    );
    const taken = two.results.filter(({ resume }) => resume !== null);
    const [taker] = taken;
    assert.equal(taken.length, 1);
    const { rollout_id, group_id, index } = parked ?? assert.fail();
    assert.deepEqual(taker?.resume?.parked_from, { rollout_id, group_id, sample_index: index, step: 1 });
    assert.deepEqual([taker?.resume?.how, taker?.resume?.again_tokens, taker?.attempt], ["replay", 0, 1]);
    assert.deepEqual([taker?.oldest_step, taker?.newest_step, taker?.lag, taker?.stale], [1, 2, 1, false]);
    assert.ok((taker?.resume?.spared_tokens ?? 0) > 0);

    const all = [one, two].flatMap((group) => trajectoriesOf(group));
    const went = all.find((trajectory) => trajectory.rollout_id === taker?.rollout_id) ?? assert.fail();
    assert.deepEqual(
      [went.group.id, went.group.sample_index, went.resumed.length, went.fidelity.trainable_tokens],
      [two.group_id, taker?.index, 1, went.fidelity.sampled_tokens],
    );
    const delivered = went.calls.filter(({ outcome }) => outcome === "delivered");
    assert.deepEqual(
      delivered.map(({ policy }) => policy.start?.step),
      [1, 1, 2],
      "each call is told by the policy that sampled it",
    );
    assert.deepEqual([new Set(all.map((one) => one.session_id)).size, new Set(all.map((one) => one.trajectory_id)).size], [7, 7]);
    const { opened, place: now } = await sessionOf(join(place, "runs", "service"), went.session_id);
    assert.deepEqual([opened, now], [rollout_id, taker?.rollout_id], "its log was begun by the parked one");
    assert.deepEqual((await set.state()).parked, { leaving: 0, waiting: 0, taken_up: 1, ended: {} });
    assert.equal((await service.kill("SIGTERM")).code, 0, service.stderr);
  });

function trajectoriesOf(group: object): Trajectory[] {
  assert.ok("trajectories" in group && Array.isArray(group.trajectories), Object.keys(group).join());
  return group.trajectories.filter((one) => one !== null) as Trajectory[];
}

async function sessionOf(service: string, id: string): Promise<{ opened: string | null; place: string | null }> {
  const files = await readdir(service, { recursive: true });
  const file = files.find((name) => name.endsWith(`${id}.jsonl`)) ?? assert.fail();
  const lines = (await readFile(join(service, file), "utf8")).trimEnd().split("\n");
  const told: { opened: string | null; place: string | null } = { opened: null, place: null };
  for (const line of lines) {
    const entry = LogEntry.parse(JSON.parse(line));
    if (entry.type === "opened") told.opened = entry.spec.rollout_id;
    if (entry.type === "resumed") told.place = entry.place?.rollout_id ?? null;
  }
  return told;
}
