/** A user's own file in the place of a name: docs/plug-ins.md is executed here, and what is no plug-in is refused in a sentence. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { AlidadeError, asAlidadeError } from "../../../base/errors.ts";
import { loadConfig } from "../../../cli/load-config.ts";
import { harnessRegistry } from "../../../harnesses/registry.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf, root } from "../../fakes/processes/cli.ts";

const scratch = scratchFolder("plug-ins");
const at = (name: string): string => join(scratch, name);

/** The examples of the page, with this checkout as the package. */
before(async () => {
  const page = await readFile(join(root, "docs/plug-ins.md"), "utf8");
  const blocks = [...page.matchAll(/```ts\n\/\/ ([\w.-]+)\n([\s\S]*?)```/g)];
  assert.equal(blocks.length, 8);
  const index = pathToFileURL(join(root, "index.ts")).href;
  for (const [, name = "", source = ""] of blocks)
    await writeFile(at(name), source.replaceAll('from "alidade"', `from ${JSON.stringify(index)}`));
  await writeFile(at("questions.tsv"), "q1\tSay done.\tdone\nq2\tSay more.\tmore\n");
});

for (const [file, kind, more] of [
  ["my-engine.ts", "engine", () => ["--engine", "http://127.0.0.1:9"]],
  ["my-harness.ts", "harness", () => []],
  ["my-grader.ts", "grader", () => []],
  ["my-exporter.ts", "export format", () => []],
  ["my-sandbox.ts", "sandbox backend", () => []],
  ["my-allocation.ts", "allocation policy", () => []],
  ["my-branching.ts", "branching policy", () => []],
  ["my-task-format.ts", "task format", () => ["--tasks", at("questions.tsv"), "--grader", at("my-grader.ts")]],
] as const)
  test(`the page's ${file} keeps the contract: ${kind}`, { timeout: 300_000 }, async () => {
    const said = await cli(["plugin", "check", at(file), "--json", ...more()]);
    const { kind: found, checks } = jsonOf<{ kind: string; checks: { says: string; failure: string | null }[] }>(said);
    assert.deepEqual([found, checks.filter(({ failure }) => failure !== null)], [kind, []]);
    assert.ok(checks.length > 0);
    assert.equal(said.code, 0);
  });

test("a run uses an engine, a harness, a grader, a sandbox and a task format of one's own, and its rows leave by one's own exporter", {
  timeout: 300_000,
}, async () => {
  // Curl is not on every machine; the harness of the page is the same with Node.
  const harness = (await readFile(at("my-harness.ts"), "utf8")).replace(
    /argv: \[.*\],\n/,
    `argv: ["node", join(import.meta.dirname, "ask.mjs"), baseUrl, apiKey, home],\n`,
  );
  await writeFile(at("node-once.ts"), `import { join } from "node:path";\n${harness}`);
  await writeFile(
    at("ask.mjs"),
    `import { readFileSync } from "node:fs";
const [url, key, home] = process.argv.slice(2);
const body = readFileSync(home + "/ask.json");
const answer = await fetch(url + "/v1/chat/completions", { method: "POST", headers: { authorization: "Bearer " + key, "content-type": "application/json" }, body });
console.log(await answer.text());
process.exit(answer.ok ? 0 : 1);\n`,
  );
  await mkdir(at("config"), { recursive: true });
  // Paths in a run file are relative to it.
  await writeFile(
    at("config/run.yaml"),
    `engine: { kind: ../my-engine.ts, url: http://127.0.0.1:9 }\nharness: ../node-once.ts\nsandbox: ../my-sandbox.ts\nunsafe_host: true\npurpose: eval\nsamples: 1\nretries: 0\ngraders: [../my-grader.ts]\ntask_formats: [../my-task-format.ts]\ntasks: [../questions.tsv]\nout: ${JSON.stringify(at("runs"))}\n`,
  );
  const said = await cli(["run", "-c", at("config/run.yaml"), "--json"]);
  const { run, rollouts } = jsonOf<{
    run: string;
    rollouts: { task_id: string; harness: string; verdict: { reward: number; grader: string }; sandbox: object }[];
  }>(said);
  assert.deepEqual(
    rollouts.map(({ task_id, harness: name, verdict }) => [task_id, name, verdict?.grader, verdict?.reward]),
    [
      ["q1", "curl-once", "says", 1],
      ["q2", "curl-once", "says", 1],
    ],
    said.stderr,
  );
  const rows = await cli(["export", "--run", run, "--format", at("my-exporter.ts")]);
  assert.equal(rows.code, 0, rows.stderr);
  assert.deepEqual(
    rows.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).reward),
    [1, 1],
  );
});

