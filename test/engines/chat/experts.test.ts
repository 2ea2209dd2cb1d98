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
  assert.equal(await expertsOf(await modelWith("dense", '{"model_type": "llama", "num_hidden_layers": 2}')), 0);
  assert.equal(await expertsOf(await modelWith("qwen", '{"num_local_experts": 8, "num_experts_per_tok": 2}')), 8);
  assert.equal(await expertsOf(await modelWith("seen", '{"text_config": {"n_routed_experts": 256, "n_shared_experts": 1}}')), 256);
  assert.equal(await expertsOf(await modelWith("list", '{"moe_num_experts": [64, 64]}')), 64);
});

test("the number of experts is unknown if the folder is elsewhere or cannot be read", async () => {
  assert.equal(await expertsOf(null), null);
  assert.equal(await expertsOf("Qwen/Qwen3-30B-A3B"), null);
  assert.equal(await expertsOf(join(scratch, "none")), null);
  assert.equal(await expertsOf(await modelWith("broken", "{")), null);
});
