/** Which tasks a service takes of a trainer, before any node sees them. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { version } from "../../../../base/version.ts";
import { knownTasks, roomFor } from "../../../../cli/commands/service/service-tasks.ts";
import { loadConfig } from "../../../../cli/load-config.ts";
import { checksVersion } from "../../../../graders/admission/checks-version.ts";
import { keepAdmission } from "../../../../rollouts/accepted/admission-records.ts";
import { localProcess } from "../../../../sandboxes/process.ts";
import type { SandboxBackend } from "../../../../sandboxes/sandbox.ts";
import { inlineTask } from "../../../../tasks/inline-task.ts";
import { hashedTasks } from "../../../../tasks/sets/task-set.ts";
import { ownCache } from "../../../fakes/machine/own-cache.ts";

const cache = ownCache("service-tasks");

const given = (task_id: string) => ({ task_id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
const signal = AbortSignal.timeout(300_000);

async function serviceWith(more: object, sandboxes?: Pick<SandboxBackend, "capabilities">) {
  const file = join(cache, "named.json");
  await writeFile(file, JSON.stringify(given("named")));
  const config = await loadConfig({ env: {}, overrides: { engine: { url: "http://127.0.0.1:1" }, tasks: [file], ...more } });
  const said: string[] = [];
  return { config, said, ...(await knownTasks(config, signal, (text) => void said.push(text), sandboxes)) };
}

async function admit(task_id: string, admitted: boolean): Promise<void> {
  const [{ hash } = { hash: "" }] = await hashedTasks([await inlineTask(given(task_id))]);
  const reasons = admitted ? [] : [{ code: "flaky" as const, message: "the known solution earns 1, 0, 1" }];
  const rest = { backend: "docker", image_digest: null, times: 3, baseline: 0, gradings: [], leak_scan: null, duration_ms: 1 };
  await keepAdmission({ ...rest, task_id, task_hash: hash, version: checksVersion(version), made: "2026-01-01", admitted, reasons });
}

test("with admitted_only a service takes the tasks that check has admitted, sent or named, and says why it refuses others", async () => {
  const { taskOf, said } = await serviceWith({ admitted_only: true });
  assert.match(
    said.join(),
    /LEFT OUT: task named has no admission record of this version \(hash [0-9a-f]{16}\): `alidade check` makes one/,
  );
  const refused = { code: "task_invalid", param: "admitted_only" };
  await assert.rejects(taskOf("named"), refused);
  await assert.rejects(taskOf(given("sent")), refused);
  await admit("sent", true);
  await admit("named", true);
  assert.equal((await taskOf(given("sent"))).task_id, "sent");
  assert.equal((await taskOf("named")).task_id, "named");
  await admit("sent", false);
  await assert.rejects(taskOf(given("sent")), { message: /^task sent is quarantined: the known solution earns 1, 0, 1\. Mend the task/ });
  const open = await serviceWith({});
  assert.equal((await open.taskOf(given("sent"))).task_id, "sent");
});

test("a service asks for the least tier before any node does, and admits nothing for sandboxes that isolate nothing", async () => {
  const { taskOf } = await serviceWith({ min_tier: "T2" });
  await assert.rejects(taskOf("named"), { code: "config_invalid", param: "min_tier", message: /named is graded below it \(script: T1\)/ });
  const lenient = await serviceWith({ min_tier: "T1" });
  await assert.rejects(lenient.taskOf("named", { min_tier: "T2" }), { param: "min_tier" }, "a set may demand more");
  await assert.rejects(lenient.taskOf(given("unchecked"), { admitted_only: true }), { param: "admitted_only" });
  await assert.rejects(taskOf("named", { min_tier: "T0" }), { param: "min_tier" }, "and not less");
  const { config, ...known } = await serviceWith({ admitted_only: true, unsafe_host: true });
  const room = roomFor(config, localProcess, known, signal, () => undefined);
  await assert.rejects(room, { code: "config_invalid", param: "admitted_only" });
});

test("a service whose own node isolates nothing refuses what a set demands beyond that", async () => {
  const { taskOf } = await serviceWith({ unsafe_host: true }, localProcess);
  assert.equal((await taskOf("named", { min_tier: "T0" })).task_id, "named");
  const refused = {
    code: "config_invalid",
    param: "min_tier",
    message: /named is graded below it \(script: T0\); a sandbox that isolates nothing gives T0/,
  };
  await assert.rejects(taskOf("named", { min_tier: "T1" }), refused);
  await admit("sent", true);
  await assert.rejects(taskOf(given("sent"), { admitted_only: true }), { code: "config_invalid", param: "admitted_only" });
});

test("harnesses that are kept for evaluations leave one for other sets", async () => {
  const slotsOf = async (evaluation: number) => {
    const { config, ...known } = await serviceWith({ unsafe_host: true, concurrency: { run: 3, evaluation } });
    return (await roomFor(config, localProcess, known, signal, () => undefined)).slots;
  };
  const message = /concurrency\.evaluation is 3 of 3 harnesses at once: give 2 at most/;
  await assert.rejects(slotsOf(3), { code: "config_invalid", param: "concurrency.evaluation", message });
  assert.ok((await slotsOf(2)).evaluation);
  assert.equal((await slotsOf(0)).evaluation, null);
});