test("a grader that asks models is given a session of its own at the proxy, which is recorded and never trained", {
  timeout: 300_000,
}, async () => {
  const judge = (await readFile(at("my-grader.ts"), "utf8")).replace('name: "says"', 'name: "asks",\n  asksModels: true').replace(
    "{ trajectory, signal }) {",
    `{ sampler, signal }) {
    const answer = await fetch(sampler.url + "/v1/chat/completions", { method: "POST", signal, headers: { authorization: "Bearer " + sampler.key, "content-type": "application/json" }, body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "I judge it " + word }] }) });
    const text = (await answer.json()).choices[0].message.content;
    return { ...verdict, reward: text === "I judge it done" ? 0.5 : 0 };
  },
  async unused({ word }, { trajectory, signal }) {`,
  );
  await writeFile(
    at("my-judge.ts"),
    `const verdict = { components: {}, status: "graded", tier: "T3", isolation: "container", grader: "asks", evidence: {}, error: null, duration_ms: 0 } as const;\n${judge.replace("} satisfies Grader<GraderSpec & { word: string }>;", "};")}`,
  );
  await writeFile(at("judged.yaml"), "task_id: judged\ninstruction: Say done.\ngrader: { kind: asks, word: done }\n");
  await writeFile(
    at("judge-run.yaml"),
    `engine: { kind: ./my-engine.ts, url: http://127.0.0.1:9 }\nharness: ./node-once.ts\nsandbox: process\nunsafe_host: true\npurpose: eval\nsamples: 1\nretries: 0\ngraders: [./my-judge.ts]\ntasks: [judged.yaml]\nout: ${JSON.stringify(at("judged"))}\n`,
  );
  const said = await cli(["run", "-c", at("judge-run.yaml"), "--json"]);
  const { run, rollouts } = jsonOf<{ run: string; rollouts: { rollout_id: string; session_id: string; verdict: { reward: number } }[] }>(
    said,
  );
  assert.equal(rollouts[0]?.verdict?.reward, 0.5, said.stdout + said.stderr);
  const logs = await Promise.all((await readdir(join(run, "sessions"))).map((name) => readFile(join(run, "sessions", name), "utf8")));
  const opened = logs.map((log) => JSON.parse(log.split("\n")[0] ?? "").spec);
  const own = opened.find(({ labels }) => labels.grades === rollouts[0]?.rollout_id);
  assert.deepEqual([logs.length, own?.purpose, own?.sandboxed], [2, "judge", false]);
});

