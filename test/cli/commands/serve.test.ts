import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import type { LogLine } from "../../../base/schema/session-log.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf, type RunningCli, startCli } from "../../fakes/processes/cli.ts";

const scratch = scratchFolder("serve");
let folders = 0;
const fresh = (): string => join(scratch, `${folders++}`);
const hi = [{ role: "user", content: "hi" }];

type Served = { url: string; control_url: string; control_token: string; session_id: string; key: string; env: Record<string, string> };

async function serve(engine: ScriptedEngine, out: string): Promise<{ running: RunningCli; served: Served }> {
  const running = startCli(["serve", "--engine", engine.url, "--out", out, "--port", "0", "--control-port", "0", "--json"]);
  await running.until(() => running.stdout.includes("\n"));
  return { running, served: JSON.parse(running.stdout) as Served };
}

function chat(url: string, key: string, messages: unknown[], signal?: AbortSignal): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "scripted", messages }),
    ...(signal && { signal }),
  });
}

async function textOf(response: Response): Promise<string | undefined> {
  return ((await response.json()) as { choices?: { message: { content: string } }[] }).choices?.[0]?.message.content;
}

test("serve prints export lines that work as they stand, and a Ctrl-C ends it cleanly", async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "hello" }));
  await using running = startCli(["serve", "-e", engine.url, "-o", fresh(), "-p", "0", "--control-port", "0"]);
  await running.until(() => running.stdout.includes("export OPENAI_API_KEY="));
  const env = Object.fromEntries([...running.stdout.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
  assert.ok(env.ANTHROPIC_BASE_URL && env.ANTHROPIC_API_KEY, running.stdout);
  assert.equal(await textOf(await chat(env.OPENAI_BASE_URL?.replace(/\/v1$/, "") ?? "", env.OPENAI_API_KEY ?? "", hi)), "hello");
  assert.match(running.stderr, /control listener on http:\/\/127\.0\.0\.1:\d+, token sk-ali-/);
  const { code, stderr } = await running.kill("SIGINT");
  assert.equal(code, 0, stderr);
});

test("a trainer mints, seals, rewards twice and reads sessions over the control listener, with its token only", async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "hello" }));
  const { running, served } = await serve(engine, fresh());
  await using _running = running;
  const control = (method: string, path: string, body?: unknown, token = served.control_token): Promise<Response> =>
    fetch(served.control_url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  for (const token of ["", "wrong", served.key]) assert.equal((await control("GET", "/sessions", undefined, token)).status, 401);
  assert.equal((await fetch(`${served.control_url}/health`)).status, 401);

  const created = await control("POST", "/sessions", { purpose: "train", task_id: "t1", group_id: "g1", sample_index: 3 });
  assert.equal(created.status, 201);
  const { session_id, key, env } = (await created.json()) as { session_id: string; key: string; env: Record<string, string> };
  assert.equal(env.OPENAI_API_KEY, key);
  assert.equal(await textOf(await chat(served.url, key, hi)), "hello");
  assert.equal(engine.requests.at(-1)?.temperature, 1, "training sessions get the neutral sampling");

  assert.equal((await control("POST", `/sessions/${session_id}/seal`, { reason: "done" })).status, 200);
  assert.equal((await chat(served.url, key, hi)).status, 400);
  for (const [reward, revision] of [
    [0, 1],
    [1, 2],
  ]) {
    const rewarded = await control("POST", `/sessions/${session_id}/reward`, { reward, components: { tests: reward } });
    assert.deepEqual(await rewarded.json(), { session_id, revision });
  }
  const trajectory = (await (await control("GET", `/sessions/${session_id}/trajectory`)).json()) as Record<string, unknown>;
  assert.deepEqual(
    [trajectory.reward, trajectory.purpose, trajectory.stop_reason, (trajectory.calls as unknown[]).length],
    [1, "train", "done", 1],
  );

  for (const [method, path, body, status, code] of [
    ["POST", "/sessions", { purpose: "traning" }, 400, "request_invalid"],
    ["POST", "/sessions", { taskid: "x" }, 400, "request_invalid"],
    ["POST", "/sessions/sesnothing/seal", {}, 404, "not_found"],
    ["POST", `/sessions/${session_id}/reward`, { reward: "1" }, 400, "request_invalid"],
    ["GET", "/sessions/..%2F..%2Fx/trajectory", undefined, 404, "not_found"],
    ["GET", "/nothing", undefined, 404, "not_found"],
  ] as const) {
    const refused = await control(method, path, body);
    const { error } = (await refused.json()) as { error: { code: string; param: string | null } };
    assert.deepEqual([refused.status, error.code], [status, code], path);
    if (path === "/sessions") assert.match(error.param ?? "", /purpose|taskid/);
  }
});

test("after kill -9 and a restart keys work on, calls are still there, and an undelivered turn is replayed, not sampled again", async () => {
  const hold = Promise.withResolvers<void>();
  await using engine = await ScriptedEngine.start((request) =>
    JSON.stringify(request.messages).includes("slow") ? { text: "worth keeping", beforeEnd: hold.promise } : { text: "hello" },
  );
  const out = fresh();
  const slow = [{ role: "user", content: "slow" }];
  const first = await serve(engine, out);
  {
    await using running = first.running;
    assert.equal(await textOf(await chat(first.served.url, first.served.key, hi)), "hello");
    const gone = new AbortController();
    const left = chat(first.served.url, first.served.key, slow, gone.signal);
    await running.until(() => engine.requests.length === 2);
    gone.abort();
    await assert.rejects(left);
    const store = new DiskStore(join(out, "serve", "sessions"));
    const logged = async (is: (entry: LogLine) => boolean) => (await store.read(first.served.session_id)).filter(is).length;
    // Until its close was seen the bytes would be handed to a client that left.
    await running.until(async () => (await logged((entry) => entry.type === "answered" && entry.delivery === "cut")) === 1);
    hold.resolve();
    await running.until(async () => (await logged((entry) => entry.type === "call_finished")) === 2);
    await running.kill("SIGKILL");
  }
  const second = await serve(engine, out);
  await using running = second.running;
  assert.notEqual(second.served.session_id, first.served.session_id);
  assert.equal(await textOf(await chat(second.served.url, first.served.key, slow)), "worth keeping");
  assert.equal(engine.requests.length, 2, "sampled once");
  assert.equal((await running.kill("SIGTERM")).code, 0);
  const exported = await cli(["export", "--run", join(out, "serve"), "--format", "canonical"]);
  const [trajectory] = exported.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { calls: { outcome: string }[] });
  assert.deepEqual(
    trajectory?.calls.map((call) => call.outcome),
    ["delivered", "delivered"],
  );
});

