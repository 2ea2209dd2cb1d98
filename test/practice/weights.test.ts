/** Weights of a folder: they give the same numbers as transformers gives for the same files, and can be replaced. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, truncate, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { engineNamed } from "../../engines/registry.ts";
import { newPolicy, type PracticePolicy, score } from "../../practice/generation.ts";
import { readLlamaFolder } from "../../practice/model/llama-folder.ts";
import { PracticeModel } from "../../practice/model/practice-model.ts";
import { createPracticeServer } from "../../practice/server.ts";
import { startPracticeEngine } from "../../practice/start.ts";
import { encode, endOfTurn } from "../../practice/tokenizer/vocabulary.ts";
import { tinyConfig, type WrittenConfig, writeLlamaFolder } from "../fakes/engines/llama-folder.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { root } from "../fakes/processes/cli.ts";
import { consumersPlace } from "../interop/consumers/place.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("weights");
const forever = new AbortController().signal;
const text = Array.from({ length: 30 }, (_, line) => `${line}: the tests of module ${line * 7} fail with code ${line * 31}\n`).join("");

/** A prompt as long as a harness's, with a turn of the taught model. */
const longPrompt = encode(
  `${text.repeat(3)}<|im_start|>user\nPrint the names as initials.<|im_end|>\n<|im_start|>assistant\n<think>\nNames as initials.\n</think>\n\n<tool_call>\n{"name": "bash", "arguments": {"command": "sed -i s/plain/short/ style.js"}}\n</tool_call><|im_end|>`,
);

/** All ways to store the same architecture in a folder. */
const stored: Record<string, { config?: WrittenConfig; dtype?: "BF16" }> = {
  single: {},
  halves: { dtype: "BF16" },
  tied: { config: { ...tinyConfig, tie_word_embeddings: true, num_key_value_heads: 4, num_hidden_layers: 3 } },
  window: { config: { ...tinyConfig, architectures: ["MistralForCausalLM"], model_type: "mistral", sliding_window: 24 } },
};

test("logprobs of a folder are those of transformers on the same files", async (t) => {
  if (!(await need(t, "consumers"))) return;
  const prompts = [encode(text), encode("Read the file."), encode(text.slice(100, 900))];
  for (const [name, { config, dtype }] of Object.entries(stored)) await writeLlamaFolder(join(scratch, name), 5, config, dtype);
  const written = Object.keys(stored).map((name) => ({ name, folder: join(scratch, name), double: true, prompts, most: 1e-5 }));
  const taught = { folder: join(root, "examples/train/model"), prompts: [...prompts, longPrompt] };
  const asked = [
    ...written,
    { ...taught, name: "taught", double: true, most: 1e-5 },
    // As in `npm run train`. The rounding of transformers itself moves a logprob by 1e-5.
    { ...taught, name: "taught, in single precision", double: false, most: 2e-5 },
  ];
  const theirs = await byTransformers(t, asked);
  for (const [at, { name, folder, prompts, most }] of asked.entries()) {
    const policy = newPolicy({ seed: 1, ...(await readLlamaFolder(folder)) });
    const worst = await worstDifference(policy, prompts, theirs[at] ?? []);
    t.diagnostic(`${name}: ${prompts.flat().length} tokens, worst difference ${worst.toExponential(1)}`);
    // We keep keys and values in single precision; transformers computes norms in it.
    assert.ok(worst < most, `${name}: ${worst}`);
  }
});

async function worstDifference(policy: PracticePolicy, prompts: number[][], theirs: number[][]): Promise<number> {
  let worst = 0;
  for (const [at, ids] of prompts.entries()) {
    const ours = await score(policy, ids, 0, forever);
    assert.equal(theirs[at]?.length, ids.length - 1);
    for (const [position, logprob] of (theirs[at] ?? []).entries())
      worst = Math.max(worst, Math.abs(logprob - (ours[position + 1]?.logprob ?? Number.NaN)));
  }
  return worst;
}

type Asked = { folder: string; double: boolean; prompts: number[][] };

