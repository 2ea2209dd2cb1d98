/** From an agent's container to a verdict, where only a container shows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryLayers } from "../../base/files/layer.ts";
import { currentOwner } from "../../base/host/owner.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import { Task } from "../../base/schema/task.ts";
import { deliveredFiles, deliveredSandbox, freshSandbox, grade } from "../../graders/grade.ts";
import { takeWork } from "../../graders/work/work.ts";
import { docker } from "../../sandboxes/docker.ts";
import { folderOf } from "../fakes/kept-work.ts";
import { missing, need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const owner = { run_id: "grade", owner: await currentOwner() };

/** A task whose work is in the image: the base image has two files there. */
const inImage = (script: string, files: string | null = null) =>
  Task.parse({
    task_id: "in-image",
    instruction: "i",
    environment: { workdir: "/usr/share/base-passwd", files },
    limits: { memory_mb: 256, disk_mb: 64 },
    grader: { kind: "script", command: ["sh", "-c", script] },
  });

/** The verdict on what `command` leaves behind. */
async function gradeAfter(command: string, task: Task): Promise<Verdict> {
  await using kept = await temporaryLayers();
  const work = await (async () => {
    await using sandbox = await deliveredSandbox(task, docker, owner, signal);
    await sandbox.exec(["sh", "-c", command]);
    await sandbox.freeze();
    return await takeWork(sandbox, task, await deliveredFiles(task), kept.folder);
  })();
  const context = { task, signal };
  return await grade({ ...context, work, fresh: freshSandbox(context, docker, owner) });
}

test("a file of the image that the agent deleted is not there when its work is graded", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const task = inImage(`ls >&2; test -e passwd.master; echo "{\\"reward\\":$?}"`);
  const verdict = await gradeAfter("rm passwd.master", task);
  assert.deepEqual([verdict.reward, verdict.error], [1, null], JSON.stringify(verdict));
  assert.match(String(verdict.evidence.output_tail), /group\.master/);
});

test("a work that fills its disk is graded like any other", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  // The grader's own files come on top.
  const task = inImage(`stat -c %s full >&2; echo '{"reward":0}'`);
  const files = "examples/demo/tasks/parse-duration";
  const graded = { ...task, grader: { ...task.grader, files } as Task["grader"] };
  const verdict = await gradeAfter("head -c 60M /dev/zero > full", graded);
  assert.deepEqual([verdict.reward, verdict.status, verdict.error], [0, "graded", null], JSON.stringify(verdict));
});

test("a work that fills the grader's disk, so that its script comes to no end, has the reward 0", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const files = await folderOf([{ path: "full", content: Buffer.alloc(0), mode: 0o644 }]);
  const task = inImage(`set -e; for n in 1 2 3; do cat full >copy$n; done; echo '{"reward":1}'`, files);
  const verdict = await gradeAfter("head -c 45M /dev/zero > full", task);
  // Where the layer has no limit of its own, the script ends with its sandbox.
  const code = (await missing("engine-here")) === null ? "grader_error" : "sandbox_disk_full";
  assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [0, "no_output", code], JSON.stringify(verdict));
});

test("a hole or a second name that is more than the disk is too large, and not the grader's to write", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "engine-here"))) return; // a watchdog ends it before
  for (const command of ["truncate -s 200M hole", "head -c 30M /dev/zero > one; ln one two; ln one three"])
    await assert.rejects(gradeAfter(command, inImage("true")), { code: "output_too_large", message: /more than 67108864 bytes/ });
});
