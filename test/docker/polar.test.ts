/** Requests of Polar's with its own evaluators, as tasks, graded in Docker: the agent works in a copy of the repository. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import { checkTask } from "../../graders/check.ts";
import { docker } from "../../sandboxes/docker.ts";
import { nativeTask, PolarRequest } from "../../service/polar/polar-request.ts";
import { inlineTask } from "../../tasks/inline-task.ts";
import { need } from "../needs.ts";
import { publishedRow } from "./published-row.ts";

const workspace = "/polar/session/workspace";
const patch = { repo_dir: "/testbed", patch_command: `cd ${workspace} && git add -A && git diff --cached --binary` };

/** Rewards of the known solution and of no change. */
async function rewards(t: TestContext, image: string, gold_patch: string, evaluator: object): Promise<(number | null)[]> {
  const request = PolarRequest.parse({
    task_id: "polar-1",
    instruction: "Mend add.",
    runtime: {
      backend: "apptainer",
      image: `docker-daemon:${image}`,
      network: "host",
      workdir: workspace,
      prepare: [{ type: "exec", command: `mkdir -p ${workspace} && cp -a /testbed/. ${workspace}/`, max_attempts: 2 }],
      eval_prepare: [{ type: "exec", command: "echo graded > /tmp/prepared" }],
      memory_mb: 1_024,
      storage_mb: 512,
    },
    agent: { harness: "pi" },
    evaluator,
  });
  const task = { ...(await inlineTask(nativeTask(request))), gold_patch };
  await docker.prepare([task.environment], { signal: t.signal });
  const { runs } = await checkTask(task, docker, { run_id: "run-test-polar", owner: await currentOwner(), signal: t.signal, times: 1 });
  t.diagnostic(JSON.stringify(runs.map(({ verdict }) => verdict.evidence)).slice(0, 4_000));
  return runs.map(({ verdict }) => verdict.reward);
}

test("swebench_harness pays the solution of the row, taken out of the agent's folder into the repository", async (t) => {
  if (!(await need(t, "docker"))) return;
  const row = await publishedRow();
  const config = { ...patch, instance: row, exclude_patterns: [".codex/**"] };
  assert.deepEqual(await rewards(t, row.image, row.patch, { strategy: "swebench_harness", config }), [1, 0]);
});

test("test_on_output pays what its expected outcomes say, in the repository that the patch was applied to", async (t) => {
  if (!(await need(t, "docker"))) return;
  const { image, patch: gold } = await publishedRow();
  const test_command =
    "cat /tmp/prepared && pwd && python3 -c 'import add; assert add.add(1, 1) == 2' && echo PASSED sum || echo FAILED sum";
  const config = { ...patch, test_command, expected_output_json: { sum: "PASSED" } };
  assert.deepEqual(await rewards(t, image, gold, { strategy: "test_on_output", config }), [1, 0]);
});
