import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { type Served, served } from "../../fakes/proxies/served.ts";
import { chatHarness } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("record");
let folders = 0;
const fresh = (): string => join(scratch, `${folders++}`);
const node = process.execPath;

async function trajectoriesOf(out: string): Promise<Trajectory[]> {
  const lines = (await readFile(join(out, "trajectories.jsonl"), "utf8")).trimEnd().split("\n");
  return lines.map((line) => Trajectory.parse(JSON.parse(line)));
}

const talk = (request: { messages: { role: string }[] }) =>
  request.messages.length === 1 ? { tool_calls: [{ name: "bash", arguments: '{"command":"echo tool output"}' }] } : { text: "all done" };

test("record runs a program as it is, passes its exit code on and leaves its trajectory", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const out = fresh();
  const result = await cli(["record", "--engine", engine.url, "--out", out, "--", node, chatHarness, "say --help"], {
    env: { HARNESS_EXIT: "7" },
  });
  assert.equal(result.code, 7, result.stderr);
  assert.equal(result.stdout, "all done\n", "standard output is the program's own");
  assert.match(result.stderr, /2 calls, \d+ sampled tokens/);
  const [trajectory, ...more] = await trajectoriesOf(out);
  assert.deepEqual(more, []);
  assert.deepEqual([trajectory?.purpose, trajectory?.status, trajectory?.traces.length], ["live", "recorded", 1]);
  assert.deepEqual(
    trajectory?.calls.map((call) => [call.match, call.outcome]),
    [
      ["root", "delivered"],
      ["exact", "delivered"],
    ],
  );
  assert.match(JSON.stringify(engine.requests[1]?.messages.at(-1)), /tool output/);
});

test("a program that names rollouts in its calls is recorded as one session each, and show finds each by its name", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const out = fresh();
  const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "hi" }] });
  const script = `for (const name of ["g1-0", "g1-1"])
    await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
      method: "POST", body: ${JSON.stringify(body)},
      headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json",
        "x-alidade-task": "slugify", "x-alidade-group": "g1", "x-alidade-sample": name.at(-1), "x-alidade-rollout": name },
    });`;
  const result = await cli(["record", "--engine", engine.url, "--out", out, "--json", "--", node, "--input-type=module", "-e", script]);
  assert.equal(result.code, 0, result.stderr);
  const said = jsonOf<{ calls: number; sessions: { rollout_id: string }[]; error?: unknown }>(result);
  assert.deepEqual([said.calls, said.sessions.map(({ rollout_id }) => rollout_id), said.error], [2, ["g1-0", "g1-1"], undefined]);
  const kept = await trajectoriesOf(out);
  assert.deepEqual(
    kept.map(({ rollout_id, group }) => [rollout_id, group?.id]),
    [
      ["g1-0", "g1"],
      ["g1-1", "g1"],
    ],
  );
  assert.match((await cli(["show", "g1-1", "--run", out])).stdout, /g1-1/);
});

test("record asks the engine whose weights it serves: another name is refused before the program runs, and the same one is said", async () => {
  await using engine = await ScriptedEngine.start(talk);
  engine.weightVersion = "step-3";
  const out = fresh();
  const config = `${out}.yaml`;
  const record = async (policy: string) => {
    await writeFile(config, `engine: { url: ${engine.url} }\npolicy: ${policy}\n`);
    return cli(["record", "-c", config, "--out", out, "--", node, chatHarness, "hello"]);
  };
  const refused = await record("{ version: nope, step: 99 }");
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /would be "nope", but engine "vllm" says that it serves "step-3".*engine_version/);
  assert.deepEqual([refused.stdout, engine.requests.length], ["", 0]);
  const named = await record("{ version: weights, step: 3, engine_version: step-3 }");
  assert.match(named.stderr, /policy weights \(step 3\) of engine vllm: the engine says the same/);
  assert.deepEqual((await trajectoriesOf(out))[0]?.calls[0]?.policy.start, { version: "weights", step: 3 });
  engine.weightVersion = null;
  assert.match((await record("{ version: step-3 }")).stderr, /policy step-3 of engine vllm: unchecked, for the engine tells no version/);
});

test("record sets the usual variables of every API shape, and they lead to the proxy", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const print = `console.log(JSON.stringify(process.env))`;
  const { stdout } = await cli(["record", "--engine", engine.url, "--out", fresh(), "--", node, "-e", print]);
  const env = JSON.parse(stdout) as Record<string, string>;
  const base = env.OPENAI_BASE_URL?.replace(/\/v1$/, "");
  assert.match(env.OPENAI_BASE_URL ?? "", /^http:\/\/127\.0\.0\.1:\d+\/v1$/);
  assert.deepEqual([env.ANTHROPIC_BASE_URL, env.GOOGLE_GEMINI_BASE_URL], [base, base]);
  assert.match(env.OPENAI_API_KEY ?? "", /^sk-ali-/);
  assert.deepEqual([env.ANTHROPIC_API_KEY, env.GEMINI_API_KEY], [env.OPENAI_API_KEY, env.OPENAI_API_KEY]);
});

