/** Checks a run that is told to end during its rollouts. It must go on from their last finished calls. */
import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { readTrajectories } from "../../../rollouts/index.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf, startCli } from "../../fakes/processes/cli.ts";
import { runFile, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("stopped");
const timeout = 300_000;

/** Returns commands by turn; the last turn says a word. Calls of the turn `held` wait until `hold` resolves. */
async function stoppedRun(name: string, { held, more = "" }: { held: number; more?: string }) {
  const hold = Promise.withResolvers<void>();
  let isHolding = true;
  const asked: number[] = [];
  const engine = await ScriptedEngine.start(({ messages, tools }) => {
    const turn = messages.filter(({ role }) => role === "assistant").length;
    if (tools?.length) asked.push(turn);
    const command = ["ls", "echo yes >> done.txt; date +%N"][turn];
    const before = isHolding && tools?.length && turn === held ? { before: hold.promise } : {};
    if (command === undefined) return { text: "done", ...before };
    return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }], ...before };
  });
  const folder = join(scratch, name);
  await writeTask(folder, "small");
  await writeFile(join(folder, "run.yaml"), runFile({ engine: engine.url, tasks: ["small"], more }));
  const out = join(folder, "runs");
  await using running = startCli(["run", "-c", join(folder, "run.yaml"), "-o", out, "--json"]);
  await running.until(() => asked.filter((turn) => turn === held).length === 2);
  const stopped = await running.kill("SIGTERM");
  assert.notEqual(stopped.code, 0);
  isHolding = false;
  hold.resolve();
  const path = join(out, (await readdir(out))[0] ?? "");
  return { engine, path, asked: asked.splice(0), after: asked };
}

test("rollouts that ran when their run was stopped go on from their last finished calls, which are sampled and trained once", {
  timeout,
}, async () => {
  const { engine, path, asked, after } = await stoppedRun("replay", { held: 2 });
  await using _engine = engine;
  assert.deepEqual(asked.toSorted(), [0, 0, 1, 1, 2, 2]);
  const before = await readTrajectories(path);
  assert.deepEqual(
    before.map(({ attempt, in_loss, mask_reason }) => [attempt, in_loss, mask_reason]),
    Array(2).fill([1, false, "cancelled"]),
    "a run that is not continued keeps what it had",
  );

  const resumed = await cli(["run", "--resume", path, "--json"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.deepEqual(after, [2, 2], "no call that had finished is asked again");
  const cutOff = engine.requests.filter(({ messages, tools }) => tools?.length && messages.at(-2)?.role === "assistant");
  const heard = cutOff.map(({ messages }) => JSON.stringify(messages)).filter((text) => text.includes("date +%N"));
  assert.deepEqual([heard.length, new Set(heard).size], [4, 2], "a call that was cut off is asked again on its recorded messages");
  const { rollouts } = jsonOf<{ rollouts: RolloutRecord[] }>(resumed);
  assert.deepEqual(
    rollouts.map(({ attempt, verdict, resume }) => [attempt, verdict?.reward, resume?.how, resume?.again_tokens]),
    Array(2).fill([2, 1, "replay", 0]),
  );
  assert.ok(rollouts.every(({ resume }) => (resume?.spared_tokens ?? 0) > 0));
  const trajectories = await readTrajectories(path);
  assert.equal(trajectories.length, 2, "none is doubled");
  for (const [at, { calls, fidelity, in_loss, attempt, session_id }] of trajectories.entries()) {
    assert.deepEqual([attempt, in_loss], [2, true]);
    assert.equal(fidelity.trainable_tokens, fidelity.sampled_tokens);
    assert.ok(before.some((one) => one.session_id === session_id));
    assert.deepEqual(
      calls.map(({ outcome }) => outcome),
      ["delivered", "delivered", "failed", "delivered"],
      `trajectory ${at}`,
    );
  }
  const again = await cli(["run", "--resume", path, "--json"]);
  assert.equal(again.code, 0, again.stderr);
  assert.deepEqual(await readTrajectories(path), trajectories, "there is nothing left to do");
});

test("with `resume: again` a rollout that was stopped begins anew, and what it had stays as it is", { timeout }, async () => {
  const { engine, path, after } = await stoppedRun("again", { held: 2, more: "resume: again\n" });
  await using _engine = engine;
  const resumed = await cli(["run", "--resume", path, "--json"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.deepEqual(after.toSorted(), [0, 0, 1, 1, 2, 2]);
  const { rollouts } = jsonOf<{ rollouts: RolloutRecord[] }>(resumed);
  assert.ok(rollouts.every(({ resume }) => resume?.how === "again" && resume.again_tokens > 0 && /resume: again/.test(resume.why ?? "")));
  const kept = (await readTrajectories(path)).map(({ attempt, in_loss }) => `${attempt} ${in_loss}`);
  assert.deepEqual(kept.toSorted(), ["1 false", "1 false", "2 true", "2 true"]);
});
