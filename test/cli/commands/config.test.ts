import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { SessionOptions } from "../../../base/schema/session-spec.ts";
import { enginesOf } from "../../../cli/commands/flags/engine-flags.ts";
import { openEngines } from "../../../cli/commands/proxy/open-engine.ts";
import { Config, sessionOptionsOf } from "../../../cli/config.ts";
import { loadConfig, scalarPaths } from "../../../cli/load-config.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";

const scratch = scratchFolder("config");

test("a flag goes over the environment, which goes over the file, key by key", async () => {
  const file = join(scratch, "run.yaml");
  await writeFile(file, "samples: 2\nretries: 3\nengine: { url: http://file:1, kind: vllm }\nconcurrency: { run: 7 }\n");
  const env = { ALIDADE_SAMPLES: "5", ALIDADE_ENGINE_URL: "http://environment:2", ALIDADE_UNSAFE_HOST: "true", ALIDADE_OUT: "2026" };
  const config = await loadConfig({ file, env, overrides: { engine: { url: "http://flag:3" }, purpose: undefined } });
  assert.deepEqual([config.retries, config.samples, config.engine.url, config.unsafe_host], [3, 5, "http://flag:3", true]);
  assert.deepEqual(config.concurrency, { init: 2, run: 7, evaluation: 0 });
  assert.equal(config.out, "2026", "a text stays a text, whatever it looks like");

  const printed = await cli(["config", "-c", file], { env });
  assert.equal(printed.code, 0, printed.stderr);
  assert.deepEqual(Config.parse(parse(printed.stdout)), await loadConfig({ file, env }));
});

test("every option of a session is a key of the configuration, and reaches the session as one object", async () => {
  const file = join(scratch, "options.yaml");
  const chosen = {
    purpose: "eval",
    model: "m",
    sampling: { seed: 1 },
    seed: 7,
    budgets: { max_turns: 3 },
    train_classes: ["main"],
    restore: "full",
    continuity: "off",
    policy_mode: "pin",
    any_model: true,
    pinned_policy: { version: "v1", step: 1 },
    allow_fields: ["chat_template_kwargs"],
    fetch_images: ["https://images.example.com"],
  };
  assert.deepEqual(Object.keys(chosen).sort(), Object.keys(SessionOptions.shape).sort());
  await writeFile(file, JSON.stringify(chosen));
  const config = await loadConfig({ file, env: {} });
  assert.deepEqual(sessionOptionsOf(config), chosen);
  assert.deepEqual(SessionOptions.parse(chosen), chosen);
  for (const verb of ["run", "record", "serve"]) {
    const { stdout } = await cli([verb, "--help"]);
    for (const flag of ["--model <string>", "--restore <string>", "--continuity <string>", "--policy-mode <string>"])
      assert.ok(stdout.includes(flag), `${verb} ${flag}`);
  }
});

test("what the environment or a file says of the one engine's kind and key holds for each of several that says nothing else", async () => {
  const file = join(scratch, "several.yaml");
  await writeFile(file, "engine: { kind: sglang, api_key_env: FILE_KEY }\n");
  const engines = async (options: Parameters<typeof loadConfig>[0]) =>
    (await loadConfig({ env: {}, ...options })).engines?.map(({ kind, api_key_env }) => [kind, api_key_env]);
  const urls = ["http://a:1", "http://b:2"];
  const env = { ALIDADE_ENGINE_KIND: "llama-cpp" };
  assert.deepEqual(await engines({ file, overrides: enginesOf({ engine: urls }) }), Array(2).fill(["sglang", "FILE_KEY"]));
  assert.deepEqual(await engines({ env, overrides: enginesOf({ engine: urls }) }), Array(2).fill(["llama-cpp", undefined]));
  assert.deepEqual(await engines({ env, overrides: enginesOf({ engine: urls, kind: "vllm" }) }), Array(2).fill(["vllm", undefined]));
  await writeFile(file, "engines: [{ name: a, url: http://a:1 }, { name: b, url: http://b:2, kind: sglang }]\n");
  assert.deepEqual(await engines({ file, env }), [
    ["llama-cpp", undefined],
    ["sglang", undefined],
  ]);
});

test("what is done about lost answers holds for each engine that says nothing else, and reaches the proxy", async () => {
  const file = join(scratch, "lost.yaml");
  const list = "[{ name: a, url: http://127.0.0.1:1 }, { name: b, url: http://127.0.0.1:2, resample_lost: false }]";
  await writeFile(file, `engine: { resample_lost: true }\nengines: ${list}\n`);
  await using opened = await openEngines(await loadConfig({ env: {}, file }), AbortSignal.timeout(20_000));
  assert.deepEqual(
    opened.engines.map(({ name, resampleLost }) => [name, resampleLost]),
    [
      ["a", true],
      ["b", false],
    ],
  );
});