async function byTransformers(t: TestContext, asked: Asked[]): Promise<number[][][]> {
  const argv = ["-W", "ignore", join(root, "test/practice/logprobs.py")];
  const env = { ...process.env, CUDA_VISIBLE_DEVICES: "", HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1" };
  const child = spawn(join(consumersPlace(), "venv/bin/python"), argv, { env, signal: t.signal, stdio: ["pipe", "pipe", "pipe"] });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.setEncoding("utf8").on("data", (part: string) => void out.push(part));
  child.stderr.setEncoding("utf8").on("data", (part: string) => void err.push(part));
  child.stdin.end(asked.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const [code] = await once(child, "close");
  assert.equal(code, 0, err.join("").slice(-4_000));
  const lines = out.join("").trim().split("\n");
  return lines.map((line) => z.array(z.array(z.number())).parse(JSON.parse(line)));
}

const broken: Record<string, { says: RegExp; config?: object; ruin?: (folder: string) => Promise<void> }> = {
  "another vocabulary": { says: /config\.json: vocab_size: must be 1024/, config: { vocab_size: 32_000 } },
  "another architecture": { says: /config\.json: model_type: /, config: { model_type: "qwen2" } },
  "positions that are scaled": { says: /config\.json: rope_scaling: /, config: { rope_scaling: { rope_type: "llama3", factor: 8 } } },
  "biases in attention": { says: /config\.json: attention_bias: /, config: { attention_bias: true } },
  "heads that cannot be shared": {
    says: /num_attention_heads 4 is no multiple of num_key_value_heads 3/,
    config: { num_key_value_heads: 3 },
  },
  "more layers than the file has": { says: /model\.safetensors has no tensor model\.layers\.2\./, config: { num_hidden_layers: 3 } },
  "another width than the file has": {
    says: /model\.embed_tokens\.weight is \[1024,32\], and config\.json makes it \[1024,64\]/,
    config: { hidden_size: 64 },
  },
  "half of a file": {
    says: /lm_head\.weight does not have the bytes of its shape/,
    ruin: (folder) => truncate(join(folder, "model.safetensors"), 250_000),
  },
  "an empty file": {
    says: /is no safetensors file, or only a part of one/,
    ruin: (folder) => truncate(join(folder, "model.safetensors"), 0),
  },
  "no JSON": { says: /config\.json is no JSON/, ruin: (folder) => writeFile(join(folder, "config.json"), "{") },
  "other numbers": {
    says: /lm_head\.weight is stored as F64; the embedded engine reads F32, BF16/,
    ruin: async (folder) => {
      const file = await readFile(join(folder, "model.safetensors"));
      file.write('"F64"', file.indexOf('"F32"', file.indexOf("lm_head.weight")));
      await writeFile(join(folder, "model.safetensors"), file);
    },
  },
};

for (const [name, { says, config, ruin }] of Object.entries(broken))
  test(`a folder with ${name} is refused by name, and the old weights are still served`, async () => {
    const folder = join(scratch, name.replaceAll(" ", "-"));
    await writeLlamaFolder(folder, 6);
    const model = await PracticeModel.of(folder, { name: "tiny", seed: 1 });
    const { policy } = model;
    await ruin?.(folder);
    if (config) await writeFile(join(folder, "config.json"), JSON.stringify({ ...tinyConfig, ...config }));
    await assert.rejects(model.reload(folder), says);
    assert.equal(model.policy, policy);
  });

test("a server of a folder serves its weights, reads them again, and says their version", async () => {
  const folder = join(scratch, "policy");
  await writeLlamaFolder(folder, 1);
  await using server = await serverOf(await PracticeModel.of(folder, { name: "tiny", seed: 1 }));
  const first = (await server.get("/weight_info")).weight_version;
  assert.match(String(first), /^sha256:[0-9a-f]{16}$/);
  const before = await server.scores(text);
  assert.deepEqual(await server.scores(text), before);
  await writeLlamaFolder(folder, 2);
  assert.deepEqual(await server.scores(text), before, "a file alone changes nothing");
  await server.post("/collective_rpc", { method: "reload_weights" });
  const after = await server.scores(text);
  assert.notDeepEqual(after, before);
  const second = (await server.get("/weight_info")).weight_version;
  assert.notEqual(second, first, "new weights do not keep the name of the ones before");
  await server.post("/update_weight_version", { new_version: "step-1" });
  assert.equal((await server.get("/weight_info")).weight_version, "step-1");
  assert.equal(await engineNamed("vllm").create({ baseUrl: server.url, apiKey: null }).weightVersion?.(forever), "step-1");
  await writeLlamaFolder(folder, 1);
  await server.post("/collective_rpc", { method: "reload_weights" });
  assert.equal((await server.get("/weight_info")).weight_version, first);
  assert.deepEqual(await server.scores(text), before);
});

test("after a reload, a cached prompt is computed again with the new weights", async () => {
  const folder = join(scratch, "cached");
  await writeLlamaFolder(folder, 1);
  await using server = await serverOf(await PracticeModel.of(folder, { name: "tiny", seed: 1 }));
  const asked = { prompt: encode(text), max_tokens: 3, seed: 4, logprobs: 0, return_token_ids: true };
  const cold = await server.complete(asked);
  assert.equal(cold.cached, 0);
  assert.ok((await server.complete(asked)).cached > 500);
  await writeLlamaFolder(folder, 2);
  await server.post("/collective_rpc", { method: "reload_weights" });
  const other = await server.complete(asked);
  assert.equal(other.cached, 0);
  const alone = await PracticeModel.of(folder, { name: "tiny", seed: 1 });
  const scored = await score(alone.policy, [...asked.prompt, ...other.ids], 0, forever);
  for (const [at, logprob] of other.logprobs.entries())
    assert.ok(Math.abs(logprob - (scored[asked.prompt.length + at]?.logprob ?? Number.NaN)) < 1e-9);
});

test("a request that runs during a reload ends on the weights that it began with", async () => {
  const folder = join(scratch, "running");
  await writeLlamaFolder(folder, 1);
  const model = await PracticeModel.of(folder, { name: "tiny", seed: 1 });
  const { policy } = model;
  await using server = await serverOf(model);
  const asked = { prompt: encode(text), max_tokens: 200, seed: 4, logprobs: 0, return_token_ids: true, logit_bias: { [endOfTurn]: -100 } };
  const running = server.complete(asked);
  while (policy.counted.sampledTokens < 5) await new Promise((resolve) => setImmediate(resolve));
  await writeLlamaFolder(folder, 2);
  await server.post("/collective_rpc", { method: "reload_weights" });
  assert.ok(policy.counted.sampledTokens < 200, "it was over before the reload");
  const { ids, logprobs } = await running;
  const scored = await score(policy, [...asked.prompt, ...ids], 0, forever);
  for (const [at, logprob] of logprobs.entries())
    assert.ok(Math.abs(logprob - (scored[asked.prompt.length + at]?.logprob ?? Number.NaN)) < 1e-9);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /generation_tokens_total 200\n/, "the counter goes on over weights");
});

test("random weights cannot be reloaded, and an unknown method is refused", async () => {
  await using random = await serverOf(new PracticeModel({ name: "practice", seed: 1, maxModelLen: 1024 }));
  assert.equal((await random.send("/collective_rpc", { method: "reload_weights" })).status, 404);
  assert.equal((await random.send("/update_weight_version", { new_version: "x" })).status, 404);
  assert.equal((await fetch(`${random.url}/weight_info`)).status, 404);
  const folder = join(scratch, "methods");
  await writeLlamaFolder(folder, 1);
  await using server = await serverOf(await PracticeModel.of(folder, { name: "tiny", seed: 1 }));
  assert.equal((await server.send("/collective_rpc", { method: "shutdown" })).status, 400);
  await writeFile(join(folder, "config.json"), "{}");
  const refused = await server.send("/collective_rpc", { method: "reload_weights" });
  assert.equal(refused.status, 500);
  assert.match(await refused.text(), /not reloaded, and the ones before are served: .*config\.json: model_type/);
});

test("the server starts on a folder, with the context of its config, and says what is wrong with a bad folder", async () => {
  const folder = join(scratch, "started");
  await writeLlamaFolder(folder, 1);
  await using engine = await startPracticeEngine({ weights: folder, model: "tiny" });
  const models = z.looseObject({ data: z.array(z.looseObject({ max_model_len: z.number() })) });
  assert.equal(models.parse(await (await fetch(`${engine.url}/v1/models`)).json()).data[0]?.max_model_len, 2048);
  await assert.rejects(startPracticeEngine({ weights: folder, maxModelLen: 4096 }), /--max-model-len 4096 is more than the 2048/);
  await assert.rejects(startPracticeEngine({ weights: join(folder, "none") }), /no such file or directory.*none/);
});

const Completion = z.looseObject({
  choices: z.tuple([z.looseObject({ token_ids: z.array(z.number()), logprobs: z.looseObject({ token_logprobs: z.array(z.number()) }) })]),
  usage: z.looseObject({ prompt_tokens_details: z.looseObject({ cached_tokens: z.number() }) }),
});

async function serverOf(model: PracticeModel) {
  const server = createPracticeServer(model);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const engine = engineNamed("vllm").create({ baseUrl: url, apiKey: null });
  const send = (path: string, body: unknown) =>
    fetch(url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const post = async (path: string, body: unknown): Promise<unknown> => {
    const response = await send(path, body);
    const answer = await response.text();
    assert.equal(response.status, 200, answer);
    return JSON.parse(answer);
  };
  return {
    url,
    send,
    post,
    get: async (path: string) => z.record(z.string(), z.unknown()).parse(await (await fetch(url + path)).json()),
    scores: (prompt: string) => engine.score?.(model.name, encode(prompt), forever),
    complete: async (body: unknown) => {
      const { choices, usage } = Completion.parse(await post("/v1/completions", body));
      const [{ token_ids: ids, logprobs }] = choices;
      return { ids, logprobs: logprobs.token_logprobs, cached: usage.prompt_tokens_details.cached_tokens };
    },
    async [Symbol.asyncDispose]() {
      await engine.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
