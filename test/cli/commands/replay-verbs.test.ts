/** `alidade replay`, `fork` and `value` from a run's folder: what they print, and what they refuse before a sandbox is made. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { chartLine, solveRates } from "../../../cli/commands/replay/solve-rates.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { runFile, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("replay-verbs");

type Made = { run: string; rollouts: RolloutRecord[] };

/** A run of one rollout: it looks, it writes and it says so. Later ones write where the policy does. */
async function afterOne(t: TestContext) {
  const policy = { writes: () => true };
  await mkdir(scratch, { recursive: true });
  const folder = await mkdtemp(join(scratch, "run-"));
  const reply = ({ messages, tools }: WireRequest): ScriptedReply => {
    if (!tools?.length) return { text: "x" };
    const turns = messages.filter(({ role }) => role === "assistant").length;
    const command = turns === 1 ? (policy.writes() ? "echo yes > done.txt" : "true") : ["ls"][turns];
    return command === undefined ? { text: "done" } : { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };
  };
  const engine = await ScriptedEngine.start(reply);
  t.after(() => engine[Symbol.asyncDispose]());
  await writeTask(folder, "small");
  await writeFile(join(folder, "run.yaml"), runFile({ engine: engine.url, tasks: [join(folder, "small")] }));
  const ran = await cli(["run", "-c", join(folder, "run.yaml"), "-n", "1", "-o", join(folder, "runs"), "--json"]);
  assert.equal(ran.code, 0, ran.stderr);
  const { run, rollouts } = jsonOf<Made>(ran);
  const forks = join(folder, "forks");
  return { folder, run, policy, rollout: rollouts[0] as RolloutRecord, forks, flags: ["--run", run, "--out", forks] };
}

test("value tells how often forks at each turn solve the task, with intervals, as a chart and as JSON", async (t) => {
  const at = await afterOne(t);
  let asked = 0;
  at.policy.writes = () => asked++ % 2 === 0;
  const result = await cli(["value", ...at.flags, "--rendered", "-n", "2", "--concurrency", "1", "--json"]);
  assert.equal(result.code, 0, result.stderr);
  const { turns, reward, rollout_id } = jsonOf<{
    turns: { turn: number; forks: number; solved: number }[];
    reward: number;
    rollout_id: string;
  }>(result);
  assert.deepEqual([reward, rollout_id], [1, at.rollout.rollout_id]);
  assert.deepEqual(
    turns.map(({ turn, forks }) => [turn, forks]),
    [
      [0, 2],
      [1, 2],
      [2, 2],
    ],
  );
  // Behind turn 2 the file is there, whatever is sampled then.
  assert.equal(turns[2]?.solved, 2);
  assert.equal(turns[1]?.solved, 1);
  const told = await cli(["value", ...at.flags, "--rendered", "--at", "2", "-n", "1"]);
  assert.match(told.stdout, /behind turn +forks +measured +solved +rate +95 % +0 to 1\n.*\n?.*2 +1 +1 +1 +1 .*●/);
});

test("a rate has Wilson's interval, and a fork that was not measured is in no rate", () => {
  const ends = [1, 1, 0, null].map((reward) => ({ turn: 3, reward }));
  const [one] = solveRates(ends, 1);
  assert.deepEqual([one?.forks, one?.measured, one?.solved, one?.rate?.toFixed(3)], [4, 3, 2, "0.667"]);
  assert.deepEqual([one?.interval?.low.toFixed(3), one?.interval?.high.toFixed(3)], ["0.208", "0.939"]);
  const [none] = solveRates([{ turn: 0, reward: null }], 1);
  assert.deepEqual([none?.rate, none?.interval], [null, null]);
  assert.equal(chartLine({ rate: 0.5, interval: { low: 0.25, high: 0.75 } }), "·····─────●─────·····");
  assert.equal(chartLine({ rate: null, interval: null }), "·".repeat(21));
});

test("what cannot be replayed or forked is one sentence, and no run's folder is made", async (t) => {
  const at = await afterOne(t);
  const refused = async (args: string[], why: RegExp): Promise<void> => {
    const { code, stderr } = await cli([...args, ...at.flags]);
    assert.notEqual(code, 0);
    assert.match(stderr, why);
    const said = stderr.split("\n").filter((line) => line.startsWith("alidade: "));
    assert.equal(said.length, 1, stderr);
    assert.deepEqual(await readdir(at.forks).catch(() => []), [], "nothing was made");
  };
  await refused(["replay", "not-there"], /not-there/);
  await refused(["replay", "--until", "7"], /there is no turn 7: its turns are 1, 2, 3/);
  await refused(["fork", "--at", "7", "--rendered"], /there is no turn 7: its turns are 1, 2, 3/);
  await refused(["fork", "--at", "3", "--rendered"], /turn 3 is the last one: nothing was asked behind it/);
  await refused(["fork", "--at", "0", "--edit", "no"], /--edit replaces the answer of a turn/);
  await refused(
    ["fork", "--at", "1", "--edit", '{"tool_calls": [{"name": "fly", "arguments": {}}]}'],
    /the harness has no tool "fly": it has bash/,
  );
  await refused(["fork", "--at", "1", "--edit", '{"tool_calls": [{"name": "bash"}]}'], /--edit: .*tool_calls.*arguments/);
  await refused(["value", "--at", "9", "--rendered"], /there is no turn 9/);
  const log = join(at.run, "sessions", `${at.rollout.session_id}.jsonl`);
  const whole = await readFile(log, "utf8");
  await writeFile(log, whole.replace('"call_begun"', '"call_'));
  await refused(["replay"], /the log of session .* is damaged, so it cannot be replayed/);
  await rm(log);
  await refused(["replay"], /the log of session .* is not there any more: it cannot be replayed/);
  await writeFile(log, whole);
  const rollouts = join(at.run, "rollouts.jsonl");
  const records = await readFile(rollouts, "utf8");
  await writeFile(rollouts, records.replaceAll('"harness_version":null', '"harness_version":"0.1"'));
  await refused(["replay"], /was made by command 0\.1, and this is command: a replay needs the same harness/);
  await writeFile(rollouts, records);
  await writeTask(at.folder, "small", "labels: { changed: yes }\n");
  await refused(["replay"], /task small is another one than when rollout/);
});