test("a variable of ours that nothing reads is named, with the one that was perhaps meant, and is no error", async () => {
  const file = join(scratch, "named.yaml");
  await writeFile(file, "engine: { api_key_env: ALIDADE_MY_KEY }\n");
  const tokens = { ALIDADE_CONTROL_TOKEN: "t", ALIDADE_SERVICE_TOKEN: "t" };
  const known = { ...tokens, ALIDADE_CACHE: "/c", ALIDADE_DOOR: "auto", ALIDADE_TEST_ALL: "1", ALIDADE_MY_KEY: "k" };
  const slips = { ALIDADE_SAMPELS: "8", ALIDADE_TASKS: "x", ALIDADE_CONCURRENCY_RUNS: "", ALIDADE_ENGINE_ULR: "u", ALIDADE_SOMETHING: "y" };
  const { code, stderr } = await cli(["config", "-c", file], { env: { ...known, ...slips, ALIDADE_SAMPLES: "5" } });
  assert.equal(code, 0, stderr);
  assert.deepEqual(stderr.trim().split("\n"), [
    "alidade: the variable ALIDADE_SAMPELS is unknown and does nothing: was ALIDADE_SAMPLES meant?",
    "alidade: the variable ALIDADE_TASKS is unknown and does nothing: tasks is no single value, so it stands in the run file",
    "alidade: the variable ALIDADE_ENGINE_ULR is unknown and does nothing: was ALIDADE_ENGINE_URL meant?",
    "alidade: the variable ALIDADE_SOMETHING is unknown and does nothing: `alidade config --variables` lists those that there are",
  ]);
  await mkdir(join(scratch, "sessions"));
  for (const verb of [["serve"], ["record", "--", "true"], ["doctor"], ["run", "tasks"], ["audit", "--run", scratch]]) {
    const said = await cli(verb, { env: { ALIDADE_SAMPELS: "8" } });
    assert.equal(said.stderr.includes("was ALIDADE_SAMPLES meant?"), true, `${verb[0]}: ${said.stderr}`);
  }
});

test("every kind of wrong value is named with its key, and no value makes it crash", async () => {
  const cases: [string, Record<string, string>, RegExp][] = [
    ["samples: [1]", {}, /samples is \[1\]/],
    ["", { ALIDADE_SAMPLES: "[" }, /samples is "\["/],
    ["", { ALIDADE_SAMPLES: "1.5" }, /samples is 1\.5/],
    ["", { ALIDADE_UNSAFE_HOST: "maybe" }, /unsafe_host is "maybe"/],
    ["harness: { comand: [x] }", {}, /"harness\.comand" is no key/],
    ["harness: { command: [] }", {}, /harness\.command is \[\]/],
    ["sampling: [{ temperature: hot }]", {}, /sampling\.0\.temperature is "hot"/],
    ["engine: http://127.0.0.1:8000", {}, /engine is "http:\/\/127\.0\.0\.1:8000"/],
    ["engine: { url: http://one:1 }\nengines: [{ name: a, url: http://two:2 }]", {}, /has engine\.url and engines: give the one/],
    ["- a list", {}, /holds no mapping/],
    ['model: ""', {}, /model is "": give the name/],
    ["bounds: { connections: 0 }", {}, /bounds\.connections is 0: expected number to be >0/],
    ["fetch_images: [images.example]", {}, /fetch_images\.0 is "images\.example": give an origin/],
    ['allow_fields: [""]', {}, /allow_fields\.0 is "": give the name/],
    ['policy: { version: "" }', {}, /policy\.version is "": give the trainer's name/],
    ["routes: [{ request_class: titel }]", {}, /routes\.0\.request_class is "titel": expected a kind of call: main, title/],
    ["a: [", {}, /is no YAML/],
  ];
  for (const [text, env, message] of cases) {
    const file = join(scratch, "wrong.yaml");
    await writeFile(file, text);
    await assert.rejects(loadConfig({ file, env }), (error: Error & { code?: string }) => {
      assert.equal(error.code, "config_invalid", text);
      assert.match(error.message, message);
      return true;
    });
  }
  await assert.rejects(loadConfig({ file: join(scratch, "none.yaml"), env: {} }), /cannot read the run file .*none\.yaml/);
});

test("the schema names every key with its meaning, and every scalar has a variable", async () => {
  const schema = jsonOf2(await cli(["config", "--schema"])) as {
    properties: Record<string, { description?: string; properties?: object }>;
  };
  assert.deepEqual(Object.keys(schema.properties).sort(), Object.keys(Config.shape).sort());
  for (const [key, value] of Object.entries(schema.properties)) assert.ok(value.description || value.properties, `${key} says what it is`);
  const variables = jsonOf<Record<string, string>>(await cli(["config", "--variables", "--json"]));
  assert.equal(variables.ALIDADE_ENGINE_URL, "engine.url");
  assert.deepEqual(
    Object.values(variables),
    scalarPaths().map((path) => path.join(".")),
  );
  assert.match((await cli(["config", "--variables"])).stdout, /^ALIDADE_CONCURRENCY_RUN +concurrency\.run$/m);
  assert.equal((jsonOf2(await cli(["config", "--json"])) as Config).samples, 4);
});

/** Printed over many lines. */
function jsonOf2({ stdout }: { stdout: string }): unknown {
  return JSON.parse(stdout);
}
