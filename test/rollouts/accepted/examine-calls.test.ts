/** A task whose known solution is calls of tools: what they earn, and what is said of a grader that pays for wrong ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Task } from "../../../base/schema/task.ts";
import { examineCalls } from "../../../rollouts/accepted/examine-calls.ts";
import { pickBackend } from "../../../sandboxes/index.ts";
import { placeOf, rawService, usualAnswer } from "../../fakes/tools/tool-services.ts";

const call = (tool: string, id: string) => ({ server: "shop", tool, arguments: { id } });
const written = { ran: [{ tool: "cancel_order", arguments: { id: { equals: "W1" } }, ok: true }] };

async function examined(grader: object, more: object = {}) {
  const { backend } = await pickBackend("process", AbortSignal.timeout(60_000));
  const service = rawService((message) =>
    message.method === "tools/call"
      ? `{"jsonrpc":"2.0","id":${message.id},"result":{"content":[]}}`
      : usualAnswer(message, '[{"name":"cancel_order"},{"name":"find_order"}]'),
  );
  const create: typeof backend.create = async ({ services: _, ...spec }, signal) =>
    Object.assign(await backend.create(spec, signal), placeOf({ shop: service }));
  const task = Task.parse({
    task_id: "shop",
    instruction: "Cancel W1.",
    environment: { services: { shop: { command: ["serve"] } }, tools: [{ name: "shop", service: "shop", port: 8000 }] },
    grader: { kind: "trajectory", ...grader },
    gold_calls: [call("find_order", "W1"), call("cancel_order", "W1")],
    bad_calls: { "another order": [call("cancel_order", "W2")] },
    ...more,
  });
  const { gold_calls = [] } = task;
  const options = { run_id: "calls", owner: "test", times: 2, word: "word", signal: AbortSignal.timeout(60_000) };
  return examineCalls({ ...task, gold_calls }, { ...backend, create }, options);
}

test("the known calls earn 1 each time, no call and bad calls 0, and they count as asked for", async () => {
  const { gradings, reasons, baseline } = await examined({ ...written, unasked: "refuse" });
  assert.deepEqual(
    gradings.map(({ work, time, reward }) => [work, time, reward]),
    [
      ["gold", 1, 1],
      ["gold", 2, 1],
      ["no-op", 1, 0],
      ["no-op", 2, 0],
      ["bad calls another order", 1, 0],
    ],
  );
  assert.deepEqual([reasons, baseline], [[], 0]);
});

test("a grader that pays for bad calls, or not for the known ones, is named with its reason", async () => {
  const loose = await examined({ ran: [{ tool: "cancel_order" }] });
  assert.deepEqual(
    loose.reasons.map(({ code }) => code),
    ["hackable"],
  );
  assert.match(loose.reasons[0]?.message ?? "", /^bad calls another order must earn no more than no calls \(0\), and earn 1/);
  const strict = await examined({ ran: [{ tool: "refund" }] });
  assert.deepEqual(
    strict.reasons.map(({ code }) => code),
    ["gold_not_full"],
  );
});

test("calls of a server that the task has not are the task's fault", async () => {
  const elsewhere = { gold_calls: [{ server: "bank", tool: "pay" }] };
  await assert.rejects(examined(written, elsewhere), { code: "task_invalid", message: /name the server bank: there is shop/ });
});
