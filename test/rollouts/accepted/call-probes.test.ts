/** Wrong ways to a task of tools that `check` makes out of its own calls: what each finds, and what is said where one pays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Task } from "../../../base/schema/task.ts";
import { examineCalls } from "../../../rollouts/accepted/examine-calls.ts";
import { pickBackend, type Sandbox } from "../../../sandboxes/index.ts";
import { placeOf, rawService, usualAnswer } from "../../fakes/tools/tool-services.ts";

const call = (id: string) => ({ server: "shop", tool: "cancel", arguments: { id } });
const rows = { service: "shop", file: "/srv/data/rows.json" };
const cancelled = { ...rows, json: "/W1", equals: "cancelled" };

type Shop = { noteEachCall?: boolean; reachable?: boolean; listening?: string };

/** A shop that writes down what it cancels. It counts calls where it notes each. */
async function examined(grader: object, { noteEachCall = false, reachable = false, listening = "" }: Shop = {}, more: object = {}) {
  const { backend } = await pickBackend("process", AbortSignal.timeout(60_000));
  const create: typeof backend.create = async ({ services: _, ...spec }, signal) => {
    const held: Record<string, unknown> = { W1: "open", W2: "open" };
    const service = rawService((message) => {
      if (message.method !== "tools/call") return usualAnswer(message, '[{"name":"cancel"}]');
      const { id } = (message.params?.arguments ?? { id: "" }) as { id: string };
      held[id] = "cancelled";
      if (noteEachCall) held.calls = Number(held.calls ?? 0) + 1;
      return `{"jsonrpc":"2.0","id":${message.id},"result":{"content":[]}}`;
    });
    const sandbox = await backend.create(spec, signal);
    const ownExec = sandbox.exec.bind(sandbox);
    const exec: Sandbox["exec"] = async (argv, options) => {
      const done = await ownExec(["true"], options);
      return argv[0] === "cat" ? { ...done, stdout: `  sl  local_address\n${listening}` } : done;
    };
    const readState: Sandbox["readState"] = async () => [
      { path: "srv/data/rows.json", mode: 0o644, content: Buffer.from(JSON.stringify(held)) },
    ];
    return Object.assign(sandbox, placeOf({ shop: service, ...(reachable && { main: service }) }), { exec, readState });
  };
  const task = Task.parse({
    task_id: "shop",
    instruction: "Cancel W1.",
    environment: {
      services: { shop: { network: "apart", expose: [8080], command: ["serve"], state: ["/srv/data"] } },
      tools: [{ name: "shop", service: "shop", port: 8000 }],
    },
    grader: { kind: "state", ...grader },
    gold_calls: [call("W1")],
    bad_calls: { "another order": [call("W2")] },
    ...more,
  });
  const { gold_calls = [] } = task;
  const isolating = { ...backend, create, capabilities: { ...backend.capabilities, isolation: "container" } };
  const options = { run_id: "calls", owner: "test", times: 1, word: "word", signal: AbortSignal.timeout(60_000) };
  return examineCalls({ ...task, gold_calls }, isolating, options);
}

const probed = ({ gradings }: Awaited<ReturnType<typeof examined>>) =>
  gradings.slice(3).map(({ work, reward, same_state }) => [work, reward, same_state]);

const strict = { checks: [cancelled, { ...rows, json: "/W2", equals: "open" }] };

test("where each row is compared, one more write earns nothing, and the right call twice leaves the same state", async () => {
  const found = await examined(strict);
  assert.deepEqual(probed(found), [
    ["one more write: another order", 0, false],
    ["the right calls twice", 1, true],
  ]);
  assert.deepEqual(found.reasons, []);
  assert.deepEqual(found.reach, { open: [], sockets: [], exposed: [], past_relay: "not_reached" });
});

test("a grader that looks at one row alone pays for one more write, and for a call that counts twice", async () => {
  const found = await examined({ checks: [cancelled] }, { noteEachCall: true });
  assert.deepEqual(probed(found), [
    ["one more write: another order", 1, false],
    ["the right calls twice", 1, false],
  ]);
  assert.deepEqual(
    found.reasons.map(({ code, message }) => [code, message.split(":")[0]]),
    [
      ["hackable", "one more write"],
      ["hackable", "the right calls twice earns 1, and no calls 0"],
    ],
  );
});

test("a task without other calls says that one more write was not tried", async () => {
  const { leak_scan, reasons } = await examined(strict, {}, { bad_calls: undefined });
  assert.match(leak_scan?.not_scanned.at(-1) ?? "", /^one more write: bad_calls has no call/);
  assert.deepEqual(reasons, []);
});

/** As the kernel lists a socket that listens at 127.0.0.1. */
const listensAt = (port: number) =>
  `   0: 0100007F:${port.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A 00000000:00000000\n`;

test("a scan names what it finds, but for ports that are exposed, and calls past the relay that pay are named", async () => {
  const at = { reachable: true, listening: `${listensAt(8000)}${listensAt(8080)}0000: 00000002 00000000 00010000 0001 01 1234 @shop\n` };
  const { reach, reasons, gradings } = await examined(strict, at);
  assert.deepEqual(reach, { open: [8000], sockets: ["@shop"], exposed: [8080], past_relay: "reached" });
  assert.deepEqual([gradings.at(-1)?.work, gradings.at(-1)?.reward], ["write past the relay", 1]);
  assert.deepEqual(
    reasons.map(({ message }) => message),
    [
      "write past the relay earns 1, and no calls 0: keep the service out of the agent's network (network: apart), or grade what the relay saw (ran)",
      "a scan from the agent's sandbox finds the port 8000, the socket @shop: say network: apart of the service, and expose what the agent is to reach",
    ],
  );
});
