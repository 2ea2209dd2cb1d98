import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { need } from "../../needs.ts";
import { path, templatesReadme, tryAll } from "./templates-readme.ts";

test("the suffix rule is right or refuses on every chat template that packages at hand carry", async (t) => {
  if (!(await need(t, "templates"))) return;
  const all = await tryAll();
  const wrong = all.flatMap(({ template, trials }) =>
    trials
      .filter(({ verdict }) => verdict === "wrong")
      .map(({ append, variant, detail }) => `${template.name}: ${append} after ${variant}: ${detail}`),
  );
  assert.deepEqual(wrong, []);
  assert.ok(all.length > 100, `${all.length} templates`);
  // Where nothing is refused that templates of the families in use do.
  for (const name of [
    "Qwen-Qwen3-0.6B",
    "Qwen-Qwen2.5-7B-Instruct",
    "GLM-4.6",
    "Kimi-K3",
    "MiniMax-M2",
    "deepseek-ai-DeepSeek-V3.2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
  ]) {
    const found = all.find(({ template }) => template.name === name);
    assert.deepEqual(
      found?.trials.filter(({ verdict }) => verdict !== "equal" && verdict !== "kept"),
      [],
      name,
    );
  }
  assert.equal(await readFile(path, "utf8"), templatesReadme(all), "run: node test/proxy/continuity/templates-readme.ts");
});