test("a folder is served once, a port that is taken is said, and neither leaves a process behind", { timeout: 300_000 }, async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "hello" }));
  const out = fresh();
  const { running } = await serve(engine, out);
  await using _running = running;
  const twice = await cli(["serve", "-e", engine.url, "-o", out, "-p", "0", "--control-port", "0", "--json"]);
  assert.equal(twice.code, 2);
  assert.match(
    jsonOf<{ error: { message: string } }>(twice).error.message,
    new RegExp(`process ${running.child.pid} is at work in ${out}`),
  );

  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const port = String((taken.address() as AddressInfo).port);
  for (const flags of [
    ["--port", port, "--control-port", "0"],
    ["--port", "0", "--control-port", port],
  ]) {
    const refused = await cli(["serve", "-e", engine.url, "-o", fresh(), ...flags]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, new RegExp(`cannot listen on 127.0.0.1:${port}`));
  }
  await new Promise((resolve) => taken.close(resolve));
});

test("an engine without token ids is served as text, and training sessions are refused with what would fix it", async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "hello", quirk: "no_ids" }));
  const { running, served } = await serve(engine, fresh());
  await using _running = running;
  assert.match(running.stderr, /recording text only, nothing of it can be trained/);
  assert.equal(await textOf(await chat(served.url, served.key, hi)), "hello");
  const refused = await fetch(`${served.control_url}/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${served.control_token}` },
    body: JSON.stringify({ purpose: "train" }),
  });
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(await refused.json()), /engine_without_token_ids.*return_token_ids/);
});

test("several engines are served by name, each call at one of them", async () => {
  await using one = await ScriptedEngine.start(() => ({ text: "one" }));
  await using two = await ScriptedEngine.start(() => ({ text: "two" }));
  const running = startCli(["serve", "-e", one.url, "-e", two.url, "-o", fresh(), "-p", "0", "--control-port", "0", "--json"]);
  await using _running = running;
  await running.until(() => running.stdout.includes("\n"));
  const served = JSON.parse(running.stdout) as Served;
  const headers = { authorization: `Bearer ${served.control_token}`, "content-type": "application/json" };
  const said = new Set<string | undefined>();
  for (let index = 0; index < 4; index++) {
    const minted = await fetch(`${served.control_url}/sessions`, { method: "POST", headers, body: "{}" });
    said.add(await textOf(await chat(served.url, ((await minted.json()) as Served).key, hi)));
  }
  assert.deepEqual([...said].sort(), ["one", "two"]);
  const listed = (await (await fetch(`${served.control_url}/engines`, { headers })).json()) as { engines: { name: string }[] };
  assert.deepEqual(
    listed.engines.map((engine) => engine.name),
    ["engine-1", "engine-2"],
  );
});

test("kill -9 between pause and resume leaves no gate shut: the fence is gone, and calls flow after the restart", async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "hello" }));
  const out = fresh();
  const first = await serve(engine, out);
  let fence: string;
  {
    await using running = first.running;
    const headers = { authorization: `Bearer ${first.served.control_token}`, "content-type": "application/json" };
    const paused = await fetch(`${first.served.control_url}/pause`, { method: "POST", headers, body: "{}" });
    fence = ((await paused.json()) as { fence: string }).fence;
    assert.match(fence, /^fence/);
    await running.kill("SIGKILL");
  }
  const second = await serve(engine, out);
  await using _running = second.running;
  assert.equal(await textOf(await chat(second.served.url, first.served.key, hi)), "hello");
  const headers = { authorization: `Bearer ${second.served.control_token}`, "content-type": "application/json" };
  const resumed = await fetch(`${second.served.control_url}/resume`, { method: "POST", headers, body: JSON.stringify({ fence }) });
  assert.equal(resumed.status, 404);
  assert.match(await resumed.text(), /the proxy was restarted/);
});

test("serve says at its start which route leads to no engine, for one may come, and opens no session for a model that is not served", async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "hello" }));
  const flags = ["-o", fresh(), "-p", "0", "--control-port", "0", "--json"];
  const config = join(scratch, "routes.yaml");
  await writeFile(config, `engine: { url: "${engine.url}" }\nroutes: [{ model: judge, engine: nope }]\n`);
  const running = startCli(["serve", "--config", config, ...flags]);
  await using _running = running;
  await running.until(() => running.stdout.includes("\n"));
  assert.match(
    running.stderr,
    /^alidade: routes\.0\.engine is "nope": no engine has this name; there are: vllm: .* until POST \/engines adds it$/m,
  );
  await running.kill("SIGINT");
  await writeFile(config, `engine: { url: "${engine.url}" }\nmodel: nope\n`);
  const refused = await cli(["serve", "--config", config, ...flags]);
  assert.equal(refused.code, 2);
  assert.match(refused.stdout, /model is \\"nope\\": no engine serves it; they serve scripted/);
});
