/** Rollouts whose task has servers of tools: when they count, and for which harness they begin. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Environment } from "../../base/schema/task.ts";
import { commandHarness, harnesses } from "../../harnesses/index.ts";
import { assertTakesTask } from "../../rollouts/accepted/index.ts";
import { type RolloutOutcome, rolloutsOn } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/index.ts";
import { pngOf } from "../fakes/records/png.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";
import { placeOf, type RawMessage, rawService, usualAnswer } from "../fakes/tools/tool-services.ts";

const environment = Environment.parse({
  services: { shop: { command: ["serve"] } },
  tools: [{ name: "front-shop", service: "shop", port: 8000 }],
});

/** Calls the tool from a command, as any program of the agent may. */
const call = `node -e 'fetch(process.env.ALIDADE_MCP_FRONT_SHOP_URL, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "write" } }) }).then((r) => r.text()).then(console.log)'`;

/** A command that does its work and ignores the call's answer. */
const callAndWork = `${call}; echo yes > done.txt`;

/** Whether a service breaks off for a message. */
type Dies = (message: RawMessage) => boolean;

/**
 * `make`: gives each set of services its own, by its number; 0 is the agent's. `command`: what the agent runs, as the script `does.sh`.
 * `tool`: the name by which the model asks for it; the harness of these tests runs it whatever the name is.
 */
async function outcomeWith(
  t: TestContext,
  make: (set: number) => Dies,
  command = callAndWork,
  { content, tool = "bash" }: { content?: unknown[]; tool?: string } = {},
): Promise<RolloutOutcome> {
  const place = await mkdtemp(join(tmpdir(), "alidade-tools-"));
  t.after(() => rm(place, { recursive: true }));
  await writeFile(join(await writeTask(place, "small"), "files", "does.sh"), command);
  let sets = 0;
  const service = (dies: Dies) =>
    rawService((message, outgoing) => {
      if (dies(message)) outgoing.destroy();
      else if (message.method === "tools/call")
        return `{"jsonrpc":"2.0","id":${message.id},"result":{"content":${JSON.stringify(content ?? [{ type: "text", text: "written" }])}}}`;
      return usualAnswer(message, '[{"name":"write"}]');
    });
  const { backend } = await pickBackend("process", t.signal);
  // A grader's sandbox has no services apart, and is not counted.
  const create: typeof backend.create = async ({ services, ...spec }, signal) =>
    Object.assign(await backend.create(spec, signal), services && placeOf({ shop: service(make(sets++)) }));
  const outcomes: RolloutOutcome[] = [];
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    reply: ({ messages }) =>
      messages.some(({ role }) => role === "assistant")
        ? { text: "done" }
        : { tool_calls: [{ name: tool, arguments: '{"command":"sh does.sh"}' }] },
    does: async (setup, { tasks: [task], harness }, signal) => {
      assert.ok(task);
      const own = { ...task, environment: { ...task.environment, services: environment.services, tools: environment.tools } };
      const plan = { rollout_id: "alone", attempt: 1, group_id: "g", group_size: 1, sample_index: 0, retries: 0, task_hash: "hash" };
      outcomes.push(await rolloutsOn(setup).submit({ ...plan, task: own, harness, session: { purpose: "train" } }, signal));
      return outcomes.map(({ record }) => record);
    },
  });
  await run({ ...backend, create });
  return outcomes[0] ?? assert.fail();
}

test("a command finds its server of tools in a variable, and what it ran is in the trajectory", async (t) => {
  const { record, trajectory } = await outcomeWith(t, () => () => false);
  assert.deepEqual([record.verdict?.reward, record.error], [1, null]);
  assert.deepEqual(
    trajectory?.tool_runs?.map(({ server, tool, outcome, unasked }) => [server, tool, outcome, unasked]),
    [["front-shop", "write", "ok", true]],
  );
});

const isCall: Dies = ({ method }) => method === "tools/call";
const isAsked: Dies = ({ method }) => method === "tools/call" || method === "ping";

/** Dies of a call, and answers nothing any more. */
function fragile(): Dies {
  let isDead = false;
  return (message) => {
    isDead ||= isCall(message);
    return isDead;
  };
}

test("a service that fails a call and lives costs nothing, and one that is down without the agent's doing measures nothing", async (t) => {
  const hiccup = await outcomeWith(t, () => isCall);
  assert.deepEqual([hiccup.record.verdict?.reward, hiccup.record.error], [1, null]);
  for (const make of [() => isAsked, (set: number) => (set === 0 ? isAsked : () => false)]) {
    const down = await outcomeWith(t, make);
    assert.deepEqual([down.record.error?.code, down.record.verdict], ["tool_service_failed", null]);
    assert.deepEqual([down.trajectory?.in_loss, down.trajectory?.reward], [false, null]);
    assert.deepEqual(
      down.trajectory?.tool_runs?.map(({ outcome, failure }) => [outcome, failure]),
      [["failed", "died"]],
    );
  }
});

test("a service that dies of the agent's calls, and does so again, ends the rollout with a result", async (t) => {
  // The rollout ends before the command does its work.
  const { record, trajectory } = await outcomeWith(t, fragile, `${call}; sleep 600; echo yes > done.txt`);
  assert.deepEqual([record.error?.code, record.verdict?.reward], ["tool_service_killed", 0], JSON.stringify(record.error));
  assert.deepEqual([trajectory?.in_loss, trajectory?.reward, trajectory?.mask_reason], [true, 0, null]);
});

test("services that stop answering without the agent's calls too are no result", async (t) => {
  const { record } = await outcomeWith(t, () => {
    let pings = 0;
    const dies = fragile();
    return (message) => dies(message) || (message.method === "ping" && ++pings > 1);
  });
  assert.deepEqual([record.error?.code, record.verdict], ["tool_service_failed", null]);
});

test("a harness that shows the model no picture of its tools measures nothing, and the message says what would cure it", async (t) => {
  // The harness makes the model's own call.
  const asked = call.replace('name: "write"', 'name: "write", arguments: { command: "sh does.sh" }');
  const content = [{ type: "image", data: pngOf(8, 8).toString("base64"), mimeType: "image/png" }];
  const { record } = await outcomeWith(t, () => () => false, `${asked} > seen.txt; echo yes > done.txt`, { content, tool: "write" });
  assert.deepEqual([record.error?.code, record.verdict], ["harness_blind", null], JSON.stringify(record.error));
  assert.match(record.error?.message ?? "", /front-shop\.write answered with a picture of 8x8 .*; command must hand the pictures of MCP/);
});

test("a task with servers of tools is refused by name for a harness that takes none", () => {
  const [pi] = harnesses;
  assert.ok(pi?.name === "pi");
  const task = { environment } as Parameters<typeof assertTakesTask>[0];
  assert.throws(() => assertTakesTask(task, pi), {
    code: "task_invalid",
    message: "environment.tools is front-shop, and Pi takes no servers of tools: use another harness than pi.",
  });
  for (const harness of [...harnesses.slice(1), commandHarness({ argv: ["agent"] })]) assertTakesTask(task, harness);
  assertTakesTask({ environment: Environment.parse({}) } as typeof task, pi);
});
