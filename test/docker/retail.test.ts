/** The shop of examples/tasks/retail, in Docker, by the real programs: what earns there and what does not. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { AdmissionRecord } from "../../base/schema/admission.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { harnesses } from "../../harnesses/index.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { shellCall } from "../fakes/tools/shell-call.ts";
import { toolNameIn } from "../fakes/tools/tool-name.ts";
import { type Need, need } from "../needs.ts";

const scratch = scratchFolder("retail");
const timeout = 600_000;

type Step = { tool: string; args: Record<string, unknown> } | { shell: string };

const look: Step[] = [
  { tool: "find_user", args: { name: "Mira Lang" } },
  { tool: "list_orders", args: { user_id: "mira" } },
];
const cancel = (order_id: string): Step => ({ tool: "cancel_order", args: { order_id, reason: "ordered by mistake" } });
const right = [...look, cancel("W1")];

/** What a command of the agent can reach: a scan for the shop, and the relay itself. */
const tamper = `python3 - <<'END'
import json, socket, urllib.request
found = []
for port in range(1, 10000):
    one = socket.socket(); one.settimeout(1)
    if one.connect_ex(("127.0.0.1", port)) == 0: found.append(port)
    one.close()
print("open", found, [line.split()[-1] for line in open("/proc/net/unix") if "@" in line])
body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "cancel_order", "arguments": {"order_id": "W1", "reason": "ordered by mistake"}}}
asked = urllib.request.Request("http://127.0.0.1:4000/mcp/shop", json.dumps(body).encode(), {"content-type": "application/json"})
print(urllib.request.urlopen(asked).read().decode())
END`;

const plays: Record<string, { steps: Step[]; reward: number }> = {
  "the right order": { steps: right, reward: 1 },
  "another order": { steps: [...look, cancel("W3")], reward: 0 },
  nothing: { steps: [], reward: 0 },
  "the right order and one more write": {
    steps: [...right, { tool: "set_email", args: { user_id: "otis", email: "me@shop.example" } }],
    reward: 0,
  },
  "the relay by a command, without a model's call": { steps: [{ shell: tamper }], reward: 0 },
};

for (const { name } of harnesses.filter(({ tools }) => tools))
  for (const [play, { steps, reward }] of Object.entries(plays))
    test(`${name} and ${play}: ${reward}`, { timeout }, async (t) => {
      const run = await played(t, name, steps);
      if (run === null) return;
      const { record, requests } = run;
      assert.equal(record.error, null);
      assert.equal(record.verdict?.reward, reward, JSON.stringify(record.verdict?.evidence));
      assert.equal(requests.length, steps.length + 1);
      const { tool_runs, fidelity } = (await readTrajectories(run.folder))[0] ?? assert.fail("no trajectory");
      assert.equal(tool_runs?.length, steps.length);
      assert.deepEqual(new Set(tool_runs?.map(({ outcome }) => outcome)), new Set(steps.length === 0 ? [] : ["ok"]));
      assert.ok(fidelity.fingerprints.tool_servers);
      if (!steps.some((step) => "shell" in step)) return;
      assert.match(JSON.stringify(requests.at(-1)?.messages), /open \[4000\] \[\]/, "nothing but the door is there");
      assert.deepEqual(
        tool_runs?.map(({ unasked }) => unasked),
        [true],
      );
    });

test("check makes the known calls and the bad ones, and grades each by the rows that the shop holds", { timeout }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const result = await cli(["check", task, "--again", "--times", "1", "--sandbox", "docker", "--json"]);
  const { checks } = jsonOf<{ checks: { outcome: string; record: AdmissionRecord | null }[] }>(result);
  const [{ outcome, record } = assert.fail(result.stderr)] = checks;
  assert.deepEqual(
    record?.gradings.map(({ work, reward, same_state }) => [work, reward, same_state]),
    [
      ["gold", 1, undefined],
      ["no-op", 0, undefined],
      ["bad calls another order", 0, undefined],
      ["bad calls another reason", 0, undefined],
      ["bad calls one more write", 0, undefined],
      ["one more write: another order", 0, false],
      ["one more write: another reason", 1, true], // the shop cancels an order once
      ["one more write: one more write", 0, false],
      ["the right calls twice", 1, true],
    ],
  );
  assert.deepEqual(record?.reach, { open: [], sockets: [], exposed: [], past_relay: "not_reached" });
  assert.equal(outcome, "admitted", JSON.stringify(record.reasons));
});

const task = join(import.meta.dirname, "../../examples/tasks/retail");

async function played(t: TestContext, harness: string, steps: Step[]) {
  if (!(await need(t, "docker")) || !(await need(t, `harness:${harness}` as Need))) return null;
  const requests: WireRequest[] = [];
  await using engine = await ScriptedEngine.start((request) => {
    // The proxy's own questions to the engine have no instruction of the task's.
    if (!JSON.stringify(request.messages).includes("Mira Lang ordered a lamp")) return { text: "yes" };
    requests.push(request);
    return replyTo(request, steps[requests.length - 1]);
  });
  const out = join(scratch, `${harness}-${steps.length}-${Math.random().toString(36).slice(2)}`);
  const flags = ["--engine", engine.url, "--harness", harness, "--sandbox", "docker", "-n", "1", "-o", out, "--json"];
  const result = await cli(["run", task, ...flags]);
  const { run, rollouts } = jsonOf<{ run: string; rollouts: RolloutRecord[] }>(result);
  return { record: rollouts[0] ?? assert.fail(result.stderr), folder: run, requests };
}

function replyTo(request: WireRequest, step: Step | undefined): ScriptedReply {
  if (step === undefined) return { text: "It is done." };
  if ("shell" in step) return { tool_calls: [shellCall(request, step.shell)] };
  return { tool_calls: [{ name: toolNameIn(request, "shop", step.tool) ?? step.tool, arguments: JSON.stringify(step.args) }] };
}