test("a file that is no plug-in is refused in one sentence that names file and member, wherever it is named", async () => {
  const files: Record<string, [string, RegExp]> = {
    "empty.ts": ["export const x = 1;", /no default export/],
    "half.ts": ['export default { name: "half", title: "Half" };', /has no member \w+ \(a /],
    "kind.ts": [
      'export default { name: 7, title: "t", create: 1, matches: 1, load: 1, write: 1, grade: 1, launch: 1 };',
      /the member name .* is no text/,
    ],
    "broken.ts": ["export default {", /cannot be loaded/],
    "throws.js": ['throw new Error("not today");', /not today/],
    "taken.ts": ['export default { name: "vllm", title: "t", create: () => ({}) };', /"vllm" is that of a built-in one|has no member/],
    "path.ts": ['export default { name: "../x", title: "t", create: () => ({}) };', /"\.\.\/x" must be|has no member/],
    "notes.json": ["{}", /TypeScript or JavaScript/],
  };
  await writeFile(at("one.yaml"), "task_id: one\ninstruction: i\ngrader: { kind: script, command: [x] }\n");
  for (const [name, [source, why]] of Object.entries(files)) {
    await writeFile(at(name), source);
    for (const args of [
      ["doctor", "--engine", "http://127.0.0.1:9", "--kind", at(name)],
      [
        "run",
        at("one.yaml"),
        "--engine",
        "http://127.0.0.1:9",
        "--harness",
        at(name),
        "--sandbox",
        "process",
        "--unsafe-host",
        "--out",
        at("none"),
      ],
      ["check", at("one.yaml"), "--sandbox", at(name)],
      ["check", at("one.yaml"), "--sandbox", "process", "--unsafe-host", "--grader", at(name)],
      ["check", at("one.yaml"), "--sandbox", "process", "--unsafe-host", "--task-format", at(name)],
      ["export", "--format", at(name)],
      ["plugin", "check", at(name)],
    ]) {
      const { code, stdout, stderr } = await cli([...args, "--json"]);
      const { error } = jsonOf<{ error: { code: string; message: string } }>({ code, stdout, stderr });
      assert.deepEqual([code, error.code], [2, "plugin_invalid"], `${args.join(" ")}: ${error.message}`);
      assert.match(error.message, why, args[0]);
      assert.ok(error.message.includes(at(name)) && !error.message.includes("    at "), error.message);
    }
  }
  const gone = await cli(["doctor", "--engine", "http://127.0.0.1:9", "--kind", "./nowhere.ts"]);
  assert.match(gone.stderr, /nowhere\.ts cannot be used as an engine: it cannot be loaded/);
});

test("a file that never ends loading is refused as well", async (t) => {
  await writeFile(at("waits.ts"), "await new Promise(() => undefined);\nexport default {};\n");
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const loading = assert.rejects(harnessRegistry.load(at("waits.ts")), { code: "plugin_invalid", message: /was not done after 60 s/ });
  t.mock.timers.tick(60_000);
  await loading;
});

test("a task file and the control listener can name no file of code", async () => {
  await writeFile(at("hostile.yaml"), `task_id: h\ninstruction: i\ngrader: { kind: ${JSON.stringify(at("my-grader.ts"))}, word: x }\n`);
  await assert.rejects(loadTasks(at("hostile.yaml")), {
    code: "task_invalid",
    message: /There is no grader ".*my-grader\.ts"; there are: tests, /,
  });
  await writeFile(
    at("marker.ts"),
    `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(at("ran"))}, "");\nexport default {};\n`,
  );
  await using proxy = await HarnessProxy.start({ store: new MemoryStore(), version: "test", controlToken: "t" });
  const answer = await fetch(`${proxy.controlUrl}/engines`, {
    method: "POST",
    headers: { authorization: "Bearer t", "content-type": "application/json" },
    body: JSON.stringify({ name: "e", url: "http://127.0.0.1:9", kind: at("marker.ts") }),
  });
  assert.equal(answer.status, 400);
  await assert.rejects(readFile(at("ran")), { code: "ENOENT" });
});

test("paths of plug-ins are relative to the file that names them, or to the folder of the flag", async () => {
  await writeFile(
    at("paths.yaml"),
    "engine: { kind: ./e.ts }\nengines: [{ name: a, url: http://a:1, kind: sub/e.js }]\nharness: ../h.ts\nsandbox: ./s.ts\ngraders: [g.ts]\ntask_formats: [./f.ts]\n",
  );
  const config = await loadConfig({
    file: at("paths.yaml"),
    env: { ALIDADE_SANDBOX: "./other.ts" },
    overrides: { graders: ["./mine.ts"] },
  });
  assert.deepEqual(
    [config.engine.kind, config.engines?.[0]?.kind, config.harness, config.sandbox, config.graders, config.task_formats],
    [at("e.ts"), at("sub/e.js"), join(scratch, "../h.ts"), join(process.cwd(), "other.ts"), [join(process.cwd(), "mine.ts")], [at("f.ts")]],
  );
  await assert.rejects(loadConfig({ env: {}, overrides: { engine: { kind: "vlmm" } } }), {
    code: "config_invalid",
    message: /engine\.kind is "vlmm": expected one of "vllm"\|.*"google", or the file of a plug-in such as \.\/my-engine\.ts/,
  });
});

test("an error of a plug-in keeps its meaning by its code, and no other code is one of ours", () => {
  const coded = asAlidadeError(Object.assign(new Error("gone"), { code: "engine_unreachable" }), "engine_error");
  assert.deepEqual([coded instanceof AlidadeError, coded.code, coded.message], [true, "engine_unreachable", "gone"]);
  for (const code of ["ENOENT", "constructor", 7])
    assert.equal(asAlidadeError(Object.assign(new Error("x"), { code }), "internal").code, "internal");
});

test("an engine of one's own that answers otherwise than it says does not keep the contract", async () => {
  const server = createServer((_request, response) => void response.end("{}"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const lying = (await readFile(at("my-engine.ts"), "utf8")).replace("token_ids: false", "token_ids: true");
    await writeFile(at("lying.ts"), lying);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { code, stderr } = await cli(["plugin", "check", at("lying.ts"), "--engine", url]);
    assert.deepEqual([code, (stderr.match(/DOES NOT HOLD/g) ?? []).length], [1, 1], stderr);
  } finally {
    server.close();
  }
});
