/** Which tasks a run with --admitted-only keeps, by the records that check left. */
import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { AlidadeError } from "../../../base/errors.ts";
import type { AdmissionRecord } from "../../../base/schema/admission.ts";
import { Task } from "../../../base/schema/task.ts";
import { keepAdmission, readAdmission } from "../../../rollouts/accepted/admission-records.ts";
import { knownChecks } from "../../../rollouts/accepted/admit-tasks.ts";
import { admittedTasks } from "../../../rollouts/accepted/admitted-tasks.ts";
import { docker } from "../../../sandboxes/docker.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import type { HashedTask } from "../../../tasks/sets/task-set.ts";
import { hashedTasks } from "../../../tasks/sets/task-set.ts";
import { ownCache } from "../../fakes/machine/own-cache.ts";

const cache = ownCache("admission");

const tasks = ["good", "flaky", "unknown"].map((task_id) =>
  Task.parse({ task_id, instruction: "i", grader: { kind: "script", command: ["true"] } }),
);
const version = "1+checks";

async function record(index: number, more: Partial<AdmissionRecord> = {}): Promise<AdmissionRecord> {
  const [{ task, hash }] = (await hashedTasks(tasks.slice(index, index + 1))) as [HashedTask];
  const rest = { backend: "docker", image_digest: null, baseline: 0, gradings: [], leak_scan: null, duration_ms: 1 };
  return { ...rest, task_id: task.task_id, task_hash: hash, version, made: "2026-01-01", admitted: true, reasons: [], times: 3, ...more };
}

async function admitted(): Promise<{ kept: string[]; said: string[] }> {
  const errors: AlidadeError[] = [];
  const kept = await admittedTasks(tasks, docker, { version, onLeftOut: (error) => void errors.push(error) });
  return { kept: kept.map(({ task_id }) => task_id), said: errors.map(({ message }) => message) };
}

test("a task without a record, or with one that says no, is left out with the reason", async () => {
  await keepAdmission(await record(0));
  const reasons = [{ code: "flaky" as const, message: "the known solution earns 1, 0, 1" }];
  await keepAdmission(await record(1, { admitted: false, reasons }));
  const { kept, said } = await admitted();
  assert.deepEqual(kept, ["good"]);
  assert.match(said[0] ?? "", /^task flaky is quarantined: the known solution earns 1, 0, 1\. Mend the task and check it again$/);
  assert.match(said[1] ?? "", /^task unknown has no admission record of this version \(hash [0-9a-f]{16}\): `alidade check` makes one$/);
});

test("a record of another version of the checks, or a damaged one, is none, and where no task is left the run ends", async () => {
  await keepAdmission(await record(0, { version: "0+checks" }));
  await assert.rejects(admitted(), { code: "task_invalid", param: "admitted_only" });
  const [{ hash }] = (await hashedTasks(tasks)) as [HashedTask, ...HashedTask[]];
  await writeFile(join(cache, "admissions", `${hash}.json`), '{"admitted": true');
  assert.equal(await readAdmission(hash, version), null);
});

test("a task that was checked is not checked again, a quarantined one neither, and one with fewer gradings is", async () => {
  await keepAdmission(await record(0));
  const hashed = await hashedTasks(tasks);
  const outcomes = async (times: number) => (await knownChecks(hashed, version, times)).map((one) => one?.outcome ?? null);
  assert.deepEqual(await outcomes(3), ["admitted", "quarantined", null]);
  assert.deepEqual(await outcomes(5), [null, "quarantined", null]);
  assert.deepEqual(
    (await readdir(join(cache, "admissions"))).filter((name) => !name.endsWith(".json")),
    [],
  );
});

test("admission says nothing of the process sandbox", () => {
  assert.throws(() => admittedTasks(tasks, localProcess, { version, onLeftOut: () => undefined }), {
    code: "config_invalid",
    param: "admitted_only",
  });
});
