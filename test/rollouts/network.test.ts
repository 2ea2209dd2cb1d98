/** What a task may reach, phase by phase, and what the record says of it. The sandbox is the process backend's, as if it had no network. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type NetworkOptions, runTasks } from "../../rollouts/index.ts";
import { localProcess } from "../../sandboxes/process.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { describeRecord } from "../../view/describe-verdict.ts";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";

const closed: SandboxBackend = {
  ...localProcess,
  capabilities: { ...localProcess.capabilities, network: "none" },
  prepare: async () => undefined,
};

/** Another address of loopback than the fake engine's, which no list reaches. */
const website4 = "127.0.0.2";

/** Prints the status of each address, and says on which variables it goes. */
const get = (...urls: string[]) =>
  `node -e 'const t = async (u) => console.log(u, await fetch(u).then((r) => r.status, (e) => e.cause?.code ?? e.message)); (async () => { for (const u of process.argv.slice(1)) await t(u); })()' ${urls.join(" ")}`;

type Given = { environment: string; command?: string; backend?: SandboxBackend; network?: Partial<NetworkOptions> };

/** The record of one rollout, and what its agent's command printed. */
async function rollout(t: TestContext, { environment, command = "true", backend = closed, network = {} }: Given) {
  const place = await mkdtemp(join(tmpdir(), "alidade-network-"));
  t.after(() => rm(place, { recursive: true }));
  const file = join(await writeTask(place, "small"), "task.yaml");
  await writeFile(
    file,
    (await readFile(file, "utf8")).replace("environment: { files: files }", `environment: { files: files, ${environment} }`),
  );
  let printed = "";
  const reply = ({ messages }: WireRequest): ScriptedReply => {
    const result = messages.find(({ role }) => role === "tool")?.content;
    printed = typeof result === "string" ? result : JSON.stringify(result ?? "");
    return result === undefined
      ? { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command: `${command}; echo yes > done.txt` }) }] }
      : { text: "done" };
  };
  const scripted = { resolve: async () => [website4], mayConnect: (address: string) => address === website4 };
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    reply,
    does: (setup, batch, signal) => runTasks({ ...setup, network: { allow_public: false, network: scripted, ...network } }, batch, signal),
  });
  const [record] = await run(backend);
  assert.ok(record);
  return { record, printed };
}

async function website(t: TestContext): Promise<number> {
  const server = createServer((_request, response) => response.end("hello")).listen(0, website4);
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

test("set-up and agent reach the hosts of their own lists, the first is cut before the second, and the record says all", {
  timeout: 300_000,
}, async (t) => {
  const port = await website(t);
  const [first, second] = [`http://first.org:${port}/secret`, `http://second.org:${port}/`];
  const setup = `setup: { command: [sh, -c, ${JSON.stringify(`${get(first)} > log.txt; env | grep -ci proxy >> log.txt`)}], network: { allow: ["first.org:${port}"] } }`;
  const { record, printed } = await rollout(t, {
    environment: `network: { allow: ["second.org:${port}"] }, ${setup}`,
    command: `cat log.txt; ${get(first, second)}`,
  });
  assert.equal(record.verdict?.reward, 1, JSON.stringify(record.error));
  assert.match(
    printed,
    new RegExp(`first.org:${port}/secret 200\n7\nhttp://first.org:${port}/secret [^2].*\nhttp://second.org:${port}/ 200\n`),
  );
  const { destinations, refusals } = record.network ?? { destinations: [], refusals: [] };
  assert.deepEqual(
    destinations.map(({ phase, host, connections }) => [phase, host, connections]),
    [
      ["setup", "first.org", 1],
      ["agent", "second.org", 1],
    ],
  );
  assert.ok(destinations.every(({ sent_bytes, received_bytes }) => sent_bytes > 0 && received_bytes > 0));
  const shown = new Map(describeRecord(record));
  assert.match(shown.get("network") ?? "", new RegExp(`^setup first.org:${port}, 1 ×: .*\nagent second.org:${port}, 1 ×: \\d+ bytes out`));
  assert.match(shown.get("network refused") ?? "", new RegExp(`^agent first.org:${port}, 1 ×: name_not_allowed \\(the name is not in`));
  assert.deepEqual(refusals, [{ phase: "agent", host: "first.org", port, reason: "name_not_allowed", times: 1 }]);
  assert.deepEqual([record.setup === null, record.work?.paths], [false, 1], "log.txt is no work");
  assert.doesNotMatch(JSON.stringify(record), /\/secret/);
});

test("a task without a network has no proxy, and its record no network", { timeout: 300_000 }, async (t) => {
  const { record, printed } = await rollout(t, { environment: "user: agent", command: "env | grep -i _proxy" });
  assert.deepEqual([record.network, record.verdict?.reward, /http/i.test(printed)], [null, 1, false]);
});

test("a set-up that fails is the sandbox's failure, with what it said and which hosts it was refused", { timeout: 300_000 }, async (t) => {
  const command = JSON.stringify(`${get("http://evil.org/x")} >/dev/null; echo no such package >&2; exit 3`);
  const { record } = await rollout(t, { environment: `setup: { command: [sh, -c, ${command}], network: { allow: [good.org] } }` });
  assert.equal(record.error?.code, "sandbox_unavailable");
  const words =
    /environment.setup ended with exit code 3: no such package; the sandbox's network refused evil.org:80 \(name_not_allowed\)$/;
  assert.match(record.error?.message ?? "", words);
});

test("the public network wants the operator's word, in every phase, before anything starts", async (t) => {
  for (const field of ["network", "grading_network", "setup.network"]) {
    const environment = field.startsWith("setup") ? "setup: { command: [ls], network: public }" : `${field}: public`;
    const failed = rollout(t, { environment });
    await assert.rejects(failed, {
      code: "task_invalid",
      param: `environment.${field}`,
      message: field === "grading_network" ? /pass --verifier-network public/ : /pass --allow-public-network/,
    });
  }
});

test("a backend whose sandboxes reach all that the machine reaches refuses a list that it cannot hold them to", async (t) => {
  for (const environment of ["network: { allow: [a.org] }", "grading_network: public"]) {
    const failed = rollout(t, { environment, backend: localProcess, network: { allow_public: true } });
    await assert.rejects(failed, { code: "task_invalid", message: /reach all that this machine reaches/ });
  }
});

test("a list of names holds names: addresses, whole domains of the top and odd spellings are named and refused", async (t) => {
  for (const name of ["*", "*.com", "1.2.3.4", "10", "a.org:0", "a.org:70000", "A.org", "a_b.org/", "http://a.org", "*.*.org", ""]) {
    const failed = rollout(t, { environment: `network: { allow: [${JSON.stringify(name)}] }` });
    await assert.rejects(failed, { code: "task_invalid" }, name);
  }
});