test("a program that calls no model is an error in words, and a failure even where it says 0", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const out = fresh();
  const result = await cli(["record", "--engine", engine.url, "--out", out, "--", "true"]);
  assert.equal(result.code, 1);
  assert.match(result.stderr, /true made no call through the proxy.*OPENAI_BASE_URL/);
  const failed = await cli(["record", "--engine", engine.url, "--out", fresh(), "--json", "--", "sh", "-c", "exit 5"]);
  assert.equal(failed.code, 5);
  assert.deepEqual(jsonOf<{ error: { code: string } }>(failed).error.code, "no_call_seen");
  assert.equal(failed.stdout.trim().split("\n").length, 1, "one JSON object");
});

test("if all requests of a program are refused, the error quotes the refusal and does not say that it made none", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const ask = `await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-typo", messages: [{ role: "user", content: "hi" }] }),
  });`;
  const { code, stderr } = await cli(["record", "--engine", engine.url, "--out", fresh(), "--", node, "--input-type=module", "-e", ask]);
  assert.equal(code, 1);
  assert.match(stderr, /every request of .* was refused; the last one: no engine serves the model "gpt-typo".*--any-model/s);
});

test("a program that is not there, and one that a signal ends, are told apart from one that failed", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const missing = await cli(["record", "--engine", engine.url, "--out", fresh(), "--", "no-such-program-here"]);
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /there is no program "no-such-program-here"/);
  const killed = await cli(["record", "--engine", engine.url, "--out", fresh(), "--", "sh", "-c", "kill -9 $$"]);
  assert.equal(killed.code, 137);
});

test("--purpose train at an engine without token ids is refused with what would fix it; live goes on as text and says so", async () => {
  await using engine = await ScriptedEngine.start((request) => ({
    ...("messages" in request && !request.probe ? talk(request) : {}),
    quirk: "no_ids",
  }));
  const refused = await cli(["record", "-e", engine.url, "-o", fresh(), "--purpose", "train", "--json", "--", node, chatHarness]);
  assert.equal(refused.code, 2);
  const { error } = jsonOf<{ error: { code: string; message: string } }>(refused);
  assert.equal(error.code, "engine_without_token_ids");
  assert.match(error.message, /return_token_ids/);
  assert.equal(engine.requests.length, 0, "the program was not started");
  const out = fresh();
  const live = await cli(["record", "-e", engine.url, "-o", out, "--", node, chatHarness]);
  assert.equal(live.code, 0);
  assert.match(live.stderr, /recording text only, nothing of it can be trained: .*return_token_ids/);
  const [trajectory] = await trajectoriesOf(out);
  assert.equal(trajectory?.fidelity.trainable_tokens, 0);
  assert.equal(trajectory?.calls.length, 2);
});

test("--json ends with one object that names session, calls and file", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const out = fresh();
  const result = await cli(["record", "-e", engine.url, "-o", out, "--json", "--", node, chatHarness]);
  const said = jsonOf<{ session_id: string; calls: number; exit_code: number; trajectories: string }>(result);
  assert.deepEqual([said.calls, said.exit_code, said.trajectories], [2, 0, join(out, "trajectories.jsonl")]);
  const shown = await cli(["show", said.session_id, "--run", out]);
  assert.equal(shown.code, 0);
  assert.match(shown.stdout, /all done/);
});

test("programs that are recorded into one folder at the same time all leave their trajectory", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const out = fresh();
  const results = await Promise.all([1, 2, 3].map(() => cli(["record", "-e", engine.url, "-o", out, "--", node, chatHarness])));
  assert.deepEqual(
    results.map((result) => result.code),
    [0, 0, 0],
    results.map((result) => result.stderr).join(""),
  );
  const trajectories = await trajectoriesOf(out);
  assert.equal(new Set(trajectories.map((one) => one.session_id)).size, 3);
});

test("an engine that is not there, an URL that is none and a server that is no engine are told apart", async () => {
  await using html = await webServer();
  const cases = [
    ["http://127.0.0.1:9", 1, "engine_unreachable", /cannot reach the engine at http:\/\/127\.0\.0\.1:9/],
    ["not a url", 2, "config_invalid", /engine\.url is "not a url": give an http/],
    ["ftp://127.0.0.1", 2, "config_invalid", /engine\.url is "ftp:/],
    [html.url, 1, "engine_error", /is no vllm server: is --engine its URL\?/],
  ] as const;
  for (const [url, code, errorCode, message] of cases) {
    const result = await cli(["record", "--engine", url, "--out", fresh(), "--json", "--", "true"]);
    const { error } = jsonOf<{ error: { code: string; message: string } }>(result);
    assert.deepEqual([result.code, error.code], [code, errorCode], url);
    assert.match(error.message, message);
  }
});

test("a route to an engine that is not there is refused before the program runs", async () => {
  await using engine = await ScriptedEngine.start(talk);
  const config = `${fresh()}.yaml`;
  await writeFile(config, `engine: { url: "${engine.url}" }\nroutes: [{ agent: main, engine: nope }]\n`);
  const result = await cli(["record", "--config", config, "--out", fresh(), "--json", "--", "true"]);
  const { error } = jsonOf<{ error: { code: string; message: string } }>(result);
  assert.deepEqual([result.code, error.code], [2, "config_invalid"]);
  assert.equal(error.message, 'routes.0.engine is "nope": no engine has this name; there are: vllm');
});

async function webServer(): Promise<Served> {
  return served(createServer((_request, response) => response.setHeader("content-type", "text/html").end("<html>hello</html>")));
}
