/** Questions in the columns of GSM8K and MATH, asked by the real Pi: what its last turn says is compared. */
import assert from "node:assert/strict";
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { readRollouts } from "../../rollouts/index.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("questions-harness");
const rows = "examples/questions/two-forms.jsonl";

async function rewardsWith(engine: string, name: string): Promise<[string, number | null | undefined, string | undefined][]> {
  const out = join(scratch, name);
  const { code, stderr } = await cli(["run", rows, "--harness", "pi", "--engine", engine, "-n", "1", "-o", out]);
  assert.equal(code, 0, stderr);
  const [file] = await Array.fromAsync(glob(join(out, "*/rollouts.jsonl")));
  const last = new Map((await readRollouts(join(file ?? assert.fail(stderr), ".."))).map((one) => [one.task_id, one]));
  return [...last.values()].map(({ task_id, verdict }) => [task_id, verdict?.reward, verdict?.status] as const).sort() as never;
}

test("a right answer in the form that is asked for earns 1, the same in the other form and random words earn 0", {
  timeout: 600_000,
}, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "harness:pi"))) return;
  await using right = await ScriptedEngine.start(({ messages }) => {
    const isHashed = JSON.stringify(messages).includes("#### ANSWER");
    return { text: isHashed ? "14 + 14 + 14 is 42.\n#### 42.0" : "Three of six:\n$$\\boxed{\\dfrac12}$$" };
  });
  assert.deepEqual(await rewardsWith(right.url, "right"), [
    ["two-forms-1", 1, "graded"],
    ["two-forms-2", 1, "graded"],
  ]);
  await using other = await ScriptedEngine.start(() => ({ text: "The answer is 42.\n#### $\\boxed{\\frac{1}{2}}$ and 42" }));
  assert.deepEqual(await rewardsWith(other.url, "other"), [
    ["two-forms-1", 0, "graded"],
    ["two-forms-2", 1, "graded"],
  ]);
  assert.deepEqual(await rewardsWith("practice", "random"), [
    ["two-forms-1", 0, "graded"],
    ["two-forms-2", 0, "graded"],
  ]);
});
