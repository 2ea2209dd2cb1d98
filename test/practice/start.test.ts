import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { vllm } from "../../engines/vllm.ts";
import { startPracticeEngine } from "../../practice/start.ts";

async function answers(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    (response) => response.ok,
    () => false,
  );
}

test("it starts as a process, serves what it was asked to, and ends with its scope", async () => {
  let url: string;
  {
    await using engine = await startPracticeEngine({ seed: 3, model: "tiny", maxModelLen: 2048 });
    url = engine.url;
    assert.equal(engine.model, "tiny");
    assert.equal(engine.stderrTail(), "");
    assert.ok(await answers(url));
  }
  assert.equal(await answers(url), false);
});

test("the vllm adapter finds in it all that training needs", async () => {
  await using engine = await startPracticeEngine({ maxModelLen: 2048 });
  const client = vllm.create({ baseUrl: engine.url, apiKey: null });
  try {
    const facts = await client.probe(AbortSignal.timeout(20_000));
    assert.deepEqual(facts, { ...facts, models: ["practice"], max_model_len: 2048, token_ids: true, logprobs: true, missing: null });
    assert.equal(facts.logprob_semantics, "raw");
    assert.equal(await client.detokenize?.("practice", [104, 105], AbortSignal.timeout(5_000)), "hi");
  } finally {
    await client.close();
  }
});

test("with processed logprobs it tells which tokens a cut kept, for a top_k below the longest list", async () => {
  const kept = [];
  for (const maxLogprobs of [20, 300]) {
    await using engine = await startPracticeEngine({ maxModelLen: 2048, logprobsMode: "processed_logprobs", maxLogprobs });
    const client = vllm.create({ baseUrl: engine.url, apiKey: null });
    const facts = await client.probe(AbortSignal.timeout(20_000));
    kept.push([facts.logprob_semantics, facts.support]);
    await client.close();
  }
  // Lists are asked for in lengths of 20, 64, 256 and 1024.
  assert.deepEqual(kept, [
    ["processed", { most: 19, bounded: false }],
    ["processed", { most: 255, bounded: false }],
  ]);
});

test("a turn through the vllm adapter has a logprob for every id, and its call in one piece", async () => {
  await using engine = await startPracticeEngine({ maxModelLen: 2048 });
  const client = vllm.create({ baseUrl: engine.url, apiKey: null });
  const text = 'Look.\n<tool_call>\n{"name": "bash", "arguments": {"command":  "ls"}}\n</tool_call>';
  const request = {
    model: "practice",
    messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "go" }] }],
    tools: [{ name: "bash", parameters: { type: "object" }, kind: "function" as const }],
    tool_choice: null,
    sampling: { structured_outputs: { choice: [text] } },
    call_id: "call1",
  };
  try {
    const events = await Array.fromAsync(client.sample(request, AbortSignal.timeout(20_000)));
    const tokens = events.filter((event) => event.type === "tokens");
    const logprobs = tokens.flatMap((event) => event.logprobs);
    assert.ok(logprobs.length > 20 && logprobs.every((logprob) => logprob !== null && logprob <= 0));
    assert.equal(logprobs.length, tokens.flatMap((event) => event.token_ids).length);
    const call = events.find((event) => event.type === "tool-call");
    assert.deepEqual([call?.name, call?.arguments], ["bash", '{"command":  "ls"}']);
    const end = events.at(-1);
    assert.ok(end?.type === "end");
    assert.equal(end.finish_reason, "tool_calls");
    assert.equal(end.usage.sampled_tokens, logprobs.length);
  } finally {
    await client.close();
  }
});

test("the signal ends it", async () => {
  const ends = new AbortController();
  await using engine = await startPracticeEngine({ signal: ends.signal });
  ends.abort();
  const patience = AbortSignal.timeout(20_000);
  while (await answers(engine.url)) await sleep(5, undefined, { signal: patience });
  await assert.rejects(startPracticeEngine({ signal: ends.signal }), { name: "AbortError" });
});

test("an engine that cannot start says why", async () => {
  await using engine = await startPracticeEngine();
  const port = Number(new URL(engine.url).port);
  await assert.rejects(startPracticeEngine({ port }), { code: "engine_unreachable", message: /EADDRINUSE/ });
  await assert.rejects(startPracticeEngine({ maxModelLen: 0 }), {
    code: "engine_unreachable",
    message: /--max-model-len is a whole number/,
  });
});

test("it does not outlive a parent that was killed", async () => {
  const start = fileURLToPath(new URL("../../practice/start.ts", import.meta.url));
  const program = `import(${JSON.stringify(start)}).then(async ({ startPracticeEngine }) => console.log((await startPracticeEngine()).url));`;
  const parent = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: ["ignore", "pipe", "inherit"] });
  const [url] = await once(createInterface({ input: parent.stdout }), "line");
  assert.ok(await answers(url));
  parent.kill("SIGKILL");
  const patience = AbortSignal.timeout(20_000);
  while (await answers(url)) await sleep(5, undefined, { signal: patience });
});
