/** A task whose image cannot be had, in a run with another one: it costs no rollout, and a resumed run tries again. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("lacking-image");
const engineOf = promisify(execFile);
const image = `alidade/test-lacking:${process.pid}`;

type Said = { run: string; rollouts: { task_id: string; attempt: number; verdict: { reward: number } | null }[]; left_out: string[] };

test("the task is left out by its name without a rollout, the run ends with 1, and a resumed run has all of it", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "harness:pi"))) return;
  await using engine = await ScriptedEngine.start(() => ({ text: "done" }));
  const grader = { kind: "answer", exact: "done" };
  const task = (task_id: string, environment: object) => ({ task_id, instruction: "Say done.", environment, grader });
  const file = join(scratch, "tasks.jsonl");
  await writeFile(file, [task("here", {}), task("lacking", { image })].map((one) => `${JSON.stringify(one)}\n`).join(""));
  const out = ["--harness", "pi", "--engine", engine.url, "-n", "2", "--json"];
  const first = await cli(["run", file, ...out, "-o", join(scratch, "runs")]);
  const { run, rollouts, left_out } = jsonOf<Said>(first);
  assert.deepEqual(
    rollouts.map(({ task_id, verdict }) => [task_id, verdict?.reward]),
    [
      ["here", 1],
      ["here", 1],
    ],
    first.stderr,
  );
  assert.deepEqual([first.code, left_out.length], [1, 1]);
  assert.ok(left_out[0]?.startsWith("task lacking: ") && left_out[0].includes(image), left_out[0]);

  await engineOf("docker", ["tag", await ensureBaseImage({ signal: t.signal }), image]);
  t.after(() => engineOf("docker", ["rmi", image]));
  const again = await cli(["run", "--resume", run, "--json"]);
  const second = jsonOf<Said>(again);
  assert.deepEqual(
    second.rollouts.map(({ task_id, attempt, verdict }) => [task_id, attempt, verdict?.reward]),
    [
      ["here", 1, 1],
      ["here", 1, 1],
      ["lacking", 1, 1],
      ["lacking", 1, 1],
    ],
    again.stderr,
  );
  assert.deepEqual([again.code, second.left_out], [0, []]);
});
