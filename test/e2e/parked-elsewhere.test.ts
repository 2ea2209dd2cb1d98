/** A rollout is parked by one node, and another one, which shares no disk with it, goes on with it in the next group of its task. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { SetState } from "../../service/ledger/index.ts";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { postgresFor } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { type ClusterLine, clusterAt, reader } from "../fakes/processes/cluster-at.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("parked-elsewhere");
const cluster = postgresFor();
/** Starts of the command line, a cut, and four rollouts, on a machine with other work. */
const timeout = 300_000;

type Line = ClusterLine & {
  result: { group_key: string; resume: { spared_tokens: number; parked_from?: { rollout_id: string } } | null };
  trajectories: { fidelity: { sampled_tokens: number; trainable_tokens: number } }[];
};

test("what one node parked goes on at another, which has its log from the place of trajectories, and is sampled and trained once", {
  timeout,
}, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const forever = new Promise<never>(() => undefined);
  let isFirst = true;
  const asked: number[] = [];
  const reply = ({ messages, tools }: WireRequest): ScriptedReply => {
    const turn = messages.filter(({ role }) => role === "assistant").length;
    if (!tools?.length) return { text: "yes" };
    asked.push(turn);
    const command = ["ls", "echo yes > done.txt; date +%N"][turn];
    if (command !== undefined) return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };
    const isHeld = isFirst;
    isFirst = false;
    return { text: "done", ...(isHeld && { before: forever }) };
  };
  const at = await clusterAt(t, join(scratch, "apart"), await cluster(), reply);
  const first = await at.node("one");
  const straggler_cut = { share: 0.5, seconds: 1, rest: "park" };
  const { set_id: set } = JSON.parse((await at.ask("PUT", "/sets/s", { samples: 2, straggler_cut })).text) as SetState;
  const submit = (group_key: string) => at.ask("POST", `/sets/${set}/groups`, JSON.stringify({ group_key, task: "fix-slug" }));
  const parked = async () => (JSON.parse((await at.ask("GET", `/sets/${set}`)).text) as SetState).parked;
  await submit("g0");
  await first.until(async () => (await parked())?.waiting === 1);
  await first.kill("SIGKILL");
  assert.deepEqual(asked.splice(0).toSorted(), [0, 0, 1, 1, 2, 2]);

  const second = await at.farNode("two");
  await submit("g1");
  const { lines, read } = reader(at, set);
  await second.until(async () => (await read()) >= 4);
  assert.deepEqual(asked.toSorted(), [0, 1, 2, 2], "no finished call is sampled again");
  const all = lines as unknown as Line[];
  const cut = all.find(({ result }) => result.state === "cancelled");
  const later = all.filter(({ result }) => result.group_key === "g1");
  assert.deepEqual(
    later.map(({ result }) => [result.state, result.reward, result.attempt]),
    [
      ["completed", 1, 1],
      ["completed", 1, 1],
    ],
  );
  const [taker, ...none] = later.filter(({ result }) => result.resume !== null);
  assert.equal(none.length, 0);
  assert.equal(taker?.result.resume?.how, "replay");
  assert.equal(taker.result.resume.parked_from?.rollout_id, cut?.result.rollout_id);
  const [trajectory] = taker.trajectories;
  assert.ok(taker.result.resume.spared_tokens > 0);
  assert.equal(trajectory?.fidelity.trainable_tokens, trajectory?.fidelity.sampled_tokens);
  assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 1, ended: {} });
  assert.equal((await second.kill("SIGTERM")).code, 0, second.stderr);
});
