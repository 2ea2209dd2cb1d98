/** `alidade audit` over sessions of the practice engine, whose teacher forcing is the sampling's own arithmetic. */
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startPracticeEngine } from "../../../practice/start.ts";
import { cli } from "../../fakes/processes/cli.ts";
import { recordChat } from "../../fakes/records/record-chat.ts";

test("the audit passes what was sampled, to the last bit, and fails one token that was edited in the log", async () => {
  await using folder = await scratch();
  await using engine = await startPracticeEngine({ seed: 10 });
  await recordChat(engine.url, folder.path, 3);

  const honest = await cli(["audit", "--run", folder.path, "--engine", engine.url, "--json"]);
  assert.equal(honest.code, 0, honest.stderr);
  const audited = JSON.parse(honest.stdout) as { compared: number; worst: number; calls: { status: string }[] };
  assert.deepEqual(
    audited.calls.map((call) => call.status),
    ["ok", "ok", "ok"],
  );
  assert.ok(audited.compared > 20 && audited.worst < 1e-9, honest.stdout);

  await editOneSampledToken(folder.path);
  const edited = await cli(["audit", "--run", folder.path, "--engine", engine.url]);
  assert.equal(edited.code, 1, edited.stdout);
  assert.match(edited.stderr, /call 0: \d+ of \d+ tokens differ; most at sampled token/);
});

test("a program that states no top_p, recorded with --engine practice, is compared", async () => {
  await using folder = await scratch();
  const harness = join(folder.path, "harness.mjs");
  const body = JSON.stringify({ model: "practice", max_tokens: 20, temperature: 1, messages: [{ role: "user", content: "hi" }] });
  await writeFile(
    harness,
    `const headers = { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" };
await (await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST", headers, body: ${JSON.stringify(body)} })).text();`,
  );
  const out = join(folder.path, "out");
  const recorded = await cli(["record", "--engine", "practice", "--out", out, "--", "node", harness]);
  assert.equal(recorded.code, 0, recorded.stderr);
  const { code, stderr } = await cli(["audit", "--run", out, "--engine", "practice"]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^alidade: \d+ tokens compared, .*: all within/m);
});

test("other weights fail the audit", async () => {
  await using folder = await scratch();
  await using engine = await startPracticeEngine({ seed: 10 });
  await using other = await startPracticeEngine({ seed: 11 });
  await recordChat(engine.url, folder.path, 3);
  const { code, stderr } = await cli(["audit", "--run", folder.path, "--engine", other.url]);
  assert.equal(code, 1);
  assert.match(stderr, /Other weights, another precision \(--tolerance\), a context that was not this one, or a cut/);
});

test("an engine that scores nothing, a missing GGUF library and a wrong tolerance are told with what to do", async () => {
  await using folder = await scratch();
  await using engine = await startPracticeEngine({ seed: 10 });
  await recordChat(engine.url, folder.path, 3);
  const cases: [string[], RegExp][] = [
    [["--engine", engine.url, "--kind", "openai-compatible"], /cannot score given tokens: audit with vLLM, SGLang or --gguf/],
    [["--gguf", "/nowhere.gguf"], /npm install .*node-llama-cpp@/],
    [["--tolerance", "-1"], /is no number of nats/],
  ];
  for (const [flags, said] of cases) {
    const { code, stderr } = await cli(["audit", "--run", folder.path, ...flags]);
    assert.notEqual(code, 0);
    assert.match(stderr, said);
  }
});

async function scratch(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "alidade-audit-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Another first token of the first sample, in the log itself. */
async function editOneSampledToken(folder: string): Promise<void> {
  const [name] = await readdir(join(folder, "sessions"));
  const file = join(folder, "sessions", name ?? "");
  const log = await readFile(file, "utf8");
  await writeFile(
    file,
    log.replace(/"sampled_ids":\[(\d+)/, (_, id: string) => `"sampled_ids":[${id === "300" ? 301 : 300}`),
  );
}
