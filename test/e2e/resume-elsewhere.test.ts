/** Kills a node with -9 during its rollouts. Another node, which shares no disk with it, goes on with them. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { postgresFor } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { clusterAt, reader, submit } from "../fakes/processes/cluster-at.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("elsewhere");
const cluster = postgresFor();
/** Enough for starts of the command line, and for a lease that must end. */
const timeout = 300_000;

type Line = {
  result: { reward: number; attempt: number; resume: { how: string; spared_tokens: number; again_tokens: number } | null };
  trajectories: { fidelity: { sampled_tokens: number; trainable_tokens: number }; calls: { outcome: string }[]; resumed: unknown[] }[];
};

/** One node has the place of trajectories as a folder, and the other asks the service for it. Each of the two dies once. */
for (const dying of ["node", "farNode"] as const)
  test(`what a killed node (${dying}) had finished is not sampled again by the node that takes its rollouts, and is trained once`, {
    timeout,
  }, async (t) => {
    if (!(await need(t, "postgres"))) return;
    const hold = Promise.withResolvers<void>();
    let isHolding = true;
    const asked: number[] = [];
    const reply = ({ messages, tools }: WireRequest): ScriptedReply => {
      const turn = messages.filter(({ role }) => role === "assistant").length;
      if (tools?.length) asked.push(turn);
      const command = ["ls", "echo yes > done.txt; date +%N"][turn];
      if (command !== undefined) return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };
      return { text: "done", ...(isHolding && tools?.length && { before: hold.promise }) };
    };
    const at = await clusterAt(t, join(scratch, dying.toLowerCase()), await cluster(), reply);
    const first = await at[dying]("one");
    const set = await submit(at, 1);
    const copies = join(at.place, "shared", set);
    const copied = async () => {
      const rollouts = await readdir(copies).catch((): string[] => []);
      return rollouts.filter((name) => existsSync(join(copies, name, "logs/1-2.json.zst"))).length;
    };
    await first.until(async () => asked.length === 6 && (await copied()) === 2);
    await first.kill("SIGKILL");
    isHolding = false;
    hold.resolve();
    assert.deepEqual(asked.splice(0).toSorted(), [0, 0, 1, 1, 2, 2]);

    const second = await at[dying === "node" ? "farNode" : "node"]("two");
    const { lines, read } = reader(at, set);
    await second.until(async () => (await read()) >= 2);
    assert.deepEqual(asked, [2, 2], "no finished call is sampled again");
    const made = lines as unknown as Line[];
    assert.equal(new Set(lines.map(({ result }) => result.rollout_id)).size, 2);
    assert.equal(made.length, 2);
    for (const { result, trajectories } of made) {
      assert.deepEqual([result.reward, result.attempt, result.resume?.how, result.resume?.again_tokens], [1, 2, "replay", 0]);
      const [trajectory] = trajectories;
      assert.ok(trajectory && (result.resume?.spared_tokens ?? 0) > 0);
      assert.equal(trajectory.fidelity.trainable_tokens, trajectory.fidelity.sampled_tokens);
      assert.equal(trajectory.calls.filter(({ outcome }) => outcome === "delivered").length, 3);
      assert.equal(trajectory.resumed.length, 1);
    }
    await second.until(async () => (await copied()) === 0);
    assert.equal((await second.kill("SIGTERM")).code, 0, second.stderr);
  });
