/** The number of experts is read from the model's folder. Without a readable folder it is unknown. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { expertsOf } from "../../../engines/chat/experts.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("experts");

async function modelWith(name: string, config: string): Promise<string> {
  const folder = join(scratch, name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "config.json"), config);
  return folder;
}

test("the number of experts is read from the configuration, under each name and at each depth that models use", async () => {
  assert.deepEqual(await expertsOf(await modelWith("dense", '{"model_type": "llama", "num_hidden_layers": 2}')), { count: 0, row: null });
  assert.equal((await expertsOf(await modelWith("qwen", '{"num_local_experts": 8, "num_experts_per_tok": 2}')))?.count, 8);
  assert.equal((await expertsOf(await modelWith("seen", '{"text_config": {"n_routed_experts": 256, "n_shared_experts": 1}}')))?.count, 256);
  assert.equal((await expertsOf(await modelWith("list", '{"moe_num_experts": [64, 64]}')))?.count, 64);
});

test("the row of a token is read where both of its numbers stand, also deeper, and is unknown without one of them", async () => {
  const rowOf = async (config: unknown) => (await expertsOf(await modelWith("row", JSON.stringify(config))))?.row;
  const text = { num_hidden_layers: 48, num_experts_per_tok: 8 };
  assert.deepEqual(await rowOf({ ...text, num_experts: 128 }), { layers: 48, top_k: 8 });
  assert.deepEqual(await rowOf({ vision_config: { num_hidden_layers: 27 }, text_config: text }), { layers: 48, top_k: 8 });
  for (const config of [
    { num_hidden_layers: 48 },
    { num_experts_per_tok: 8 },
    { ...text, num_hidden_layers: 0 },
    { ...text, num_experts_per_tok: "8" },
  ])
    assert.equal(await rowOf(config), null);
});

test("a model by its name is read in Hugging Face's cache of this machine", async () => {
  const model = join(scratch, "hub", "models--Own--Moe");
  const snapshot = join(model, "snapshots", "abc123");
  await mkdir(join(model, "refs"), { recursive: true });
  await mkdir(snapshot, { recursive: true });
  await writeFile(join(model, "refs", "main"), "abc123");
  await writeFile(join(snapshot, "config.json"), '{"num_experts": 8}');
  for (const env of [{ HF_HOME: scratch }, { HF_HUB_CACHE: join(scratch, "hub") }])
    assert.equal((await expertsOf("Own/Moe", env))?.count, 8);
  for (const name of ["Own/Other", "../Moe", "Own/../Moe", "Moe"]) assert.equal(await expertsOf(name, { HF_HOME: scratch }), null);
  await writeFile(join(model, "refs", "main"), "../../elsewhere");
  assert.equal(await expertsOf("Own/Moe", { HF_HOME: scratch }), null);
});

test("the number of experts is unknown if the folder is elsewhere or cannot be read", async () => {
  assert.equal(await expertsOf(null), null);
  assert.equal(await expertsOf("Qwen/Qwen3-30B-A3B", { HF_HOME: scratch }), null);
  assert.equal(await expertsOf(join(scratch, "none")), null);
  assert.equal(await expertsOf(await modelWith("broken", "{")), null);
});
